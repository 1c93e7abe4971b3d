"""Language defaults: each known language has a tokenizer that exists and a stemmer that runs."""

from __future__ import annotations

import pytest
import snowballstemmer

from rejoinder.errors import UsageError
from rejoinder.registry import TOKENIZERS
from rejoinder.text.languages import _NAMES, _STEMMERS, Language, language


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("en", Language("en", "English", "13a", "porter")),
        ("ja", Language("ja", "Japanese", "ja-mecab", "none")),
        ("zh", Language("zh", "Chinese", "zh-jieba", "none")),
        ("de", Language("de", "German", "intl", "german")),
        ("th", Language("th", "Thai", "char", "none")),
        ("ko", Language("ko", "Korean", "intl", "none")),
    ],
)
def test_defaults(code: str, expected: Language) -> None:
    assert language(code) == expected


@pytest.mark.parametrize("code", ["lo", "km", "my"])
def test_scripts_without_spaces_are_split_into_characters(code: str) -> None:
    assert language(code).tokenizer == "char"


@pytest.mark.parametrize(
    ("tag", "code"),
    [("en-US", "en"), ("en_GB", "en"), ("EN", "en"), ("zh-TW", "zh"), ("zh-Hant-HK", "zh")],
)
def test_regions_and_scripts_are_ignored(tag: str, code: str) -> None:
    assert language(tag) == language(code)


@pytest.mark.parametrize("code", sorted(_NAMES))
def test_every_language_has_tools_that_exist(code: str) -> None:
    known = language(code)
    assert known.name.strip() == known.name != ""
    assert known.tokenizer in TOKENIZERS.builtin
    assert known.stemmer == "none" or known.stemmer in snowballstemmer.algorithms()


def test_every_stemmer_has_its_language() -> None:
    variants = {"english", "dutch_porter"}
    assert set(snowballstemmer.algorithms()) - variants <= set(_STEMMERS.values())
    assert set(_STEMMERS) <= set(_NAMES)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("japanese", "ja"),
        ("Japanes", "ja"),
        ("jp", "ja"),
        ("jpn", "ja"),
        ("cn", "zh"),
        ("eng", "en"),
    ],
)
def test_likely_mistakes_are_answered_with_the_code(wrong: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"unknown language '{wrong}': did you mean '{meant}'"):
        language(wrong)


@pytest.mark.parametrize("wrong", ["", "xx", "x", "e n", "en-", "en\n", "日本", "qqqqq", "en-US!"])
def test_nonsense_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="such as en, ja, zh or pt-BR"):
        language(wrong)

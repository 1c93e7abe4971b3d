"""Texts that a tokenizer failed to split are detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rejoinder.text.scripts import unsplit_script
from rejoinder.text.tokenizers.char import Char
from rejoinder.text.tokenizers.intl import Intl
from rejoinder.text.tokenizers.ja_mecab import JaMecab
from rejoinder.text.tokenizers.mteval13a import Mteval13a
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.text.tokenizers.whitespace import Whitespace
from rejoinder.text.tokenizers.zh_jieba import ZhJieba
from rejoinder.text.tokens import Tokens


@pytest.mark.parametrize(
    ("tokens", "script"),
    [
        (["今日はいい天気です"], "Japanese"),
        (["ok", "コミュニケーションする"], "Japanese"),
        (["我来到北京清华大学"], "Chinese"),
        (["สวัสดีครับผมชื่อสมชาย"], "Thai, Lao, Khmer or Burmese"),
        (["ສະບາຍດີຂ້ອຍຊື່ສົມຊາຍ"], "Thai, Lao, Khmer or Burmese"),
        (["សួស្តីខ្ញុំឈ្មោះសុខ"], "Thai, Lao, Khmer or Burmese"),
        (["မင်္ဂလာပါကျွန်တော်"], "Thai, Lao, Khmer or Burmese"),
    ],
)
def test_script_of_a_long_run(tokens: list[str], script: str) -> None:
    found = unsplit_script(tokens, 3)
    assert found is not None
    assert found.name == script


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [""],
        ["internationalization", "Donaudampfschifffahrt", "Ελληνικά", "안녕하세요"],
        ["今日", "は", "いい", "天気", "です"],
        ["我", "来到", "北京", "大学"],
        ["コミュニケーション", "コンピューター"],
        ["สวัสดี", "ครับ"],
    ],
)
def test_words_are_no_problem(tokens: list[str]) -> None:
    assert unsplit_script(tokens, 3) is None


def test_limit_is_the_maximum_length() -> None:
    assert unsplit_script(["天気予報"], 3) is not None
    assert unsplit_script(["天気予報"], 4) is None


@pytest.mark.parametrize("tokenizer", [Mteval13a(), Intl(), Whitespace()])
def test_tokenizers_that_need_spaces_report_texts_without_any(tokenizer: Tokenizer) -> None:
    texts = [
        "今日はとてもいい天気ですね",
        "今日 は いい 天気",
        "我来到北京清华大学读书",
        "it is fine",
        "",
    ]
    problems = Tokens.of(tokenizer, texts).problems
    name = tokenizer.signature()
    assert problems == {
        0: f"the tokenizer {name} does not split Japanese text; use tok=ja-mecab or tok=char",
        2: f"the tokenizer {name} does not split Chinese text; use tok=zh-jieba or tok=char",
    }


@pytest.mark.parametrize("tokenizer", [JaMecab(), ZhJieba(), Char()])
def test_tokenizers_that_need_no_spaces_report_nothing(tokenizer: Tokenizer) -> None:
    tokens = Tokens.of(tokenizer, ["今日はとてもいい天気ですね", "我来到北京清华大学读书"])
    assert not tokens.problems
    assert (tokens.lengths >= 4).all()


def test_text_without_tokens_is_a_problem_unless_it_is_empty() -> None:
    tokens = Tokens.of(Mteval13a(), ["<skipped>", "", " \n\u3000", "-\n<skipped>"])
    assert tokens.lengths.tolist() == [0, 0, 0, 0]
    lost = "the tokenizer 13a finds no token in the text"
    assert tokens.problems == {0: lost, 3: lost}


def test_tokenizer_that_loses_texts_is_a_bug() -> None:
    @dataclass(frozen=True)
    class Losing(Tokenizer):
        def tokenize(self, texts: object) -> list[list[str]]:
            return []

        def signature(self) -> str:
            return "losing"

    with pytest.raises(ValueError, match="losing gave 0 lists of tokens for 1 texts"):
        Tokens.of(Losing(), ["a"])


def lines(*parts: str) -> Callable[[Path], list[str]]:
    return lambda data: data.joinpath(*parts).read_text("utf-8").splitlines()


def test_real_chinese_dialogues_are_reported_and_english_ones_are_not(data: Path) -> None:
    chinese = lines("xdailydialog-zh", "validation.txt")(data)
    english = lines("dailydialog", "test.txt")(data)
    twitter = lines("twitter", "conversations.txt")(data)[:5000]
    assert len(Tokens.of(Mteval13a(), chinese).problems) > 0.99 * len(chinese)
    assert not Tokens.of(Mteval13a(), english).problems
    assert len(Tokens.of(Mteval13a(), twitter).problems) < 0.01 * len(twitter)

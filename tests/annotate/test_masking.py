"""Masks of words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.annotate.masking import MASK, mask_words, masked_count, word_spans
from rejoinder.registry import TOKENIZERS
from rejoinder.text.languages import language

TEXTS = {
    "en": "What is your favorite subject? “Don’t” say: well-known, it's 3.5% &amp; <skipped> AT&T!",
    "ja": "そして、ディズニーランドの大混雑も苦手です・・・。",
    "zh": "我来到北京清华大学，你呢？",
    "fr": "«C'est 3,50 €», dit-il.",
    "th": "สวัสดีครับ วันนี้",
}


def words(code: str, text: str) -> list[str]:
    tokenizer = TOKENIZERS.make(language(code).tokenizer)
    return [text[begin:end] for begin, end in word_spans(tokenizer, text)]


def test_words() -> None:
    assert words("en", TEXTS["en"]) == [
        *("What", "is", "your", "favorite", "subject", "Don’t", "say", "well-known", "it's"),
        *("3.5", "amp", "skipped", "AT", "T"),
    ]
    assert words("ja", TEXTS["ja"])[:4] == ["そして", "ディズニーランド", "の", "大"]
    assert words("zh", TEXTS["zh"]) == ["我", "来到", "北京", "清华大学", "你", "呢"]
    assert words("fr", TEXTS["fr"]) == ["C", "est", "3,50", "dit", "il"]
    assert words("en", "?! ... — ★ 😀") == []


def test_accents_stay_with_their_letter() -> None:
    thai = words("th", TEXTS["th"])
    assert "".join(thai) == TEXTS["th"].replace(" ", "")
    assert all(not re.match(r"[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]", word) for word in thai)


def test_number_of_masked_words() -> None:
    # half up: .3 * 5 = 1.5 -> 2; .35 * 10 = 3.5 -> 4; .1 * 3 = .3 -> 0, but at least one
    assert [masked_count(0.3, 5), masked_count(0.35, 10), masked_count(0.1, 3)] == [2, 4, 1]
    assert [masked_count(0.0, 9), masked_count(0.6, 0), masked_count(1.0, 7)] == [0, 0, 7]


def test_the_example_of_the_paper() -> None:
    tokenizer = TOKENIZERS.make("13a")
    masked = mask_words(tokenizer, [TEXTS["en"][:30]], 0.6, np.random.default_rng(4))[0]
    assert masked.count(MASK) == 3 and masked.endswith("?")
    assert len(masked.split()) == 5


def test_words_of_all_turns_are_masked_alike() -> None:
    tokenizer = TOKENIZERS.make("whitespace")
    context = ["a b c d", "e f g h", "i j"]
    seen = [mask_words(tokenizer, context, 0.3, np.random.default_rng(n)) for n in range(300)]
    assert all(sum(turn.count(MASK) for turn in turns) == 3 for turns in seen)
    counts = np.array([[turn.count(MASK) for turn in turns] for turns in seen]).sum(axis=0)
    # 900 masked words over 10: 360, 360 and 180 are expected, standard deviation below 15
    assert np.abs(counts - [360, 360, 180]).max() < 60


@pytest.mark.parametrize("code", sorted(TEXTS))
@given(data=st.data())
def test_everything_but_words_stays(code: str, data: st.DataObject) -> None:
    alphabet = st.sampled_from([*TEXTS[code], *" \n.,!?&<>*'-　。、😀é"]) | st.characters()
    turns = data.draw(st.lists(st.text(alphabet, max_size=40), min_size=1, max_size=3))
    share = data.draw(st.floats(0, 1))
    seed = data.draw(st.integers(0, 1000))
    tokenizer = TOKENIZERS.make(language(code).tokenizer)
    masked = mask_words(tokenizer, turns, share, np.random.default_rng(seed))
    assert masked == mask_words(tokenizer, turns, share, np.random.default_rng(seed))
    replaced = 0
    for text, shown in zip(turns, masked, strict=True):
        spans = word_spans(tokenizer, text)
        assert all(text[begin:end].strip() == text[begin:end] != "" for begin, end in spans)
        # the shown text is made of the original's pieces: each word is as it was, or the mask
        pieces, place = [], 0
        for begin, end in spans:
            pieces += [re.escape(text[place:begin]), f"({re.escape(text[begin:end])}|\\*\\*\\*)"]
            place = end
        found = re.fullmatch("".join([*pieces, re.escape(text[place:])]), shown)
        assert found is not None
        originals = [text[begin:end] for begin, end in spans]
        replaced += sum(a != b for a, b in zip(originals, found.groups(), strict=True))
    total = sum(len(word_spans(tokenizer, text)) for text in turns)
    assert replaced == masked_count(share, total)

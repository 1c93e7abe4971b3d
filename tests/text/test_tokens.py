"""TextTable: token ids of distinct texts, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.text.tokenizers.char import Char
from rejoinder.text.tokenizers.mteval13a import Mteval13a
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.text.tokenizers.whitespace import Whitespace
from rejoinder.text.tokens import TextTable, Tokens


@dataclass(frozen=True)
class Counting(Tokenizer):
    """Whitespace that remembers which texts it was given."""

    seen: list[str] = field(default_factory=list, compare=False)

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        self.seen.extend(texts)
        return [text.split() for text in texts]

    def signature(self) -> str:
        return "counting"


def rows(tokens: Tokens) -> list[list[int]]:
    return [
        tokens.ids[a:b].tolist() for a, b in zip(tokens.starts[:-1], tokens.starts[1:], strict=True)
    ]


def test_equal_tokens_have_equal_ids() -> None:
    tokens = TextTable(["a b a", "", "c b"]).tokens(Whitespace())
    (a, b, again), nothing, (c, b_again) = rows(tokens)
    assert (a, b) == (again, b_again)
    assert len({a, b, c}) == tokens.vocabulary_size == 3
    assert nothing == []
    assert tokens.lengths.tolist() == [3, 0, 2]
    assert tokens.ids.dtype == np.int32
    assert tokens.starts.dtype == np.int64


@given(texts=st.lists(st.text("ab. \n", max_size=8), unique=True, max_size=8))
def test_ids_and_tokens_are_one_to_one(texts: list[str]) -> None:
    tokens = TextTable(texts).tokens(Mteval13a())
    words = Mteval13a().tokenize(texts)
    assert tokens.lengths.tolist() == [len(w) for w in words]
    pairs = {
        pair
        for numbers, w in zip(rows(tokens), words, strict=True)
        for pair in zip(numbers, w, strict=True)
    }
    assert len(pairs) == len({n for n, _ in pairs}) == len({w for _, w in pairs})
    assert {n for n, _ in pairs} == set(range(tokens.vocabulary_size))


def test_each_text_is_tokenized_once_for_each_casing() -> None:
    table, tokenizer = TextTable(["A b", "B"]), Counting()
    first = table.tokens(tokenizer)
    assert table.tokens(Counting()) is first
    assert tokenizer.seen == ["A b", "B"]
    lowered = table.tokens(tokenizer, lower=True)
    assert table.tokens(tokenizer, lower=True) is lowered
    assert tokenizer.seen == ["A b", "B", "a b", "b"]


def test_lower_ignores_case() -> None:
    table = TextTable(["Yes ÉTÉ", "yes été"])
    cased, lowered = rows(table.tokens(Whitespace())), rows(table.tokens(Whitespace(), lower=True))
    assert not set(cased[0]) & set(cased[1])
    assert lowered[0] == lowered[1]


def test_problems_have_the_index_of_the_text() -> None:
    tokens = TextTable(["fine", "今日はいい天気です", "<skipped>"]).tokens(Mteval13a())
    assert sorted(tokens.problems) == [1, 2]
    assert "does not split Japanese" in tokens.problems[1]
    assert "finds no token" in tokens.problems[2]
    assert not TextTable(["今日はいい天気です"]).tokens(Char()).problems


def test_characters_are_code_points_without_white_space() -> None:
    table = TextTable(["A b\u3000😀\n", "", " \t", "\ud800"])
    assert rows(table.characters()) == [[ord("A"), ord("b"), ord("😀")], [], [], [0xD800]]
    assert rows(table.characters(lower=True))[0] == [ord("a"), ord("b"), ord("😀")]
    assert table.characters() is table.characters()
    assert table.characters().vocabulary_size > 0x10FFFF


def test_empty_tables() -> None:
    for texts in ([], [""]):
        table = TextTable(list(texts))
        for tokens in (table.tokens(Mteval13a()), table.characters()):
            assert tokens.ids.size == 0
            assert tokens.lengths.tolist() == [0] * len(texts)

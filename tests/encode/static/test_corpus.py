"""Training texts of vectors: each turn once, words by frequency, without rare words."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.encode.static.train.corpus import Corpus, read_texts
from rejoinder.errors import DataError
from rejoinder.registry import TOKENIZERS

WHITESPACE = TOKENIZERS.make("whitespace")


def texts(*paths: Path) -> list[str]:
    return [text for batch in read_texts([str(path) for path in paths]) for text in batch]


def corpus(batches: list[list[str]], *, lower: bool = True, min_count: int = 1) -> Corpus:
    return Corpus.of(batches, WHITESPACE, lower, min_count)


def test_every_turn_of_the_pairs_is_read_once(tmp_path: Path) -> None:
    """a → b, a → c, c → d: four turns; b and c answer the same a, c is answered by d."""
    pairs = [("a", "1", "b", "2"), ("a", "1", "c", "3"), ("c", "3", "d", "4"), ("a", "9", "b", "8")]
    names = ["utterance", "utterance_id", "response", "response_id"]
    table = pa.table(dict(zip(names, zip(*pairs, strict=True), strict=True)))
    pq.write_table(table, tmp_path / "p.parquet")
    # the last pair has the same words, but they were said by others
    assert sorted(texts(tmp_path / "p.parquet")) == ["a", "a", "b", "b", "c", "d"]
    pq.write_table(table.drop_columns(["response_id"]), tmp_path / "p.parquet")
    assert sorted(texts(tmp_path / "p.parquet")) == ["a", "a", "b", "b", "c", "c", "d"]
    pq.write_table(table.select(["utterance", "response"]), tmp_path / "p.parquet")
    assert sorted(texts(tmp_path / "p.parquet")) == ["a"] * 3 + ["b"] * 2 + ["c"] * 2 + ["d"]


def test_several_plain_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\n two \r\n", "utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"drei\n"))
    pq.write_table(pa.table({"utterance": ["x", None], "response": ["y", ""]}), tmp_path / "p")
    steps: list[tuple[int, int]] = []
    paths = [str(tmp_path / name) for name in ("a.txt", "b.txt.gz", "p")]
    batches = read_texts(paths, lambda done, total: steps.append((done, total)))
    assert [text for batch in batches for text in batch] == ["one", "two", "drei", "x", "y"]
    assert steps == sorted(steps) and steps[-1][0] == steps[-1][1]


def test_bad_files(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    for data, complaint in (
        (b"good\nbad \xff\n", r"bad:2: the line is not UTF-8"),
        (b"PAR1 and no more", r"bad: not a Parquet file, or a damaged one"),
    ):
        bad.write_bytes(data)
        with pytest.raises(DataError, match=complaint):
            texts(bad)
    pq.write_table(pa.table({"utterance": ["a"]}), bad)
    with pytest.raises(DataError, match="bad: has no column response; expected pairs"):
        texts(bad)
    with pytest.raises(DataError, match="cannot be read: no such file"):
        texts(tmp_path / "nothing")


def test_words_are_numbered_by_frequency() -> None:
    made = corpus([["b a a", "c"], ["A b d d"]], min_count=2)
    # a 3 times, b and d twice, c once; ties in the order of the alphabet
    assert made.words == ["a", "b", "d"]
    assert made.counts.tolist() == [3, 2, 2]
    # the text of which nothing is left is gone
    assert [made.ids[b:e].tolist() for b, e in zip(made.starts, made.starts[1:], strict=False)] == [
        [1, 0, 0],
        [0, 1, 2, 2],
    ]
    assert list(made.sentences()) == [["b", "a", "a"], ["a", "b", "d", "d"]]
    assert (made.texts, made.tokens, made.unsplit) == (3, 8, 0)
    assert corpus([["A a"]], lower=False).words == ["A", "a"]


def test_word_ids_do_not_depend_on_the_order_of_files() -> None:
    one = corpus([["b a", "c d"], ["e f a"]])
    other = corpus([["e f a"], ["c d", "b a"]])
    assert one.words == other.words


def test_texts_that_cannot_be_split_are_left_out() -> None:
    made = corpus([["こんにちは、お元気ですか今日はどうでしょう", "good morning"]])
    assert made.words == ["good", "morning"]
    assert (made.texts, made.unsplit) == (2, 1)


def test_no_texts() -> None:
    made = corpus([])
    assert (made.words, made.texts, len(made.ids), made.starts.tolist()) == ([], 0, 0, [0])
    made = corpus([["", " "], ["rare words"]], min_count=2)
    assert (made.words, made.texts, made.starts.tolist()) == ([], 3, [0])

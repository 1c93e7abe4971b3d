"""Samples of pairs: their size, order and reproducibility."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.errors import DataError
from rejoinder.logs.sample import sample_pairs
from rejoinder.logs.schema import PAIRS


def write(path: Path, start: int, stop: int) -> str:
    plain = {pa.string(): "x", pa.int32(): 1, pa.list_(pa.string()): ["x"]}
    rows = [
        {
            **{field.name: plain.get(field.type) for field in PAIRS},
            "utterance": f"u{number}",
            "response": f"r{number}",
        }
        for number in range(start, stop)
    ]
    pq.write_table(pa.Table.from_pylist(rows, PAIRS), path)
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [write(tmp_path / "a.parquet", 0, 700), write(tmp_path / "b.parquet", 700, 1000)]


def utterances(path: Path) -> list[int]:
    table = pq.read_table(path)
    assert table.schema == PAIRS
    assert [u[1:] for u in table["utterance"].to_pylist()] == [
        r[1:] for r in table["response"].to_pylist()
    ]
    return [int(text[1:]) for text in table["utterance"].to_pylist()]


def test_several_files_are_concatenated(files: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert sample_pairs(files, out) == (1000, 1000)
    assert utterances(out) == list(range(1000))
    assert sample_pairs(files, out, 5000) == (1000, 1000)


def test_a_sample_keeps_the_order(files: list[str], tmp_path: Path) -> None:
    one, two, other = (tmp_path / name for name in ("1.parquet", "2.parquet", "3.parquet"))
    assert sample_pairs(files, one, 100) == (100, 1000)
    drawn = utterances(one)
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 100
    # 100 of 1000: 70 from the first file, hypergeometric standard deviation 4.3
    assert sum(number < 700 for number in drawn) == pytest.approx(70, abs=20)
    sample_pairs(files, two, 100)
    assert one.read_bytes() == two.read_bytes()
    sample_pairs(files, other, 100, seed=1)
    assert utterances(other) != drawn


def test_one_split_only(files: list[str], tmp_path: Path) -> None:
    """Rows 0, 3, 6 … of each file are training pairs, the others are not."""
    for path in files:
        table = pq.read_table(path)
        split = [("train", "validation", "test")[number % 3] for number in range(len(table))]
        place = table.schema.get_field_index("split")
        pq.write_table(table.set_column(place, PAIRS.field(place), pa.array(split)), path)
    out = tmp_path / "out.parquet"
    # 700 rows have 234 multiples of 3, 300 have 100
    assert sample_pairs(files, out, split="train") == (334, 334)
    assert utterances(out) == [*range(0, 700, 3), *range(700, 1000, 3)]
    assert sample_pairs(files, out, 50, split="train") == (50, 334)
    assert set(utterances(out)) <= {*range(0, 700, 3), *range(700, 1000, 3)}
    with pytest.raises(DataError, match="no pair is of the split 'held-out'"):
        sample_pairs(files, out, split="held-out")


def test_files_that_are_not_pairs_are_refused(files: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    (tmp_path / "text").write_text("hello")
    pq.write_table(pa.table({"utterance": ["a"]}), tmp_path / "short.parquet")
    for name, complaint in (
        ("none.parquet", "cannot be read"),
        ("text", "not a Parquet file"),
        ("short.parquet", "has no column dialogue_id, turn"),
    ):
        with pytest.raises(DataError, match=complaint):
            sample_pairs([files[0], str(tmp_path / name)], out)
    assert not out.exists()

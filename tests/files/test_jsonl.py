"""Reading and writing: formats, compression, and complaints that name file and line."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import zstandard

from rejoinder.errors import DataError, UsageError
from rejoinder.files.item_file import read_items
from rejoinder.files.jsonl import MAX_LINE_BYTES, JsonLines, read_scores, write_jsonl
from rejoinder.files.output import open_output
from rejoinder.items import Item, Reference, Score

GOOD = {"id": "a", "context": ["hi"], "response": "hello", "references": ["hey"]}


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def read(tmp_path: Path, content: bytes, name: str = "items.jsonl") -> list[Item]:
    path = tmp_path / name
    path.write_bytes(content)
    return list(read_items(path))


def test_references_in_both_forms_and_ragged(tmp_path: Path) -> None:
    mixed = ["plain", {"text": "rated", "weight": -0.5, "source": "retrieved", "score": 0.9}]
    items = read(
        tmp_path, lines(GOOD, {"id": "b", "response": ""}, {**GOOD, "id": "c", "references": mixed})
    )
    assert [len(item.references) for item in items] == [1, 0, 2]
    assert items[2].references == [
        Reference("plain"),
        Reference("rated", weight=-0.5, source="retrieved", score=0.9),
    ]


@pytest.mark.parametrize(
    ("ratings", "average"),
    [({"x": 1, "y": 4}, 2.5), ([1, 2, 6], 3.0), (4, 4.0), (None, None), ([], None), ({}, None)],
)
def test_ratings_in_all_forms(tmp_path: Path, ratings: object, average: float | None) -> None:
    references = ["hey", {"text": "hi", "ratings": ratings}]
    (item,) = read(tmp_path, lines({**GOOD, "ratings": ratings, "references": references}))
    assert item.rating() == average
    assert [reference.rating() for reference in item.references] == [None, average]


def test_ratings_of_references_are_written_and_numbers_may_be_text(tmp_path: Path) -> None:
    references = [{"text": "hey", "ratings": {"ann": "4", "bob": 2}}, {"text": "hi"}]
    (item,) = read(tmp_path, lines({**GOOD, "references": references}))
    assert item.references == [Reference("hey", ratings={"ann": 4.0, "bob": 2.0}), Reference("hi")]
    written = msgspec.json.encode(item) + b"\n"
    assert b'"references":[{"text":"hey","ratings":{"ann":4.0,"bob":2.0}},{"text":"hi"}]' in written
    assert read(tmp_path, written) == [item]


def test_dstc10_names(tmp_path: Path) -> None:
    record = {
        "dialogue_id": 7,
        "model": "bot",
        "context": "hi\nhow are you",
        "response": "fine",
        "reference": "good",
        "annotations": {"overall": [4, 5], "grammar": [1, 1]},
    }
    (item,) = read(tmp_path, lines(record))
    assert item == Item(
        id="7:bot",
        context_id="7",
        context=["hi", "how are you"],
        response="fine",
        system="bot",
        references=[Reference("good")],
        ratings=[4.0, 5.0],
    )


def test_numbers_as_ids_become_text(tmp_path: Path) -> None:
    assert [item.id for item in read(tmp_path, lines({**GOOD, "id": 12}))] == ["12"]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_written_file_is_read_back(tmp_path: Path, suffix: str) -> None:
    items = [
        Item(
            id=str(i), response="é日本", references=[Reference("x", weight=0.5)], ratings={"a": 1.0}
        )
        for i in range(5)
    ]
    path = tmp_path / f"items.jsonl{suffix}"
    for _ in range(2):  # a second time: an existing file is replaced
        with open_output(path) as stream:
            write_jsonl(stream, items)
    assert list(read_items(path)) == items
    assert os.listdir(tmp_path) == [path.name]


def test_same_records_make_the_same_bytes(tmp_path: Path) -> None:
    for suffix in (".gz", ".zst"):
        made = []
        for name in ("a", "b"):
            path = tmp_path / f"{name}{suffix}"
            with open_output(path) as stream:
                write_jsonl(stream, [Score("1", "bleu", 0.5)])
            made.append(path.read_bytes())
        assert made[0] == made[1]


def test_concatenated_zstd_frames(tmp_path: Path) -> None:
    frames = [zstandard.compress(lines({**GOOD, "id": str(i)})) for i in range(3)]
    assert len(read(tmp_path, b"".join(frames), "items.jsonl.zst")) == 3


BAD = [
    (b'{"id": "b", "response"\n', "2: broken JSON"),
    (b'{"id": "b", "response": "x"', "2: the file ends in the middle of a line"),
    (b'{"id": "b"}\n', "2: the field is missing: .?response"),
    (b'{"id": null, "response": "x"}\n', "2: id: expected text, got null"),
    (b'{"id": "b", "response": 5}\n', "2: response: expected text, got a whole number"),
    (b'{"id": "b", "response": null}\n', "2: response: expected text, got null"),
    (b'{"id": "b", "response": "x", "references": 7}\n', "2: references: expected a list"),
    (b'{"id": "b", "response": "x", "references": [3]}\n', r"2: references\[0\]: expected"),
    (b'{"id": "b", "response": "x", "context": [1]}\n', r"2: context\[0\]: expected text"),
    (b'{"id": "b", "response": "x", "ratings": "good"}\n', "2: ratings: expected a number or"),
    (b'{"id": "b", "response": "x", "ratings": [1, "b"]}\n', r"2: ratings\[1\]: expected a number"),
    (b'{"id": "b", "response": "x", "ratings": {"a": "b"}}\n', "2: ratings.*: expected a number"),
    (b'{"id": "b", "response": "x", "ratings": NaN}\n', "2: NaN and Infinity are not JSON"),
    (b'{"id": "b", "response": "x", "ratings": [1, NaN]}\n', "2: NaN and Infinity are not JSON"),
    (b'{"id": "b", "response": "x", "ratings": 1e999}\n', "2: .*a number is too large"),
    (b'{"id": "b", "response": "x", "ratings": 1e16}\n', "2: ratings: expected numbers from -1e"),
    (b'{"id": "b", "response": "x", "ratings": [1, -1e300]}\n', "2: ratings: .*, got -1e.300"),
    (b'{"id": "b", "response": "x", "ratings": {"a": 2e15}}\n', "2: ratings: .*, got 2e.15"),
    (b'{"id": "b", "response": "x", "ratings": 1' + b"0" * 400 + b"}\n", "2: .*"),
    (b'{"id": true, "response": "x"}\n', "2: id: expected text, got true or false"),
    (b'{"id": "b", "context_id": false, "response": "x"}\n', "2: context_id: expected text"),
    (b'{"dialogue_id": true, "response": "x"}\n', "2: dialogue_id: expected text or a whole"),
    (b'{"id": "b", "response": ":NaN, Infinity" "x"}\n', "2: broken JSON"),
    (
        b'{"id": "b", "response": "x", "references": [{"text": "y", "weight": 1.5}]}\n',
        r"2: references\[0\].weight: expected a weight from -1 to 1, got 1.5",
    ),
    (
        b'{"id": "b", "response": "x", "references": [{"text": "y", "ratings": [1, 2e15]}]}\n',
        r"2: references\[0\].ratings: expected numbers from -1e.15 to 1e.15, got 2e.15",
    ),
    (
        b'{"id": "b", "response": "x", "references": [{"text": "y", "ratings": {"a": "good"}}]}\n',
        r"2: references\[0\].ratings.*: expected a number",
    ),
    (b'{"id": "a", "response": "x"}\n', "2: the id is in line 1, too"),
    (b'{"id": "b", "response": "\xff"}\n', "2: the line is not UTF-8"),
    (b"[1, 2]\n", "2: the line is a JSON array; expected one object a line"),
    (b"7\n", "2: the line is not an object"),
    (
        b'{"id": "b", "response": "' + b"x" * MAX_LINE_BYTES + b'"}\n',
        "2: the line is longer than 16 MB",
    ),
    (b"[" * 5000 + b"\n", "2: broken JSON|2: .*depth|2: .*recursion"),
]


@pytest.mark.parametrize(("second", "complaint"), BAD, ids=[c for _, c in BAD])
def test_bad_lines_are_named(tmp_path: Path, second: bytes, complaint: str) -> None:
    path = re.escape(str(tmp_path / "items.jsonl"))
    with pytest.raises(DataError, match=f"^{path}:{complaint}") as caught:
        read(tmp_path, lines(GOOD) + second)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_an_array_over_several_lines_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1: the file is one JSON document"):
        read(tmp_path, b'[\n{"id": "a", "response": "x"}\n]\n')


def test_empty_files(tmp_path: Path) -> None:
    for content in (b"", b"\n \n"):
        with pytest.raises(DataError, match=r"items.jsonl: the file is empty"):
            read(tmp_path, content)
    (tmp_path / "s").write_bytes(b"")
    with pytest.raises(DataError, match="the file is empty"):
        list(read_scores(tmp_path / "s"))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_cut_off_and_damaged_archives(tmp_path: Path, suffix: str) -> None:
    plain = lines(*({**GOOD, "id": str(i), "response": os.urandom(40).hex()} for i in range(3000)))
    checked = zstandard.ZstdCompressor(write_checksum=True)
    packed = gzip.compress(plain) if suffix == ".gz" else checked.compress(plain)
    for broken in (packed[: len(packed) // 2], b"not compressed\n", packed[:-1]):
        with pytest.raises(DataError, match=r"items.jsonl.*:\d+: the compressed file is damaged"):
            read(tmp_path, broken, f"items.jsonl{suffix}")
    for place in range(20, len(packed), len(packed) // 20):
        flipped = bytearray(packed)
        flipped[place] ^= 0xFF
        with pytest.raises(DataError, match=r"items.jsonl.*:\d+: "):
            read(tmp_path, bytes(flipped), f"items.jsonl{suffix}")


@pytest.mark.parametrize(
    ("pack", "complaint"),
    [
        (gzip.compress, r"compressed with gzip; give it a name that ends in \.gz"),
        (zstandard.compress, r"compressed with zstd; give it a name that ends in \.zst"),
        (lambda plain: plain.decode().encode("utf-16"), "in UTF-16; convert it"),
        (lambda plain: b"\xfe\xff" + plain.decode().encode("utf-16-be"), "in UTF-16; convert it"),
    ],
)
def test_compressed_and_binary_files_without_their_ending_are_named(
    tmp_path: Path, pack: Callable[[bytes], bytes], complaint: str
) -> None:
    with pytest.raises(DataError, match=rf"items\.jsonl: the file is {complaint}"):
        read(tmp_path, pack(lines(GOOD)))


def test_zstd_with_a_large_window(tmp_path: Path) -> None:
    settings = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True)
    # without the size in its head, a frame needs the whole window
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    packed = packer.compress(lines(GOOD)) + packer.flush()
    assert len(read(tmp_path, packed, "items.jsonl.zst")) == 1


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.jsonl: cannot be read: no such file"):
        list(read_items(tmp_path / "nothing.jsonl"))
    with pytest.raises(DataError, match="cannot be read: it is a folder"):
        list(read_items(tmp_path))


def test_a_repeated_id_in_a_long_file_is_reported(tmp_path: Path) -> None:
    records = [{**GOOD, "id": str(i)} for i in range(3000)]
    records[2900]["id"] = "17"
    with pytest.raises(DataError, match="jsonl:2901: the id is in line 18, too"):
        read(tmp_path, lines(*records))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert len(read(tmp_path, b"\xef\xbb\xbf" + lines(GOOD))) == 1


def test_blank_lines_count_as_lines(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="jsonl:4: broken JSON"):
        read(tmp_path, b"\n" + lines(GOOD) + b"\n{]\n")


def test_an_output_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("before")
    with pytest.raises(RuntimeError), open_output(path) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "no" / "such" / "x", tmp_path, tmp_path / "file" / "x"):
        with pytest.raises(UsageError, match="cannot be written"), open_output(path):
            pass


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "there" / "real.jsonl")
    for content in (b"new", b"newer"):  # the target need not exist
        with open_output(link) as stream:
            stream.write(content)
        assert link.is_symlink()
        assert (tmp_path / "there" / "real.jsonl").read_bytes() == content
    assert os.listdir(tmp_path / "there") == ["real.jsonl"]


@pytest.mark.parametrize("name", ["x" * 250, "é" * 125, "日" * 83])
def test_the_longest_names_can_be_written(tmp_path: Path, name: str) -> None:
    with open_output(tmp_path / name) as stream:
        stream.write(b"x")
    assert os.listdir(tmp_path) == [name]


def test_a_device_is_written_not_replaced() -> None:
    with open_output("/dev/null") as stream:
        stream.write(b"x")
    assert not Path("/dev/null").is_file()


def test_fraction_grows_to_one(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(lines(*({**GOOD, "id": str(i)} for i in range(2000))))
    source = JsonLines(path)
    assert source.fraction is None
    seen = [source.fraction or 0.0 for _ in source]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0

"""``rejoinder join`` refuses what the readers of its output would refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.cli import main
from rejoinder.files.item_file import read_items
from rejoinder.files.jsonl import write_jsonl_file


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"metric": "m", "value": 1}', "expected a text in the field id"),
        ('{"id": ["x"], "response": ""}', "expected a text in the field id"),
        # names as they are read: a number, and a level that need not be said
        ('{"id": 1, "response": ""}\n{"id": "1", "response": ""}', "'1' is already in"),
        (
            '{"id": "1", "metric": "m", "value": 1}\n'
            '{"id": "1", "metric": "m", "value": 1, "level": "item"}',
            "'1' is already in",
        ),
    ],
)
def test_lines_that_can_not_be_joined(
    lines: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text(lines)
    assert main.run(["join", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "b.jsonl")]) == 3
    assert said in capsys.readouterr().err
    assert not (tmp_path / "b.jsonl").exists()


def test_tables_become_items(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("prompt,answer,bot\nhi,hello,a\nho,hey,a\n")
    (tmp_path / "b.jsonl").write_text('{"context": ["hi"], "response": "no", "system": "b"}\n')
    files = [str(tmp_path / name) for name in ("a.csv", "b.jsonl")]
    output = tmp_path / "items.jsonl"
    assert main.run(["join", *files, "-o", str(output)]) == 0
    assert "columns recognised by name: response = answer" in capsys.readouterr().err
    items = list(read_items(output))
    assert [(item.context, item.response, item.system) for item in items] == [
        (["hi"], "hello", "a"),
        (["ho"], "hey", "a"),
        (["hi"], "no", "b"),
    ]
    # the ids are those of the tables, so that their scores still belong to them
    assert [item.id for file in files for item in read_items(file)] == [item.id for item in items]


def test_columns_belong_to_the_files_that_have_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table of one's own, and the replies of other systems as ``reply`` writes them."""
    (tmp_path / "a.csv").write_text("Bot answer,x,y\nhello,4,5\n")
    (tmp_path / "b.jsonl").write_text('{"id": "1", "response": "no", "system": "b"}\n')
    (tmp_path / "c.csv").write_text("answer,bot\nhey,c\n")
    output = tmp_path / "items.jsonl"

    def join(columns: str, *names: str) -> int:
        files = [str(tmp_path / name) for name in names]
        return main.run(["join", *files, "-o", str(output), "--columns", columns])

    assert join("reply=bot_answer,ratings=x+y", "a.csv", "b.jsonl", "c.csv") == 0
    items = list(read_items(output))
    assert [(item.response, item.system) for item in items] == [
        *[("hello", "(unnamed)"), ("no", "b"), ("hey", "c")]
    ]
    assert [item.ratings for item in items] == [{"x": 4, "y": 5}, None, None]
    capsys.readouterr()
    # a file that has some of the columns must have all; none of the files may have none
    assert join("reply=answer,system=x", "a.csv", "b.jsonl", "c.csv") == 3
    assert "c" in capsys.readouterr().err
    assert join("reply=text", "b.jsonl", "c.csv") == 2
    assert "--columns: none of the files has any of these columns" in capsys.readouterr().err
    assert join("reply=text", "b.jsonl") == 3
    assert "no record has the field 'text'" in capsys.readouterr().err


def test_columns_of_a_table_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tx\nhello\t4\n")
    output = tmp_path / "items.jsonl"
    arguments = ["join", str(tmp_path / "a.tsv"), "-o", str(output)]
    assert main.run([*arguments, "--columns", "reply=text,ratings=x"]) == 0
    (item,) = read_items(output)
    assert (item.response, item.ratings) == ("hello", 4)


@pytest.mark.parametrize("verb", ["show", "expand"])
def test_recognised_columns_are_reported(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = pa.table({"utterance": ["hi there", "how are you"], "response": ["hello", "fine"]})
    pq.write_table(pairs, tmp_path / "pairs.parquet")
    path = str(tmp_path / "pairs.parquet")
    more = ["--pool", path, "-o", str(tmp_path / "o.jsonl")] if verb == "expand" else []
    main.run([verb, path, *more])
    assert "columns recognised by name: context = utterance" in capsys.readouterr().err


def test_items_get_the_ratings_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    all_items = [
        {"id": 1, "response": "a", "colour": "red", "ratings": {"ann": 2}},
        {"id": "2", "response": "b"},
        {"id": "3", "response": "c"},
    ]
    rated = [
        {"id": "1", "response": "a", "ratings": {"bob": 4}, "inclusion_probability": 0.5},
        {"id": "3", "response": "c", "ratings": {"bob": 1}, "inclusion_probability": 0.5},
        {"id": "2", "response": "b"},
        {"id": "1:distractor-0", "response": "x", "system": "distractor", "ratings": {"bob": 1}},
    ]
    write_jsonl_file("all.jsonl", all_items)
    write_jsonl_file("rated.jsonl", rated)
    assert main.run(["join", "all.jsonl", "--ratings", "rated.jsonl", "-o", "out.jsonl"]) == 0
    lines = Path("out.jsonl").read_text().splitlines()
    first, second, third = map(json.loads, lines)
    assert (first["ratings"], first["inclusion_probability"]) == ({"ann": 2, "bob": 4}, 0.5)
    assert first["colour"] == "red" and second == all_items[1]
    assert (third["ratings"], third["inclusion_probability"]) == ({"bob": 1}, 0.5)
    for change, message in (
        ({"id": "9"}, "rated.jsonl: 1 rated items, the first is '9', are not in all.jsonl"),
        ({"response": "other"}, "all.jsonl:3: '3' has another response"),
        ({"ratings": None}, "rated.jsonl: no item has ratings"),
    ):
        write_jsonl_file("rated.jsonl", [rated[1] | change])
        assert main.run(["join", "all.jsonl", "--ratings", "rated.jsonl", "-o", "no.jsonl"]) == 3
        assert message in capfd.readouterr().err
    write_jsonl_file("rated.jsonl", [{**rated[0], "ratings": 3}])
    assert main.run(["join", "all.jsonl", "--ratings", "rated.jsonl", "-o", "no.jsonl"]) == 3
    assert "'1' already has ratings" in capfd.readouterr().err
    assert not Path("no.jsonl").exists()

"""Notes reach everybody once: the command line, results in Python, and Python's warnings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from rejoinder import RejoinderWarning
from rejoinder.cli.main import run

TABLE = "question,answer,model\ndo you like tea,yes i do,x\ndo you like tea,never,y\n"
ROWS = [{"answer": "yes i do", "model": "x"}, {"answer": "never", "model": "y"}]
GUESSED = "columns recognised by name: response = answer, system = model"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("replies.csv").write_text(TABLE)
    return "replies.csv"


@pytest.mark.parametrize(
    "read", [rejoinder.load, lambda given, **more: rejoinder.diversity(given, "distinct", **more)]
)
def test_functions_that_read_items_say_what_was_guessed(
    table: str, read: Callable[..., Any], recwarn: pytest.WarningsRecorder
) -> None:
    pd = pytest.importorskip("pandas")
    for given, name, context in (
        (table, "replies.csv", ", context = question"),
        (pd.DataFrame(ROWS), "the frame", ""),
    ):
        with pytest.warns(RejoinderWarning) as caught:
            read(given)
        hint = " (columns={'FIELD': 'NAME'} changes it)"
        assert [str(each.message) for each in caught] == [f"{name}: {GUESSED}{context}{hint}"]
        assert caught[0].filename == __file__
    read(table, columns={"response": "answer", "system": "model", "context": "question"})
    assert not recwarn.list


def test_references_of_replies_are_read_with_notes_once(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(table).write_text(TABLE + TABLE.splitlines()[1])  # the first reply once more
    assert run(["reply", table, "--system", "parrot", "--as-references", "-o", "o.jsonl"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith(table)]
    assert notes[0] == (f"{table}: {GUESSED}, context = question (--columns FIELD=NAME changes it)")
    assert notes[1].startswith(f"{table}: 1 row repeats the same context, system and reply")
    assert len(notes) == 2
    assert len(Path("o.jsonl").read_text().splitlines()) == 3


def test_items_that_get_references_of_pairs_are_read_with_a_note(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--columns`` is for the candidates, so the note about the other file does not offer it."""
    candidates = [
        {"id": n, "context": ["do you like tea"], "response": text}
        for n, text in ((1, "a"), (2, "b"))
    ]
    Path("candidates.jsonl").write_text("\n".join(map(json.dumps, candidates)))
    Path("answers.jsonl").write_text('{"a": "1", "b": "2", "winner": "a", "annotator": "ann"}\n')
    asked = ["pairs", "fit", "candidates.jsonl", "answers.jsonl", "--into", table, "-o", "o.jsonl"]
    assert run(asked) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith(table)]
    assert notes == [f"{table}: {GUESSED}, context = question"]


def test_guessed_columns_are_in_the_result_too(table: str) -> None:
    Path("refs.csv").write_text("answer,references,model\na b,a b,x\na c,a b,y\n")
    guessed = "refs.csv: columns recognised by name: response = answer, system = model"
    for verb in (
        lambda: rejoinder.score("refs.csv", "rouge-l"),
        lambda: rejoinder.load("refs.csv"),
        lambda: rejoinder.diversity("refs.csv", "distinct"),
        lambda: rejoinder.join("refs.csv", output="joined.jsonl"),
    ):
        with pytest.warns(RejoinderWarning, match="columns recognised by name"):
            result = verb()
        assert [note.startswith(guessed) for note in result.notes] == [True]


def test_the_command_line_prints_each_note_once_and_its_json_has_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("refs.csv").write_text(
        "answer,references,model,context\na b,a b,x,1\n,a b,y,1\nb,a b,x,2\nb,a b,y,2\n"
    )
    for verb in (["score", "-o", "s.jsonl"], ["compare"]):
        assert run([verb[0], "refs.csv", "-m", "rouge-l", "--json", *verb[1:]]) == 0
        streams = capsys.readouterr()
        notes = json.loads(streams.out)["notes"]
        assert any("1 reply is blank (y 1)" in note for note in notes)
        assert any("columns recognised by name" in note for note in notes)
        lines = streams.err.splitlines()
        assert all(lines.count(note) == 1 for note in notes), (notes, lines)


def test_warnings_of_python_can_be_turned_off(table: str) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RejoinderWarning)
        assert rejoinder.load(table).notes


def test_a_trained_system_warns_of_contexts_that_it_was_trained_on(tmp_path: Path) -> None:
    """The note names the system, is in the result, and is a Python warning."""
    from trained import small_talk, trained_system

    contexts = [
        {"context": [*row["context"], row["utterance"]]}
        for row in small_talk()
        if len(row["context"]) == 1
    ]
    path = tmp_path / "contexts.jsonl"
    path.write_text("".join(json.dumps(context) + "\n" for context in contexts))
    with pytest.warns(RejoinderWarning, match="contexts were in its training data"):
        result = rejoinder.reply(path, str(trained_system("seq2seq")))
    (note,) = result.notes
    assert note.startswith("seq2seq: ")
    assert "exclude='FILE'" in note

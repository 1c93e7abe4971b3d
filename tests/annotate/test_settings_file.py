"""Settings files: all problems at once, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotate.rating_studies import RATE, make_study
from rejoinder.annotate.settings_file import key_lines
from rejoinder.annotate.study import Study
from rejoinder.errors import DataError


def problems(folder: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        Study.read(folder)
    return str(caught.value).split("\n")


def test_lines_of_nested_tables_and_texts_of_several_lines() -> None:
    text = '''a = 1
b = """
c = 2
"""
[d]
e = 3
[[d.f]]
g = 4
[[d.f]]
g = 5
'''
    assert key_lines(text) == {
        ("a",): 1,
        ("b",): 2,
        ("d",): 5,
        ("d", "e"): 6,
        ("d", "f"): 7,
        ("d", "f", 0): 7,
        ("d", "f", 0, "g"): 8,
        ("d", "f", 1): 9,
        ("d", "f", 1, "g"): 10,
    }


def test_every_problem_is_reported_with_its_line(tmp_path: Path) -> None:
    folder = make_study(
        tmp_path / "study",
        RATE.replace("[1, 2, 3, 4, 5]", "[5, 4]").replace("labels", "lables"),
        settings='answers_per_task = "three"\ntasks_per_batch = 5\ncolour = "blue"',
    )
    found = problems(folder)
    # lines: 1 kind, 2 title, 3 answers_per_task, 4 tasks_per_batch, 5 colour, 6 empty, 7 [rate],
    # 8 layout, 9 [[rate.dimensions]], 10 name, 11 question, 12 scale, 13 lables
    assert [line.partition("study.toml:")[2].partition(": ")[0] for line in found] == [
        "3",
        "5",
        "12",
        "13",
    ]
    assert "expected" in found[0].lower()
    assert "unknown setting" in found[1]
    assert "rising order" in found[2]  # values are checked although others are mistyped
    assert "did you mean 'labels'" in found[3]


def test_contradictions_are_reported_together(tmp_path: Path) -> None:
    table = RATE.replace("[1, 2, 3, 4, 5]", "[5, 4]") + "\n[write]\nquestion = 'x'\nslots = []\n"
    folder = make_study(tmp_path / "study", table, settings="answers_per_task = 0\nseed = -1")
    found = problems(folder)
    assert len(found) == 4
    assert "answers_per_task: must be from 1 to 1000" in found[0]
    assert "seed: must not be negative" in found[1]
    assert "rising order" in found[2]
    assert "remove the table [write]" in found[3]


def test_limits_of_quality_have_a_range(tmp_path: Path) -> None:
    limits = "[quality]\nmin_seconds = inf\nmin_kappa = 7\nmax_distractor = nan\n"
    folder = make_study(tmp_path / "study", RATE + limits)
    assert [line.partition("quality.")[2] for line in problems(folder)] == [
        "min_seconds: must be from 0 to 3600",
        "min_kappa: must be from -1 to 1",
        "max_distractor: must be from 0 to 1",
    ]


def test_what_follows_from_a_mistyped_value_is_not_reported(tmp_path: Path) -> None:
    """answers_per_task is 1 by default, which does not go with masks for 10 people."""
    folder = make_study(
        tmp_path / "study",
        kind="write",
        table="[write]\nquestion = 'x'\nslots = [{ count = 2, max_characters = 0 }]\n"
        "masks = [{ share = 0.0, people = 10 }]\n",
        settings='answers_per_task = "ten"\nlanguage = "fr"\nitems = "none.jsonl"',
    )
    found = [line.partition("study.toml:")[2] for line in problems(folder)]
    assert [line.partition(": ")[2].partition(":")[0] for line in found] == [
        "answers_per_task",
        "language",
        "items",
        "write.slots[0].max_characters",
    ]
    assert "unknown value 'fr'; known: en, ja, zh" in found[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('items = "../secret.jsonl"', "outside of the folder"),
        ('items = "missing.jsonl"', "there is no file 'missing.jsonl'"),
        ('instructions = "/etc/passwd"', "outside of the folder"),
    ],
)
def test_files_outside_of_the_folder_are_refused(tmp_path: Path, change: str, message: str) -> None:
    folder = make_study(tmp_path / "study", settings=change)
    assert message in problems(folder)[0]


@pytest.mark.parametrize("content", ["kind = ", "kind = 'rate'\nkind = 'rate'", "\xff\xfe"])
def test_broken_files_are_one_line(tmp_path: Path, content: str) -> None:
    folder = make_study(tmp_path / "study")
    (folder / "study.toml").write_bytes(content.encode("latin-1"))
    (line,) = problems(folder)
    assert "study.toml: " in line


def test_no_study(tmp_path: Path) -> None:
    assert "rejoinder annotate init" in problems(tmp_path)[0]
    assert "rejoinder annotate init" in problems(tmp_path / "missing")[0]

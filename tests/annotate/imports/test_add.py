"""Answers of Potato and Label Studio in a study: the same ratings come out of its export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annotate.imports.given import (
    ANNA,
    FLUENCY,
    LABEL_STUDIO,
    POTATO_1,
    POTATO_2,
    RATINGS,
    VERDICT,
    WINNERS,
)
from annotate.rating_studies import RATE, make_study, open_store
from rejoinder.cli.main import run
from rejoinder.errors import DataError
from rejoinder.verbs import annotate

IDS = ["lunch:retrieval", "lunch:seq2seq", "rain:retrieval", "rain:seq2seq"]
RECORDS = [
    {"id": name, "context": [name.partition(":")[0]], "system": name.partition(":")[2],
     "response": f"A reply about {name}."}
    for name in IDS
]  # fmt: skip
EXPECTED = {
    name: {
        person: float(given["appropriateness"])
        for (person, item), given in RATINGS.items()
        if item == name
    }
    for name in IDS
}
TWO_SCALES = (
    RATE
    + """
[[rate.dimensions]]
name = "fluency"
question = "How fluent?"
scale = [1, 2, 3]
"""
)


@pytest.mark.parametrize(
    ("format", "files"),
    [
        ("potato", [POTATO_1 / "output"]),
        ("potato", [POTATO_2 / "ratings" / "annotations.jsonl"]),
        ("label-studio", [LABEL_STUDIO / "ratings.json"]),
        ("label-studio", [LABEL_STUDIO / "ratings.csv"]),
    ],
)
def test_ratings_come_out_as_they_were_given(
    tmp_path: Path, format: str, files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_study(tmp_path / "study", records=RECORDS)
    arguments = ["annotate", "import", str(folder), *map(str, files), "-f", format, "--json"]
    if format == "label-studio":
        arguments += ["--item-field", "item"]
    assert run(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["people"], result["answers"], result["repeated"]) == (3, 9, 0)
    assert all(count > 0 for count in result["unknown"].values())
    out = tmp_path / "rated.jsonl"
    assert run(["annotate", "export", str(folder), "-o", str(out)]) == 0
    rated = {
        record["id"]: record["ratings"] for record in map(json.loads, out.read_text().splitlines())
    }
    if format == "label-studio":  # its people have e-mail addresses
        assert [sorted(ratings.values()) for ratings in rated.values()] == [
            sorted(EXPECTED[name].values()) for name in rated
        ]
    else:
        assert rated == EXPECTED
    assert run(arguments) == 0  # the second time, nothing is added
    again = json.loads(capsys.readouterr().out)
    assert (again["answers"], again["repeated"]) == (0, 9)


COMPARE = """
[compare]
question = "Which is better?"
"""


@pytest.mark.parametrize("reverse", [False, True])
def test_winners_come_out_as_they_were_given(tmp_path: Path, reverse: bool) -> None:
    ids = read_ids()
    records = [
        {"id": item, "context_id": topic, "context": [topic], "response": f"Reply {item}."}
        for topic in ids
        for item in sorted(ids[topic], reverse=reverse)
    ]
    folder = make_study(tmp_path / "study", COMPARE, kind="compare", settings="", records=records)
    result = annotate.import_answers(
        folder,
        LABEL_STUDIO / "pairs.json",
        format="label-studio",
        labels=VERDICT,
        item_field="item",
        pair_fields=("id_a", "id_b"),
        dimensions="verdict",
    )
    assert (result.people, result.answers) == (3, len(WINNERS))
    made = annotate.export(folder).records
    given = sorted(
        (topic, ids[topic]["ab".index(side)] if side != "tie" else "tie")
        for (_, topic), side in WINNERS.items()
    )
    assert given == sorted(
        (each["context_id"], each["winner"] if each["winner"] == "tie" else each[each["winner"]])
        for each in made
    )


def read_ids() -> dict[str, tuple[str, str]]:
    """The ids of the two replies of each pair in the export."""
    tasks = json.loads((LABEL_STUDIO / "pairs.json").read_text())
    return {t["data"]["item"]: (t["data"]["id_a"], t["data"]["id_b"]) for t in tasks}


def test_labels_become_numbers(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", TWO_SCALES, records=RECORDS)
    result = annotate.import_answers(folder, POTATO_1 / "output", format="potato", labels=FLUENCY)
    assert result.answers == 9
    store = open_store(folder)
    anna = [answer for answer in store.stored_answers() if answer.person == ANNA]
    assert [answer.value["ratings"][0] for answer in anna] == [
        {key: RATINGS[ANNA, name][key] for key in ("appropriateness", "fluency")} for name in IDS
    ]


def test_answers_that_do_not_fit_are_counted_by_reason(tmp_path: Path) -> None:
    folder = make_study(
        tmp_path / "study", RATE.replace("[1, 2, 3, 4, 5]", "[1, 2, 3, 4]"), records=RECORDS[:2]
    )
    result = annotate.import_answers(folder, POTATO_1 / "output", format="potato")
    # of two items, five ratings: 5, 1, 4, 2, 5; two of them are not on a scale from 1 to 4
    assert result.answers == 3
    assert result.unknown["answers: appropriateness is not on the scale"] == 2
    assert result.unknown["answers about items that are not in the study"] == 4


def test_a_study_of_other_items(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study")
    with pytest.raises(DataError, match=r"no answer fits the study: .*not in the study"):
        annotate.import_answers(folder, POTATO_1 / "output", format="potato")


def test_unknown_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_study(tmp_path / "study")
    assert run(["annotate", "import", str(folder), "x.json", "-f", "doccano"]) == 2
    assert "known: label-studio, potato" in capsys.readouterr().err

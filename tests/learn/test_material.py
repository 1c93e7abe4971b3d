"""Pairs as networks learn from them: contexts, groups of one utterance, and what is held out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from learn.small import make_table
from rejoinder.errors import DataError
from rejoinder.learn import material as materials
from rejoinder.learn.material import Examples, Material, read_material


def pair(dialogue: str, utterance: str, response: str, **more: Any) -> dict[str, Any]:
    return {"dialogue_id": dialogue, "utterance": utterance, "response": response, **more}


def answered(*rows: dict[str, Any]) -> list[list[int]]:
    return [group.tolist() for group in Examples(pa.Table.from_pylist(list(rows))).answered]


def test_contexts_end_with_the_utterance() -> None:
    rows = [
        pair("a", "u3", "r", context=["u1", "u2"]),
        pair("b", "u1", "r", context=[]),
        pair("c", "u2", "r", context=None),
    ]
    examples = Examples(pa.Table.from_pylist(rows))
    assert examples.contexts(1) == [["u3"], ["u1"], ["u2"]]
    assert examples.contexts(2) == [["u2", "u3"], ["u1"], ["u2"]]
    assert examples.contexts(9) == [["u1", "u2", "u3"], ["u1"], ["u2"]]
    assert Examples(examples.table.drop(["context"])).contexts(9) == [["u3"], ["u1"], ["u2"]]


def test_responses_to_one_post_are_a_group() -> None:
    assert answered(
        pair("a", "Hi!", "Hello.", utterance_id="1"),
        pair("b", "Hi!", "Hey.", utterance_id="2"),
        pair("a", "Hi!", "Good morning.", utterance_id="1"),
    ) == [[0, 2]], "a greeting is too short to be the same question elsewhere"


def test_the_same_words_in_other_dialogues_are_a_group() -> None:
    assert answered(
        pair("a", "Where is the station?", "Over there.", utterance_id="1"),
        pair("b", "where is the STATION", "I don't know.", utterance_id="2"),
        pair("c", "Where is the bus station?", "Here.", utterance_id="3"),
    ) == [[0, 1]]


def test_a_group_has_different_responses_and_no_dialogue_twice() -> None:
    asked = "Where is the station?"
    assert (
        answered(
            pair("a", asked, "Over there.", utterance_id="1"),
            pair("b", asked, "over there", utterance_id="2"),
            pair("a", asked, "I told you!", utterance_id="3"),
        )
        == []
    )
    assert answered(
        pair("a", asked, "Over there.", utterance_id="1"),
        pair("a", asked, "I told you!", utterance_id="3"),
        pair("b", asked, "No idea.", utterance_id="2"),
    ) == [[0, 2]]


def test_without_ids_the_words_decide() -> None:
    rows = [pair("a", "Where is it now?", "There."), pair("b", "Where is it now?", "Here.")]
    rows += [pair("c", "Yes?", "Yes."), pair("d", "Yes?", "No.")]
    assert answered(*rows) == [[0, 1]]


def test_no_utterance_dominates() -> None:
    rows = [pair(f"d{n}", "Thank you very much.", f"answer {n}") for n in range(100)]
    (group,) = answered(*rows)
    assert len(group) == len(set(group)) == materials.MOST_OF_A_GROUP
    assert group[0] < 5 and group[-1] > 90


def test_no_dialogue_is_on_both_sides(tmp_path: Path) -> None:
    table = make_table(200).drop(["split"])
    found = Material.of(table, held_out=0.2)
    sides = [
        set(part.table.column("dialogue_id").to_pylist())
        for part in (found.training, found.validation)
    ]
    assert not sides[0] & sides[1]
    assert len(found.training) + len(found.validation) == 400
    assert 40 < len(found.validation) < 120
    assert found.split_by == "a hash of dialogue_id"


def test_the_column_split_decides_where_there_is_one() -> None:
    table = make_table(40)
    split = ["test" if n < 10 else s for n, s in enumerate(table.column("split").to_pylist())]
    found = Material.of(table.set_column(5, "split", [split]))
    assert found.split_by == "the column split"
    assert found.counts["pairs"] == 80
    assert len(found.training) + len(found.validation) == 70


def test_whole_dialogues_are_drawn() -> None:
    table = make_table(100, responses=3)
    one, same, other = (Material.of(table, most=50, seed=seed) for seed in (1, 1, 2))
    counts = np.bincount(one.training.dialogues)
    assert (counts == 3).all()
    assert 45 <= len(one.training) <= 50
    assert one.counts["train_taken"] == len(one.training)
    assert one.training.responses == same.training.responses
    assert one.digest == same.digest != other.digest


def test_the_digest_is_that_of_the_content() -> None:
    table = make_table(40)
    changed = table.set_column(
        3, "response", [[*table.column("response").to_pylist()[:-1], "something else"]]
    )
    assert Material.of(table).digest == Material.of(pa.concat_tables([table])).digest
    assert Material.of(table).digest != Material.of(changed).digest


def test_pairs_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pq.write_table(make_table(40), path)
    assert read_material(path).digest == Material.of(make_table(40)).digest
    pq.write_table(pa.table({"utterance": ["a"], "response": ["b"], "context": ["c"]}), path)
    with pytest.raises(DataError, match="column context: expected lists of texts"):
        read_material(path)
    pq.write_table(pa.table({"utterance": ["a"], "response": ["b"], "dialogue_id": ["c"]}), path)
    with pytest.raises(DataError, match=r"pairs\.parquet: no pair is left for"):
        read_material(path)

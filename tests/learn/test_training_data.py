"""Pairs as training data: contexts, groups of responses to one utterance, and the split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from learn.small import make_table
from rejoinder.errors import DataError
from rejoinder.learn.training_data import (
    MAX_RESPONSES,
    Pairs,
    TrainingData,
    assign_split,
    read_training_data,
)


def pair(dialogue: str, utterance: str, response: str, **more: Any) -> dict[str, Any]:
    return {"dialogue_id": dialogue, "utterance": utterance, "response": response, **more}


def groups(*rows: dict[str, Any]) -> list[list[int]]:
    return [group.tolist() for group in Pairs(pa.Table.from_pylist(list(rows))).response_groups]


def test_contexts_end_with_the_utterance() -> None:
    rows = [
        pair("a", "u3", "r", context=["u1", "u2"]),
        pair("b", "u1", "r", context=[]),
        pair("c", "u2", "r", context=None),
    ]
    pairs = Pairs(pa.Table.from_pylist(rows))
    assert pairs.contexts(1) == [["u3"], ["u1"], ["u2"]]
    assert pairs.contexts(2) == [["u2", "u3"], ["u1"], ["u2"]]
    assert pairs.contexts(9) == [["u1", "u2", "u3"], ["u1"], ["u2"]]
    assert Pairs(pairs.table.drop(["context"])).contexts(9) == [["u3"], ["u1"], ["u2"]]


def test_responses_to_one_post_are_a_group() -> None:
    assert groups(
        pair("a", "Hi!", "Hello.", utterance_id="1"),
        pair("b", "Hi!", "Hey.", utterance_id="2"),
        pair("a", "Hi!", "Good morning.", utterance_id="1"),
    ) == [[0, 2]], "a greeting is too short to be the same question elsewhere"


def test_the_same_words_in_other_dialogues_are_a_group() -> None:
    assert groups(
        pair("a", "Where is the station?", "Over there.", utterance_id="1"),
        pair("b", "where is the STATION", "I don't know.", utterance_id="2"),
        pair("c", "Where is the bus station?", "Here.", utterance_id="3"),
    ) == [[0, 1]]


def test_a_group_has_different_responses_and_no_dialogue_twice() -> None:
    asked = "Where is the station?"
    assert (
        groups(
            pair("a", asked, "Over there.", utterance_id="1"),
            pair("b", asked, "over there", utterance_id="2"),
            pair("a", asked, "I told you!", utterance_id="3"),
        )
        == []
    )
    assert groups(
        pair("a", asked, "Over there.", utterance_id="1"),
        pair("a", asked, "I told you!", utterance_id="3"),
        pair("b", asked, "No idea.", utterance_id="2"),
    ) == [[0, 2]]


def test_without_ids_the_words_decide() -> None:
    rows = [pair("a", "Where is it now?", "There."), pair("b", "Where is it now?", "Here.")]
    rows += [pair("c", "Yes?", "Yes."), pair("d", "Yes?", "No.")]
    assert groups(*rows) == [[0, 1]]


def test_a_frequent_utterance_has_a_limited_number_of_responses() -> None:
    rows = [pair(f"d{n}", "Thank you very much.", f"answer {n}") for n in range(100)]
    (group,) = groups(*rows)
    assert len(group) == len(set(group)) == MAX_RESPONSES
    assert group[0] < 5 and group[-1] > 90


def test_no_dialogue_is_on_both_sides(tmp_path: Path) -> None:
    table = make_table(200).drop(["split"])
    split, split_by = assign_split(table, 0.2)
    found = TrainingData.from_table(split)
    sides = [
        set(part.table.column("dialogue_id").to_pylist())
        for part in (found.training, found.validation)
    ]
    assert not sides[0] & sides[1]
    assert len(found.training) + len(found.validation) == 400
    assert 40 < len(found.validation) < 120
    assert split_by == "a hash of dialogue_id"


def test_the_column_split_decides_if_it_has_both_sides() -> None:
    table = make_table(40)
    split = ["test" if n < 10 else s for n, s in enumerate(table.column("split").to_pylist())]
    found = TrainingData.from_table(table.set_column(5, "split", [split]))
    assert found.split_by == "the column split"
    assert found.counts["pairs"] == 80
    assert len(found.training) + len(found.validation) == 70


def test_a_sample_consists_of_whole_dialogues() -> None:
    table = make_table(100, responses=3)
    one, same, other = (
        TrainingData.from_table(table, max_pairs=50, seed=seed) for seed in (1, 1, 2)
    )
    counts = np.bincount(one.training.dialogues)
    assert (counts == 3).all()
    assert 45 <= len(one.training) <= 50
    assert one.counts["train_taken"] == len(one.training)
    assert one.training.responses == same.training.responses
    assert one.digest == same.digest != other.digest


def test_the_digest_depends_on_the_content_only() -> None:
    table = make_table(40)
    changed = table.set_column(
        3, "response", [[*table.column("response").to_pylist()[:-1], "something else"]]
    )
    assert (
        TrainingData.from_table(table).digest
        == TrainingData.from_table(pa.concat_tables([table])).digest
    )
    assert TrainingData.from_table(table).digest != TrainingData.from_table(changed).digest


def test_wrong_columns_of_a_file_are_data_errors(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pq.write_table(make_table(40), path)
    assert read_training_data(path).digest == TrainingData.from_table(make_table(40)).digest
    pq.write_table(pa.table({"utterance": ["a"], "response": ["b"], "context": ["c"]}), path)
    with pytest.raises(DataError, match="column context: expected lists of texts, found string"):
        read_training_data(path)
    pq.write_table(pa.table({"utterance": [1, 2], "response": ["b", "c"]}), path)
    with pytest.raises(DataError, match="column utterance: expected text"):
        read_training_data(path)
    pq.write_table(pa.table({"utterance": ["a"], "response": ["b"], "dialogue_id": [7]}), path)
    with pytest.raises(DataError, match="column dialogue_id: expected text, found int64"):
        read_training_data(path)
    twice = pa.table([["a"], ["b"], ["c"]], names=["utterance", "response", "response"])
    pq.write_table(twice, path)
    with pytest.raises(DataError, match="response"):
        read_training_data(path)
    pq.write_table(pa.table({"utterance": ["a"], "response": ["b"], "dialogue_id": ["c"]}), path)
    with pytest.raises(DataError, match=r"pairs\.parquet: no pair is left for"):
        read_training_data(path)


def test_single_pairs_can_be_sampled_instead_of_dialogues() -> None:
    table = make_table(100, responses=3)
    data = TrainingData.from_table(table, max_pairs=50, whole_dialogues=False)
    assert len(data.training) == 50
    assert (np.bincount(data.training.dialogues) < 3).any()

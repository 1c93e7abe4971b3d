"""Validation on held-out dialogues: distractors are no true replies, and figures are correct."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fitting.toy import dialogues, row, write
from rejoinder.evaluator import open_evaluator
from rejoinder.fitting.fit import FitResult
from rejoinder.fitting.ranges import MIN_SCORES, measure_ranges
from rejoinder.fitting.validation import RANDOM, TRUE, HeldOut
from rejoinder.items import Item
from rejoinder.learn.training_data import Pairs, read_training_data


@pytest.fixture
def held_out(tmp_path: Path) -> HeldOut:
    return HeldOut(make_pairs(tmp_path), seed=2)


def make_pairs(tmp_path: Path) -> Pairs:
    rows = dialogues(30)
    # a repeated reply is no distractor of itself
    rows += [
        row(f"x{n}", [], f"is it number {n} here", "We like the SOUP!", f"x{n}") for n in (1, 2)
    ]
    return read_training_data(write(tmp_path / "p.parquet", rows), validation_share=0.9).validation


def test_distractors_are_responses_to_other_utterances(held_out: HeldOut) -> None:
    rows = held_out.sample(1000, 1)
    groups, said = held_out.pairs.utterance_ids, held_out.pairs.response_ids
    others = held_out.distractors(rows, 9, 2)
    assert others.shape == (len(rows), 9)
    for at, wrong in zip(rows.tolist(), others.tolist(), strict=True):
        answers = {said[k] for k in range(len(said)) if groups[k] == groups[at]}
        assert not answers & {said[other] for other in wrong}
        assert len({said[other] for other in wrong}) == 9
    assert np.array_equal(others, held_out.distractors(rows, 9, 2)), (
        "the same seed, the same replies"
    )
    assert not np.array_equal(others, held_out.distractors(rows, 9, 3))


def test_there_may_be_fewer_distractors_than_requested(tmp_path: Path) -> None:
    rows = [row(f"d{n}", [], f"what is this {n}", f"answer {n % 3}", f"u{n}") for n in range(9)]
    data = read_training_data(write(tmp_path / "p.parquet", rows), validation_share=0.9)
    held_out = HeldOut(data.validation, 0)
    # one of three different responses is the true one
    assert held_out.distractors(held_out.sample(99, 1), 9, 2).shape[1] <= 2
    same = [{**each, "response": "always the same"} for each in rows]
    alike = read_training_data(write(tmp_path / "q.parquet", same), validation_share=0.9).validation
    held_out = HeldOut(alike, 0)
    assert held_out.distractors(held_out.sample(99, 1), 9, 2).shape[1] == 0
    assert {item.system for item in held_out.items(99)} == {TRUE}


def test_items_have_a_true_and_a_random_reply(held_out: HeldOut) -> None:
    items = held_out.items(20)
    assert [item.system for item in items] == [TRUE, RANDOM] * 20
    by_context: dict[tuple[str, ...], set[str]] = {}
    for number, reply in enumerate(held_out.replies):
        by_context.setdefault(tuple(held_out.contexts[number]), set()).add(reply)
    referenced = 0
    for true, random in zip(items[::2], items[1::2], strict=True):
        assert true.context == random.context
        good = by_context[tuple(true.context)]
        assert true.response in good
        assert random.response not in good
        assert true.references == random.references
        for reference in true.references:
            assert reference.text in good - {true.response}
            referenced += 1
    assert 5 < referenced < 20, "some contexts have another true reply, some have none"


def test_recall_equals_its_definition(fitted: FitResult, pairs: Path) -> None:
    manifest = fitted.manifest
    evaluator = open_evaluator(fitted.folder)
    data = read_training_data(pairs, validation_share=0.1, max_validation_pairs=200)
    held_out = HeldOut(data.validation, seed=3)
    rows = held_out.sample(1000, 1)
    first = 0.0
    for at, wrong in zip(rows.tolist(), held_out.distractors(rows, 9, 2).tolist(), strict=True):
        replies = [held_out.replies[k] for k in (at, *wrong)]
        scores = evaluator.scorer.score([held_out.contexts[at]] * 10, replies)
        first += (scores[0] == scores.max()) / (scores == scores.max()).sum()
    figures = manifest.validation["unreferenced"]
    assert figures["contexts"] == len(rows)
    assert figures["recall_at_1"] == pytest.approx(first / len(rows), abs=1e-6)


def test_ranges_are_quantiles_of_scores(fitted: FitResult) -> None:
    words = ["soup", "bread", "train", "ticket", "hotel", "guitar", "piano", "tulip"]
    items = [
        Item(str(n), f"we like the {a} and {b}", [f"do you like the {a}"])
        for n, (a, b) in enumerate((a, b) for a in words for b in words)
    ]
    found, notes = measure_ranges(fitted.folder, items, ["unreferenced", "bleu", "vbleu"], "en")
    assert set(found) == {"unreferenced", "vbleu"}
    scores = open_evaluator(fitted.folder).scorer.score(
        [item.context for item in items], [item.response for item in items]
    )
    assert found["unreferenced"] == pytest.approx(np.quantile(scores, [0.01, 0.99]), abs=1e-6)
    assert notes == ["no held-out reply could be scored by bleu, so it has no range"]
    found, notes = measure_ranges(fitted.folder, items[:1] * MIN_SCORES, ["unreferenced"], "en")
    assert found == {}
    assert "the same score" in notes[0]

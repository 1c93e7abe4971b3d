"""Measure an evaluator on held-out dialogues: accuracy of its networks, coverage, ranges of scores.

No human ratings are needed: true replies are compared with replies to other contexts.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.evaluator import Evaluator, open_evaluator
from rejoinder.evaluator.coverage import quantiles
from rejoinder.evaluator.manifest import RATER, SCORER, write_manifest
from rejoinder.fitting.ranges import measure_ranges
from rejoinder.fitting.settings import ValidationSettings
from rejoinder.items import Item, Reference
from rejoinder.learn.batches import make_rng
from rejoinder.learn.training_data import Pairs
from rejoinder.meta_evaluation.roc import auc, recall_at_1
from rejoinder.progress import Progress

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DISTRACTORS = 9
"""Random replies among which the true one must be found."""
MAX_CONTEXTS = 1000
"""Contexts for recall, and pairs of pairs for the rater."""
MIN_RATER_AUC = 0.55
"""A rater below this rates almost at random, and references are better off without it."""
ALL_TURNS = 51
"""More turns than a context of a pair can have."""
DIGITS = 6
TRUE, RANDOM = "true", "random"


def validate(
    folder: Path,
    pairs: Pairs,
    settings: ValidationSettings,
    language: str,
    *,
    seed: int,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure an evaluator on validation pairs; the result is JSON.

    A rater that is hardly better than random is removed from the folder before anything that
    depends on it is measured; ``no_rater`` gives the reason.
    """
    evaluator = open_evaluator(folder)
    held_out = HeldOut(pairs, seed)
    report = on_progress or (lambda done, total: None)
    figures: dict[str, Any] = {SCORER: _validate_scorer(evaluator, held_out)}
    report(1, 4)
    no_rater = None
    if evaluator.rater is not None:
        figures[RATER] = _validate_rater(evaluator, held_out)
        no_rater = _reason_to_drop(figures[RATER])
    if no_rater:
        del figures[RATER]
        evaluator = _without_rater(evaluator)
    report(2, 4)
    items = held_out.items(settings.max_contexts)
    contexts = [item for item in items if item.system == TRUE]
    nearest = evaluator.expansion(contexts).coverage.nearest
    report(3, 4)
    ranges, notes = measure_ranges(folder, items, settings.ranges, language)
    if evaluator.rater is not None and "auc" not in figures[RATER]:
        notes.append(
            "the rater could not be validated: no held-out utterance has several responses"
        )
    report(4, 4)
    return {
        "validation": figures,
        "coverage": quantiles(nearest),
        "ranges": ranges,
        "notes": notes,
        "no_rater": no_rater,
    }


def _reason_to_drop(figures: dict[str, Any]) -> str | None:
    """Return why a rater is not used, None if it is."""
    if figures.get("auc", 1.0) >= MIN_RATER_AUC:
        return None
    return (
        f"one was trained, but its AUC on {figures['utterances']:,} held-out utterances is"
        f" {figures['auc']:.3f}, below {MIN_RATER_AUC:.2f}: hardly better than random"
    )


def _without_rater(evaluator: Evaluator) -> Evaluator:
    shutil.rmtree(evaluator.path / RATER)
    write_manifest(evaluator.path, evaluator.manifest)
    return open_evaluator(evaluator.path)


@dataclass
class HeldOut:
    """Held-out contexts with true and with random replies."""

    pairs: Pairs
    seed: int

    def __post_init__(self) -> None:
        self.contexts = self.pairs.contexts(ALL_TURNS)
        self.replies = self.pairs.responses

    def rng(self, purpose: int) -> np.random.Generator:
        """Return a random generator for one purpose: 1 and 2 scorer, 3 and 4 items, 5 and 6
        rater."""
        return make_rng(self.seed, purpose)

    def sample(self, max_rows: int, purpose: int) -> Ints:
        """Sample rows with distinct pairs of utterance and reply."""
        distinct = {pair: row for row, pair in enumerate(self._ids())}
        rows = np.array(sorted(distinct.values()), np.int64)
        if len(rows) <= max_rows:
            return rows
        return np.sort(self.rng(purpose).choice(rows, max_rows, replace=False))

    def _ids(self) -> list[tuple[int, int]]:
        utterances, responses = self.pairs.utterance_ids, self.pairs.response_ids
        return list(zip(utterances.tolist(), responses.tolist(), strict=True))

    def distractors(self, rows: Ints, count: int, purpose: int) -> Ints:
        """[rows, count] draw rows with replies that are no responses to the row's utterance.

        Fewer columns where there are fewer such replies, none where there is no other reply.
        """
        responses_to: dict[int, set[int]] = {}
        for utterance, response in self._ids():
            responses_to.setdefault(utterance, set()).add(response)
        response_ids = self.pairs.response_ids
        _, one_of_each = np.unique(response_ids, return_index=True)
        rng = self.rng(purpose)
        drawn = []
        for row in rows.tolist():
            own = responses_to[int(self.pairs.utterance_ids[row])]
            order = one_of_each[rng.permutation(len(one_of_each))[: count + len(own)]]
            candidates = [other for other in order.tolist() if int(response_ids[other]) not in own]
            drawn.append(candidates[:count])
        width = min(map(len, drawn), default=0)
        return np.array([each[:width] for each in drawn], np.int64).reshape(len(rows), width)

    def items(self, max_contexts: int) -> list[Item]:
        """Return each context twice, with its true reply and with a random one. Where the context
        has another true reply, that is the reference."""
        rows = self.sample(max_contexts, 3)
        wrong = self.distractors(rows, 1, 4)
        other_replies: dict[int, list[int]] = {}
        for group in self.pairs.response_groups:
            for row in group.tolist():
                other_replies[row] = [other for other in group.tolist() if other != row]
        items = []
        for number, row in enumerate(rows.tolist()):
            references = [
                Reference(self.replies[other]) for other in other_replies.get(row, [])[:1]
            ]
            replies = {TRUE: self.replies[row]}
            if wrong.shape[1]:
                replies[RANDOM] = self.replies[int(wrong[number, 0])]
            items += [
                Item(f"{row}:{kind}", reply, self.contexts[row], references=references, system=kind)
                for kind, reply in replies.items()
            ]
        return items


def _validate_scorer(evaluator: Evaluator, held_out: HeldOut) -> dict[str, Any]:
    """Measure recall@1 of the true reply among random ones, and the AUC."""
    rows = held_out.sample(MAX_CONTEXTS, 1)
    wrong = held_out.distractors(rows, DISTRACTORS, 2)
    candidates = np.concatenate([rows[:, None], wrong], axis=1)
    per_context = candidates.shape[1]
    contexts = [held_out.contexts[row] for row in np.repeat(rows, per_context).tolist()]
    replies = [held_out.replies[row] for row in candidates.reshape(-1).tolist()]
    scores = evaluator.scorer.score(contexts, replies).reshape(candidates.shape)
    figures: dict[str, Any] = {"contexts": len(rows), "candidates": per_context}
    if per_context > 1:
        labels = np.zeros(candidates.shape)
        labels[:, 0] = 1
        groups = np.repeat(np.arange(len(rows)), per_context)
        recall = recall_at_1(scores.reshape(-1), labels.reshape(-1), groups)
        assert recall is not None  # each context has a true reply and distractors
        figures["recall_at_1"] = _rounded(recall)
        figures["auc"] = _rounded(auc(scores[:, 0], scores[:, 1:].reshape(-1)))
    return figures


def _validate_rater(evaluator: Evaluator, held_out: HeldOut) -> dict[str, Any]:
    """Measure the AUC of ratings: two responses to one utterance against responses to different
    ones."""
    assert evaluator.rater is not None
    groups = held_out.pairs.response_groups
    rng = held_out.rng(5)
    chosen = rng.permutation(len(groups))[:MAX_CONTEXTS]
    pairs = np.array(
        [rng.choice(groups[number], 2, replace=False) for number in chosen.tolist()], np.int64
    ).reshape(-1, 2)
    wrong = held_out.distractors(pairs[:, 0], 1, 6)
    figures: dict[str, Any] = {"utterances": len(pairs)}
    if not len(pairs) or not wrong.shape[1]:
        return figures

    def rate(first: Ints, second: Ints) -> Floats:
        sides = [
            [texts[row] for row in rows.tolist()]
            for rows in (first, second)
            for texts in (held_out.contexts, held_out.replies)
        ]
        assert evaluator.rater is not None
        return np.asarray(evaluator.rater.rate(*sides))  # type: ignore[arg-type]

    right = rate(pairs[:, 0], pairs[:, 1])
    figures["auc"] = _rounded(auc(right, rate(pairs[:, 0], wrong[:, 0])))
    return figures


def _rounded(value: float) -> float:
    return round(value, DIGITS)

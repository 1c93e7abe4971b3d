"""What an evaluator is worth, measured on dialogues held out, and in which range its scores lie.

Nothing here needs a person's judgement: true replies are told from replies to something else.
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
from rejoinder.evaluator.manifest import RATER, write_manifest
from rejoinder.fitting.ranges import ranges
from rejoinder.fitting.settings import Figures
from rejoinder.items import Item, Reference
from rejoinder.learn.batches import generator
from rejoinder.learn.material import Examples, Material
from rejoinder.meta_evaluation.roc import auc, recall_at_1
from rejoinder.progress import Progress

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OTHERS = 9
"""Random replies that the true one is to be told from."""
MOST_RANKED = 1000
"""Contexts for recall, and pairs of pairs for the rater."""
LEAST_AUC = 0.55
"""A rater below it rates next to at random, and references are better off without it."""
ALL_TURNS = 51
"""Turns of a context: as many as pairs can have."""
DIGITS = 6
TRUE, RANDOM = "true", "random"


def measure(
    folder: Path,
    material: Material,
    settings: Figures,
    language: str,
    *,
    seed: int,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Figures of an evaluator whose manifest has none yet; JSON.

    A rater that is not worth having is taken out of the folder before anything that it would
    have a part in is measured; ``no_rater`` says why.
    """
    evaluator = open_evaluator(folder)
    held_out = HeldOut(material.validation, seed)
    tell = on_progress or (lambda done, total: None)
    validation: dict[str, Any] = {"unreferenced": _scorer_figures(evaluator, held_out)}
    tell(1, 4)
    no_rater = None
    if evaluator.rater is not None:
        validation["rater"] = _rater_figures(evaluator, held_out)
        no_rater = _why_not(validation["rater"])
    if no_rater:
        del validation["rater"]
        evaluator = _without_rater(evaluator)
    tell(2, 4)
    items = held_out.items(settings.most)
    contexts = [item for item in items if item.system == TRUE]
    nearest = evaluator.expansion(contexts).coverage.nearest
    tell(3, 4)
    found, notes = ranges(folder, items, settings.ranges, language)
    if evaluator.rater is not None and "auc" not in validation["rater"]:
        notes.append("the rater is unchecked: no held-out utterance has several responses")
    tell(4, 4)
    return {
        "validation": validation,
        "coverage": quantiles(nearest),
        "ranges": found,
        "notes": notes,
        "no_rater": no_rater,
    }


def _why_not(figures: dict[str, Any]) -> str | None:
    """What is wrong with a rater, as far as could be measured."""
    if figures.get("auc", 1.0) >= LEAST_AUC:
        return None
    return (
        f"one was trained, but on {figures['utterances']:,} held-out utterances its AUC is"
        f" {figures['auc']:.3f}, below {LEAST_AUC:.2f}: next to chance"
    )


def _without_rater(evaluator: Evaluator) -> Evaluator:
    shutil.rmtree(evaluator.path / RATER)
    write_manifest(evaluator.path, evaluator.manifest)
    return open_evaluator(evaluator.path)


@dataclass
class HeldOut:
    """Contexts that nothing was learnt from, with true and with random replies."""

    examples: Examples
    seed: int

    def __post_init__(self) -> None:
        self.contexts = self.examples.contexts(ALL_TURNS)
        self.replies = self.examples.responses

    def chance(self, purpose: int) -> np.random.Generator:
        return generator(self.seed, purpose)

    def some(self, most: int, purpose: int) -> Ints:
        """Rows, each context and reply once."""
        distinct = {(g, s): row for row, (g, s) in enumerate(self._numbers())}
        rows = np.array(sorted(distinct.values()), np.int64)
        if len(rows) <= most:
            return rows
        return np.sort(self.chance(purpose).choice(rows, most, replace=False))

    def _numbers(self) -> list[tuple[int, int]]:
        both = zip(self.examples.groups.tolist(), self.examples.said.tolist(), strict=True)
        return list(both)

    def others(self, rows: Ints, count: int, purpose: int) -> Ints:
        """[rows, count] rows with replies to something else, none of them said as a reply there.

        Fewer columns where there are fewer such replies; none where there is no other reply.
        """
        answers: dict[int, set[int]] = {}
        for group, reply in self._numbers():
            answers.setdefault(group, set()).add(reply)
        said = self.examples.said
        _, everything = np.unique(said, return_index=True)
        chance = self.chance(purpose)
        drawn = []
        for row in rows.tolist():
            own = answers[int(self.examples.groups[row])]
            order = everything[chance.permutation(len(everything))[: count + len(own)]]
            drawn.append([other for other in order.tolist() if int(said[other]) not in own][:count])
        width = min(map(len, drawn), default=0)
        return np.array([each[:width] for each in drawn], np.int64).reshape(len(rows), width)

    def items(self, most: int) -> list[Item]:
        """Each context twice, with a true reply and with a random one. Where the context has
        another true reply, that is the reference."""
        rows = self.some(most, 3)
        wrong = self.others(rows, 1, 4)
        answers: dict[int, list[int]] = {}
        for group in self.examples.answered:
            for row in group.tolist():
                answers[row] = [other for other in group.tolist() if other != row]
        items = []
        for number, row in enumerate(rows.tolist()):
            known = [Reference(self.replies[other]) for other in answers.get(row, [])[:1]]
            replies = {TRUE: self.replies[row]}
            if wrong.shape[1]:
                replies[RANDOM] = self.replies[int(wrong[number, 0])]
            items += [
                Item(f"{row}:{kind}", reply, self.contexts[row], references=known, system=kind)
                for kind, reply in replies.items()
            ]
        return items


def _scorer_figures(evaluator: Evaluator, held_out: HeldOut) -> dict[str, Any]:
    """How often the true reply scores highest among random ones, and how often higher than one."""
    rows = held_out.some(MOST_RANKED, 1)
    wrong = held_out.others(rows, OTHERS, 2)
    every = np.concatenate([rows[:, None], wrong], axis=1)
    contexts = [held_out.contexts[row] for row in np.repeat(rows, every.shape[1]).tolist()]
    replies = [held_out.replies[row] for row in every.reshape(-1).tolist()]
    scores = evaluator.scorer.score(contexts, replies).reshape(every.shape)
    figures: dict[str, Any] = {"contexts": len(rows), "of": every.shape[1]}
    if every.shape[1] > 1:
        true = np.zeros(every.shape)
        true[:, 0] = 1
        which = np.repeat(np.arange(len(rows)), every.shape[1])
        found = recall_at_1(scores.reshape(-1), true.reshape(-1), which)
        assert found is not None  # each context has a right reply, and others
        figures["recall_at_1"] = _rounded(found)
        figures["auc"] = _rounded(auc(scores[:, 0], scores[:, 1:].reshape(-1)))
    return figures


def _rater_figures(evaluator: Evaluator, held_out: HeldOut) -> dict[str, Any]:
    """How well ratings tell two answers to one utterance from answers to different ones."""
    assert evaluator.rater is not None
    groups = held_out.examples.answered
    chance = held_out.chance(5)
    chosen = chance.permutation(len(groups))[:MOST_RANKED]
    pairs = np.array(
        [chance.choice(groups[number], 2, replace=False) for number in chosen.tolist()], np.int64
    ).reshape(-1, 2)
    wrong = held_out.others(pairs[:, 0], 1, 6)
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

"""Whole dialogues as units of analysis: their ratings, and their scores from the scores of turns.

A dialogue has the ratings ``dialogue_ratings`` of its items. A metric's score of a dialogue is made
of the scores of its turns (``turns``):

- ``mean``: of all turns;
- ``min``: of the worst turn, since one bad reply can spoil a dialogue;
- ``last``: of the last turn, which people remember best;
- ``learned``: a weighted sum of these three and of the mean of the second half, with weights by
  ridge regression. Each dialogue is scored with weights that were learnt from the others, in
  FOLDS parts, so that the correlation is not that of a fit to itself.

Turns without a score are left out; a dialogue without any scored turn is unscored.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import Floats, Joined, Units, numbered
from rejoinder.meta_evaluation.ranking import higher_is_better

TURNS = ("mean", "min", "last", "learned")
FOLDS = 10
PENALTY = 0.1
"""Of the ridge regression, relative to the variance of the features, which is 1."""
MIN_LEARNED = 20
"""Rated dialogues below which no weights are learnt."""


def dialogue_units(joined: Joined, turns: str = "mean", seed: int = 0) -> Units:
    """Return one unit per dialogue and system."""
    members = dialogues_of(joined.items)
    rated = [_rated(joined.items, own) for own in members]
    ratings = [item.rating() for item in rated]
    human = np.array([np.nan if rating is None else rating for rating in ratings])
    if np.isnan(human).all():
        raise DataError(
            "no dialogue is rated; expected people's ratings of whole dialogues in the field"
            " 'dialogue_ratings' of their items"
        )
    scores = {
        name: _scores(values, members, human, turns, seed, 1 if higher_is_better(name) else -1)
        for name, values in joined.item_scores.items()
    }
    systems = numbered(item.system for item in rated)
    return Units("dialogue", human, scores, np.arange(len(rated)), *systems, rated)


def dialogues_of(items: Sequence[Item]) -> list[list[int]]:
    """Return the numbers of the items of each dialogue, by turn; DataError if there is none.

    Without the field ``turn``, the order of the items is that of the turns.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for number, item in enumerate(items):
        if item.dialogue_id is not None:
            groups.setdefault((item.dialogue_id, item.system), []).append(number)
    if not groups:
        raise DataError("no item has a 'dialogue_id', which says what dialogue it is a turn of")
    for own in groups.values():
        places = [items[number].turn for number in own]
        known = [place for place in places if place is not None]
        if len(set(known)) < len(known):
            item = items[own[0]]
            raise DataError(
                f"the dialogue '{item.dialogue_id}' has two replies of {item.system} in one turn"
            )
        if len(known) == len(own):
            own.sort(key=lambda number: items[number].turn or 0)
    return list(groups.values())


def _rated(items: Sequence[Item], own: Sequence[int]) -> Item:
    """Return an item that stands for the dialogue, with its ratings."""
    first = items[own[0]]
    given = [items[number] for number in own if items[number].dialogue_ratings is not None]
    if any(item.dialogue_ratings != given[0].dialogue_ratings for item in given[1:]):
        raise DataError(
            f"the items of the dialogue '{first.dialogue_id}' have different 'dialogue_ratings'"
        )
    ratings = given[0].dialogue_ratings if given else None
    return msgspec.structs.replace(first, id=first.dialogue_id or "", ratings=ratings)


def _scores(
    values: Floats, members: list[list[int]], human: Floats, turns: str, seed: int, sign: int
) -> Floats:
    features = np.array([_features(sign * values[own]) for own in members])
    if turns == "learned":
        return sign * _learned(features, human, seed)
    return sign * features[:, TURNS.index(turns)]


def _features(scores: Floats) -> list[float]:
    """Return mean, minimum and last score of a dialogue, and the mean of its second half."""
    known = scores[~np.isnan(scores)]
    if not known.size:
        return [np.nan] * 4
    return [known.mean(), known.min(), known[-1], known[len(known) // 2 :].mean()]


def _learned(features: Floats, human: Floats, seed: int) -> Floats:
    """Return the score of each dialogue by weights that were learnt from other dialogues."""
    scored = ~np.isnan(features[:, 0])
    known = np.flatnonzero(scored & ~np.isnan(human))
    if len(known) < MIN_LEARNED:
        raise DataError(
            f"{len(known)} dialogues are rated and scored; weights of turns are learnt from"
            f" {MIN_LEARNED} at least"
        )
    spread = features[scored].std(axis=0)
    standard = (features - features[scored].mean(axis=0)) / np.where(spread > 0, spread, 1)
    fold = np.full(len(features), -1)
    order = np.random.default_rng(seed).permutation(known)
    fold[order] = np.arange(len(order)) % FOLDS
    values = np.full(len(features), np.nan)
    for number in range(-1, FOLDS):
        learn = known[fold[known] != number]
        target = human[learn] - human[learn].mean()
        inputs = standard[learn]
        gram = inputs.T @ inputs / len(learn) + PENALTY * np.eye(inputs.shape[1])
        weights = np.linalg.solve(gram, inputs.T @ target / len(learn))
        own = scored & (fold == number)
        # without the mean rating, which differs from part to part
        values[own] = standard[own] @ weights
    return values

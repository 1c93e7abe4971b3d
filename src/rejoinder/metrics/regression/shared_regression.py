"""The regression that contexts with few references share.

Similarities to the references of one context are no features in another. These mean the same in all
contexts: the similarity of a text to the good references of its context (a weight above 0) and to
the bad ones, each as the highest, the mean of the three highest, and the mean; and the prediction
of the regression of its own context, however few references that has. One regression learns from
all references of all other contexts how human scores follow from these features; each reference is
compared with the others of its context.

A good reference is compared with one good reference fewer than a bad one, and the highest of four
similarities tends to be lower than the highest of five: the mere numbers of references would leak
the label. Hence each reference is also compared with one fewer of the *other* kind, chosen by the
texts alone; and so is a reply that is itself a reference of its context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import Floats, Ints
from rejoinder.metrics.regression.context_regression import MIN_REFERENCES, ContextRegression
from rejoinder.metrics.regression.contexts import Context
from rejoinder.metrics.regression.ridge import Ridge
from rejoinder.metrics.regression.similarity import Flags

Digests = NDArray[np.uint64]
TOO_LITTLE = "too few references to learn from, here or in other contexts"


class SharedRegression:
    """Collects, context by context, the rows to learn from and those to predict."""

    def __init__(self, texts: Sequence[str], own: ContextRegression) -> None:
        self._texts = texts
        self._own = own
        self._rows: list[Floats] = []
        self._target: list[Floats] = []
        self._numbers: list[Ints] = []
        self._queries: list[Floats] = []

    def read(self, context: Context, compared: Mapping[int, Ints], loo: bool) -> None:
        """Add the references of a context as training rows; and the items of ``compared``, with the
        references that each is compared with, as rows to predict."""
        references = _ScoredReferences(context, self._texts, self._own)
        rows, target = references.training_rows()
        self._rows.append(rows)
        self._target.append(target)
        self._numbers.append(context.items[list(compared)])
        self._queries.append(references.query_rows(compared, loo))

    def predictions(self) -> tuple[Ints, Floats]:
        """Return the numbers of the items to predict, and their values; NaN for those without
        references to compare with, or without another context to learn from."""
        numbers = np.concatenate([*self._numbers, np.zeros(0, np.int64)])
        first = np.cumsum([0, *map(len, self._rows)])
        if not len(numbers) or not first[-1]:
            return numbers, np.full(len(numbers), np.nan)
        rows = np.concatenate(self._rows)
        # a correction is learnt: with little data, it is small
        ridge = Ridge.fit(rows, np.concatenate(self._target) - rows[:, -1], first)
        predictions = [
            queries[:, -1] + ridge.without(group, queries)
            for group, queries in enumerate(self._queries)
        ]
        return numbers, np.concatenate(predictions)


class _ScoredReferences:
    """The references of one context and their scores; the mean, if items disagree."""

    def __init__(self, context: Context, texts: Sequence[str], own: ContextRegression) -> None:
        self.context = context
        self.own = own
        self.same = context.same_reference
        scored = ~np.isnan(context.weight)
        column = context.column[scored]
        times = np.bincount(column, minlength=context.references)
        total = np.bincount(column, context.weight[scored], context.references)
        self.weight = total / np.where(times > 0, times, 1)
        self.usable = times > 0
        if context.why is not None:
            diagonal = np.arange(context.references)
            self.usable &= ~np.isnan(context.similarity[:, diagonal, diagonal]).any(axis=0)
        digests = [crc32(texts[number].encode()) for number in context.texts.tolist()]
        self.digest = np.array(digests, np.uint64)

    @property
    def good(self) -> Flags:
        return self.weight > 0

    def training_rows(self) -> tuple[Floats, Floats]:
        """Return the features and scores of all references that can be compared with others."""
        lists = []
        rows = []
        for place in np.flatnonzero(self.usable).tolist():
            others = np.flatnonzero(self.usable & (self.same != self.same[place]))
            others = self._comparable_to(place, others)
            kept = self._balanced(place, others, self.good[others], bool(self.good[place]))
            if len(kept):
                rows.append(place)
                lists.append((others[kept], self.weight[others[kept]]))
        return self._features(rows, lists), (self.weight[rows] + 1) / 2

    def query_rows(self, compared: Mapping[int, Ints], loo: bool) -> Floats:
        """Return the features of replies that are compared with these references."""
        lists = []
        rows = self.context.reply[list(compared)].tolist()
        for text, own in zip(rows, compared.values(), strict=True):
            columns, weight = self.context.column[own], self.context.weight[own]
            itself = np.flatnonzero(self.usable & (self.same == self.context.same[text]))
            if loo and len(itself):
                kept = self._balanced(text, columns, weight > 0, bool(self.good[itself[0]]))
                columns, weight = columns[kept], weight[kept]
            lists.append((columns, weight))
        return self._features(rows, lists)

    def _comparable_to(self, text: int, columns: Ints) -> Ints:
        if self.context.why is None:
            return columns
        comparable = ~np.isnan(self.context.similarity[:, text, columns]).any(axis=0)
        return columns[comparable]

    def _balanced(self, text: int, columns: Ints, good: Flags, is_good: bool) -> Ints:
        """Return positions in ``columns``: all of the text's own kind, and of the other kind at
        most one fewer than the context has."""
        other = np.flatnonzero(good != is_good)
        limit = int((self.usable & (self.good != is_good)).sum()) - 1
        if len(other) <= limit:
            return np.arange(len(columns))
        order = np.argsort(
            _hash_pairs(self.digest[text], self.digest[columns[other]]), kind="stable"
        )
        return np.sort(np.setdiff1d(np.arange(len(columns)), other[order[max(limit, 0) :]]))

    def _features(self, rows: Sequence[int], lists: Sequence[tuple[Ints, Floats]]) -> Floats:
        from rejoinder.kernels.reference_similarity import reference_features

        first = np.cumsum([0, *(len(columns) for columns, _ in lists)])
        columns = np.concatenate([np.zeros(0, np.int64), *(columns for columns, _ in lists)])
        weight = np.concatenate([np.zeros(0), *(weight for _, weight in lists)])
        texts = np.array(rows, np.int64)
        near = reference_features(self.context.similarity, texts, columns, first, weight > 0)
        alone = [self._own_prediction(text, *some) for text, some in zip(texts, lists, strict=True)]
        return np.column_stack([near, np.array(alone, np.float64)])

    def _own_prediction(self, text: np.int64, columns: Ints, weight: Floats) -> float:
        """Return the prediction of the context's own regression for a text, less the mean score of
        these references: 0 if they are too few, or cannot be compared; NaN if there are none. (The
        mean itself would leak the label: without a good reference it is lower.)"""
        if not len(columns):
            return np.nan
        if len(columns) < MIN_REFERENCES or self.context.incomparable(columns) is not None:
            return 0.0
        prediction = self.own.estimate(self.context, columns, weight, np.array([text]))[0]
        return float(prediction - (weight.mean() + 1) / 2)


def _hash_pairs(one: np.uint64, others: Digests) -> Digests:
    """Return pseudo-random numbers that depend on the two digests only."""
    with np.errstate(over="ignore"):
        mixed = one * np.uint64(0x9E3779B97F4A7C15) + others * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        return mixed ^ (mixed >> np.uint64(32))

"""A small world for tests by hand: words, and tokens in context, as points of a plane.

up (0, 2)   right (1, 0)   left (-3, 0)   back (-1, 0)   steep (3, 4)   nowhere (0, 0)

cos(steep, up) = 0.8   cos(steep, right) = 0.6   cos(up, right) = 0   cos(left, right) = -1
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rejoinder.encode.transformer import TokenVectors
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.evaluate import BatchScores, score_batch
from rejoinder.metrics.metric import ItemMetric, make_metric

WORDS = {
    "up": (0.0, 2.0),
    "right": (1.0, 0.0),
    "left": (-3.0, 0.0),
    "back": (-1.0, 0.0),
    "steep": (3.0, 4.0),
    "nowhere": (0.0, 0.0),
}


def write_plane(path: Path) -> str:
    """The words as a GloVe file, quoted as a value of a spec."""
    lines = [f"{word} {x} {y}\n" for word, (x, y) in WORDS.items()]
    path.write_text("".join(lines))
    return f'"{path}"'


class PlaneEncoder:
    """An encoder whose tokens are the words of the plane, whatever their context.

    Around each text it sets two marks, which point left and down.
    """

    name, digest, dimensions, layers = "plane", "0123456789ab", 2, 3
    languages = None
    special_ids = frozenset({0, 1})
    _vectors = np.array([(-1.0, 0.0), (0.0, -1.0), *WORDS.values()], np.float32)

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self._number = {word: i + 2 for i, word in enumerate(WORDS)}

    def token_ids(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        found = [[0, *(self._number[word] for word in text.split()), 1] for text in texts]
        starts = np.cumsum([0, *map(len, found)])
        return np.array([i for ids in found for i in ids], np.int32), starts.astype(np.int64)

    def tokens(self, texts: Sequence[str], *, layer: int | None = None) -> TokenVectors:
        self.encoded += texts
        ids, starts = self.token_ids(texts)
        return TokenVectors(ids, self._vectors[ids], starts)

    def notes(self) -> list[str]:
        return []


def metric_of(spec: str) -> ItemMetric:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    return metric


def scored(
    spec: str, reply: str, *references: str | Reference, context: Sequence[str] = ()
) -> BatchScores:
    """What a metric says of one reply."""
    listed = [Reference(r) if isinstance(r, str) else r for r in references]
    item = Item(id="1", response=reply, references=listed, context=list(context))
    return score_batch(metric_of(spec), Batch.of([item]))


def value(
    spec: str, reply: str, *references: str | Reference, context: Sequence[str] = ()
) -> float:
    found = scored(spec, reply, *references, context=context)
    assert found.reasons[0] is None, found.reasons[0]
    return float(found.values[0])


def reason(spec: str, reply: str, *references: str | Reference, context: Sequence[str] = ()) -> str:
    found = scored(spec, reply, *references, context=context)
    assert np.isnan(found.values[0])
    return str(found.reasons[0])


def parts(spec: str, reply: str, *references: str | Reference) -> dict[str, float]:
    found = scored(spec, reply, *references)
    return {name: float(v[0]) for name, v in found.metric.ingredients(found.rows).items()}

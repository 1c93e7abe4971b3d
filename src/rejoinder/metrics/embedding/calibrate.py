"""Make a calibration from a corpus: document frequencies, and scores of random pairs of texts.

Texts are streamed: only a count for each token and a uniform sample of texts are kept, so that
memory does not grow with the corpus.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch, Ints
from rejoinder.metrics.embedding.bertscore import BertScore, importance, with_f
from rejoinder.metrics.embedding.calibration import Calibration, idf
from rejoinder.progress import Progress

if TYPE_CHECKING:
    from rejoinder.encode.transformer import Encoder

CHUNK_SIZE = 4096
"""Number of texts that are tokenized at a time."""
MAX_TRIES = 100
"""How often another text is drawn if it equals the one that it is compared with."""


@dataclass(frozen=True)
class Corpus:
    """Document frequencies and a sample of all texts."""

    texts: int
    counts: Ints
    """Number of texts with each token, by token number."""
    sample: list[str]


def read_corpus(
    texts: Iterable[str],
    encoder: Encoder,
    *,
    max_sample: int,
    seed: int,
    on_read: Callable[[int], None] | None = None,
) -> Corpus:
    """Count the tokens of all texts, and keep a uniform sample of at most ``max_sample`` texts.

    Blank texts are left out; repeated texts count repeatedly.
    """
    sample = _Sample(max_sample, random.Random(seed))
    counts = np.zeros(0, np.int64)
    for chunk in _chunks(texts):
        counts = _add(counts, _document_frequencies(encoder, chunk))
        sample.add(chunk)
        if on_read is not None:
            on_read(sample.seen)
    return Corpus(sample.seen, counts, sample.texts)


def calibrate(
    texts: Corpus,
    metric: BertScore,
    *,
    pairs: int,
    seed: int,
    on_progress: Progress | None = None,
) -> Calibration:
    """Measure the mean P, R and F of random pairs of different texts, without and with idf."""
    weights = np.ones(1), idf(texts.counts, texts.texts)
    tables = [importance(metric.encoder, each) for each in weights]
    sums = [np.zeros(4), np.zeros(4)]
    batch = _pairs(texts.sample, pairs, random.Random(seed))
    done = 0
    for piece in batch.slices(metric.max_characters or 1):
        tokens = metric.read(piece)
        for total, table in zip(sums, tables, strict=True):
            total += with_f(*tokens.match(table, np.ones(len(piece)))).sum(axis=0)
        done += len(piece)
        if on_progress is not None:
            on_progress(done, pairs)
    used = np.flatnonzero(texts.counts).tolist()
    return Calibration(
        model=metric.encoder.name,
        digest=metric.encoder.digest,
        layer=metric.layer,
        texts=texts.texts,
        pairs=pairs,
        seed=seed,
        random_pairs=_means(sums[0]),
        random_pairs_idf=_means(sums[1]),
        counts={token: int(texts.counts[token]) for token in used},
    )


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    present = (text.strip() for text in texts if text and not text.isspace())
    while chunk := list(islice(present, CHUNK_SIZE)):
        yield chunk


def _document_frequencies(encoder: Encoder, texts: list[str]) -> Ints:
    """Return the number of texts with each token, by token number."""
    ids, starts = encoder.token_ids(texts)
    owner = np.repeat(np.arange(len(texts)), np.diff(starts))
    # count each token of a text once
    distinct = np.unique(np.stack([owner, ids.astype(np.int64)]), axis=1)
    return np.bincount(distinct[1])


def _add(left: Ints, right: Ints) -> Ints:
    total = np.zeros(max(len(left), len(right)), np.int64)
    total[: len(left)] += left
    total[: len(right)] += right
    return total


class _Sample:
    """A uniform sample of a stream of texts (reservoir sampling)."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self.size, self.rng = size, rng
        self.texts: list[str] = []
        self.seen = 0

    def add(self, texts: list[str]) -> None:
        for text in texts:
            self.seen += 1
            if len(self.texts) < self.size:
                self.texts.append(text)
            elif (place := self.rng.randrange(self.seen)) < self.size:
                self.texts[place] = text


def _pairs(texts: list[str], pairs: int, rng: random.Random) -> Batch:
    """Return items of a random text with another one as its reference."""
    items = []
    for number in range(pairs):
        left = rng.choice(texts) if texts else ""
        right = next((t for t in _drawn(texts, rng) if t != left), None)
        if right is None:
            raise DataError("a calibration needs at least two different texts")
        items.append(Item(id=str(number), response=left, references=[Reference(right)]))
    return Batch.of(items)


def _drawn(texts: list[str], rng: random.Random) -> Iterator[str]:
    return (rng.choice(texts) for _ in range(MAX_TRIES if texts else 0))


def _means(total: NDArray[np.float64]) -> tuple[float, float, float]:
    precision, recall, score = (total[:3] / total[3]).tolist()
    return precision, recall, score

"""FAISS: the likely rows instead of all, for pools that are asked again and again.

An approximate index proposes ``candidates`` rows for each query; those are compared exactly, with
the stored vectors, so that a similarity is never approximate: only a row may be missed. If rows
are left out or responses must be distinct, and too few of the proposed ones remain, more are
asked for. A pool of fewer than 10,000 pairs is scanned: nothing is quicker.

``hnsw``: a graph of neighbours (Malkov and Yashunin 2020) over vectors in 8 bits a number.
``ivf-pq``: the pool in cells around centres, and vectors in 2 bits a number (Jégou et al. 2011;
André et al. 2017). Quicker to make and smaller.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rejoinder.errors import MissingExtra, UsageError
from rejoinder.progress import Progress
from rejoinder.retrieve.base import Hits, Ints, Mask, Queries, hits_of
from rejoinder.retrieve.scan import DenseIndex
from rejoinder.retrieve.vectors import VectorFile, Vectors, blocks
from rejoinder.spec import Spec, build, did_you_mean

if TYPE_CHECKING:
    from rejoinder.retrieve.dense import VectorRetriever

FEWEST = 10_000
"""A smaller pool is scanned; the codes of ivf-pq could not be trained on it either."""
MOST = 10_000
"""More candidates take longer than the scan."""
PER_CENTRE = 40
"""Vectors to train a centre on: FAISS wants 39."""
ADDED = 16_384
FILE = "nearest.faiss"


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("an approximate index needs FAISS: pip install faiss-cpu") from None
    return faiss


@dataclass(frozen=True, kw_only=True)
class Nearest(ABC):
    """An approximate index; its fields are the parameters of its spec."""

    name: ClassVar[str]

    candidates: int = 100

    def __post_init__(self) -> None:
        _check("candidates", self.candidates, 1, MOST)

    @abstractmethod
    def empty(self, faiss: Any, size: int, dimensions: int) -> Any:
        """An index to be trained and filled."""

    @abstractmethod
    def sample(self, size: int) -> int:
        """How many vectors it is trained on."""

    @abstractmethod
    def tune(self, index: Any, wanted: int) -> None:
        """Prepare a search for so many candidates."""

    def build(self, vectors: Path, folder: Path, on_progress: Progress | None = None) -> None:
        """Fill an index with the vectors of a file."""
        faiss = _faiss()
        file = VectorFile(vectors)
        if file.size < FEWEST:
            return
        index = self.empty(faiss, file.size, file.dimensions)
        chosen = np.linspace(0, file.size - 1, min(self.sample(file.size), file.size)).astype(int)
        index.train(np.ascontiguousarray(file.mapped[chosen]))
        for first, (block,) in blocks([file], range(file.size), ADDED):
            index.add(block)
            if on_progress:
                on_progress(first + len(block), file.size)
        faiss.write_index(index, str(folder / FILE))

    def open(self, retriever: VectorRetriever, folder: Path, size: int) -> DenseIndex:
        if size < FEWEST:
            return DenseIndex(retriever, folder, size)
        return AnnIndex(self, retriever, folder, size)


@dataclass(frozen=True, kw_only=True)
class Hnsw(Nearest):
    """A graph of neighbours."""

    name: ClassVar[str] = "hnsw"

    links: int = 32
    """Neighbours of each row: more find more, and take more memory."""
    construction: int = 100
    """How widely neighbours are looked for when the graph is made."""
    search: int = 128
    """How widely when it is asked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("links", self.links, 4, 256)
        _check("construction", self.construction, 4, 10_000)
        _check("search", self.search, 1, MOST)

    def empty(self, faiss: Any, size: int, dimensions: int) -> Any:
        kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWSQ(dimensions, kind, self.links, metric)
        index.hnsw.efConstruction = self.construction
        return index

    def sample(self, size: int) -> int:
        return 100_000

    def tune(self, index: Any, wanted: int) -> None:
        index.hnsw.efSearch = max(self.search, wanted)


@dataclass(frozen=True, kw_only=True)
class IvfPq(Nearest):
    """Cells around centres, and short codes."""

    name: ClassVar[str] = "ivf-pq"

    lists: int = 0
    """Cells; 0: four times the square root of the rows."""
    codes: int = 0
    """Parts that a vector is cut into, of 4 bits each; 0: a part for two numbers."""
    probes: int = 0
    """How many cells are looked into; 0: a twentieth, and 32 at least."""
    candidates: int = 400
    """Codes of 2 bits a number are coarse: with half as many, more cells would not help."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("lists", self.lists, 0, 2**20)
        _check("codes", self.codes, 0, 2**12)
        _check("probes", self.probes, 0, 2**20)

    def empty(self, faiss: Any, size: int, dimensions: int) -> Any:
        codes = self.codes or _divisor(dimensions, max(dimensions // 2, 1))
        if dimensions % codes:
            raise UsageError(f"ivf-pq: codes={codes} does not divide the {dimensions} dimensions")
        centres = faiss.IndexFlatIP(dimensions)
        index = faiss.IndexIVFPQFastScan(
            centres, dimensions, self._lists(size), codes, 4, faiss.METRIC_INNER_PRODUCT
        )
        # what is left of a vector without its centre is coded: far better, and no slower
        index.by_residual = True
        index.own_fields = True
        centres.this.disown()
        return index

    def _lists(self, size: int) -> int:
        return max(1, min(self.lists or round(4 * math.sqrt(size)), size // PER_CENTRE))

    def sample(self, size: int) -> int:
        return PER_CENTRE * max(self._lists(size), 256)

    def tune(self, index: Any, wanted: int) -> None:
        index.nprobe = min(self.probes or max(index.nlist // 20, 32), index.nlist)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name}={value} is not from {low} to {high}")


def _divisor(number: int, most: int) -> int:
    return next(d for d in range(most, 0, -1) if number % d == 0)


KINDS: dict[str, type[Nearest]] = {kind.name: kind for kind in (Hnsw, IvfPq)}


def make_nearest(spec: Spec) -> Nearest | None:
    """What ``index=…`` means; None for the exact scan."""
    if spec == Spec("exact"):
        return None
    if spec.name not in KINDS:
        known = ["exact", *KINDS]
        raise ValueError(f"unknown index '{spec.name}': {did_you_mean(spec.name, known)}")
    return build(spec, KINDS.__getitem__)


class AnnIndex(DenseIndex):
    """Vectors with an approximate index; what it does not find in time is scanned for."""

    approximate = True

    def __init__(
        self, nearest: Nearest, retriever: VectorRetriever, folder: Path, size: int
    ) -> None:
        super().__init__(retriever, folder, size)
        self._nearest, self._path = nearest, folder / FILE

    @cached_property
    def _index(self) -> Any:
        return _faiss().read_index(str(self._path))

    def search(
        self,
        queries: Queries,
        k: int,
        *,
        skip: Mask | None = None,
        holds: Ints | None = None,
        on_progress: Progress | None = None,
    ) -> Hits:
        from rejoinder.kernels.topk import NO_MASK, NO_NUMBERS, Best, Threads, rescore

        asked = self.ask(queries)
        vectors: Vectors = next(iter(asked.arrays.values()))
        distinct = holds is not None
        best = Best.none(len(asked), k, distinct=distinct)
        mask, numbers = NO_MASK if skip is None else skip, NO_NUMBERS if holds is None else holds
        left, wanted = np.arange(len(asked)), max(self._nearest.candidates, k)
        with Threads() as threads:
            while left.size and wanted <= min(MOST, self.size):
                self._nearest.tune(self._index, wanted)
                proposed = self._index.search(vectors[left], wanted)[1]
                some = Best.none(left.size, k, distinct=distinct)
                pool = self._files[0].mapped
                rescore(threads, some, proposed, vectors[left], pool, mask, numbers)
                best.take(some, left)
                left = left[some.rows[:, -1] < 0]
                wanted *= 8
                if on_progress:
                    on_progress(len(asked) - left.size, len(asked))
        if left.size:
            rest = asked.some(left)
            some = Best.none(left.size, k, distinct=distinct)
            self.scan(rest, range(self.size), some, skip=skip, holds=holds, on_progress=on_progress)
            best.take(some, left)
        return hits_of(asked, len(queries), best.rows, best.scores)

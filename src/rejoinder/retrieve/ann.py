"""Approximate search with FAISS, for pools that are searched again and again.

An approximate index proposes ``candidates`` rows for each query; those are compared exactly, with
the stored vectors, so similarities are never approximate: a row may only be missed. If rows are
left out or responses must be distinct, and too few of the candidates remain, more are requested.
A pool of fewer than 10,000 pairs is scanned: that is faster.

``hnsw``: a graph of neighbours (Malkov and Yashunin 2020) over vectors in 8 bits a number.
``ivf-pq``: the pool in cells around centres, and vectors in 2 bits a number (Jégou et al. 2011;
André et al. 2017). Faster to build and smaller.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rejoinder.errors import DataError, UsageError, missing_extra
from rejoinder.files.paths import open_regular
from rejoinder.progress import Progress
from rejoinder.retrieve.retriever import DEFAULT_OPTIONS, Hits, Queries, SearchOptions
from rejoinder.retrieve.scan import QUERIES, DenseIndex
from rejoinder.retrieve.vector_file import VectorFile, Vectors, blocks
from rejoinder.spec import Spec, build, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rejoinder.kernels.topk import Best, Threads
    from rejoinder.retrieve.dense import VectorRetriever

MIN_ROWS = 10_000
"""Smaller pools are scanned; the codes of ivf-pq could not be trained on them either."""
MAX_CANDIDATES = 10_000
"""More candidates take longer than the scan."""
TRAINING_VECTORS_PER_CENTRE = 40
"""Vectors to train a centre on: FAISS wants 39."""
ADD_ROWS = 16_384
FILE = "nearest.faiss"


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise missing_extra("faiss", "faiss-cpu", task="an approximate index") from None
    return faiss


@dataclass(frozen=True, kw_only=True)
class ApproximateSearch(ABC):
    """An approximate index; its fields are the parameters of its spec."""

    name: ClassVar[str]

    candidates: int = 100

    def __post_init__(self) -> None:
        _check("candidates", self.candidates, 1, MAX_CANDIDATES)

    @abstractmethod
    def create(self, faiss: Any, size: int, dimensions: int) -> Any:
        """Return an empty FAISS index."""

    @abstractmethod
    def training_size(self, size: int) -> int:
        """Return the number of vectors to train the index on."""

    @abstractmethod
    def tune(self, index: Any, candidates: int) -> None:
        """Set the search effort for this number of candidates."""

    def build(self, vectors: Path, folder: Path, on_progress: Progress | None = None) -> None:
        """Build the index of the vectors in a file."""
        faiss = _faiss()
        file = VectorFile(vectors)
        if file.size < MIN_ROWS:
            return
        index = self.create(faiss, file.size, file.dimensions)
        chosen = np.linspace(
            0, file.size - 1, min(self.training_size(file.size), file.size)
        ).astype(int)
        index.train(np.ascontiguousarray(file.rows(chosen)))
        for first, (block,) in blocks([file], range(file.size), ADD_ROWS):
            index.add(block)
            if on_progress:
                on_progress(first + len(block), file.size)
        faiss.write_index(index, str(folder / FILE))

    def open(self, retriever: VectorRetriever, folder: Path, size: int) -> DenseIndex:
        if size < MIN_ROWS:
            return DenseIndex(retriever, folder, size)
        return AnnIndex(self, retriever, folder, size)


@dataclass(frozen=True, kw_only=True)
class Hnsw(ApproximateSearch):
    """A graph of neighbours."""

    name: ClassVar[str] = "hnsw"

    links: int = 32
    """Neighbours of each row (HNSW's M): more improve recall and take more memory."""
    construction: int = 100
    """HNSW's efConstruction."""
    search: int = 128
    """HNSW's efSearch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("links", self.links, 4, 256)
        _check("construction", self.construction, 4, 10_000)
        _check("search", self.search, 1, MAX_CANDIDATES)

    def create(self, faiss: Any, size: int, dimensions: int) -> Any:
        kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWSQ(dimensions, kind, self.links, metric)
        index.hnsw.efConstruction = self.construction
        return index

    def training_size(self, size: int) -> int:
        return 100_000

    def tune(self, index: Any, candidates: int) -> None:
        index.hnsw.efSearch = max(self.search, candidates)


@dataclass(frozen=True, kw_only=True)
class IvfPq(ApproximateSearch):
    """Cells around centres, and short codes."""

    name: ClassVar[str] = "ivf-pq"

    lists: int = 0
    """Cells (nlist); 0: four times the square root of the rows."""
    codes: int = 0
    """Sub-quantizers of 4 bits each; 0: one for every two dimensions."""
    probes: int = 0
    """Cells that are searched (nprobe); 0: a twentieth, at least 32."""
    candidates: int = 400
    """Codes of 2 bits a dimension are coarse: with half as many candidates, recall is limited by
    the codes, whatever the number of cells."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("lists", self.lists, 0, 2**20)
        _check("codes", self.codes, 0, 2**12)
        _check("probes", self.probes, 0, 2**20)

    def create(self, faiss: Any, size: int, dimensions: int) -> Any:
        codes = self.codes or _divisor(dimensions, max(dimensions // 2, 1))
        if dimensions % codes:
            raise UsageError(f"ivf-pq: codes={codes} does not divide the {dimensions} dimensions")
        centres = faiss.IndexFlatIP(dimensions)
        index = faiss.IndexIVFPQFastScan(
            centres, dimensions, self._lists(size), codes, 4, faiss.METRIC_INNER_PRODUCT
        )
        # encode the residual to the centre: much better recall at the same speed
        index.by_residual = True
        index.own_fields = True
        centres.this.disown()
        return index

    def _lists(self, size: int) -> int:
        return max(
            1, min(self.lists or round(4 * math.sqrt(size)), size // TRAINING_VECTORS_PER_CENTRE)
        )

    def training_size(self, size: int) -> int:
        return TRAINING_VECTORS_PER_CENTRE * max(self._lists(size), 256)

    def tune(self, index: Any, candidates: int) -> None:
        index.nprobe = min(self.probes or max(index.nlist // 20, 32), index.nlist)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name}={value} is not from {low} to {high}")


def _divisor(number: int, limit: int) -> int:
    """Return the largest divisor up to the limit."""
    return next(d for d in range(limit, 0, -1) if number % d == 0)


KINDS: dict[str, type[ApproximateSearch]] = {kind.name: kind for kind in (Hnsw, IvfPq)}


def make_approximate_search(spec: Spec) -> ApproximateSearch | None:
    """Return the search that ``index=…`` describes; None for the exact scan."""
    if spec == Spec("exact"):
        return None
    if spec.name not in KINDS:
        names = ["exact", *KINDS]
        raise ValueError(f"unknown index '{spec.name}': {did_you_mean(spec.name, names)}")
    return build(KINDS[spec.name], spec.name, dict(spec.params))


class AnnIndex(DenseIndex):
    """Vectors with an approximate index; queries with too few hits are scanned for."""

    approximate = True

    def __init__(
        self, search: ApproximateSearch, retriever: VectorRetriever, folder: Path, size: int
    ) -> None:
        super().__init__(retriever, folder, size)
        self._search, self._faiss_path = search, folder / FILE

    @cached_property
    def _index(self) -> Any:
        faiss = _faiss()
        with open_regular(self._faiss_path):  # FAISS reports an unreadable file as a traceback
            pass
        try:
            index = faiss.read_index(str(self._faiss_path))
        except RuntimeError as error:
            raise DataError(
                f"is not an index that FAISS can read ({str(error).splitlines()[0][:100]})",
                path=str(self._faiss_path),
            ) from None
        dimensions = self._files[0].dimensions
        if (index.ntotal, index.d) != (self.size, dimensions):
            raise DataError(
                f"holds {index.ntotal} vectors of {index.d} dimensions;"
                f" expected {self.size} of {dimensions}",
                path=str(self._faiss_path),
            )
        return index

    def search(self, queries: Queries, k: int, options: SearchOptions = DEFAULT_OPTIONS) -> Hits:
        from rejoinder.kernels.topk import Best, Threads

        encoded = self.encode_queries(queries)
        vectors: Vectors = next(iter(encoded.arrays.values()))
        distinct = options.groups is not None
        best = Best.empty(len(encoded), k, distinct=distinct)
        left, candidates = np.arange(len(encoded)), max(self._search.candidates, k)
        with Threads() as threads:
            while left.size and candidates <= min(MAX_CANDIDATES, self.size):
                self._search.tune(self._index, candidates)
                proposed = self._index.search(vectors[left], candidates)[1]
                some = Best.empty(left.size, k, distinct=distinct)
                rows = np.where(proposed < self.size, proposed, -1)
                for low in range(0, left.size, QUERIES):
                    part = slice(low, low + QUERIES)
                    self._rescore(threads, some, rows, vectors[left], part, options)
                best.replace(some, left)
                left = left[some.rows[:, -1] < 0]
                candidates *= 8
                if options.on_progress:
                    options.on_progress(len(encoded) - left.size, len(encoded))
        if left.size:
            some = Best.empty(left.size, k, distinct=distinct)
            self.scan(encoded.subset(left), range(self.size), some, options)
            best.replace(some, left)
        return self.make_hits(encoded, len(queries), best.rows, best.scores)

    def _rescore(
        self,
        threads: Threads,
        best: Best,
        rows: NDArray[np.int64],
        vectors: Vectors,
        part: slice,
        options: SearchOptions,
    ) -> None:
        """Compute the similarities of some queries with the rows that the index proposes, -1 for
        none; only these rows are read."""
        from rejoinder.kernels.topk import NO_MASK, NO_NUMBERS, rescore

        known, places = np.unique(np.append(rows[part], 0), return_inverse=True)
        places = places[:-1] - int((known < 0).sum())
        known = known[known >= 0]
        some = best.slice(part.start, part.stop)
        rescore(
            threads,
            some,
            places.reshape(rows[part].shape),
            vectors[part],
            self._files[0].rows(known),
            NO_MASK if options.skip is None else options.skip[known],
            NO_NUMBERS if options.groups is None else options.groups[known],
        )
        some.rows[:] = np.where(some.rows < 0, -1, known[some.rows])

"""An evaluator: a folder whose parts are loaded when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError, missing_extra
from rejoinder.evaluator.manifest import (
    HELD_OUT,
    MAKE_AGAIN,
    POOL,
    RATER,
    SCORER,
    Manifest,
    check_parts,
    read_manifest,
)
from rejoinder.files.checked import inside, read_json
from rejoinder.files.paths import expand_user
from rejoinder.items import Item

if TYPE_CHECKING:
    from rejoinder.evaluator.contamination import Contamination
    from rejoinder.evaluator.expansion import Expansion
    from rejoinder.learn.rater import Rater
    from rejoinder.learn.scorer import Scorer
    from rejoinder.retrieve.pool import Pool
    from rejoinder.retrieve.retriever import Mask, Retriever


T = TypeVar("T", np.float32, np.float64)
Encode = Callable[[list[str]], NDArray[np.float32]]

PACKAGES = ("pyarrow", "torch", "safetensors")
"""Packages that all evaluators need, besides those of their encoders."""

MAX_HELD_OUT_BYTES = 2**30


class Evaluator:
    """The pool, rater and scorer of a folder; open one with :func:`open_evaluator`."""

    def __init__(self, path: Path, manifest: Manifest, digest: str) -> None:
        self.path, self.manifest, self.digest = path, manifest, digest

    @property
    def name(self) -> str:
        return self.path.name

    def __str__(self) -> str:
        """Name and digest, as in signatures: evaluators that may give different numbers differ."""
        return f"{self.name}@{self.digest}"

    def __repr__(self) -> str:
        return f"Evaluator({str(self.path)!r})"

    @cached_property
    def pool(self) -> Pool:
        """The pairs from which references are retrieved."""
        from rejoinder.retrieve.index_folder import open_index

        try:
            return open_index(self.path / POOL)
        except DataError as error:
            # an index that is no part of an evaluator is made in another way
            reason = str(error).partition("; make it a")[0]
            raise DataError(f"{reason}; {MAKE_AGAIN}") from None

    @property
    def retriever(self) -> Retriever:
        assert self.pool.retriever is not None  # it was opened as an index
        return self.pool.retriever

    @cached_property
    def scorer(self) -> Scorer:
        """The unreferenced scorer."""
        from rejoinder.learn.scorer import Scorer

        return Scorer.open(self.path / SCORER)

    @property
    def has_rater(self) -> bool:
        """Whether there is a rater, without loading it."""
        return self._has(RATER)

    @cached_property
    def rater(self) -> Rater | None:
        """The NN-rater; None if the logs were too small to train one."""
        if not self.has_rater:
            return None
        from rejoinder.learn.rater import Rater

        return Rater.open(self.path / RATER)

    @cached_property
    def encode(self) -> Encode | None:
        """Function from texts to unit vectors: that of the retriever, or of the scorer; None if
        neither has vectors of texts (BM25 compares words, a network may read subwords)."""
        from rejoinder.learn.inputs.vectors import VectorInput
        from rejoinder.retrieve.dense import VectorRetriever

        if isinstance(self.retriever, VectorRetriever):
            return self.retriever.encode
        inputs = self.scorer.inputs
        return inputs.sentence_vectors if isinstance(inputs, VectorInput) else None

    @cached_property
    def held_out(self) -> list[str]:
        """Held-out utterances, on which the evaluator was measured; may be empty."""
        if HELD_OUT not in self.manifest.parts:
            return []
        utterances: list[str] = read_json(
            inside(self.path, HELD_OUT), list[str], MAX_HELD_OUT_BYTES
        )
        return utterances

    def score(
        self, contexts: Sequence[Sequence[str]], replies: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return how well replies fit their contexts, from 0 to 1, by the unreferenced scorer."""
        scores = self.scorer.score(contexts, replies)
        return self._finite(scores, SCORER)

    def rate(
        self,
        contexts: Sequence[Sequence[str]],
        good_replies: Sequence[str],
        turns: Sequence[Sequence[str]],
        replies: Sequence[str],
    ) -> NDArray[np.float64]:
        """Return how replies compare with good ones, from -1 to 1, by the rater. ``turns`` are
        those that the rated replies answered."""
        assert self.rater is not None
        return self._finite(self.rater.rate(contexts, good_replies, turns, replies), RATER)

    def vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts; zeros for texts without a vector."""
        assert self.encode is not None
        return self._finite(self.encode(texts), POOL)

    def _finite(self, values: NDArray[T], part: str) -> NDArray[T]:
        if not np.isfinite(values).all():
            raise DataError(
                f"the evaluator is damaged: its {part} gave a number that is not finite;"
                f" {MAKE_AGAIN}",
                path=str(self.path / part),
            )
        return values

    def _has(self, folder: str) -> bool:
        return any(name.startswith(f"{folder}/") for name in self.manifest.parts)

    def check(self) -> None:
        """Raise DataError unless the folder has all parts, as they were written; MissingExtra if
        a package is missing."""
        if missing := [name for name in PACKAGES if find_spec(name) is None]:
            raise missing_extra("neural", *missing, task="using an evaluator")
        check_parts(self.path, self.manifest)
        for folder in (POOL, SCORER):
            if not self._has(folder):
                raise DataError(f"the evaluator has no {folder}/", path=str(self.path))

    def expansion(
        self, items: Sequence[Item], k: int | None = None, leaks: Mask | None = None
    ) -> Expansion:
        """Search the pool for references of some items; ratings and coverage are computed when
        they are first used.

        ``leaks`` marks the rows of the pool that must not be used for the test set
        (:meth:`contamination`); by default those that have a last turn of these items.
        """
        from rejoinder.evaluator.expansion import Expansion

        return Expansion.of(self, items, k, leaks)

    def expand(self, items: Sequence[Item], k: int | None = None) -> list[Item]:
        """Return the items with rated references: their own, k retrieved ones, and the parrot."""
        return self.expansion(items, k).items

    def contamination(self, last_turns: Iterable[str]) -> Contamination:
        """Return which last turns of a test set are in the logs of the evaluator."""
        from rejoinder.evaluator.contamination import find_contamination

        return find_contamination(self.pool, last_turns, self.held_out)


_OPEN: dict[tuple[Path, str], Evaluator] = {}


def open_evaluator(path: str | Path) -> Evaluator:
    """Open the evaluator in a folder; all parts are checked when it is opened the first time.

    If its manifest has changed since, it is another evaluator.
    """
    folder = expand_user(path).absolute()
    manifest, digest = read_manifest(folder)
    if (opened := _OPEN.get((folder, digest))) is not None:
        return opened
    evaluator = Evaluator(folder, manifest, digest)
    evaluator.check()
    return _OPEN.setdefault((folder, digest), evaluator)

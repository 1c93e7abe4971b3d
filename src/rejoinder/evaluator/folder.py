"""An evaluator: a folder that is opened once, and whose parts are loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError, MissingExtra
from rejoinder.evaluator.manifest import (
    HELD_OUT,
    POOL,
    RATER,
    SCORER,
    Manifest,
    check_parts,
    read_manifest,
)
from rejoinder.items import Item

if TYPE_CHECKING:
    from rejoinder.evaluator.expand import Expansion
    from rejoinder.evaluator.seen import Seen
    from rejoinder.learn.rater import Rater
    from rejoinder.learn.scorer import Scorer
    from rejoinder.retrieve.base import Mask, Retriever
    from rejoinder.retrieve.pool import Pool


Encode = Callable[[list[str]], NDArray[np.float32]]

PACKAGES = ("pyarrow", "torch", "safetensors")
"""What every evaluator needs to be asked, besides what its networks read with."""


class Evaluator:
    """What was learned from logs. Make one with :func:`open_evaluator`."""

    def __init__(self, path: Path, manifest: Manifest, digest: str) -> None:
        self.path, self.manifest, self.digest = path, manifest, digest

    @property
    def name(self) -> str:
        return self.path.name

    def __str__(self) -> str:
        """The name in signatures, which tells apart whatever could give different numbers."""
        return f"{self.name}@{self.digest}"

    def __repr__(self) -> str:
        return f"Evaluator({str(self.path)!r})"

    @cached_property
    def pool(self) -> Pool:
        """The pairs that references are taken from."""
        from rejoinder.retrieve.folder import open_index

        try:
            return open_index(self.path / POOL)
        except DataError as error:
            # an index alone is made anew in another way
            reason = str(error).partition("; make it anew")[0]
            raise DataError(f"{reason}; make the evaluator anew with 'rejoinder fit'") from None

    @property
    def retriever(self) -> Retriever:
        assert self.pool.retriever is not None  # it was opened as an index
        return self.pool.retriever

    @cached_property
    def scorer(self) -> Scorer:
        """The unreferenced scorer."""
        from rejoinder.learn.scorer import Scorer

        return Scorer.open(self.path / SCORER)

    @cached_property
    def rater(self) -> Rater | None:
        """The NN-rater; None where the logs were not enough to train one."""
        if not self._has(RATER):
            return None
        from rejoinder.learn.rater import Rater

        return Rater.open(self.path / RATER)

    @cached_property
    def encode(self) -> Encode | None:
        """Turns texts into vectors of length 1, as references are found or as the scorer reads;
        None where neither has any: BM25 compares words, and a network may read pieces of them."""
        from rejoinder.retrieve.dense import VectorRetriever

        if isinstance(self.retriever, VectorRetriever):
            return self.retriever.encode
        sentences: Encode | None = getattr(self.scorer.form, "sentences", None)
        return sentences

    @cached_property
    def held_out(self) -> list[str]:
        """Utterances that nothing was learnt from, but that it was measured on; none are known
        of an older evaluator."""
        if HELD_OUT not in self.manifest.parts:
            return []
        path = self.path / HELD_OUT
        try:
            return msgspec.json.decode(path.read_bytes(), type=list[str])
        except msgspec.DecodeError as error:
            raise DataError(
                f"not a list of utterances ({error}); make it anew with 'rejoinder fit'",
                path=str(path),
            ) from None

    def _has(self, folder: str) -> bool:
        return any(name.startswith(f"{folder}/") for name in self.manifest.parts)

    def check(self) -> None:
        """DataError unless the folder has all parts that an evaluator needs, as they were;
        MissingExtra if they could not be used here."""
        if missing := [name for name in PACKAGES if find_spec(name) is None]:
            raise MissingExtra(
                f"an evaluator needs {', '.join(missing)}: pip install {' '.join(missing)}"
            )
        check_parts(self.path, self.manifest)
        for folder in (POOL, SCORER):
            if not self._has(folder):
                raise DataError(f"the evaluator has no {folder}/", path=str(self.path))

    def expansion(
        self, items: Sequence[Item], k: int | None = None, leaks: Mask | None = None
    ) -> Expansion:
        """What the pool has for a chunk of items: references, ratings, coverage, each when asked.

        ``leaks`` marks rows of the pool that are left out, those that the whole test set has
        (:meth:`seen`). Without it, those are left out that these items themselves have.
        """
        from rejoinder.evaluator.expand import Expansion

        return Expansion.of(self, items, k, leaks)

    def expand(self, items: Sequence[Item], k: int | None = None) -> list[Item]:
        """The items with rated references: their own, k retrieved ones, and the parrot."""
        return self.expansion(items, k).items

    def seen(self, last_turns: Iterable[str]) -> Seen:
        """Which of the last turns of a test set were seen while the evaluator was made."""
        from rejoinder.evaluator.seen import look_for

        return look_for(self.pool, last_turns, self.held_out)


_OPEN: dict[tuple[Path, str], Evaluator] = {}


def open_evaluator(path: str | Path) -> Evaluator:
    """The evaluator in a folder, checked part by part when it is opened for the first time.

    A folder that was sealed anew since is another evaluator.
    """
    folder = Path(path).absolute()
    manifest, digest = read_manifest(folder)
    if (found := _OPEN.get((folder, digest))) is not None:
        return found
    evaluator = Evaluator(folder, manifest, digest)
    evaluator.check()
    return _OPEN.setdefault((folder, digest), evaluator)

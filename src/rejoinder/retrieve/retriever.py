"""The interface of retrievers: a similarity between a test item and the pairs of a pool.

A retriever is a frozen dataclass; its fields are the parameters of its spec. It builds an index of
a pool once (:meth:`Retriever.build`) and opens it for every search. Pairs are compared by one or
both of two keys, the ``utterance`` and the ``response``; with ``on=both`` the two similarities are
multiplied (Galley et al. 2015). A similarity of 0 means "not similar": such a row is never
returned, even if fewer than k others are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.progress import Progress
from rejoinder.registry import RETRIEVERS, TOKENIZERS
from rejoinder.spec import Spec, parameters, parse, spec_of
from rejoinder.text.languages import language
from rejoinder.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from rejoinder.kernels.topk import Best
    from rejoinder.retrieve.pool import Pool

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

UTTERANCE, RESPONSE, BOTH = "utterance", "response", "both"
KEYS = {UTTERANCE: (UTTERANCE,), RESPONSE: (RESPONSE,), BOTH: (UTTERANCE, RESPONSE)}
MAX_TURNS = 50

NO_UTTERANCE = "the context has no text"
NO_RESPONSE = "there is no original reply to compare with"


@dataclass(frozen=True)
class Queries:
    """The texts to search for, one utterance and response for each query."""

    utterances: list[str]
    """The last turn, or several turns (see :meth:`Retriever.key`)."""
    responses: list[str | None]

    def __len__(self) -> int:
        return len(self.utterances)

    def texts(self, key: str) -> list[str]:
        if key == UTTERANCE:
            return self.utterances
        return [text or "" for text in self.responses]

    def missing_keys(self, keys: Sequence[str]) -> dict[int, str]:
        """Return the numbers of the queries that lack a key, each with the reason."""
        missing: dict[int, str] = {}
        for key, reason in ((RESPONSE, NO_RESPONSE), (UTTERANCE, NO_UTTERANCE)):
            if key in keys:
                blank = (i for i, text in enumerate(self.texts(key)) if not text.strip())
                missing |= dict.fromkeys(blank, reason)
        return missing


@dataclass(frozen=True)
class Hits:
    """The rows retrieved for each query: best first; of equal similarity, the lower row first."""

    rows: Ints
    """[q, k], -1 beyond the last hit."""
    scores: NDArray[np.float32]
    """[q, k], 0 beyond the last hit."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why a query could not be searched for."""

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class EncodedQueries:
    """Queries as arrays of numbers, which can be sent to another machine."""

    arrays: Mapping[str, NDArray[Any]]
    numbers: Ints
    """The queries that could be encoded."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why each of the others could not."""

    def __len__(self) -> int:
        return len(self.numbers)

    def subset(self, positions: Ints) -> EncodedQueries:
        """Select some queries; every array must have one row for each query."""
        rows = {name: array[positions] for name, array in self.arrays.items()}
        return EncodedQueries(rows, self.numbers[positions], self.reasons)


@dataclass(frozen=True)
class SearchOptions:
    """Which rows may be hits."""

    skip: Mask | None = None
    """Rows that are left out."""
    groups: Ints | None = None
    """Of rows with the same number here, only the best is a hit."""
    on_progress: Progress | None = None


DEFAULT_OPTIONS = SearchOptions()


class Index(ABC):
    """A pool indexed for one retriever. Opening it loads no model: only queries need one."""

    path: Path
    size: int
    step: int
    """Ranges of rows that start at multiples of it can be scanned separately."""
    approximate: bool = False

    @abstractmethod
    def encode_queries(self, queries: Queries) -> EncodedQueries:
        """Turn queries into numbers."""

    @abstractmethod
    def scan(
        self, queries: EncodedQueries, rows: range, best: Best, options: SearchOptions
    ) -> None:
        """Offer all rows of a range to ``best``."""

    def search(self, queries: Queries, k: int, options: SearchOptions = DEFAULT_OPTIONS) -> Hits:
        """Return the k most similar rows for each query."""
        from rejoinder.kernels.topk import Best

        encoded = self.encode_queries(queries)
        best = Best.empty(len(encoded), k, distinct=options.groups is not None)
        if len(encoded):
            self.scan(encoded, range(self.size), best, options)
        return self.make_hits(encoded, len(queries), best.rows, best.scores)

    def make_hits(
        self, encoded: EncodedQueries, count: int, rows: Ints, scores: NDArray[np.float32]
    ) -> Hits:
        """Return hits for all queries: none for those that could not be encoded."""
        scores = np.where(rows >= 0, scores, 0)
        if not np.isfinite(scores).all():
            raise DataError("holds numbers that are not finite", path=str(self.path))
        hits = Hits(
            np.full((count, rows.shape[1]), -1, np.int64),
            np.zeros((count, rows.shape[1]), np.float32),
            encoded.reasons,
        )
        hits.rows[encoded.numbers] = rows
        hits.scores[encoded.numbers] = scores
        return hits


@dataclass(frozen=True, kw_only=True)
class Retriever(ABC):
    """A way to find similar pairs."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for ``rejoinder ls``."""
    kind: ClassVar[str] = "retriever"
    home: ClassVar[Path | None] = None
    """The folder of the index; see :meth:`at`."""

    on: str = UTTERANCE
    turns: int = 1

    def __post_init__(self) -> None:
        if self.on not in KEYS:
            raise ValueError(f"on={self.on} is not {', '.join(list(KEYS)[:-1])} or {BOTH}")
        if not 1 <= self.turns <= MAX_TURNS:
            raise ValueError(f"turns={self.turns} is not from 1 to {MAX_TURNS}")

    def __str__(self) -> str:
        return str(spec_of(self, self.name))

    def at(self, folder: Path) -> Self:
        """Return the same retriever for an index in this folder.

        Word vectors of an evaluator are found relative to the folder, so both can be moved.
        """
        located = replace(self)
        object.__setattr__(located, "home", folder)
        return located

    @property
    def keys(self) -> tuple[str, ...]:
        return KEYS[self.on]

    def key(self, context: Sequence[str]) -> str:
        """Return the part of a context that is compared: its last ``turns`` turns."""
        return " ".join(context[-self.turns :])

    @property
    def languages(self) -> frozenset[str] | None:
        """Codes of the languages that texts may be in; None for any."""
        return None

    @property
    @abstractmethod
    def depends(self) -> dict[str, str]:
        """Dependencies of an index besides the spec: digests of models, versions of tokenizers."""

    @abstractmethod
    def build(
        self, pool: Pool, folder: Path, on_progress: Progress | None = None
    ) -> dict[str, int]:
        """Write the index of a pool into a folder, resuming from files that are there already.

        Returns the number of unusable rows for each reason, such as "utterance without a vector".
        """

    @abstractmethod
    def open(self, folder: Path, size: int) -> Index:
        """Open the index that :meth:`build` wrote."""


@dataclass(frozen=True, kw_only=True)
class WordRetriever(Retriever):
    """A retriever that splits texts into words."""

    tok: Spec = Spec("13a")
    lower: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.tokenizer

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return TOKENIZERS.make(self.tok)  # type: ignore[no-any-return]

    @property
    def depends(self) -> dict[str, str]:
        return {"tokenizer": self.tokenizer.signature()}

    def apply_case(self, texts: list[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else texts


def make_retriever(text: str, language_code: str | None = None) -> Retriever:
    """Make the retriever that a spec describes, with the language's tokenizer if it sets none."""
    spec = parse(text)
    params = dict(spec.params)
    if language_code and "tok" in parameters(RETRIEVERS.find(spec.name)):
        params.setdefault("tok", parse(language(language_code).tokenizer))
    return RETRIEVERS.make(Spec(spec.name, tuple(params.items())))  # type: ignore[no-any-return]

"""What a retriever is: a similarity between a test item and a pair of the pool.

A retriever is a frozen dataclass; its fields are the parameters of its spec. It makes an index
of a pool once (:meth:`Retriever.build`), and opens it as often as it is asked. Two texts of a
pair can be keys: what was said (``utterance``) and what was answered (``response``); with
``on=both`` the similarities of both are multiplied (Galley et al. 2015). A similarity of 0 is
none: such a row is never found, however few others there are.
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

from rejoinder.progress import Progress
from rejoinder.registry import RETRIEVERS, TOKENIZERS
from rejoinder.spec import Spec, parameters, parse, spec_of
from rejoinder.text.languages import language
from rejoinder.text.tokenizers.base import Tokenizer

if TYPE_CHECKING:
    from rejoinder.kernels.topk import Best
    from rejoinder.retrieve.pool import Pool

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

UTTERANCE, RESPONSE, BOTH = "utterance", "response", "both"
KEYS = {UTTERANCE: (UTTERANCE,), RESPONSE: (RESPONSE,), BOTH: (UTTERANCE, RESPONSE)}
MOST_TURNS = 50

NO_UTTERANCE = "the context has no text"
NO_RESPONSE = "there is no original reply to compare with"


@dataclass(frozen=True)
class Queries:
    """What is looked for."""

    utterances: list[str]
    """The key of each: the last turn, or several turns (see :meth:`Retriever.key`)."""
    responses: list[str | None]

    def __len__(self) -> int:
        return len(self.utterances)

    def texts(self, key: str) -> list[str]:
        if key == UTTERANCE:
            return self.utterances
        return [text or "" for text in self.responses]

    def reasons(self, keys: Sequence[str]) -> dict[int, str]:
        """Queries that lack a key."""
        missing: dict[int, str] = {}
        for key, reason in ((RESPONSE, NO_RESPONSE), (UTTERANCE, NO_UTTERANCE)):
            if key in keys:
                blank = (i for i, text in enumerate(self.texts(key)) if not text.strip())
                missing |= dict.fromkeys(blank, reason)
        return missing


@dataclass(frozen=True)
class Hits:
    """What was found for each query: best first, of equal similarity the lower row first."""

    rows: Ints
    """[q, k], -1 where there is none."""
    scores: NDArray[np.float32]
    """[q, k], 0 where there is none."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why a query could not be asked."""

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Asked:
    """Queries as an index reads them: numbers only, so that they can go to another machine."""

    arrays: Mapping[str, NDArray[Any]]
    chosen: Ints
    """Which queries these are; the others can't be asked."""
    reasons: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.chosen)

    def some(self, places: Ints) -> Asked:
        """A few of them, where all arrays have a row for each query."""
        rows = {name: array[places] for name, array in self.arrays.items()}
        return Asked(rows, self.chosen[places], self.reasons)


class Index(ABC):
    """A pool made ready for one retriever. Opening it loads no model: only queries need one."""

    size: int
    step: int
    """Ranges of rows that start at multiples of it can be scanned apart."""
    approximate: bool = False

    @abstractmethod
    def ask(self, queries: Queries) -> Asked:
        """Turn queries into numbers."""

    @abstractmethod
    def scan(
        self,
        asked: Asked,
        rows: range,
        best: Best,
        *,
        skip: Mask | None,
        holds: Ints | None,
        on_progress: Progress | None = None,
    ) -> None:
        """Let all rows of a range compete."""

    def search(
        self,
        queries: Queries,
        k: int,
        *,
        skip: Mask | None = None,
        holds: Ints | None = None,
        on_progress: Progress | None = None,
    ) -> Hits:
        """The k best rows of each query.

        Rows marked in ``skip`` are left out. ``holds`` numbers what rows hold: of rows with the
        same number only the best is found.
        """
        from rejoinder.kernels.topk import Best

        asked = self.ask(queries)
        best = Best.none(len(asked), k, distinct=holds is not None)
        if len(asked):
            whole = range(self.size)
            self.scan(asked, whole, best, skip=skip, holds=holds, on_progress=on_progress)
        return hits_of(asked, len(queries), best.rows, best.scores)


def hits_of(asked: Asked, count: int, rows: Ints, scores: NDArray[np.float32]) -> Hits:
    """Hits of all queries, also of those that could not be asked."""
    hits = Hits(
        np.full((count, rows.shape[1]), -1, np.int64),
        np.zeros((count, rows.shape[1]), np.float32),
        asked.reasons,
    )
    hits.rows[asked.chosen] = rows
    hits.scores[asked.chosen] = np.where(rows >= 0, scores, 0)
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
        if not 1 <= self.turns <= MOST_TURNS:
            raise ValueError(f"turns={self.turns} is not from 1 to {MOST_TURNS}")

    def __str__(self) -> str:
        return str(spec_of(self, self.name))

    def at(self, folder: Path) -> Self:
        """The same retriever, for an index in this folder: what lies beside it is found, wherever
        somebody moves both."""
        found = replace(self)
        object.__setattr__(found, "home", folder)
        return found

    @property
    def keys(self) -> tuple[str, ...]:
        return KEYS[self.on]

    def key(self, context: Sequence[str]) -> str:
        """The part of a context that is compared: its last turns."""
        return " ".join(context[-self.turns :])

    @property
    @abstractmethod
    def depends(self) -> dict[str, str]:
        """What an index depends on besides the spec: digests of models, versions of tokenizers."""

    @abstractmethod
    def build(
        self, pool: Pool, folder: Path, on_progress: Progress | None = None
    ) -> dict[str, int]:
        """Write the index of a pool into a folder, going on with what is there already.

        Returns what to tell of rows that are of no use: reasons, and how many rows each has.
        """

    @abstractmethod
    def open(self, folder: Path, size: int) -> Index:
        """The index that :meth:`build` wrote."""


@dataclass(frozen=True, kw_only=True)
class WordRetriever(Retriever):
    """A retriever that sees texts as words."""

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

    def cased(self, texts: list[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else texts


def make_retriever(text: str, language_code: str | None = None) -> Retriever:
    """The retriever that a spec describes, with the tokenizer of a language if it sets none."""
    spec = parse(text)
    given = dict(spec.params)
    if language_code and "tok" in parameters(RETRIEVERS.find(spec.name)):
        given.setdefault("tok", parse(language(language_code).tokenizer))
    return RETRIEVERS.make(Spec(spec.name, tuple(given.items())))  # type: ignore[no-any-return]

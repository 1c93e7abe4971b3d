"""Systems that answer with what somebody once answered to something similar.

``c-tfidf``: the response of the pair whose whole context is most like the whole context at hand, by
the cosine of TF-IDF vectors (Lowe et al. 2015, "The Ubuntu Dialogue Corpus"; Liu et al. 2016, "How
NOT to evaluate your dialogue system", where it got its name).
``c-bm25``: the same by BM25 (Tsuta et al. 2020, "υBLEU"; 2023).
``ir-status``: the response whose source post is most like the last turn (Ritter et al. 2011,
"Data-driven response generation in social media"; Sugiyama et al. 2019).
``ir-response``: the response that is itself most like the last turn (the same papers). That sounds
odd, but a reply takes up the words of what it answers; it also often says the turn back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rejoinder.registry import RETRIEVERS
from rejoinder.spec import Spec
from rejoinder.systems.system import Replies, Request, System

if TYPE_CHECKING:
    from rejoinder.retrieve.retriever import Retriever

NOTHING_ALIKE = "nothing in the pool is like it"


@dataclass(frozen=True, kw_only=True)
class RetrievalSystem(System):
    """Looks up the nearest pairs and says their responses, best first."""

    @abstractmethod
    def retriever(self) -> Retriever:
        """How pairs are found."""

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        from rejoinder.retrieve.retriever import Queries

        assert request.pool is not None
        retriever = self.retriever()
        utterances = [retriever.key(context) for context in contexts]
        # a system knows no response yet: where responses are compared, it is the turn that counts
        queries = Queries(utterances, list(utterances))
        hits = request.pool.search(
            retriever,
            queries,
            request.n,
            exclude=request.leaks,
            distinct=True,
            on_progress=request.on_progress,
        )
        # what the retriever says of a missing response is no news: the turn stood in for it
        reasons = hits.reasons if retriever.on == "utterance" else {}
        replies = []
        for i, rows in enumerate(hits.rows):
            found = rows[rows >= 0]
            if found.size:
                replies.append(Replies(tuple(request.pool.responses(found))))
            else:
                replies.append(Replies(reason=reasons.get(i, NOTHING_ALIKE)))
        return replies


@dataclass(frozen=True, kw_only=True)
class ByContext(RetrievalSystem):
    """Finds pairs by their contexts, of which the last ``turns`` turns count: by default all that
    a pool may hold."""

    by: ClassVar[str]

    turns: int = 50
    tok: Spec | None = None

    def __post_init__(self) -> None:
        self.retriever()

    def retriever(self) -> Retriever:
        tok = () if self.tok is None else (("tok", self.tok),)
        return _make(Spec(self.by, (("turns", self.turns), *tok)))


@dataclass(frozen=True, kw_only=True)
class CTfIdf(ByContext):
    name: ClassVar[str] = "c-tfidf"
    summary: ClassVar[str] = "the response to the most similar context, by TF-IDF"
    by: ClassVar[str] = "tfidf"


@dataclass(frozen=True, kw_only=True)
class CBm25(ByContext):
    name: ClassVar[str] = "c-bm25"
    summary: ClassVar[str] = "the response to the most similar context, by BM25"
    by: ClassVar[str] = "bm25"


@dataclass(frozen=True, kw_only=True)
class ByTurn(RetrievalSystem):
    """Finds pairs by the last turn; ``by`` is any retriever, for the papers leave it open."""

    on: ClassVar[str]

    by: Spec = Spec("bm25")

    def __post_init__(self) -> None:
        if wrong := [key for key, _ in self.by.params if key in ("on", "turns")]:
            raise ValueError(f"{wrong[0]} is what makes it {self.name}; it can't be set")
        self.retriever()

    def retriever(self) -> Retriever:
        params = (*self.by.params, ("on", self.on), ("turns", 1))
        return _make(Spec(self.by.name, params))


def _make(spec: Spec) -> Retriever:
    return RETRIEVERS.make(spec)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class IrStatus(ByTurn):
    name: ClassVar[str] = "ir-status"
    summary: ClassVar[str] = "the response to the post most like the last turn"
    on: ClassVar[str] = "utterance"


@dataclass(frozen=True, kw_only=True)
class IrResponse(ByTurn):
    name: ClassVar[str] = "ir-response"
    summary: ClassVar[str] = "the response that is most like the last turn"
    on: ClassVar[str] = "response"

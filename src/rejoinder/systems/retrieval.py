"""Retrieval systems, which reply with the response of a similar pair.

``c-tfidf``: the response of the pair with the most similar context, by the cosine of TF-IDF vectors
(Lowe et al. 2015, "The Ubuntu Dialogue Corpus"; Liu et al. 2016, "How NOT to evaluate your dialogue
system", which gave it its name).
``c-bm25``: the same by BM25 (Tsuta et al. 2020, "υBLEU"; 2023).
``ir-status``: the response to the post that is most similar to the last turn (Ritter et al. 2011,
"Data-driven response generation in social media"; Sugiyama et al. 2019).
``ir-response``: the response that is itself most similar to the last turn (the same papers): a
reply shares words with the turn that it answers; it often repeats the turn, too.
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

NOTHING_SIMILAR = "nothing in the pool is similar"


@dataclass(frozen=True, kw_only=True)
class RetrievalSystem(System):
    """Replies with the responses of the most similar pairs, best first."""

    @abstractmethod
    def retriever(self) -> Retriever:
        """Return the retriever that finds similar pairs."""

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        from rejoinder.retrieve.retriever import Queries

        assert request.pool is not None
        retriever = self.retriever()
        utterances = [retriever.key(context) for context in contexts]
        # the reply is not known yet: where responses are compared, the turn is used instead
        queries = Queries(utterances, list(utterances))
        hits = request.pool.search(
            retriever,
            queries,
            request.n,
            exclude=request.leaks,
            distinct=True,
            on_progress=request.on_progress,
        )
        # a missing response is no reason: the turn was used instead
        reasons = hits.reasons if retriever.on == "utterance" else {}
        replies = []
        for i, rows in enumerate(hits.rows):
            hit_rows = rows[rows >= 0]
            if hit_rows.size:
                replies.append(Replies(tuple(request.pool.responses(hit_rows))))
            else:
                replies.append(Replies(reason=reasons.get(i, NOTHING_SIMILAR)))
        return replies


@dataclass(frozen=True, kw_only=True)
class ByContext(RetrievalSystem):
    """Finds pairs by the last ``turns`` turns of their contexts: by default all that a pool has."""

    by: ClassVar[str]

    turns: int = 50
    tok: Spec | None = None

    def __post_init__(self) -> None:
        self.retriever()

    def retriever(self) -> Retriever:
        tok = () if self.tok is None else (("tok", self.tok),)
        return _make(Spec(self.by, (("turns", self.turns), *tok)))


class CTfIdf(ByContext):
    name, by = "c-tfidf", "tfidf"
    summary = "the response to the most similar context, by TF-IDF"


class CBm25(ByContext):
    name, by = "c-bm25", "bm25"
    summary = "the response to the most similar context, by BM25"


@dataclass(frozen=True, kw_only=True)
class ByTurn(RetrievalSystem):
    """Finds pairs by the last turn; ``by`` is any retriever, because the papers name none."""

    on: ClassVar[str]

    by: Spec = Spec("bm25")

    def __post_init__(self) -> None:
        if wrong := [key for key, _ in self.by.params if key in ("on", "turns")]:
            raise ValueError(f"by: {wrong[0]} is fixed for {self.name}; leave it out")
        self.retriever()

    def retriever(self) -> Retriever:
        params = (*self.by.params, ("on", self.on), ("turns", 1))
        return _make(Spec(self.by.name, params))


def _make(spec: Spec) -> Retriever:
    return RETRIEVERS.make(spec)  # type: ignore[no-any-return]


class IrStatus(ByTurn):
    name, on = "ir-status", "utterance"
    summary = "the response to the post most like the last turn"


class IrResponse(ByTurn):
    name, on = "ir-response", "response"
    summary = "the response that is most like the last turn"

"""A language model that answers chats, wherever it runs: behind an endpoint or in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rejoinder.llm.answers import Answers
from rejoinder.llm.budget import NO_BUDGET, Budget, Estimate, Spending
from rejoinder.llm.chat import Chat, Result
from rejoinder.llm.endpoint import Endpoint
from rejoinder.llm.limits import NO_LIMITS, Limits
from rejoinder.llm.secrets import KEY_VARIABLE
from rejoinder.progress import Progress


class LanguageModel(Protocol):
    """What judges, writers of references and dialogue systems ask."""

    spending: Spending

    @property
    def identity(self) -> str:
        """What signatures call the model: its name, and its address or the digest of its files."""

    def estimate(self, chats: Sequence[Chat]) -> Estimate:
        """Return what asking these chats would cost; nothing is asked."""

    def ask(
        self,
        chats: Sequence[Chat],
        *,
        on_message: Callable[[str], None] = ...,
        on_note: Callable[[str], None] = ...,
        on_progress: Progress | None = None,
    ) -> list[Result]:
        """Return the answer to each chat, or the reason for none."""


def open_model(
    model: str,
    url: str | None = None,
    *,
    key_variable: str = KEY_VARIABLE,
    limits: Limits = NO_LIMITS,
    budget: Budget = NO_BUDGET,
    answers: Answers | None = None,
    seed: int = 0,
) -> LanguageModel:
    """Return the model of a server, or, without an address, the model in a folder.

    ``limits`` concern servers only.
    """
    if url is not None:
        from rejoinder.llm.client import Client

        endpoint = Endpoint(url, model, key_variable)
        return Client(endpoint, limits=limits, budget=budget, answers=answers, seed=seed)
    from rejoinder.llm.folder.client import FolderClient

    return FolderClient(model, budget=budget, answers=answers, seed=seed)

"""The client of language models: many chats in, an answer or a reason for each out.

Judges, writers of references and dialogue systems all ask through it. What it adds to a request:
answers from the cache, each chat asked once, a budget, limits on speed, and repeated tries.

>>> from rejoinder.llm.chat import Chat, Message
>>> client = Client(Endpoint("http://127.0.0.1:9/v1", "any"))
>>> client.estimate([Chat((Message("user", "Hello!"),), {"max_tokens": 50})])
Estimate(requests=1, tokens=60, cached=0)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rejoinder.llm.answers import Answers
from rejoinder.llm.budget import NO_BUDGET, Budget, Estimate, Spending, estimate
from rejoinder.llm.chat import Answer, Chat, Failure, Result
from rejoinder.llm.endpoint import Endpoint
from rejoinder.llm.limits import NO_LIMITS, Limits
from rejoinder.llm.secrets import read_key
from rejoinder.llm.session import Session
from rejoinder.progress import Progress


class Client:
    """Asks one model of one server."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        limits: Limits = NO_LIMITS,
        budget: Budget = NO_BUDGET,
        answers: Answers | None = None,
        seed: int = 0,
    ) -> None:
        self.endpoint, self.limits, self.budget = endpoint, limits, budget
        self.answers = Answers() if answers is None else answers
        self.spending = Spending(budget)
        """Requests and tokens of this client, without answers from the cache."""
        self._seed = seed

    @property
    def identity(self) -> str:
        """What signatures call the model: its name and the address of the server."""
        return f"{self.endpoint.model}@{self.endpoint.base_url}"

    def estimate(self, chats: Sequence[Chat]) -> Estimate:
        """Return what asking these chats would cost; nothing is sent."""
        by_key = {chat.key(self.endpoint): chat for chat in chats}
        found = self.answers.get(list(by_key))
        return estimate([c for key, c in by_key.items() if key not in found], len(found))

    def ask(
        self,
        chats: Sequence[Chat],
        *,
        on_message: Callable[[str], None] = lambda text: None,
        on_note: Callable[[str], None] = lambda text: None,
        on_progress: Progress | None = None,
    ) -> list[Result]:
        """Return the answer to each chat, or the reason for none.

        ``on_message`` receives the estimated cost before the first request, ``on_note`` what the
        user should know about the cache or the key.
        """
        keys = [chat.key(self.endpoint) for chat in chats]
        by_key = dict(zip(keys, chats, strict=True))
        results: dict[bytes, Result] = dict(self.answers.get(list(by_key)))
        missing = [(key, chat) for key, chat in by_key.items() if key not in results]
        if missing:
            key = read_key(self.endpoint.key_variable)
            if key is not None and not self.endpoint.is_encrypted:
                on_note("the key is sent over http, which is not encrypted; use https")
            cost = estimate([chat for _, chat in missing], len(results))
            on_message(cost.describe(self.budget))
            chat_keys = {id(chat): each for each, chat in missing}

            def store(chat: Chat, result: Result) -> None:
                own = chat_keys[id(chat)]
                if isinstance(result, Answer):
                    result = self.answers.put(own, result)
                results[own] = result
                if on_progress is not None:
                    on_progress(len(results), len(by_key))

            session = Session(
                self.endpoint,
                self.limits,
                self.spending,
                key,
                store,
                known=len(results),
                seed=self._seed,
            )
            _run(session.run([chat for _, chat in missing]))
        elif on_progress is not None and by_key:
            on_progress(len(by_key), len(by_key))
        for text in self.answers.notes():
            on_note(text)
        return [results.get(key, Failure("not asked")) for key in keys]


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, also from a notebook, whose own loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()

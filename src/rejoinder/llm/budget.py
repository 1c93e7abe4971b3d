"""A budget of requests and tokens: estimated before the first request, never exceeded.

The tokens of a text are estimated, because each model counts in its own way: four letters of ASCII
a token, and one token for any other letter. What the server counts replaces the estimate once an
answer is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.llm.chat import Chat

LETTERS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 8
"""Role and marks around a message."""
DEFAULT_ANSWER = 512
"""Tokens of an answer whose length is not limited."""
LENGTHS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True)
class Budget:
    """Limits of one run; None is no limit."""

    max_requests: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and value < 0:
                raise ValueError(f"{name}={value} is negative")


NO_BUDGET = Budget()


@dataclass(frozen=True)
class Estimate:
    """What a run will cost if no request has to be repeated."""

    requests: int
    tokens: int
    """At most, with answers as long as allowed."""
    cached: int
    """Answers that need no request."""

    def describe(self, budget: Budget) -> str:
        """Return a sentence for the user."""
        text = f"{self.requests:,} requests, about {self.tokens:,} tokens at most"
        if self.cached:
            text += f"; {self.cached:,} answers are in the cache"
        if budget.max_requests is not None and budget.max_requests < self.requests:
            text += f"; the budget allows {budget.max_requests:,} requests"
        if budget.max_tokens is not None and budget.max_tokens < self.tokens:
            text += f"; the budget allows {budget.max_tokens:,} tokens"
        return text


def estimate(chats: Sequence[Chat], cached: int) -> Estimate:
    """Return what chats will cost, besides those that are answered from the cache."""
    return Estimate(len(chats), sum(map(estimate_tokens, chats)), cached)


def estimate_tokens(chat: Chat) -> int:
    """Return about how many tokens a chat takes, its longest possible answer included."""
    limits = [chat.parameters[name] for name in LENGTHS if name in chat.parameters]
    answer = min(limits, default=DEFAULT_ANSWER)
    return answer + sum(TOKENS_PER_MESSAGE + estimate_text(m.content) for m in chat.messages)


def estimate_text(text: str) -> int:
    """Return about how many tokens a text takes."""
    ascii_letters = sum(map(str.isascii, text))
    return -(-ascii_letters // LETTERS_PER_TOKEN) + len(text) - ascii_letters


class Spending:
    """What a run has spent of its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.requests = 0
        self.tokens = 0
        """Tokens of finished requests, and the estimates of those that are under way."""

    def reason_to_stop(self, chat: Chat) -> str | None:
        """Return why a request for this chat is not sent, or None if the budget allows it."""
        most = self.budget.max_requests
        if most is not None and self.requests >= most:
            return f"budget: {most:,} requests were sent"
        most = self.budget.max_tokens
        if most is not None and self.tokens + estimate_tokens(chat) > most:
            return f"budget: {most:,} tokens do not suffice"
        return None

    def begin(self, chat: Chat) -> None:
        """Count a request, with its tokens as estimated."""
        self.requests += 1
        self.tokens += estimate_tokens(chat)

    def end(self, chat: Chat, tokens: int | None) -> None:
        """Replace the estimate by what the server counted; without a count it stands, because a
        request that broke off may have been worked on."""
        if tokens is not None:
            self.tokens += tokens - estimate_tokens(chat)

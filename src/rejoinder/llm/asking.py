"""The parameters that all share who ask a language model: judges, and writers of references.

They ask a server (``url`` and ``model``) or a model folder (``model`` alone). Parameters that only
say how it is asked change no answer: they are neither compared nor part of a signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rejoinder.errors import UsageError
from rejoinder.llm.budget import LENGTHS, Budget, estimate_text
from rejoinder.llm.chat import Chat, Message
from rejoinder.llm.endpoint import Endpoint
from rejoinder.llm.limits import Limits
from rejoinder.llm.model import LanguageModel, open_model
from rejoinder.llm.secrets import KEY_VARIABLE, refuse_secrets
from rejoinder.progress import Progress

MAX_SEED = 2**31 - 1
"""Many servers keep seeds in 32 bits."""
MIN_WINDOW = 64

Tell = Callable[[str], None]


def _silent(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Telling:
    """Who hears of the cost before it is spent, of the progress, and of notes."""

    message: Tell = _silent
    note: Tell = _silent
    progress: Progress | None = None


def _asking(default: Any) -> Any:
    """A parameter that changes no answer: it is neither compared nor part of the signature."""
    return field(default=default, compare=False)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Which model is asked, and how."""

    url: str | None = None
    """The address up to the version, such as http://127.0.0.1:8000/v1; None: a model folder."""
    model: str | None = None
    language: str = "en"
    """Of the words around the texts."""
    temperature: float | None = None
    seed: int = 0
    send_seed: bool = True
    structured: bool = True
    """Whether the server is asked to answer in JSON by a schema."""
    max_tokens: int | None = None
    """Tokens of an answer; None: as many as the question needs."""
    length_name: str = "max_tokens"
    """What the server calls max_tokens."""
    window: int = 4096
    """Tokens, as estimated, from which on a question loses the beginning of its context."""
    key_variable: str = _asking(KEY_VARIABLE)
    concurrency: int = _asking(4)
    requests_per_second: float | None = _asking(None)
    timeout: float = _asking(120.0)
    retries: int = _asking(8)
    most_requests: int | None = _asking(None)
    most_tokens: int | None = _asking(None)

    def check_asking(self, name: str, spec: str, problems: Sequence[str] = ()) -> None:
        """Raise UsageError for parameters that cannot be, with the ``problems`` of the caller."""
        problems = [*problems]
        if self.temperature is not None and not 0 <= self.temperature <= 10:
            problems.append(f"temperature={self.temperature:g} is not from 0 to 10")
        if not 0 <= self.seed <= MAX_SEED:
            problems.append(f"seed={self.seed} is not from 0 to {MAX_SEED}")
        if self.max_tokens is not None and not 1 <= self.max_tokens <= 10**6:
            problems.append(f"max_tokens={self.max_tokens} is not from 1 to 1,000,000")
        if self.length_name not in LENGTHS:
            problems.append(f"length_name={self.length_name} is not one of {', '.join(LENGTHS)}")
        if self.window < MIN_WINDOW:
            problems.append(f"window={self.window} is not at least {MIN_WINDOW}")
        for check in (
            lambda: refuse_secrets(spec),
            self.endpoint,
            self.limits,
            self.budget,
        ):
            try:
                check()
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise UsageError(*(f"{name}: {problem}" for problem in problems))

    @property
    def effective_temperature(self) -> float:
        return 0.0 if self.temperature is None else self.temperature

    def endpoint(self) -> Endpoint | None:
        """Return the server; None if the model is a folder, or if none is named."""
        if self.url is None:
            return None
        return Endpoint(self.url, self.model or "", self.key_variable)

    def limits(self) -> Limits:
        return Limits(self.concurrency, self.requests_per_second, self.timeout, self.retries)

    def budget(self) -> Budget:
        return Budget(self.most_requests, self.most_tokens)

    def missing_model(self, name: str) -> str | None:
        """Return what is missing before a model can be asked."""
        if self.model is not None:
            return None
        return (
            f"needs a model: {name}(url=http://127.0.0.1:8000/v1,model=NAME), or"
            f" {name}(model=FOLDER)"
        )

    @cached_property
    def asker(self) -> LanguageModel:
        """The model that is asked: its budget holds for the life of this object."""
        assert self.model is not None, "missing_model() says so before"
        return open_model(
            self.model,
            self.url,
            key_variable=self.key_variable,
            limits=self.limits(),
            budget=self.budget(),
            seed=self.seed,
        )

    def is_known(self, chat: Chat) -> bool:
        """Return whether the answer to a chat is in the cache."""
        return self.asker.estimate([chat]).requests == 0

    def describe_cost(self, chats: Sequence[Chat], who: str) -> str | None:
        """Return a sentence about what asking these chats would cost; None if nothing."""
        cost = self.asker.estimate(chats)
        if not cost.requests:
            return None
        where = "in this process" if self.url is None else f"to {self.url}"
        return f"{who} by {self.model} {where}: {cost.describe(self.budget())}"

    def chat(self, messages: Sequence[Message], length: int, draw: int, **more: Any) -> Chat:
        """Return a chat with these parameters; the k-th answer has seed + k - 1."""
        parameters: dict[str, Any] = {
            self.length_name: self.max_tokens or length,
            "temperature": self.effective_temperature,
        }
        seed = (self.seed + draw) % (MAX_SEED + 1)
        if self.send_seed:
            parameters["seed"] = seed
        return Chat(tuple(messages), parameters | more, 0 if self.send_seed else seed)

    def fit_context(self, turns: Sequence[str], rest: int) -> tuple[list[str], bool]:
        """Return as many of the last turns as fit into the window beside ``rest`` tokens, and
        whether some were left out; of a last turn that is too long, its end."""
        room = self.window - rest
        kept: list[str] = []
        for turn in reversed(turns):
            room -= estimate_text(turn) + 4
            if room < 0 and kept:
                return kept[::-1], True
            kept.append(turn)
            if room < 0:
                return [_end_of(turn, max(self.window - rest, MIN_WINDOW // 4))], True
        return kept[::-1], False


def _end_of(text: str, tokens: int) -> str:
    """Return the end of a text that takes about so many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if estimate_text(text[middle:]) > tokens:
            low = middle + 1
        else:
            high = middle
    return text[low:]

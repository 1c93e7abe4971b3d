"""``openai``: a language model behind an OpenAI-compatible endpoint, on this machine or elsewhere.

The name of a system stands in every item that it writes. So parameters that only say how the server
is asked, such as ``concurrency``, are no part of it, and nothing secret can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from rejoinder.llm.budget import LENGTHS, Budget
from rejoinder.llm.chat import Answer, Chat, Failure, Result
from rejoinder.llm.chat_turns import REFUSED, messages_of, plain_reply
from rejoinder.llm.endpoint import Endpoint
from rejoinder.llm.limits import Limits
from rejoinder.llm.secrets import KEY_VARIABLE, refuse_secrets
from rejoinder.spec import Spec, spec_of
from rejoinder.systems.controls import Seeded
from rejoinder.systems.system import EMPTY_REPLY, MAX_SEED, Replies, Request, distinct

SERVER_SEED = 2**31
"""Seeds that are sent are below this: many servers keep them in 32 bits."""
MAX_LENGTH = 10**6


def _asking(default: Any) -> Any:
    """A parameter that changes no answer: it is neither compared nor part of the name."""
    return field(default=default, compare=False)


@dataclass(frozen=True, kw_only=True)
class OpenAI(Seeded):
    """Asks a server for each reply; answers are kept in a cache, so nothing is asked twice."""

    name: ClassVar[str] = "openai"
    summary: ClassVar[str] = "a language model behind an OpenAI-compatible endpoint"
    needs_pool: ClassVar[bool] = False
    generates: ClassVar[bool] = True

    url: str
    model: str
    system: str | None = None
    """The system prompt."""
    opening: str | None = None
    """What the user said before a context that begins with the model's own turn."""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 256
    """Tokens of a reply."""
    length_name: str = "max_tokens"
    """What the server calls max_tokens."""
    send_seed: bool = True
    key_variable: str = _asking(KEY_VARIABLE)
    """The environment variable with the key."""
    concurrency: int = _asking(4)
    requests_per_second: float | None = _asking(None)
    timeout: float = _asking(120.0)
    retries: int = _asking(8)
    most_requests: int | None = _asking(None)
    most_tokens: int | None = _asking(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._endpoint()
        self._limits()
        Budget(self.most_requests, self.most_tokens)
        refuse_secrets(str(self))
        if self.temperature is not None and not 0 <= self.temperature <= 10:
            raise ValueError(f"temperature={self.temperature} is not from 0 to 10")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p} is not above 0 and up to 1")
        if not 1 <= self.max_tokens <= MAX_LENGTH:
            raise ValueError(f"max_tokens={self.max_tokens} is not from 1 to {MAX_LENGTH:,}")
        if self.length_name not in LENGTHS:
            raise ValueError(f"length_name={self.length_name} is not one of {', '.join(LENGTHS)}")

    def __str__(self) -> str:
        """Return the spec without what changes no answer."""
        spec = spec_of(self, self.name)
        named = {each.name for each in fields(self) if each.compare}
        return str(Spec(spec.name, tuple(p for p in spec.params if p[0] in named)))

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        from rejoinder.llm.client import Client

        # without randomness every draw would be the same
        draws = 1 if self.temperature == 0 else request.n
        chats = [self._chat(context, draw) for context in contexts for draw in range(draws)]
        client = Client(
            self._endpoint(),
            limits=self._limits(),
            budget=Budget(self.most_requests, self.most_tokens),
            seed=self.seed,
        )
        results = client.ask(
            chats,
            on_message=request.message,
            on_note=request.note,
            on_progress=request.on_progress,
        )
        own = [results[i * draws : (i + 1) * draws] for i in range(len(contexts))]
        replies = [_replies(each, request.n) for each in own]
        _note_losses(replies, own, request)
        return replies

    def _chat(self, context: Sequence[str], draw: int) -> Chat:
        """Return what is sent for one reply; the seed of the k-th reply is seed + k - 1."""
        parameters: dict[str, Any] = {self.length_name: self.max_tokens}
        if self.temperature is not None:
            parameters["temperature"] = self.temperature
        if self.top_p is not None:
            parameters["top_p"] = self.top_p
        seed = (self.seed + draw) % min(SERVER_SEED, MAX_SEED)
        if self.send_seed:
            parameters["seed"] = seed
            draw = 0  # the seed tells the draws apart
        else:
            draw = seed
        return Chat(messages_of(context, self.system, self.opening), parameters, draw)

    def _endpoint(self) -> Endpoint:
        return Endpoint(self.url, self.model, self.key_variable)

    def _limits(self) -> Limits:
        return Limits(self.concurrency, self.requests_per_second, self.timeout, self.retries)


def _replies(results: Sequence[Result], n: int) -> Replies:
    """Return the different replies among some results, or the reason of the first failure."""
    texts = distinct((_text(result)[0] for result in results), n)
    if texts:
        return Replies(texts)
    return Replies(reason=next(reason for r in results if (reason := _text(r)[1]) is not None))


def _text(result: Result) -> tuple[str, str | None]:
    if isinstance(result, Failure):
        return "", result.reason
    text, reason = plain_reply(result.text)
    if text or reason is not None:
        return text, reason
    return "", _empty(result)


def _empty(answer: Answer) -> str:
    if answer.refusal is not None:
        return REFUSED
    if answer.finish_reason in (None, "stop"):
        return EMPTY_REPLY
    return f"{EMPTY_REPLY} (finish_reason {answer.finish_reason})"


def _note_losses(
    replies: Sequence[Replies], results: Sequence[Sequence[Result]], request: Request
) -> None:
    """Say how many of several replies to a context are missing although others came."""
    reasons: Counter[str] = Counter()
    for reply, own in zip(replies, results, strict=True):
        if reply.texts:
            failed = [reason for r in own if (reason := _text(r)[1]) is not None]
            reasons.update(failed)
            repeated = len(own) - len(failed) - len(reply.texts)
            if repeated:
                reasons["the same as another reply to the context"] += repeated
    for reason, count in reasons.items():
        request.note(f"{count:,} of several replies left out: {reason}")

"""What is sent to a language model, and what comes back: an answer, or the reason for none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from rejoinder.files.cache import key_of

KEY_FORMAT = "chat-1"
"""Part of every key of the cache; to be changed when answers are stored in another way."""


class Address(Protocol):
    """Where a model is: a server, or a folder."""

    @property
    def base_url(self) -> str:
        """The address of the server; the word ``folder`` for a folder."""

    @property
    def model(self) -> str:
        """The name of the model there; the digest of a folder."""


class Message(msgspec.Struct, frozen=True):
    """A turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Chat:
    """A chat that the model continues, with everything that decides its answer."""

    messages: tuple[Message, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """As the server expects them: temperature, top_p, seed, max_tokens, …"""
    draw: int = 0
    """Number of the answer, where the same chat is asked several times."""

    def body(self, address: Address) -> bytes:
        """Return the JSON that is sent to the server."""
        record = {"model": address.model, "messages": self.messages, **self.parameters}
        return msgspec.json.encode(_valid(msgspec.to_builtins(record)), order="sorted")

    def key(self, address: Address) -> bytes:
        """Return the key of the answer: address, model, messages, parameters, and draw."""
        return key_of(KEY_FORMAT, address.base_url, self.body(address), str(self.draw))


class Answer(msgspec.Struct, frozen=True):
    """What the model said, with what the server tells about it."""

    text: str
    finish_reason: str | None = None
    refusal: str | None = None
    model: str | None = None
    """What the server calls its model."""
    fingerprint: str | None = None
    """The server's word for its configuration (``system_fingerprint``)."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    logprobs: Any = None
    """The probabilities of tokens as the server gave them."""
    time: float = 0.0
    """When it was asked, in seconds since 1970."""
    seconds: float = 0.0
    """How long it took."""

    @property
    def tokens(self) -> int | None:
        """Tokens read and written, if the server counts them."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Failure:
    """Why there is no answer to a chat."""

    reason: str


Result = Answer | Failure


class _Part(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None


_COMPLETIONS = msgspec.json.Decoder(_Completion)


def decode(body: bytes, time: float) -> Result:
    """Return the answer in the JSON of a server, or why there is none."""
    try:
        completion = _COMPLETIONS.decode(body)
    except msgspec.ValidationError as error:
        return Failure(f"the answer is no chat completion: {error}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return Failure("the answer is not JSON")
    if not completion.choices:
        return Failure("the answer is no chat completion: it has no choices")
    choice = completion.choices[0]
    content = choice.message.content
    if isinstance(content, list):
        content = "".join(part.text for part in content)
    usage = completion.usage or _Usage()
    return Answer(
        text=content or "",
        finish_reason=choice.finish_reason,
        refusal=choice.message.refusal or None,
        model=completion.model,
        fingerprint=completion.system_fingerprint,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        logprobs=choice.logprobs,
        time=time,
    )


def _valid(value: Any) -> Any:
    """Replace lone surrogates, which no JSON in UTF-8 can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _valid(each) for key, each in value.items()}
    return [_valid(each) for each in value] if isinstance(value, list | tuple) else value

"""Ask a model in a folder as one asks a server: the same chats, answers, cache and budget.

Of the parameters of a chat, it takes those that OpenAI-compatible servers share: ``temperature``,
``top_p``, ``max_tokens``, ``seed``, ``logprobs`` and ``top_logprobs``. Others are refused, because
to ignore them would change answers without a word.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.files.cache import open_cache
from rejoinder.llm.answers import Answers
from rejoinder.llm.budget import (
    DEFAULT_ANSWER,
    LENGTHS,
    NO_BUDGET,
    Budget,
    Estimate,
    Spending,
    estimate,
)
from rejoinder.llm.chat import Answer, Chat, Failure, Result
from rejoinder.llm.folder.loading import TextModel, load_shared, open_folder
from rejoinder.llm.folder.prompts import Prompts
from rejoinder.llm.folder.writing import Decoding, Place, Prompt, Written, write
from rejoinder.progress import Progress

KNOWN = frozenset({"temperature", "top_p", "seed", "logprobs", "top_logprobs", *LENGTHS})
MAX_TOP_LOGPROBS = 20
"""As OpenAI has it."""
SLICE = 8
"""Batches that are sorted by length together, and after which the budget is looked at."""


@dataclass(frozen=True)
class FolderAddress:
    """What the keys of answers hold instead of the address of a server."""

    model: str
    """The digest of the files."""
    base_url: str = "folder"


class FolderClient:
    """Answers chats with a model of this machine; it is loaded when a chat is not in the cache."""

    def __init__(
        self,
        model: str,
        *,
        budget: Budget = NO_BUDGET,
        answers: Answers | None = None,
        seed: int = 0,
    ) -> None:
        self._name, self._folder = model, open_folder(model)
        self.budget = budget
        self.answers = Answers() if answers is None else answers
        self.spending = Spending(budget)
        self._seed = seed

    @cached_property
    def address(self) -> FolderAddress:
        """Where answers come from."""
        return FolderAddress(self._folder.digest(open_cache()))

    @property
    def identity(self) -> str:
        return f"{self._folder.path.name}@{self.address.model}"

    @property
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes of the languages that the model knows; None if it does not say."""
        return self._folder.languages

    def estimate(self, chats: Sequence[Chat]) -> Estimate:
        by_key = {chat.key(self.address): chat for chat in chats}
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
        keys = [chat.key(self.address) for chat in chats]
        by_key = dict(zip(keys, chats, strict=True))
        results: dict[bytes, Result] = dict(self.answers.get(list(by_key)))
        missing = {key: chat for key, chat in by_key.items() if key not in results}
        if missing:
            on_message(estimate(list(missing.values()), len(results)).describe(self.budget))
        groups: dict[bytes, dict[bytes, Chat]] = defaultdict(dict)
        for key, chat in missing.items():
            groups[_decoding_key(chat)][key] = chat
        for group in groups.values():
            for key, result in self._answer(group):
                results[key] = result
                if on_progress is not None:
                    on_progress(len(results), len(by_key))
        if not missing and on_progress is not None and by_key:
            on_progress(len(by_key), len(by_key))
        for text in self.answers.notes():
            on_note(text)
        return [results[key] for key in keys]

    def _answer(self, chats: Mapping[bytes, Chat]) -> Iterator[tuple[bytes, Result]]:
        """Answer chats with the same parameters; each answer is stored as soon as it is there."""
        (chat, *_) = chats.values()
        decoding = _decoding(chat.parameters)
        waiting = iter(chats.items())
        while some := list(islice(waiting, SLICE * decoding.batch_size)):
            yield from self._answer_slice(some, decoding)

    def _answer_slice(
        self, chats: Sequence[tuple[bytes, Chat]], decoding: Decoding
    ) -> Iterator[tuple[bytes, Result]]:
        asked: list[tuple[bytes, Chat]] = []
        prompts: list[Prompt] = []
        for key, chat in chats:
            if (reason := self.spending.reason_to_stop(chat)) is not None:
                yield key, Failure(reason)
                continue
            tokens = Prompts(self._model, self._model.window).of_messages(chat.messages)
            if (reason := self._too_long(len(tokens), decoding.length)) is not None:
                yield key, Failure(reason)
                continue
            self.spending.begin(chat)
            draws = [self._seed, chat.parameters.get("seed", 0), chat.draw, *key]
            asked.append((key, chat))
            prompts.append(Prompt(tokens, np.random.default_rng(draws)))
        started = before = time.time()
        limit = self._model.window - decoding.length
        for number, written in write(self._model, prompts, limit, decoding):
            key, chat = asked[number]
            answer = self._read(len(prompts[number].tokens), written, started, time.time() - before)
            before = time.time()
            self.spending.end(chat, answer.tokens)
            yield key, self.answers.put(key, answer)

    @cached_property
    def _model(self) -> TextModel:
        model = load_shared(self._name)
        if model.is_encoder_decoder:
            raise DataError(
                "is a model with an encoder and a decoder, which holds no chats; expected a causal"
                " language model",
                path=str(self._folder.path),
            )
        return model

    def _too_long(self, size: int, length: int) -> str | None:
        if size + length <= self._model.window:
            return None
        return (
            f"the chat has {size:,} tokens and its answer up to {length:,}, but the model takes"
            f" {self._model.window:,}"
        )

    def _read(self, size: int, written: Written, started: float, seconds: float) -> Answer:
        model = self._model
        return Answer(
            text=str(model.tokenizer.decode(written.tokens, skip_special_tokens=True)),
            finish_reason="stop" if written.ended else "length",
            model=self._folder.name,
            fingerprint=self.address.model,
            prompt_tokens=size,
            completion_tokens=len(written.tokens) + written.ended,
            logprobs=_logprobs(model, written.places) if written.places else None,
            time=started,
            seconds=max(0.0, seconds),
        )


def _decoding(parameters: Mapping[str, Any]) -> Decoding:
    unknown = sorted(set(parameters) - KNOWN)
    if unknown:
        raise ValueError(f"a model in a folder takes no parameter {', '.join(unknown)}")
    top = parameters.get("top_logprobs", 0) if parameters.get("logprobs") else None
    return Decoding(
        length=min((parameters[name] for name in LENGTHS if name in parameters), default=0)
        or DEFAULT_ANSWER,
        temperature=float(parameters.get("temperature", 1.0)),
        top_p=float(parameters.get("top_p", 1.0)),
        top_logprobs=None if top is None else min(top, MAX_TOP_LOGPROBS),
    )


def _decoding_key(chat: Chat) -> bytes:
    """Return the same for chats that are answered together: all but the seed is the same."""
    shared = {name: value for name, value in chat.parameters.items() if name != "seed"}
    return msgspec.json.encode(shared, order="sorted")


def _logprobs(model: TextModel, places: Sequence[Place]) -> dict[str, Any]:
    """Return probabilities in the format of OpenAI."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        return {"token": str(model.tokenizer.decode([token])), "logprob": logprob}

    return {
        "content": [
            entry(place.token, place.logprob)
            | {"top_logprobs": [entry(*each) for each in place.top]}
            for place in places
        ]
    }

"""``hf``: a language model in a folder, with a decoder alone or an encoder and a decoder.

The reply to a context does not depend on the other contexts: its draws come from the seed and the
context (:mod:`rejoinder.llm.folder.writing`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.llm.chat_turns import plain_reply
from rejoinder.llm.folder.loading import TextModel, load, open_folder
from rejoinder.llm.folder.prompts import Prompts
from rejoinder.llm.folder.writing import Decoding, Prompt, write
from rejoinder.systems.controls import TRIES, Seeded
from rejoinder.systems.system import EMPTY_REPLY, Replies, Request, context_rng, distinct

MAX_LENGTH = 10**5
MAX_BATCH = 1024


@dataclass(frozen=True, kw_only=True)
class HuggingFace(Seeded):
    """Replies with a model of transformers, run on the CPU in this process."""

    name: ClassVar[str] = "hf"
    summary: ClassVar[str] = "a language model in a folder of Hugging Face"
    needs_pool: ClassVar[bool] = False
    generates: ClassVar[bool] = True

    model: str
    system: str | None = None
    """The system prompt."""
    opening: str | None = None
    """What the user said before a context that begins with the model's own turn."""
    separator: str | None = None
    """What follows each turn, for models without chat template."""
    temperature: float = 1.0
    """0: always the most probable token."""
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 64
    """Tokens of a reply."""
    batch_size: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.temperature <= 10:
            raise ValueError(f"temperature={self.temperature} is not from 0 to 10")
        if self.top_k < 0:
            raise ValueError(f"top_k={self.top_k} is negative")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p} is not above 0 and up to 1")
        if not 1 <= self.max_tokens <= MAX_LENGTH:
            raise ValueError(f"max_tokens={self.max_tokens} is not from 1 to {MAX_LENGTH:,}")
        if not 1 <= self.batch_size <= MAX_BATCH:
            raise ValueError(f"batch_size={self.batch_size} is not from 1 to {MAX_BATCH}")
        open_folder(self.model)

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        model = load(open_folder(self.model))
        length = min(self.max_tokens, max(1, model.window // 2))
        limit = model.window - (0 if model.is_encoder_decoder else length)
        decoding = Decoding(length, self.temperature, self.top_k, self.top_p, self.batch_size)
        prompts = Prompts(model, limit, self.system, self.opening, self.separator)
        draws = 1 if self.temperature == 0 or request.n == 1 else TRIES * request.n
        generators = [context_rng(self.seed, context) for context in contexts]
        tokens = [prompts.tokens(context) for context in contexts]
        for change, count in prompts.changes.items():
            request.note(f"{count:,} contexts {change}")
        texts: dict[int, list[str]] = defaultdict(list)
        # further replies are written only where some were the same
        for number in range(draws):
            waiting = [i for i in range(len(contexts)) if _wanted(texts[i], number, request.n)]
            asked = [Prompt(tokens[i], _spawn(generators[i])) for i in waiting]
            for place, written in write(model, asked, limit, decoding):
                texts[waiting[place]].append(self._text(model, written.tokens))
                done = sum(map(len, texts.values()))
                if request.on_progress is not None:
                    request.on_progress(min(done, total := len(contexts) * request.n), total)
        return [_replies(texts[i], request.n) for i in range(len(contexts))]

    def _text(self, model: TextModel, tokens: list[int]) -> str:
        text = model.tokenizer.decode(tokens, skip_special_tokens=True)
        if self.separator and not model.is_encoder_decoder:
            text = text.strip().partition(self.separator)[0]
        return str(text)


def _wanted(texts: Sequence[str], number: int, n: int) -> bool:
    """Return whether a further reply is written: the first n always."""
    return number < n or len(distinct(map(str.strip, texts), n)) < n


def _spawn(generator: np.random.Generator) -> np.random.Generator:
    """Return the generator of the next reply of a context."""
    return np.random.default_rng(generator.integers(2**63, size=2))


def _replies(texts: Sequence[str], n: int) -> Replies:
    plain = [plain_reply(text) for text in texts]
    found = distinct((text for text, _ in plain), n)
    if found:
        return Replies(found)
    return Replies(reason=plain[0][1] or EMPTY_REPLY)

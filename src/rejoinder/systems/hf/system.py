"""``hf``: a language model in a folder, with a decoder alone or an encoder and a decoder.

The reply to a context does not depend on the other contexts: its draws come from the seed and the
context, and its batch always has the same shape. The prompt is padded to a multiple of
:data:`STEP` tokens, and a batch that is not full is filled with repeated rows, because products of
matrices of another shape differ in their last bits, which can change a token.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rejoinder.encode.transformer.network import check_ids
from rejoinder.encode.transformer.tokenizer import explain_failure
from rejoinder.systems.chat_turns import plain_reply
from rejoinder.systems.controls import TRIES, Seeded
from rejoinder.systems.hf.loading import TextModel, load, open_folder
from rejoinder.systems.hf.prompts import Prompts
from rejoinder.systems.hf.sampling import SeededChoice
from rejoinder.systems.system import EMPTY_REPLY, Replies, Request, context_rng, distinct

STEP = 16
MAX_LENGTH = 10**5
MAX_BATCH = 1024


@dataclass(frozen=True)
class _Row:
    """One reply to be written."""

    context: int
    tokens: list[int]
    generator: np.random.Generator


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
            rows = [_Row(i, tokens[i], _spawn(generators[i])) for i in waiting]
            for row, text in self._write(model, rows, limit, length):
                texts[row.context].append(text)
                done = sum(map(len, texts.values()))
                if request.on_progress is not None:
                    request.on_progress(min(done, total := len(contexts) * request.n), total)
        return [_replies(texts[i], request.n) for i in range(len(contexts))]

    def _write(
        self, model: TextModel, rows: Sequence[_Row], limit: int, length: int
    ) -> Iterator[tuple[_Row, str]]:
        """Yield a reply for each row, in batches of one shape."""
        by_width: dict[int, list[_Row]] = defaultdict(list)
        for row in rows:
            by_width[min(-(-len(row.tokens) // STEP) * STEP, limit)].append(row)
        for width, group in sorted(by_width.items()):
            for start in range(0, len(group), self.batch_size):
                batch = group[start : start + self.batch_size]
                yield from zip(batch, self._generate(model, batch, width, length), strict=True)

    def _generate(
        self, model: TextModel, rows: Sequence[_Row], width: int, length: int
    ) -> list[str]:
        import torch
        import transformers

        spare = self.batch_size - len(rows)
        filled = [*rows, *([rows[-1]] * spare)]
        generators = [row.generator for row in rows]
        generators += [np.random.default_rng(0) for _ in range(spare)]
        ends = model.end_tokens
        padding = model.tokenizer.pad_token_id
        if padding is None:
            padding = ends[0] if ends else 0
        ids = np.full((len(filled), width), padding, np.int64)
        mask = np.zeros((len(filled), width), np.int64)
        for number, row in enumerate(filled):
            size = len(row.tokens)
            # a decoder goes on at the right end; an encoder reads from the left
            place = slice(0, size) if model.is_encoder_decoder else slice(width - size, width)
            ids[number, place], mask[number, place] = row.tokens, 1
        check_ids(
            ids.astype(np.int32), model.network.get_input_embeddings().num_embeddings, model.folder
        )
        own = model.network.generation_config
        settings: dict[str, Any] = {
            "do_sample": False,
            "num_beams": 1,
            "max_new_tokens": length,
            "eos_token_id": ends or None,
            "pad_token_id": padding,
            "bos_token_id": own.bos_token_id,
        }
        if model.is_encoder_decoder:
            settings["decoder_start_token_id"] = own.decoder_start_token_id
            settings["forced_bos_token_id"] = own.forced_bos_token_id
        make_config: Any = transformers.GenerationConfig
        config = make_config(**settings)
        choice = transformers.LogitsProcessorList()
        if self.temperature > 0:
            choice.append(SeededChoice(generators, self.temperature, self.top_k, self.top_p))
        folder = model.folder
        before, model.network.generation_config = own, config  # else its other settings count
        try:
            with (
                torch.inference_mode(),
                explain_failure(folder.path, "the model does not work", folder.name),
            ):
                written = model.network.generate(
                    input_ids=torch.from_numpy(ids),
                    attention_mask=torch.from_numpy(mask),
                    generation_config=config,
                    logits_processor=choice,
                )
        finally:
            model.network.generation_config = before
        start = 1 if model.is_encoder_decoder else width
        return [self._text(model, each) for each in written[: len(rows), start:].tolist()]

    def _text(self, model: TextModel, tokens: list[int]) -> str:
        ends = set(model.end_tokens)
        stop = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
        text = model.tokenizer.decode(tokens[:stop], skip_special_tokens=True)
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

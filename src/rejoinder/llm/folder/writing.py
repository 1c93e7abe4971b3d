"""Let a model write: prompts in, texts out, with the probabilities of their tokens if wanted.

What is written after a prompt does not depend on the other prompts: its draws come from a generator
of its own, and its batch always has the same shape. The prompt is padded to a multiple of
:data:`STEP` tokens, and a batch that is not full is filled with repeated rows, because products of
matrices of another shape differ in their last bits, which can change a token.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.encode.transformer.network import check_ids
from rejoinder.encode.transformer.tokenizer import explain_failure
from rejoinder.llm.folder.loading import TextModel
from rejoinder.llm.folder.sampling import SeededChoice

STEP = 16


@dataclass(frozen=True)
class Decoding:
    """How tokens are chosen."""

    length: int
    """Tokens that are written at most."""
    temperature: float = 1.0
    """0: always the most probable token."""
    top_k: int = 0
    top_p: float = 1.0
    batch_size: int = 8
    top_logprobs: int | None = None
    """Probable tokens to tell at each place, with their log-probabilities; None: not even that of
    the written one."""


@dataclass(frozen=True)
class Prompt:
    """The tokens that a text is written after, and the generator of its draws."""

    tokens: Sequence[int]
    generator: np.random.Generator


@dataclass(frozen=True)
class Place:
    """A written token with its log-probability, and the most probable tokens there."""

    token: int
    logprob: float
    top: list[tuple[int, float]]


@dataclass(frozen=True)
class Written:
    """What a model wrote after a prompt."""

    tokens: list[int]
    """Without the one that ends the text."""
    ended: bool
    """Whether the text ended before its greatest length."""
    places: list[Place]
    """One for each token, the one that ends the text included; empty unless asked for."""


def write(
    model: TextModel, prompts: Sequence[Prompt], limit: int, decoding: Decoding
) -> Iterator[tuple[int, Written]]:
    """Yield the number of each prompt and what the model writes, in batches of one shape.

    ``limit`` is the greatest number of tokens of a prompt.
    """
    by_width: dict[int, list[int]] = defaultdict(list)
    for number, prompt in enumerate(prompts):
        by_width[min(-(-len(prompt.tokens) // STEP) * STEP, limit)].append(number)
    for width, group in sorted(by_width.items()):
        for start in range(0, len(group), decoding.batch_size):
            numbers = group[start : start + decoding.batch_size]
            written = _write_batch(model, [prompts[n] for n in numbers], width, decoding)
            yield from zip(numbers, written, strict=True)


def _write_batch(
    model: TextModel, prompts: Sequence[Prompt], width: int, decoding: Decoding
) -> list[Written]:
    import torch
    import transformers

    spare = decoding.batch_size - len(prompts)
    filled = [*prompts, *([prompts[-1]] * spare)]
    generators = [prompt.generator for prompt in prompts]
    generators += [np.random.default_rng(0) for _ in range(spare)]
    ends = model.end_tokens
    padding = model.padding
    ids = np.full((len(filled), width), padding, np.int64)
    mask = np.zeros((len(filled), width), np.int64)
    for number, prompt in enumerate(filled):
        size = len(prompt.tokens)
        # a decoder goes on at the right end; an encoder reads from the left
        place = slice(0, size) if model.is_encoder_decoder else slice(width - size, width)
        ids[number, place], mask[number, place] = prompt.tokens, 1
    check_ids(ids.astype(np.int32), model.vocabulary, model.folder)
    own = model.network.generation_config
    settings: dict[str, Any] = {
        "do_sample": False,
        "num_beams": 1,
        "max_new_tokens": decoding.length,
        "eos_token_id": ends or None,
        "pad_token_id": padding,
        "bos_token_id": own.bos_token_id,
        "return_dict_in_generate": True,
        "output_logits": decoding.top_logprobs is not None,
    }
    if model.is_encoder_decoder:
        settings["decoder_start_token_id"] = own.decoder_start_token_id
        settings["forced_bos_token_id"] = own.forced_bos_token_id
    make_config: Any = transformers.GenerationConfig
    config = make_config(**settings)
    choice = transformers.LogitsProcessorList()
    if decoding.temperature > 0:
        choice.append(
            SeededChoice(generators, decoding.temperature, decoding.top_k, decoding.top_p)
        )
    folder = model.folder
    before, model.network.generation_config = own, config  # else its other settings count
    try:
        with (
            torch.inference_mode(),
            explain_failure(folder.path, "the model does not work", folder.name),
        ):
            output = model.network.generate(
                input_ids=torch.from_numpy(ids),
                attention_mask=torch.from_numpy(mask),
                generation_config=config,
                logits_processor=choice,
            )
    finally:
        model.network.generation_config = before
    start = 1 if model.is_encoder_decoder else width
    sequences = output.sequences[: len(prompts), start:].tolist()
    written = []
    for number, tokens in enumerate(sequences):
        stop = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
        places = []
        if decoding.top_logprobs is not None:
            shown = tokens[: stop + 1]
            logits = [step[number] for step in output.logits[: len(shown)]]
            places = _places(shown, logits, decoding.top_logprobs)
        written.append(Written(tokens[:stop], stop < len(tokens), places))
    return written


def _places(tokens: Sequence[int], logits: Sequence[Any], top: int) -> list[Place]:
    places = []
    for token, row in zip(tokens, logits, strict=True):
        logprobs = row.double().log_softmax(-1)
        best = logprobs.topk(min(top, logprobs.shape[-1]))
        pairs = list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        places.append(Place(token, float(logprobs[token]), pairs))
    return places

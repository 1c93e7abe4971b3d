"""Decoding: from the probabilities of a network to replies; written once for all networks.

Many contexts are decoded together, a token of every reply at a time; finished replies are dropped
from the batch. What a network has read is kept in its state. Random numbers are drawn for each
context from a generator of its own, so that a reply does not depend on the other contexts, the
batch, or the number of replies that the others need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rejoinder.errors import UsageError
from rejoinder.learn.dialogue.batches import DialogueBatch
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork, State, select
from rejoinder.learn.dialogue.vocabulary import END, START
from rejoinder.learn.settings import check_settings

METHODS = ("auto", "greedy", "beam", "sampling")
ROWS = 512
"""Replies that are decoded at once."""
MAX_BEAM = 100
MAX_TOKENS = 1000

Rng = np.random.Generator
Reply = list[int]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How tokens are chosen.

    ``greedy``: always the most probable one. ``beam``: the most probable replies of a search with
    ``beam_size`` hypotheses, by log-probability / length ** ``length_penalty``. ``sampling``: drawn
    by their probabilities, after ``temperature``, among the ``top_k`` most probable tokens (0: all)
    and the most probable ones that have ``top_p`` together (Holtzman et al. 2020). ``auto``:
    ``greedy`` for one reply, or with a latent variable, which is then drawn for each reply;
    ``sampling`` for several replies of other networks (Gupta et al. 2019, § 5.2).
    """

    method: str = "auto"
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    beam_size: int = 5
    length_penalty: float = 1.0
    max_tokens: int = 40

    def __post_init__(self) -> None:
        check_settings(
            (
                self.method not in METHODS,
                f"unknown decoding '{self.method}'; choose from {', '.join(METHODS)}",
            ),
            (
                not 0.01 <= self.temperature <= 100,
                f"temperature must be from .01 to 100, not {self.temperature}",
            ),
            (self.top_k < 0, f"top_k must be 0 (all) or more, not {self.top_k}"),
            (not 0 < self.top_p <= 1, f"top_p must be above 0 and at most 1, not {self.top_p}"),
            (
                not 1 <= self.beam_size <= MAX_BEAM,
                f"beam_size must be from 1 to {MAX_BEAM}, not {self.beam_size}",
            ),
            (
                not 0 <= self.length_penalty <= 10,
                f"length_penalty must be from 0 to 10, not {self.length_penalty}",
            ),
            (
                not 1 <= self.max_tokens <= MAX_TOKENS,
                f"max_tokens must be from 1 to {MAX_TOKENS}, not {self.max_tokens}",
            ),
        )

    def chosen_method(self, n: int, *, is_latent: bool) -> str:
        """Return the method for n replies to each context."""
        if self.method != "auto":
            return self.method
        return "greedy" if n == 1 or is_latent else "sampling"


def decode(
    network: GenerativeNetwork,
    contexts: Contexts,
    n: int,
    decoding: Decoding,
    rngs: Sequence[Rng],
    never: Sequence[int] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> list[list[Reply]]:
    """Return n replies to each context as token ids without END; equal ones may be among them.

    ``rngs`` are the generators of the contexts, ``never`` the ids that no reply may have. Greedy
    decoding without a latent variable gives one reply.
    """
    is_latent = bool(network.latent_size)
    method = decoding.chosen_method(n, is_latent=is_latent)
    if method == "beam" and n > decoding.beam_size:
        raise UsageError(f"{n} replies need beam_size={n} or more, not {decoding.beam_size}")
    many = n if method == "sampling" or (method == "greedy" and is_latent) else 1
    rows = decoding.beam_size if method == "beam" else many
    replies: list[list[Reply]] = [[] for _ in range(len(contexts))]
    done = 0
    with torch.inference_mode():
        for numbers in contexts.batches(max(1, ROWS // rows)):
            batch = contexts.batch(numbers)
            own = [rngs[number] for number in numbers]
            if method == "beam":
                answers = _beam(network, batch, n, decoding, own, never)
            else:
                answers = _one_by_one(network, batch, many, decoding, method, own, never)
            for number, answer in zip(numbers.tolist(), answers, strict=True):
                replies[number] = answer
            done += len(numbers)
            if on_progress:
                on_progress(done, len(contexts))
    return replies


def _noise(network: GenerativeNetwork, rngs: Sequence[Rng], many: int) -> Tensor | None:
    """[contexts · many, latent_size] noise for the latent variables."""
    if not network.latent_size:
        return None
    drawn = [rng.standard_normal((many, network.latent_size)) for rng in rngs]
    return torch.from_numpy(np.concatenate(drawn)).float()


def _read(
    network: GenerativeNetwork, batch: DialogueBatch, noise: Tensor | None, many: int
) -> State:
    """Read each context once (once for each latent variable), and repeat its state."""
    repeated = torch.arange(len(batch.dialogues)).repeat_interleave(many)
    if noise is None:
        return select(network.read(batch), repeated)
    asked = batch._replace(dialogues=batch.dialogues[repeated], positions=batch.positions[repeated])
    return network.read(asked, noise)


def _one_by_one(
    network: GenerativeNetwork,
    batch: DialogueBatch,
    many: int,
    decoding: Decoding,
    method: str,
    rngs: Sequence[Rng],
    never: Sequence[int],
) -> list[list[Reply]]:
    """Decode greedily or by sampling: every reply by itself."""
    state = _read(network, batch, _noise(network, rngs, many), many)
    count = len(batch.dialogues) * many
    uniform = None
    if method == "sampling":
        drawn = [rng.random((many, decoding.max_tokens)) for rng in rngs]
        uniform = torch.from_numpy(np.concatenate(drawn))
    written = torch.full((count, decoding.max_tokens), END)
    alive = torch.arange(count)
    tokens = torch.full((count,), START)
    for place in range(decoding.max_tokens):
        logits, state = network.step(tokens, state)
        _forbid(logits, never, first=place == 0)
        if uniform is None:
            tokens = _most_probable(logits)
        else:
            tokens = _draw(logits, uniform[alive, place], decoding)
        written[alive, place] = tokens
        going = (tokens != END).nonzero().squeeze(1)
        if not len(going):
            break
        if len(going) < len(alive):
            alive, tokens, state = alive[going], tokens[going], select(state, going)
    texts = [_until_end(row) for row in written.tolist()]
    return [texts[start : start + many] for start in range(0, count, many)]


def _most_probable(logits: Tensor) -> Tensor:
    """[n] the most probable tokens; numpy finds them several times faster on a processor."""
    if logits.device.type == "cpu":
        return torch.from_numpy(logits.numpy().argmax(axis=-1))
    return logits.argmax(dim=-1)


def _forbid(logits: Tensor, never: Sequence[int], *, first: bool) -> None:
    """Exclude tokens that are never generated, and the end as the first token."""
    excluded = [*never, END] if first else list(never)
    if excluded:
        logits[:, excluded] = -torch.inf


def _draw(logits: Tensor, uniform: Tensor, decoding: Decoding) -> Tensor:
    """[n] draw tokens by inverting the distribution function, in double precision: the same
    uniform number gives the same token in any batch."""
    scaled = logits.double() / decoding.temperature
    ordered, ids = scaled.sort(dim=-1, descending=True, stable=True)
    if 0 < decoding.top_k < ordered.shape[1]:
        ordered, ids = ordered[:, : decoding.top_k], ids[:, : decoding.top_k]
    shares = ordered.softmax(dim=-1)
    sums = shares.cumsum(dim=-1)
    if decoding.top_p < 1:
        # the token that crosses the limit is the last one that is kept
        shares = shares.masked_fill(sums - shares >= decoding.top_p, 0.0)
        sums = shares.cumsum(dim=-1)
    place = (sums <= uniform[:, None] * sums[:, -1:]).sum(dim=-1)
    last = (shares > 0).sum(dim=-1) - 1
    return ids.gather(1, torch.minimum(place, last)[:, None]).squeeze(1)


def _beam(
    network: GenerativeNetwork,
    batch: DialogueBatch,
    n: int,
    decoding: Decoding,
    rngs: Sequence[Rng],
    never: Sequence[int],
) -> list[list[Reply]]:
    """Return the n best replies of a beam search to each context.

    A latent variable is drawn once for each context: its hypotheses share it.
    """
    contexts, size = len(batch.dialogues), decoding.beam_size
    state = _read(network, batch, _noise(network, rngs, 1), 1)
    state = select(state, torch.arange(contexts).repeat_interleave(size))
    scores = torch.full((contexts, size), -torch.inf, dtype=torch.float64)
    scores[:, 0] = 0.0  # all hypotheses are equal at first
    tokens = torch.full((contexts * size,), START)
    texts: list[list[Reply]] = [[[] for _ in range(size)] for _ in range(contexts)]
    finished: list[list[tuple[float, Reply]]] = [[] for _ in range(contexts)]
    for place in range(decoding.max_tokens):
        logits, state = network.step(tokens, state)
        _forbid(logits, never, first=place == 0)
        logs = logits.double().log_softmax(dim=-1).reshape(contexts, size, -1)
        vocabulary = logs.shape[-1]
        # twice as many: each hypothesis has at most one end
        best, flat = (scores[:, :, None] + logs).flatten(1).topk(2 * size, dim=-1)
        parents, words = flat // vocabulary, flat % vocabulary
        chosen = torch.zeros((contexts, size), dtype=torch.long)
        for c, (values, from_, ids) in enumerate(
            zip(best.tolist(), parents.tolist(), words.tolist(), strict=True)
        ):
            kept: list[Reply] = []
            for rank, (value, parent, word) in enumerate(zip(values, from_, ids, strict=True)):
                if value == -np.inf:
                    continue
                if word == END:
                    if rank < size:
                        length = (place + 1) ** decoding.length_penalty
                        finished[c].append((value / length, texts[c][parent]))
                elif len(kept) < size:
                    scores[c, len(kept)] = value
                    chosen[c, len(kept)] = rank
                    kept.append([*texts[c][parent], word])
            scores[c, len(kept) :] = -torch.inf
            texts[c] = kept + [[]] * (size - len(kept))
        rows = parents.gather(1, chosen) + torch.arange(contexts)[:, None] * size
        tokens = words.gather(1, chosen).flatten()
        state = select(state, rows.flatten())
        if all(_is_decided(finished[c], scores[c], size, decoding) for c in range(contexts)):
            break
    answers = []
    for c in range(contexts):
        length = decoding.max_tokens**decoding.length_penalty
        open_ends = [
            (float(score) / length, text)
            for score, text in zip(scores[c].tolist(), texts[c], strict=True)
            if score > -np.inf
        ]
        ranked = sorted(finished[c] + open_ends, key=lambda pair: -pair[0])
        answers.append([text for _, text in ranked[:n]])
    return answers


def _is_decided(
    finished: list[tuple[float, Reply]], scores: Tensor, size: int, decoding: Decoding
) -> bool:
    """Return whether no open hypothesis can still be among the best ``size`` replies: its
    log-probability can only sink, and be divided by the length of the longest reply at most."""
    if len(finished) < size:
        return False
    worst = sorted((score for score, _ in finished), reverse=True)[size - 1]
    longest = float(decoding.max_tokens**decoding.length_penalty)
    return float(scores.max()) / longest <= worst


def _until_end(tokens: list[int]) -> Reply:
    return tokens[: tokens.index(END)] if END in tokens else tokens

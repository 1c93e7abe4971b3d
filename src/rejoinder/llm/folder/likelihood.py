"""Log-probabilities that a causal model gives to texts after other texts.

What several texts follow is read once: a batch of prefixes is read into the attention cache, whose
rows are then repeated for all continuations. Prefixes and continuations are batched by length, and
only the tokens of continuations are compared with the vocabulary. Results are kept on disk, under
the digest of the model and both texts.
"""

from __future__ import annotations

import copy
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.encode.transformer.network import check_ids
from rejoinder.encode.transformer.tokenizer import explain_failure
from rejoinder.errors import DataError
from rejoinder.files.cache import Cache, key_of, open_cache
from rejoinder.llm.folder.loading import TextModel, load_shared, open_folder
from rejoinder.llm.folder.prompts import valid_text

KIND = "likelihoods"
"""The kind of the entries in the cache; the file is named after it."""
FORMAT = "likelihood-1"
"""Part of every key; to be changed by a change that changes the results."""
PREFIX_TOKENS = 2048
"""Tokens of prefixes that are read together, padding included."""
CACHED_TOKENS = 4096
"""Tokens whose keys and values are in memory for a batch of continuations."""
ENOUGH = 128
"""Tokens from which on a larger batch is hardly faster, so that rows much shorter than its first,
which would be mostly padding, begin another one."""
SHORTER = 0.8
"""What is much shorter: this part of the first row."""
LOGITS = 2**26
"""Numbers that the comparison of a batch with the vocabulary may have: 256 MB."""

MAX_TEXTS = 2**17
"""Texts whose tokens are kept in memory."""
ROUND = 16
"""Room for a continuation is rounded up to this part of the window, so that a context that is too
long is cut at few places, and read once for many replies."""

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Continuation:
    """A text and the turns that it follows, each ended by ``separator``."""

    before: tuple[str, ...]
    text: str
    separator: str = "\n"
    cut_text: bool = False
    """Leave out the beginning of a text that is longer than the window; else it has no result."""


@dataclass(frozen=True)
class TextLikelihood:
    """What a model gives to a text."""

    logprob: float
    """Sum of the natural logarithms of the probabilities of its tokens; NaN if it is too long."""
    tokens: int
    is_cut: bool
    """Whether the beginning of what was read did not fit into the window."""


@dataclass(frozen=True)
class _Row:
    """A continuation as tokens; prefix and text have at least one each."""

    key: bytes
    prefix: Tokens
    tokens: Tokens
    is_cut: bool


class LikelihoodModel:
    """A causal model as a source of log-probabilities; its weights are loaded when first needed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._folder = open_folder(name)
        self.digest = self._folder.digest(open_cache())
        self._ids: dict[str, Tokens] = {}

    @property
    def identity(self) -> str:
        """The name of the model and the digest of its files, for signatures."""
        return f"{Path(self.name).name}@{self.digest}"

    @property
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes of the languages that the model knows; None if it does not say."""
        return self._folder.languages

    @property
    def window(self) -> int:
        """Tokens that the model takes."""
        return self._folder.max_tokens

    @property
    def cache(self) -> Cache:
        """The cache of log-probabilities."""
        return open_cache(KIND)

    def likelihoods(self, continuations: Sequence[Continuation]) -> list[TextLikelihood]:
        """Return the log-probability of each text, which must not be blank."""
        keys = [self._key(each) for each in continuations]
        by_key = dict(zip(keys, continuations, strict=True))
        stored = self.cache.get(list(by_key))
        found = {key: _decoded(data) for key, data in stored.items() if len(data) == _ENTRY.size}
        missing = [(key, each) for key, each in by_key.items() if key not in found]
        for some in self._compute(missing):
            self.cache.put((key, _encoded(each)) for key, each in some)
            found.update(some)
        return [found[key] for key in keys]

    def notes(self) -> list[str]:
        """Return sentences about problems of the cache; usually none."""
        return self.cache.notes()

    def _key(self, each: Continuation) -> bytes:
        settings = (self.digest, each.separator, str(each.cut_text))
        return key_of(FORMAT, *settings, each.text, *each.before)

    def _tokens(self, text: str) -> Tokens:
        """Return the tokens of a text, without those that mark its beginning or end."""
        if text not in self._ids:
            if len(self._ids) >= MAX_TEXTS:
                self._ids.clear()
            with explain_failure(self._folder.path, "the tokenizer does not work"):
                encoded = self._tokenizer(valid_text(text), add_special_tokens=False, verbose=False)
            self._ids[text] = tuple(encoded["input_ids"])
        return self._ids[text]

    @cached_property
    def _start(self) -> Tokens:
        """The token that the tokenizer puts before every text; none for many tokenizers."""
        begin = self._tokenizer.bos_token_id
        with explain_failure(self._folder.path, "the tokenizer does not work"):
            added = list(self._tokenizer("")["input_ids"])[:1]
        return (begin,) if begin is not None and added == [begin] else ()

    def _row(self, key: bytes, each: Continuation) -> _Row:
        """Return the tokens to read; what does not fit is left out at the beginning."""
        separator = self._tokens(each.separator)
        turns = [token for turn in each.before for token in (*self._tokens(turn), *separator)]
        # without a context, a text follows the beginning, or the end of an unknown turn
        start = self._start or (() if turns else separator)
        text = self._tokens(each.text)
        space = self.window - max(len(start), 1)
        fits = len(text) <= space
        if not fits and each.cut_text:
            # half of the window for what comes before, if there is so much
            text = text[-max(space // 2, space - len(turns)) :]
        step = max(1, self.window // ROUND)
        room = max(0, self.window - len(start) - -(-len(text) // step) * step)
        kept = turns[max(0, len(turns) - room) :]
        prefix = (*start, *kept) or tuple(turns[-1:])
        is_cut = not fits or len(kept) < len(turns)
        if len(prefix) + len(text) > self.window:
            text = ()
        return _Row(key, prefix, text, is_cut)

    @property
    def _tokenizer(self) -> Any:
        return self._model.tokenizer

    @cached_property
    def _model(self) -> TextModel:
        model = load_shared(self.name)
        if model.is_encoder_decoder:
            raise DataError(
                "is a model with an encoder and a decoder; expected a causal language model",
                path=str(self._folder.path),
            )
        return model

    def _compute(
        self, continuations: Sequence[tuple[bytes, Continuation]]
    ) -> Iterator[list[tuple[bytes, TextLikelihood]]]:
        """Yield log-probabilities, batch by batch."""
        following: dict[Tokens, list[_Row]] = defaultdict(list)
        for key, each in continuations:
            row = self._row(key, each)
            if row.tokens:
                following[row.prefix].append(row)
            else:
                yield [(key, TextLikelihood(np.nan, 0, row.is_cut))]
        order = sorted(following, key=lambda prefix: (-len(prefix), prefix))
        for batch in _batches([len(prefix) for prefix in order], PREFIX_TOKENS):
            prefixes = [order[i] for i in batch]
            yield from self._follow(prefixes, [following[prefix] for prefix in prefixes])

    def _follow(
        self, prefixes: Sequence[Tokens], following: Sequence[Sequence[_Row]]
    ) -> Iterator[list[tuple[bytes, TextLikelihood]]]:
        """Read prefixes once, then all that follows them."""
        import torch

        all_ids = [ids for prefix in prefixes for ids in prefix]
        all_ids += [ids for some in following for each in some for ids in each.tokens]
        check_ids(np.array(all_ids, np.int32), self._model.vocabulary, self._folder)
        width = len(prefixes[0])
        ids, mask = _padded(prefixes, self._model.padding, left=True)
        with torch.inference_mode(), self._explained():
            read = self._model.network(
                input_ids=ids,
                attention_mask=mask,
                position_ids=_positions(mask),
                past_key_values=_new_cache(),
                use_cache=True,
                logits_to_keep=1,
            )
            first = read.logits[:, -1].double().log_softmax(-1)
        rows = [(each, i) for i, some in enumerate(following) for each in some]
        rows.sort(key=lambda row: -len(row[0].tokens))
        limit = max(1, LOGITS // self._model.vocabulary)
        sizes = [max(len(each.tokens) - 1, 1) for each, _ in rows]
        for batch in _batches(sizes, limit, width, CACHED_TOKENS):
            some = [rows[i] for i in batch]
            heads = torch.tensor([i for _, i in some])
            begins = torch.tensor([each.tokens[0] for each, _ in some])
            sums = first[heads, begins]
            rests = [each.tokens for each, _ in some]
            if len(rests[0]) > 1:
                with torch.inference_mode(), self._explained():
                    sums = sums + self._rest(read.past_key_values, heads, mask[heads], rests)
            values = sums.tolist()
            if not np.isfinite(values).all():
                raise DataError(
                    "the model gives probabilities that are not numbers; its weights are damaged",
                    path=str(self._folder.path),
                )
            yield [
                (each.key, TextLikelihood(value, len(each.tokens), each.is_cut))
                for (each, _), value in zip(some, values, strict=True)
            ]

    def _rest(self, cache: Any, heads: Any, mask: Any, texts: Sequence[Tokens]) -> Any:
        """Return the sums of the log-probabilities of all tokens but the first."""
        import torch

        ids, own = _padded([tokens[:-1] for tokens in texts], self._model.padding, left=False)
        targets, _ = _padded([tokens[1:] for tokens in texts], 0, left=False)
        whole = torch.cat([mask, own], dim=1)
        logits = self._model.network(
            input_ids=ids,
            attention_mask=whole,
            position_ids=_positions(whole)[:, mask.shape[1] :],
            past_key_values=_rows_of(cache, heads),
            use_cache=True,
        ).logits
        logits = logits.float()
        chosen = logits.gather(-1, targets[..., None])[..., 0].double()
        return ((chosen - logits.logsumexp(-1).double()) * own).sum(-1)

    def _explained(self) -> Any:
        return explain_failure(self._folder.path, "the model does not work", self._folder.name)


@lru_cache(maxsize=4)
def open_likelihood_model(name: str) -> LikelihoodModel:
    """Return the model of that name; the same object throughout a process."""
    return LikelihoodModel(name)


_ENTRY = struct.Struct("<dI?")


def _encoded(each: TextLikelihood) -> bytes:
    return _ENTRY.pack(each.logprob, each.tokens, each.is_cut)


def _decoded(data: bytes) -> TextLikelihood:
    return TextLikelihood(*_ENTRY.unpack(data))


def _batches(
    lengths: Sequence[int], tokens: int, width: int = 0, cached: int | None = None
) -> Iterator[range]:
    """Yield ranges of rows that are sorted by length, longest first: at most ``tokens`` tokens
    each, padding included, or a single row; with ``width`` tokens before each row, at most
    ``cached`` tokens in all. A batch with enough tokens ends before a row that is much shorter.

    >>> list(_batches([9, 4, 3, 3], 8))
    [range(0, 1), range(1, 3), range(3, 4)]
    """
    start = 0
    while start < len(lengths):
        size = tokens // lengths[start]
        if cached is not None:
            size = min(size, cached // (width + lengths[start]))
        end = min(start + max(size, 1), len(lengths))
        enough = start + -(-ENOUGH // lengths[start])
        for row in range(enough, end):
            if lengths[row] < SHORTER * lengths[start]:
                end = row
                break
        yield range(start, end)
        start = end


def _padded(rows: Sequence[Tokens], padding: int, *, left: bool) -> tuple[Any, Any]:
    """Return rows of tokens as a matrix, and 1 where there are tokens."""
    import torch

    width = max(map(len, rows))
    ids = torch.full((len(rows), width), padding, dtype=torch.int64)
    mask = torch.zeros((len(rows), width), dtype=torch.int64)
    for number, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[number, place] = torch.tensor(row, dtype=torch.int64)
        mask[number, place] = 1
    return ids, mask


def _positions(mask: Any) -> Any:
    """Return the position of each token in its own text."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def _new_cache() -> Any:
    """Return an attention cache that keeps all tokens, also those beyond a sliding window: the
    mask of the network hides them."""
    from transformers import DynamicCache

    return DynamicCache()


def _rows_of(cache: Any, rows: Any) -> Any:
    """Return a cache with some rows of another one, which stays as it is."""
    chosen = copy.copy(cache)
    chosen.layers = [copy.copy(layer) for layer in cache.layers]
    chosen.batch_select_indices(rows)
    return chosen

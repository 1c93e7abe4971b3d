"""The files of a model: which there are, what they say without any library, and their digest.

Reading this much takes neither torch nor transformers, so that a run whose vectors are all in
the cache starts at once.
"""

from __future__ import annotations

import json
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rejoinder.encode.cache import Cache, key_of
from rejoinder.errors import DataError, MissingExtra
from rejoinder.io import file_digest

WHOLE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SPLIT_WEIGHTS = tuple(f"{name}.index.json" for name in WHOLE_WEIGHTS)
TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
)
"""Any of these is a tokenizer; the first is read without transformers."""
SETTINGS = (
    "config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "sentence_bert_config.json",
)

FALLBACK_LENGTH = 512
"""Where neither tokenizer nor network has a maximum: what attention can take at ease."""
UNBOUNDED = 10**6
"""Tokenizers without a maximum say a number beyond this, such as 1e30."""


class ModelFolder:
    """A folder in the format of Hugging Face that has all that an encoder needs."""

    def __init__(self, name: str, path: Path, precision: str = "float32") -> None:
        self.name, self.path, self.precision = name, path, precision
        if not (path / "config.json").is_file():
            raise self._missing("config.json")
        self.config = self._json("config.json")
        self.weights = self._find_weights()
        if not any((path / file).is_file() for file in TOKENIZERS):
            raise self._missing("tokenizer.json (nor vocab.txt, nor another tokenizer)")

    @cached_property
    def tokenizer_settings(self) -> dict[str, Any]:
        return self._json("tokenizer_config.json")

    @cached_property
    def sentence_settings(self) -> dict[str, Any]:
        """What sentence-transformers added, if it made the folder."""
        return self._json("sentence_bert_config.json")

    @property
    def layers(self) -> int:
        keys = ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "encoder_layers")
        return self._number(*keys)

    @property
    def dimensions(self) -> int:
        return self._number("hidden_size", "d_model", "dim", "n_embd", "emb_dim")

    @cached_property
    def longest(self) -> int:
        """How many tokens the network takes, special tokens included.

        What the tokenizer says, as bert-score does, but never more than there are positions.
        """
        limits = [_limit(self.tokenizer_settings.get("model_max_length")), self._positions()]
        return min((limit for limit in limits if limit is not None), default=FALLBACK_LENGTH)

    @cached_property
    def longest_sentence(self) -> int:
        """The same for the vector of a whole text: sentence-transformers' own limit, if set."""
        limit = _limit(self.sentence_settings.get("max_seq_length"))
        return self.longest if limit is None else min(limit, self.longest)

    def digest(self, cache: Cache) -> str:
        """12 hex digits of all that decides the vectors: the files, and the precision."""
        names = {path.name for path in self.weights} | set(SETTINGS + TOKENIZERS)
        names |= {name for name in SPLIT_WEIGHTS if (self.path / name).is_file()}
        found = [self.path / name for name in sorted(names) if (self.path / name).is_file()]
        parts = [part for path in found for part in (path.name, remembered_digest(path, cache))]
        if self.precision != "float32":
            parts.append(self.precision)
        return key_of(*parts).hex()[:12]

    def _find_weights(self) -> list[Path]:
        """The files with weights: safetensors, or a file of torch that is read without pickle."""
        for whole, split in zip(WHOLE_WEIGHTS, SPLIT_WEIGHTS, strict=True):
            found = [self.path / whole] if (self.path / whole).is_file() else []
            if not found and (self.path / split).is_file():
                names = set(self._json(split).get("weight_map", {}).values())
                found = [self.path / name for name in sorted(names)]
            for path in found:
                if not path.is_file():
                    raise self._missing(path.name)
                _check_weights(path)
            if found:
                return found
        raise self._missing("model.safetensors")

    def _positions(self) -> int | None:
        for key in ("max_position_embeddings", "n_positions"):
            count = _limit(self.config.get(key))
            if count is not None:
                # the RoBERTa family numbers positions from the number of the padding token on
                padding = self.config.get("pad_token_id")
                shifted = self.config.get("model_type") in SHIFTED_POSITIONS
                return count - (int(padding or 0) + 1 if shifted else 0)
        return None

    def _number(self, *keys: str) -> int:
        for key in keys:
            if isinstance(self.config.get(key), int):
                return int(self.config[key])
        raise DataError(f"has none of {', '.join(keys)}", path=str(self.path / "config.json"))

    def _json(self, file: str) -> dict[str, Any]:
        path = self.path / file
        try:
            record = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(f"cannot be read: {reason}", path=str(path)) from None
        except ValueError as error:
            raise DataError(f"is no JSON ({error})", path=str(path)) from None
        if not isinstance(record, dict):
            raise DataError("is no JSON object", path=str(path))
        return record

    def _missing(self, file: str) -> MissingExtra:
        where = f"model '{self.name}'"
        if str(self.path) != self.name:
            where += f" ({self.path})"
        return MissingExtra(f"{where} is incomplete: there is no {file} in its folder")


SHIFTED_POSITIONS = frozenset(
    {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm", "longformer"}
    | {"data2vec-text", "ibert", "mpnet", "luke", "esm"}
)


def _limit(value: Any) -> int | None:
    """A maximum that is one."""
    return int(value) if isinstance(value, int | float) and 0 < value < UNBOUNDED else None


def _check_weights(path: Path) -> None:
    with path.open("rb") as stream:
        head = stream.read(64)
    if head.startswith(b"version https://git-lfs"):
        raise MissingExtra(f"{path} is a pointer of Git LFS, not the weights; run: git lfs pull")
    if not head:
        raise DataError("the file is empty; expected weights", path=str(path))


def remembered_digest(path: Path, cache: Cache) -> bytes:
    """Of the content; remembered as long as nothing has touched the file."""
    state = path.stat()
    marks = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
    key = key_of("file", str(path), *map(str, marks))
    known = cache.get([key]).get(key)
    if known is None:
        known = file_digest(path, lambda: blake2b(digest_size=16))
        cache.put([(key, known)])
    return known

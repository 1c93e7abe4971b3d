"""A model folder in the format of Hugging Face: its files, settings, languages and digest.

Folders come from other people, so nothing in them is run or unpickled, and every setting is
checked before it is used. Neither torch nor transformers is imported, so that a run whose vectors
are all in the cache starts at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rejoinder.encode.transformer.families import SHIFTED_POSITIONS
from rejoinder.encode.transformer.find_model import PACKAGED
from rejoinder.encode.transformer.safetensors_header import TensorInfo, read_header
from rejoinder.errors import DataError, MissingExtra
from rejoinder.files.cache import Cache, key_of
from rejoinder.files.checked import read_bytes, read_json
from rejoinder.files.paths import file_digest, is_file, open_regular
from rejoinder.text.identify import language_code
from rejoinder.text.languages import is_language

WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = f"{WEIGHTS}.index.json"
_TORCH_WEIGHTS = "pytorch_model.bin"
_INDEXES = (WEIGHTS_INDEX, f"{_TORCH_WEIGHTS}.index.json")
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

DEFAULT_MAX_TOKENS = 512
"""Maximum length of a text if neither tokenizer nor network has one."""
UNBOUNDED = 10**6
"""Tokenizers without a maximum give a number beyond this, such as 1e30."""
MIN_TOKENS = 3
"""A text of one token between two special ones."""
MAX_SHARED_LAYERS = 1000
"""Layers of a model that may share their weights, as in ALBERT."""
MAX_SIZE = 10**7
"""No size, count or length in config.json is larger than this."""


class ModelFolder:
    """A folder with everything that an encoder needs: config.json, weights and a tokenizer."""

    def __init__(self, name: str, path: Path, precision: str = "float32") -> None:
        self.name, self.path, self.precision = name, path, precision
        if not is_file(path / "config.json"):
            raise self._incomplete("config.json")
        self.config = self._settings("config.json")
        self._refuse_foreign_code()
        self.weights = self._find_weights()
        if not any(is_file(path / file) for file in TOKENIZERS):
            raise self._incomplete("tokenizer.json (nor vocab.txt, nor another tokenizer)")

    @cached_property
    def tensors(self) -> dict[str, TensorInfo]:
        """Shapes and types of all weights by name, from the headers of the files."""
        return {name: info for path in self.weights for name, info in read_header(path)[0].items()}

    @cached_property
    def tokenizer_settings(self) -> dict[str, Any]:
        """The content of tokenizer_config.json; empty without that file."""
        return self._settings("tokenizer_config.json")

    @cached_property
    def sentence_settings(self) -> dict[str, Any]:
        """The settings of sentence-transformers; empty if it did not make the folder."""
        return self._settings("sentence_bert_config.json")

    @property
    def model_type(self) -> str:
        """The name of the model family, as transformers knows it; empty if there is none."""
        return str(self.config.get("model_type", ""))

    @cached_property
    def layers(self) -> int:
        """Number of layers; refused if the weights can't have so many."""
        layers = self.size(
            "num_hidden_layers", "num_layers", "n_layers", "n_layer", "encoder_layers"
        )
        if layers > max(MAX_SHARED_LAYERS, len(self.tensors)):
            raise self.wrong(f"names {layers} layers; the weights have fewer")
        return layers

    @cached_property
    def dimensions(self) -> int:
        """Length of the vectors; refused if it does not fit the weights.

        This is checked before memory is allocated for vectors.
        """
        dimensions = self.size("hidden_size", "d_model", "dim", "n_embd", "emb_dim")
        if not any(dimensions in tensor.shape for tensor in self.tensors.values()):
            raise self.wrong(f"names vectors of {dimensions} numbers; the weights have none")
        return dimensions

    @cached_property
    def max_tokens(self) -> int:
        """Maximum number of tokens of a text, special tokens included.

        This is the tokenizer's maximum, as in bert-score, but not more than the network has
        positions for.
        """
        limits = [_limit(self.tokenizer_settings.get("model_max_length")), self._positions()]
        return self._checked_limit(
            min((limit for limit in limits if limit is not None), default=DEFAULT_MAX_TOKENS)
        )

    @cached_property
    def max_sentence_tokens(self) -> int:
        """The same for sentence vectors: the limit of sentence-transformers, if it is lower."""
        limit = _limit(self.sentence_settings.get("max_seq_length"))
        return (
            self.max_tokens if limit is None else min(self._checked_limit(limit), self.max_tokens)
        )

    @cached_property
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes of the languages of the model; None if unknown.

        They are those of the packaged models, or else those that the model card (README.md) names
        in its metadata.
        """
        if self.name.removesuffix(".bf16") in PACKAGED:
            return PACKAGED[self.name.removesuffix(".bf16")].languages
        card = self.path / "README.md"
        if not is_file(card):
            return None
        return card_languages(read_bytes(card).decode("utf-8", "replace"))

    def digest(self, cache: Cache) -> str:
        """Return 12 hex digits over all files that determine the vectors, and the precision."""
        names = {path.name for path in self.weights} | set(SETTINGS + TOKENIZERS)
        names |= {name for name in _INDEXES if is_file(self.path / name)}
        files = [self.path / name for name in sorted(names) if is_file(self.path / name)]
        parts = [part for path in files for part in (path.name, cached_file_digest(path, cache))]
        if self.precision != "float32":
            parts.append(self.precision)
        return key_of(*parts).hex()[:12]

    def size(self, *keys: str, default: int | None = None) -> int:
        """Return the first of these settings of config.json; it must be a plausible size."""
        for key in keys:
            value = self.config.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                if not 0 < value <= MAX_SIZE:
                    raise self.wrong(f"{key} is {value}; expected 1 to {MAX_SIZE:,}")
                return value
        if default is None:
            raise self.wrong(f"has no number {' or '.join(keys)}")
        return default

    @property
    def padding(self) -> int:
        """The number of the padding token; 0 if the folder names none."""
        value = self.config.get("pad_token_id")
        if value is None:
            return 0
        if not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
            raise self.wrong(f"pad_token_id is {value!r:.40}; expected the number of a token")
        return value

    def wrong(self, message: str, file: str = "config.json") -> DataError:
        """Return the error for something wrong in a file of the folder."""
        return DataError(message, path=str(self.path / file))

    def _find_weights(self) -> list[Path]:
        """Return the safetensors files; other formats are refused."""
        paths = [self.path / WEIGHTS] if is_file(self.path / WEIGHTS) else []
        if not paths and is_file(self.path / WEIGHTS_INDEX):
            paths = [self.path / name for name in self._indexed_weights()]
        for path in paths:
            if not is_file(path):
                raise self._incomplete(path.name)
            _check_weights(path)
        if paths:
            return paths
        if any(is_file(self.path / name) for name in (_TORCH_WEIGHTS, _INDEXES[1])):
            raise DataError(
                f"the weights are a pickle ({_TORCH_WEIGHTS}), which could run any code; save the"
                f" model as {WEIGHTS} (in transformers: model.save_pretrained(…))",
                path=str(self.path),
            )
        raise self._incomplete(WEIGHTS)

    def _indexed_weights(self) -> list[str]:
        names = self._settings(WEIGHTS_INDEX).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise self.wrong("has no weight_map from tensors to files", WEIGHTS_INDEX)
        for name in names.values():
            if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+\.safetensors", name):
                raise self.wrong(
                    f"weight_map names {name!r:.60}; expected a .safetensors file of the folder",
                    WEIGHTS_INDEX,
                )
        return sorted(set(names.values()))

    def _refuse_foreign_code(self) -> None:
        """Refuse settings that make transformers look for code or weights outside the library.

        ``auto_map`` alone is not refused: models are always loaded by their standard architecture.
        """
        for settings in _nested(self.config):
            for key in ("attn_implementation", "_attn_implementation"):
                if "/" in str(settings.get(key, "")):
                    raise self.wrong(f"{key} names code outside transformers, which is never run")
        if is_file(self.path / "adapter_config.json"):
            raise self.wrong(
                "is an adapter for another model; merge it into that model and save the result",
                "adapter_config.json",
            )

    def _positions(self) -> int | None:
        for key in ("max_position_embeddings", "n_positions"):
            count = _limit(self.config.get(key))
            if count is not None:
                shifted = self.model_type in SHIFTED_POSITIONS
                return count - (self.padding + 1 if shifted else 0)
        return None

    def _checked_limit(self, limit: int) -> int:
        if limit < MIN_TOKENS:
            raise self.wrong(f"allows texts of {limit} tokens; expected {MIN_TOKENS} or more")
        return limit

    def _settings(self, file: str) -> dict[str, Any]:
        """Return a JSON object of the folder; an empty one if there is no such file."""
        if not is_file(self.path / file):
            return {}
        settings: dict[str, Any] = read_json(self.path / file, dict[str, Any])
        return settings

    def _incomplete(self, file: str) -> MissingExtra:
        where = f"model '{self.name}'"
        if str(self.path) != self.name:
            where += f" ({self.path})"
        return MissingExtra(f"{where} is incomplete: there is no {file} in its folder")


def card_languages(card: str) -> frozenset[str] | None:
    """Return the languages that the metadata of a model card names; None if it names none.

    >>> sorted(card_languages("---\\nlanguage:\\n- en\\n- de\\nlicense: mit\\n---\\n# Model"))
    ['de', 'en']
    >>> card_languages("---\\nlanguage: multilingual\\n---\\n")
    """
    metadata = re.match(r"---[ \t]*\r?\n(.*?)\r?\n---", card, re.DOTALL)
    entry = metadata and re.search(
        r"^language:[ \t]*(\[[^\]]*\]|[^\r\n]+|(?:\r?\n[ \t]*-[^\r\n]*)+)",
        metadata[1],
        re.MULTILINE,
    )
    if not entry:
        return None
    codes = [language_code(word) for word in re.findall(r"[A-Za-z_-]*[A-Za-z]", entry[1])]
    # one that is no language, such as 'multilingual', stands for any
    return frozenset(codes) if codes and all(map(is_language, codes)) else None


def cached_file_digest(path: Path, cache: Cache) -> bytes:
    """Return the digest of a file's content, from the cache if the file has not been touched."""
    with open_regular(path) as stream:
        state = os.fstat(stream.fileno())
    marks = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
    key = key_of("file", str(path), *map(str, marks))
    digest = cache.get([key]).get(key)
    if digest is None or len(digest) != 16:
        digest = file_digest(path, lambda: blake2b(digest_size=16))
        cache.put([(key, digest)])
    return digest


def _limit(value: Any) -> int | None:
    """Return a maximum, or None if the value means that there is none."""
    return int(value) if isinstance(value, int | float) and 0 < value < UNBOUNDED else None


def _nested(settings: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a mapping and all mappings inside it."""
    pending: list[Any] = [settings]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            yield value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _check_weights(path: Path) -> None:
    with open_regular(path) as stream:
        head = stream.read(64)
    if head.startswith(b"version https://git-lfs"):
        raise MissingExtra(f"{path} is a pointer of Git LFS, not the weights; run: git lfs pull")
    if not head:
        raise DataError("the file is empty; expected weights", path=str(path))

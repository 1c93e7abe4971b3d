"""``encoder``: a transformer that reads context and reply together and is fine-tuned.

The fitted network holds all weights and its tokenizer: the model that it started from is no longer
needed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rejoinder.encode.transformer.find_model import DEFAULT_MODEL, find_model_folder
from rejoinder.encode.transformer.model_folder import SETTINGS, TOKENIZERS, ModelFolder
from rejoinder.encode.transformer.tokenizer import load_transformers_tokenizer
from rejoinder.encode.transformer.transformers_network import load_model
from rejoinder.errors import DataError, UsageError
from rejoinder.files.cache import open_cache
from rejoinder.files.checked import inside
from rejoinder.files.paths import is_file, is_folder
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.inputs.input_encoder import Contexts, InputEncoder, whole_number
from rejoinder.learn.inputs.ragged import RaggedIds, join_turns
from rejoinder.learn.networks.cross_encoder import NO_TOKEN, CrossRater, CrossScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings
from rejoinder.learn.training_data import TrainingData
from rejoinder.text.distinct import number_distinct

TOKENIZER = "tokenizer"
MIN_MAX_TOKENS = 16
"""Smallest max_tokens: three texts must fit."""
MAX_MAX_TOKENS = 10**6
NUM_SPECIAL = 4
"""[CLS], and [SEP] after each of three texts."""


class CrossEncoderInput(InputEncoder):
    """Texts as token ids of a transformer; ``folder`` has its tokenizer."""

    name: ClassVar[str] = "encoder"

    def __init__(self, folder: Path, max_tokens: int, start: Mapping[str, Any]) -> None:
        self.folder, self.max_tokens = folder, max_tokens
        self.start = dict(start)
        """The pretrained model: name, digest, frozen_layers."""

    @classmethod
    def make(
        cls,
        data: TrainingData | None = None,
        work: Path | None = None,
        *,
        model: str = DEFAULT_MODEL,
        frozen_layers: int = 0,
        max_tokens: int = 128,
    ) -> CrossEncoderInput:
        """Start from ``model``, whose first ``frozen_layers`` layers are not trained; texts that
        are read together have at most ``max_tokens`` tokens."""
        folder = ModelFolder(model, find_model_folder(model))
        if not 0 <= frozen_layers <= folder.layers:
            raise UsageError(
                f"frozen_layers={frozen_layers}: model '{model}' has {folder.layers} layers"
            )
        if max_tokens < MIN_MAX_TOKENS:
            raise UsageError(f"max_tokens must be {MIN_MAX_TOKENS} or more, not {max_tokens}")
        digest = folder.digest(open_cache())
        start = {"model": model, "digest": digest, "frozen_layers": frozen_layers}
        return cls(folder.path, min(max_tokens, folder.max_tokens), start)

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = load_transformers_tokenizer(self.folder, str(self.start["model"]))
        if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
            raise DataError(
                "the tokenizer has no tokens such as [CLS] and [SEP] to join texts with",
                path=str(self.folder),
            )
        return tokenizer

    def encode_contexts(self, contexts: Contexts, turns: int = 1) -> RaggedIds:
        """A context takes up to half of the tokens; its beginning is cut."""
        shortened = [context[-turns:] for context in contexts]
        numbers = number_distinct(turn for context in shortened for turn in context)
        ids = self._token_ids(list(numbers))
        separator, limit = self._tokenizer.sep_token_id, (self.max_tokens - NUM_SPECIAL) // 2
        return RaggedIds.of(
            [
                join_turns([ids[numbers[turn]] for turn in turns], separator, limit)
                for turns in shortened
            ],
            NO_TOKEN,
        )

    def encode_replies(self, texts: Sequence[str]) -> RaggedIds:
        """A reply takes up to a quarter of the tokens; its end is cut."""
        numbers = number_distinct(texts)
        ids, limit = self._token_ids(list(numbers)), (self.max_tokens - NUM_SPECIAL) // 4
        return RaggedIds.of([ids[numbers[text]][:limit] for text in texts], NO_TOKEN)

    def make_scorer(self, settings: ScorerSettings) -> Model:
        sizes = self._config(settings.hidden_size, settings.dropout)
        return CrossScorer(self._load_network(), **sizes)

    def make_rater(self, settings: RaterSettings) -> Model:
        sizes = self._config(settings.hidden_size, settings.dropout)
        return CrossRater(self._load_network(), **sizes)

    @property
    def depends(self) -> dict[str, str]:
        return {}

    def to_dict(self) -> dict[str, Any]:
        return {"max_tokens": self.max_tokens, "start": self.start}

    def expected_config(self, context_turns: int) -> dict[str, Any]:
        return self._special_ids

    def check_model(self, model: Model, context_turns: int, path: Path) -> None:
        super().check_model(model, context_turns, path)
        from rejoinder.learn.networks.cross_encoder import CrossModel
        from rejoinder.learn.networks.ensemble import members_of

        for member in members_of(model):
            assert isinstance(member, CrossModel)
            size, limit = member.reader.vocab_size, member.reader.max_tokens
            if len(self._tokenizer) > size or self.max_tokens > limit:
                raise DataError(
                    f"the network knows {size:,} tokens and texts of {limit:,} tokens; its"
                    f" tokenizer has {len(self._tokenizer):,}, max_tokens is {self.max_tokens:,}",
                    path=str(path),
                )

    def _save_files(self, folder: Path) -> None:
        (folder / TOKENIZER).mkdir(exist_ok=True)
        for name in sorted({*SETTINGS, *TOKENIZERS}):
            if is_file(self.folder / name):
                shutil.copyfile(self.folder / name, folder / TOKENIZER / name)

    @classmethod
    def _open(cls, folder: Path, record: Mapping[str, Any]) -> CrossEncoderInput:
        path = inside(folder, TOKENIZER)
        if not is_folder(path):
            raise DataError("the tokenizer is missing", path=str(path))
        for name in sorted({*SETTINGS, *TOKENIZERS}):
            inside(folder, f"{TOKENIZER}/{name}")  # no link leads out of the evaluator
        max_tokens = whole_number(record, "max_tokens", MIN_MAX_TOKENS, MAX_MAX_TOKENS)
        start = record["start"]
        if not isinstance(start, dict) or not {"model", "digest", "frozen_layers"} <= start.keys():
            raise ValueError("start must name model, digest and frozen_layers")
        return cls(path, max_tokens, start)

    def _load_network(self) -> Any:
        name = str(self.start["model"])
        folder = ModelFolder(name, find_model_folder(name))
        network = load_model(folder, folder.layers)
        if network.config.is_encoder_decoder:
            raise UsageError(f"model '{name}' is not an encoder that can be fine-tuned here")
        return network

    @property
    def _special_ids(self) -> dict[str, Any]:
        return {
            "cls_token_id": self._tokenizer.cls_token_id,
            "sep_token_id": self._tokenizer.sep_token_id,
        }

    def _config(self, hidden_size: int, dropout: float) -> dict[str, Any]:
        return {
            **self._special_ids,
            "frozen_layers": self.start["frozen_layers"],
            "hidden_size": hidden_size,
            "dropout": dropout,
        }

    def _token_ids(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        encoded = self._tokenizer(
            readable,
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return list(encoded["input_ids"])

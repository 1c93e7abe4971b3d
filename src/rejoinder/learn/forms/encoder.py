"""``encoder``: a transformer that reads context and reply together and is fine-tuned.

What was fitted holds the whole network and its tokenizer: the model that it started from is not
needed any more.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rejoinder.encode.cache import open_cache
from rejoinder.encode.transformer.find import DEFAULT_MODEL, find_folder
from rejoinder.encode.transformer.folder import SETTINGS, TOKENIZERS, ModelFolder
from rejoinder.encode.transformer.network import load
from rejoinder.errors import DataError, UsageError
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.forms.base import Contexts, Form
from rejoinder.learn.forms.ragged import Ragged, distinct, joined
from rejoinder.learn.material import Material
from rejoinder.learn.networks.cross import NONE, CrossRater, CrossScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings
from rejoinder.learn.tokenizer import open_tokenizer

TOKENIZER = "tokenizer"
SHORTEST = 16
"""Tokens that texts which are read together must be allowed."""
SEPARATORS = 4
"""[CLS], and [SEP] behind each of three texts."""


class EncoderForm(Form):
    """Texts as tokens of a model; ``folder`` has its tokenizer."""

    name: ClassVar[str] = "encoder"

    def __init__(self, folder: Path, longest: int, start: Mapping[str, Any]) -> None:
        self.folder, self.longest = folder, longest
        self.start = dict(start)
        """The model that networks start from: name, digest, frozen layers."""

    @classmethod
    def make(
        cls,
        material: Material | None = None,
        work: Path | None = None,
        *,
        model: str = DEFAULT_MODEL,
        frozen: int = 0,
        longest: int = 128,
    ) -> EncoderForm:
        """Start from ``model``, whose first ``frozen`` layers stay as they are; texts that are
        read together have at most ``longest`` tokens."""
        folder = ModelFolder(model, find_folder(model))
        if not 0 <= frozen <= folder.layers:
            raise UsageError(f"frozen={frozen}: model '{model}' has {folder.layers} layers")
        if longest < SHORTEST:
            raise UsageError(f"longest must be {SHORTEST} or more, not {longest}")
        start = {"model": model, "digest": folder.digest(open_cache()), "frozen": frozen}
        return cls(folder.path, min(longest, folder.longest), start)

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = open_tokenizer(self.folder, str(self.start["model"]))
        if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
            raise DataError(
                "the tokenizer has no tokens such as [CLS] and [SEP] to join texts with",
                path=str(self.folder),
            )
        return tokenizer

    def contexts(self, contexts: Contexts, turns: int = 1) -> Ragged:
        """Half of the tokens are a context's: its last ones."""
        shortened = [context[-turns:] for context in contexts]
        numbers = distinct(turn for context in shortened for turn in context)
        tokens = self._tokens(list(numbers))
        end, most = self._tokenizer.sep_token_id, (self.longest - SEPARATORS) // 2
        return Ragged.of(
            [joined([tokens[numbers[turn]] for turn in turns], end, most) for turns in shortened],
            NONE,
        )

    def replies(self, texts: Sequence[str]) -> Ragged:
        """A quarter of the tokens are a reply's: its first ones."""
        numbers = distinct(texts)
        tokens, most = self._tokens(list(numbers)), (self.longest - SEPARATORS) // 4
        return Ragged.of([tokens[numbers[text]][:most] for text in texts], NONE)

    def scorer(self, settings: ScorerSettings) -> Model:
        return CrossScorer(self._network(), **self._shape(settings.wide, settings.dropout))

    def rater(self, settings: RaterSettings) -> Model:
        return CrossRater(self._network(), **self._shape(settings.wide, settings.dropout))

    @property
    def depends(self) -> dict[str, str]:
        return {}

    def plain(self) -> dict[str, Any]:
        return {"longest": self.longest, "start": self.start}

    def _save_files(self, folder: Path) -> None:
        (folder / TOKENIZER).mkdir(exist_ok=True)
        for name in sorted({*SETTINGS, *TOKENIZERS}):
            if (self.folder / name).is_file():
                shutil.copyfile(self.folder / name, folder / TOKENIZER / name)

    @classmethod
    def _opened(cls, folder: Path, record: Mapping[str, Any]) -> EncoderForm:
        if not (folder / TOKENIZER).is_dir():
            raise DataError("the tokenizer is missing", path=str(folder / TOKENIZER))
        return cls(folder / TOKENIZER, record["longest"], record["start"])

    def _network(self) -> Any:
        name = str(self.start["model"])
        folder = ModelFolder(name, find_folder(name))
        network = load(folder, folder.layers)
        if network.config.is_encoder_decoder:
            raise UsageError(f"model '{name}' is no encoder that could be fine-tuned here")
        return network

    def _shape(self, wide: int, dropout: float) -> dict[str, Any]:
        return {
            "start": self._tokenizer.cls_token_id,
            "end": self._tokenizer.sep_token_id,
            "frozen": self.start["frozen"],
            "wide": wide,
            "dropout": dropout,
        }

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        found = self._tokenizer(
            readable,
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return list(found["input_ids"])

"""The parameters ``tok`` and ``lower``, which all metrics over tokens share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rejoinder.metrics.batch import Batch
from rejoinder.registry import TOKENIZERS
from rejoinder.spec import Spec
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.text.tokens import Tokens


@dataclass(frozen=True, kw_only=True)
class Tokenized:
    """Mixin with the tokenizer's parameters; it comes before the metric's own base class."""

    tok: Spec = Spec("13a")
    lower: bool = False

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return TOKENIZERS.make(self.tok)  # type: ignore[no-any-return]

    def _signed(self, key: str) -> str:
        if key == "tok":
            return self.tokenizer.signature()
        return super()._signed(key)  # type: ignore[misc,no-any-return]

    def tokens(self, batch: Batch) -> Tokens:
        return batch.table.tokens(self.tokenizer, self.lower)

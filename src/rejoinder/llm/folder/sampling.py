"""Draw the next token of each row with a random generator of its own.

``generate`` of transformers draws all rows of a batch from one generator, so that a reply would
depend on the contexts beside it. Here each row has its generator: it draws one number for each
token, finds the token by the cumulative probabilities, and leaves only that one to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class SeededChoice:
    """A logits processor that leaves one token in each row."""

    def __init__(
        self,
        generators: Sequence[np.random.Generator],
        temperature: float,
        top_k: int,
        top_p: float,
    ) -> None:
        self._generators, self._temperature = generators, temperature
        self._top_k, self._top_p = top_k, top_p

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """[rows, vocabulary] scores → the same with all but the drawn tokens at -inf."""
        import torch

        logits = scores.double() / self._temperature
        if self._top_k:
            logits, tokens = logits.topk(min(self._top_k, logits.shape[-1]), dim=-1)
        elif self._top_p < 1:
            logits, tokens = logits.sort(dim=-1, descending=True, stable=True)
        else:
            tokens = None
        cumulative = logits.softmax(-1).cumsum(-1)
        if self._top_p < 1:
            # the tokens before which less than top_p was reached, the first always
            kept = (cumulative < self._top_p).sum(-1, keepdim=True)
            total = cumulative.gather(-1, kept.clamp(max=cumulative.shape[-1] - 1))
        else:
            total = cumulative[:, -1:]
        drawn = torch.tensor([[each.random()] for each in self._generators], dtype=torch.float64)
        place = torch.searchsorted(cumulative, drawn * total, right=True)
        place = place.clamp(max=cumulative.shape[-1] - 1)
        chosen = place if tokens is None else tokens.gather(-1, place)
        result = torch.full_like(scores, -torch.inf)
        return result.scatter_(-1, chosen, 0.0)

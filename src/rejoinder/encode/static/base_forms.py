"""Vectors of inflected Japanese words: that of their dictionary form.

Vectors of dictionary forms know 思う, but not 思っ, into which MeCab divides 思った.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rejoinder.encode.static.word_vectors import Bools, Floats, Index, Table


class BaseForms:
    """Finds words by their usual width, else by their dictionary form (MeCab with ipadic)."""

    def __init__(self, index: Index, table: Table, dimensions: int) -> None:
        self._index, self._table, self._dimensions = index, table, dimensions

    def compose(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        """Return [n, d] vectors, and [n] whether there is one."""
        from rejoinder.text.japanese import base_form, normal_width

        usual = [normal_width(word).lower() for word in words]
        rows = self._index.rows(usual)
        forms = {i: base_form(usual[i]) for i in np.flatnonzero(rows < 0).tolist()}
        known_forms = {i: form for i, form in forms.items() if form is not None}
        rows[list(known_forms)] = self._index.rows(list(known_forms.values()))
        known = rows >= 0
        vectors = np.zeros((len(words), self._dimensions), np.float32)
        vectors[known] = self._table.take(rows[known])
        return vectors, known

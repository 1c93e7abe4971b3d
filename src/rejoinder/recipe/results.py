"""Collect the output of ``meta --json`` for each row of a recipe's table."""

from __future__ import annotations

from typing import Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.checked import read_json
from rejoinder.recipe.file import Table


class _MetaResult(msgspec.Struct):
    results: list[dict[str, Any]]


def collect(table: Table) -> list[dict[str, Any]]:
    """Return the results of all rows, each with the label of its row."""
    collected = []
    for label, path in table.rows:
        try:
            meta_result: _MetaResult = read_json(path, _MetaResult)
        except DataError as error:
            raise DataError(f"{error}; expected the JSON of 'rejoinder meta'") from None
        collected += [{"row": label, **result} for result in meta_result.results]
    return collected

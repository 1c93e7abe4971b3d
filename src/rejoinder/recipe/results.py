"""What ``meta --json`` found for each row of a recipe's table, side by side."""

from __future__ import annotations

from typing import Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.recipe.file import Table


class _Study(msgspec.Struct):
    results: list[dict[str, Any]]


def collect(table: Table) -> list[dict[str, Any]]:
    """The results of all rows, each with the label of its row."""
    collected = []
    for label, path in table.rows:
        try:
            with open(path, "rb") as stream:
                study = msgspec.json.decode(stream.read(), type=_Study)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(f"cannot be read: {reason}", path=path) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(
                f"{error}; expected what 'rejoinder meta --json' prints", path=path
            ) from None
        collected += [{"row": label, **result} for result in study.results]
    return collected

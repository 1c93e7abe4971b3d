"""Convert one value to an item, and recognise datasets of Hugging Face."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.jsonl import explain
from rejoinder.items import Item

T = TypeVar("T")


def is_dataset(value: Any) -> bool:
    """Return whether the value is a dataset of Hugging Face's library ``datasets``."""
    return type(value).__module__.partition(".")[0] == "datasets"


def convert_item(where: str, convert: Callable[[T], Item], value: T) -> Item:
    """Convert a value to an item; errors begin with ``where``, such as ``row 3``."""
    try:
        return convert(value)
    except msgspec.ValidationError as error:
        raise DataError(explain(str(error)), path=where) from None
    except OverflowError:
        raise DataError("a number is too large", path=where) from None

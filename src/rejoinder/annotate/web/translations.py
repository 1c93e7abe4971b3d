"""The words of the pages in English, Japanese and Chinese (``texts/*.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "texts"


class _Values(dict[str, Any]):
    """Values of a message; one that was not given is left out."""

    def __missing__(self, key: str) -> str:
        return "…"


class Texts:
    """The words of one language, by keys such as ``task.send``."""

    def __init__(self, language: str, messages: Mapping[str, str]) -> None:
        self.language, self.messages = language, messages

    def __call__(self, key: str, **values: Any) -> str:
        """Return a message with its values filled in."""
        return self.messages[key].format_map(_Values(values))

    def either(self, key: str, other: str, **values: Any) -> str:
        """Return a message, or another one if the first does not exist."""
        return self(key if key in self.messages else other, **values)


@cache
def read_texts(language: str) -> Texts:
    """Read the words of a language."""
    tables = tomllib.loads((FOLDER / f"{language}.toml").read_text("utf-8"))
    return Texts(
        language,
        {
            f"{section}.{key}": text
            for section, messages in tables.items()
            for key, text in messages.items()
        },
    )

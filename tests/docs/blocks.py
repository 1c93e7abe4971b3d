"""Find the code blocks of the documentation.

A block that no test runs has a comment above it, ``<!-- not run: the reason -->``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>.+?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    reason: str | None
    """Why it is not run; None if it is."""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    def commands(self) -> Iterator[list[str]]:
        """Yield the command lines of a shell block as lists of words.

        In a console session, commands begin with ``$``.
        """
        text = self.text.replace("\\\n", " ")
        if self.language == "console":
            lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        else:
            lines = text.splitlines()
        for line in lines:
            words = shlex.split(line, comments=True)
            while "&&" in words:
                end = words.index("&&")
                yield words[:end]
                words = words[end + 1 :]
            if words:
                yield words


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["text"],
            found["reason"],
        )
        for found in _BLOCK.finditer(text)
    ]


def pages() -> list[Path]:
    return sorted(DOCS.glob("*.md"))

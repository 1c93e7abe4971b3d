"""``conversations``: one turn a line, dialogues separated by blank lines, speakers alternate.

A line that is not text splits its dialogue in two, because the turns around it are not neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rejoinder.logs.readers.reader import Post, Reader, Turn, dialogue


@dataclass(frozen=True, kw_only=True)
class Conversations(Reader):
    name: ClassVar[str] = "conversations"
    summary: ClassVar[str] = "plain text, a turn a line, dialogues separated by blank lines"
    kind: ClassVar[str] = "dialogue"
    splittable: ClassVar[bool] = False

    def read(self, lines: Iterator[tuple[int, bytes]], source: str) -> Iterator[Post]:
        turns: list[Turn] = []
        first = last = 0
        for number, line in lines:
            text = line.decode().strip()
            if not text:  # only Unicode spaces
                continue
            if turns and number != last + 1:
                yield from _numbered(turns, source, first)
                turns = []
            if not turns:
                first = number
            turns.append(Turn(text))
            last = number
        if turns:
            yield from _numbered(turns, source, first)


def _numbered(turns: list[Turn], source: str, first: int) -> Iterator[Post]:
    """Yield the posts of a dialogue, each with its own line."""
    for turn, post in enumerate(dialogue(turns, source, first)):
        post.line = first + turn
        yield post

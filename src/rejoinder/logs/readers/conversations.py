"""``conversations``: a post a line, conversations separated by blank lines, speakers alternate.

A line that is no text breaks its conversation in two: what stands around it did not follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rejoinder.logs.readers.base import Post, Reader, Turn, dialogue


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
            if not text:  # blank in Unicode's sense
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
    """Each turn with its own line."""
    for turn, post in enumerate(dialogue(turns, source, first)):
        post.line = first + turn
        yield post

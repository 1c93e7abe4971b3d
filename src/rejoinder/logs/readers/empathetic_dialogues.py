"""``empatheticdialogues``: dialogues about a situation, each turn with its role.

Rashkin et al. 2019, "Towards Empathetic Open-domain Conversation Models". A dialogue a line, as
JSON: ``turns`` is a list of ``[role, text]`` with the roles speaker and listener. The release
writes ``_comma_`` for a comma.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from rejoinder.logs.readers.reader import JsonReader, Post, Turn, dialogue


class _Dialogue(msgspec.Struct, gc=False):
    turns: list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class EmpatheticDialogues(JsonReader):
    name: ClassVar[str] = "empatheticdialogues"
    summary: ClassVar[str] = "EmpatheticDialogues, JSON lines with turns of role and text"
    kind: ClassVar[str] = "dialogue"
    record: ClassVar[Any] = _Dialogue

    def posts(self, record: _Dialogue, number: int, source: str) -> Iterable[Post]:
        turns = [Turn(text.replace("_comma_", ","), role) for role, text in record.turns]
        return dialogue(turns, source, number)

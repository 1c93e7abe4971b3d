"""Answers on disk: a killed run goes on where it was, and a second run asks nothing.

An entry is found by everything that decides an answer (:meth:`~rejoinder.llm.chat.Chat.key`) and
never by a key of the user. Only answers are stored, no failures: those are asked again. If two runs
get an answer to the same chat, both use the one that was stored first.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rejoinder.files.cache import Cache, open_cache
from rejoinder.llm.chat import Answer

KIND = "answers"

_DECODER = msgspec.json.Decoder(Answer)


class Answers:
    """Answers by the keys of their chats."""

    def __init__(self, cache: Cache | None = None) -> None:
        self._cache = open_cache(KIND) if cache is None else cache

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Return those of the answers that are stored."""
        answers = {}
        for key, data in self._cache.get(keys).items():
            try:
                answers[key] = _DECODER.decode(data)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # written by another version: asked again
        return answers

    def put(self, key: bytes, answer: Answer) -> Answer:
        """Store an answer; return what another run stored first, if it did."""
        stored = self._cache.put_first(key, msgspec.json.encode(answer))
        try:
            return _DECODER.decode(stored)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return answer

    def notes(self) -> list[str]:
        """Return sentences about problems of the file; usually none."""
        return self._cache.notes()

"""The vocabulary of a dialogue system: texts to token ids, and back.

``subwords`` are learned by SentencePiece from the training texts: no word is unknown, and the
output layer is small. ``words`` are the most frequent tokens of a tokenizer, as in the papers; all
others are one unknown word, which is never generated. Both work in any language.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from rejoinder.errors import DataError, UsageError
from rejoinder.files.checked import inside, read_bytes
from rejoinder.learn.dialogue.settings import VocabularySettings
from rejoinder.learn.inputs.subwords import load_subwords, train_subwords
from rejoinder.registry import TOKENIZERS
from rejoinder.text.languages import language as known_language

PAD, START, END, UNKNOWN = 0, 1, 2, 3
"""Padding, the token before a reply, the token after each turn, and an unknown word."""
FIRST = 4
"""Id of the first word or subword."""
MIN_WORDS = 10
"""A network of fewer different words can't say anything."""


class Vocabulary(ABC):
    """Words or subwords with their ids."""

    kind: ClassVar[str]
    file: ClassVar[str]
    """Name of its file in the folder of a system."""

    def __init__(self, content: bytes, settings: VocabularySettings) -> None:
        self.content, self.settings = content, settings

    def __len__(self) -> int:
        """Number of ids, those of padding and the other special tokens included."""
        return FIRST + self.words

    @property
    @abstractmethod
    def words(self) -> int:
        """Number of words or subwords."""

    @property
    def never_generated(self) -> tuple[int, ...]:
        """Ids that no reply may have."""
        return (PAD, START, UNKNOWN)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its file."""
        return hashlib.sha256(self.content).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without special tokens."""
        return self._encode([self._plain(text) for text in texts])

    def _plain(self, text: str) -> str:
        # a lone surrogate is not a character
        readable = text.encode("utf-8", "replace").decode()
        return readable.lower() if self.settings.lower else readable

    @abstractmethod
    def _encode(self, texts: list[str]) -> list[list[int]]: ...

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the words of texts, by the tokenizer of the language: perplexity and lengths are
        given by word, whatever the tokens are."""
        return _split(_tokenizer(self.settings), [self._plain(text) for text in texts])


class Subwords(Vocabulary):
    """Subwords of SentencePiece."""

    kind, file = "subwords", "vocabulary.model"

    def __init__(self, content: bytes, settings: VocabularySettings) -> None:
        super().__init__(content, settings)
        self._processor = load_subwords(content)

    @property
    def words(self) -> int:
        return int(self._processor.get_piece_size())

    @property
    def never_generated(self) -> tuple[int, ...]:
        special = (self._processor.unk_id(), self._processor.bos_id(), self._processor.eos_id())
        return (*super().never_generated, *(FIRST + piece for piece in special if piece >= 0))

    def _encode(self, texts: list[str]) -> list[list[int]]:
        rows = self._processor.encode(texts, out_type=int)
        return [[piece + FIRST for piece in row] for row in rows]

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [i - FIRST for i in ids if FIRST <= i < len(self)]
        return str(self._processor.decode(pieces)).strip()


class Words(Vocabulary):
    """The most frequent words, joined by blanks where the language has them."""

    kind, file = "words", "vocabulary.json"

    def __init__(self, content: bytes, settings: VocabularySettings) -> None:
        super().__init__(content, settings)
        try:
            self._words = msgspec.json.decode(content, type=list[str])
        except msgspec.MsgspecError:
            raise DataError("the list of words is damaged") from None
        self._ids = {word: FIRST + number for number, word in enumerate(self._words)}
        self._tokenizer = _tokenizer(settings)
        self._between = " " if known_language(settings.language).has_spaces else ""

    @property
    def words(self) -> int:
        return len(self._words)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        find = self._ids.get
        return [[find(word, UNKNOWN) for word in row] for row in _split(self._tokenizer, texts)]

    def decode(self, ids: Sequence[int]) -> str:
        return self._between.join(
            self._words[i - FIRST] for i in ids if FIRST <= i < len(self)
        ).strip()


KINDS: dict[str, type[Vocabulary]] = {kind.kind: kind for kind in (Subwords, Words)}


def train_vocabulary(texts: Iterable[str], settings: VocabularySettings) -> Vocabulary:
    """Learn a vocabulary from texts; the same texts give the same vocabulary."""
    readable = (text.encode("utf-8", "replace").decode() for text in texts)
    plain = (text.lower() for text in readable) if settings.lower else readable
    if settings.kind == Subwords.kind:
        made: Vocabulary = Subwords(
            train_subwords(iter(plain), settings.size, "identity"), settings
        )
    else:
        counts: Counter[str] = Counter()
        tokenizer = _tokenizer(settings)
        for row in _split(tokenizer, list(plain)):
            counts.update(row)
        # the order of equally frequent words must not depend on the order of the texts
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        words = [word for word in ordered if counts[word] >= settings.min_count]
        made = Words(msgspec.json.encode(words[: settings.size]), settings)
    if made.words < MIN_WORDS:
        raise DataError(
            f"the vocabulary has only {made.words} {settings.kind}; a dialogue system needs"
            f" {MIN_WORDS} or more: train it on more dialogues"
        )
    return made


def open_vocabulary(folder: Path, settings: VocabularySettings, digest: str) -> Vocabulary:
    """Open the vocabulary of a system's folder."""
    kind = KINDS[settings.kind]
    path = inside(folder, kind.file)
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != digest:
        raise DataError(
            "is not the vocabulary that the network was trained with: its checksum differs",
            path=str(path),
        )
    try:
        return kind(content, settings)
    except (DataError, UsageError) as error:
        raise DataError(str(error), path=str(path)) from None


def _tokenizer(settings: VocabularySettings) -> Any:
    return TOKENIZERS.make(settings.tok or known_language(settings.language).tokenizer)


def _split(tokenizer: Any, texts: Sequence[str]) -> list[list[str]]:
    return [list(row) for row in tokenizer.tokenize(texts)]

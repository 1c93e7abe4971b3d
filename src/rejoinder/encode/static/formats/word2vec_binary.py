"""Binary files of word2vec: a header line, then each word, a space, and its float32 numbers."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.formats.text import read_header
from rejoinder.encode.static.vectors_folder import Batch, FolderWriter

READ_BYTES = 2**22
"""Bytes that are read at a time."""
MAX_WORD_BYTES = 2**16


def read_word2vec_binary(source: Source, writer: FolderWriter) -> dict[str, Any]:
    """Read a binary file into a folder."""
    with source.open() as stream:
        count, dimensions = read_header(source, stream)
        rest = _read_words(source, stream, writer, count, dimensions)
        if (rest + stream.read(2**10)).strip(b"\r\n"):
            raise source.wrong(f"the header says {count} words, but the file continues after them")
    return {"source_format": "word2vec binary"}


def _read_words(
    source: Source, stream: IO[bytes], writer: FolderWriter, count: int, dimensions: int
) -> bytes:
    """Read all words; return the bytes that were read beyond them."""
    size = 4 * dimensions
    data, place, done = b"", 0, 0
    while done < count:
        more = stream.read(max(READ_BYTES, size))
        data, place = data[place:] + more, 0
        words, rows = [], []
        while done < count:
            space = data.find(b" ", place, place + MAX_WORD_BYTES)
            if space < 0 and len(data) - place >= MAX_WORD_BYTES:
                raise source.wrong(f"word {done + 1} of {count} has no end: the file is damaged")
            if space < 0 or space + 1 + size > len(data):
                break
            # some programs end each vector with a line break
            words.append(data[place:space].lstrip(b"\r\n"))
            rows.append(data[space + 1 : space + 1 + size])
            place, done = space + 1 + size, done + 1
        if words:
            numbers = np.frombuffer(b"".join(rows), "<f4").reshape(len(rows), dimensions)
            writer.add(Batch(words, numbers))
        if not more and done < count:
            raise source.wrong(f"the file ends within word {done + 1} of {count}: it is cut off")
    return data[place:]

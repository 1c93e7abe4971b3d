"""Static word vectors: one vector a word, whatever stands around it."""

from rejoinder.encode.static.open import open_vectors
from rejoinder.encode.static.vectors import WordVectors

__all__ = ["WordVectors", "open_vectors"]

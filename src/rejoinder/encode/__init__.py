"""Vectors of texts: static word vectors, transformer encoders, and their cache."""

"""Texts as vectors: of words (static) and of words in their sentence (transformer)."""

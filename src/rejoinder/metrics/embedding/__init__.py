"""Metrics that compare meanings: vectors of words, of tokens in context, of whole replies."""

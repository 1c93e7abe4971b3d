"""References that a language model writes."""

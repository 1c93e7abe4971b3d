"""Languages, tokenizers, and texts turned into numbers."""

"""Languages, language identification, tokenizers, and texts as arrays of token ids."""

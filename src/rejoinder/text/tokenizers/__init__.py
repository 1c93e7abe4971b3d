"""Tokenizers, one file each; their names are in the registry."""

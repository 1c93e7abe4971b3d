"""Tokenizers, one file each; the registry knows their names."""

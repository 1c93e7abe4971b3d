"""Transformer encoders in the format of Hugging Face, loaded from this machine only."""

from rejoinder.encode.transformer.encoder import Encoder, TokenVectors, open_encoder
from rejoinder.encode.transformer.find_model import DEFAULT_MODEL

__all__ = ["DEFAULT_MODEL", "Encoder", "TokenVectors", "open_encoder"]

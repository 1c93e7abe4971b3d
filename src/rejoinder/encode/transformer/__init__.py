"""Words in their sentence as vectors: encoders in the format of Hugging Face, offline."""

from rejoinder.encode.transformer.encoder import Encoder, TokenVectors, open_encoder
from rejoinder.encode.transformer.find import DEFAULT_MODEL

__all__ = ["DEFAULT_MODEL", "Encoder", "TokenVectors", "open_encoder"]

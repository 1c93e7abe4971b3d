"""The tokenizer of a model as transformers opens it: it knows how the model joins texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rejoinder.encode.transformer.pieces import first_line, quiet_transformers
from rejoinder.errors import DataError, MissingExtra


def open_tokenizer(path: Path, name: str) -> Any:
    """From a folder with its files; ``name`` is what the user called the model."""
    quiet_transformers()
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingExtra(
            "training an encoder needs transformers: pip install transformers"
        ) from None
    try:
        return AutoTokenizer.from_pretrained(str(path), local_files_only=True)
    except ImportError as error:
        raise MissingExtra(f"the tokenizer of model '{name}': {first_line(error)}") from None
    except Exception as error:  # it raises whatever its parts raise
        raise DataError(
            f"the tokenizer can't be opened: {first_line(error)}", path=str(path)
        ) from None

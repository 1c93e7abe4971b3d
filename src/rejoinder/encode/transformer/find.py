"""From the name of a model to its folder: what is on this machine, and nothing else.

A name is ``minilm`` or ``mpnet`` (whose weights come as packages), a folder in the format of
Hugging Face, or the name of a model on their hub that is in their local cache already.

Behind a name may stand ``.bf16``: then the network computes with numbers of 16 bits, which new
processors do about twice as fast, and cosines differ in the third digit. That is another model,
with a digest of its own.
"""

from __future__ import annotations

from pathlib import Path

from rejoinder.encode.transformer.packaged import PACKAGED
from rejoinder.errors import MissingExtra

DEFAULT_MODEL = "minilm"

_HALF = ".bf16"


def split_precision(name: str) -> tuple[str, str]:
    """The name of a model, and what its network computes with, as torch calls it.

    >>> split_precision("mpnet.bf16"), split_precision("minilm")
    (('mpnet', 'bfloat16'), ('minilm', 'float32'))
    """
    if name.endswith(_HALF) and not Path(name).expanduser().exists():
        return name.removesuffix(_HALF), "bfloat16"
    return name, "float32"


def find_folder(name: str) -> Path:
    """The folder of a model; a model that is not here is a MissingExtra."""
    if name in PACKAGED:
        return PACKAGED[name].find(name)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if folder.exists():
        raise MissingExtra(
            f"model '{name}' is a file; give the folder with config.json, weights and tokenizer"
        )
    if found := _in_hub_cache(name):
        return found
    raise MissingExtra(
        f"model '{name}' is not on this machine, and nothing is downloaded;"
        f" give a folder with its files, or {' or '.join(PACKAGED)}"
    )


def _in_hub_cache(name: str) -> Path | None:
    """The snapshot of a hub model that was downloaded by another program."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        config = try_to_load_from_cache(name, "config.json")
    except (HFValidationError, ValueError):
        return None  # no name that the hub could have, such as a path of three parts
    return Path(config).parent if isinstance(config, str) else None

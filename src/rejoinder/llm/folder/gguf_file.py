"""Models in GGUF files, the format of llama.cpp: converted once to a folder of Hugging Face.

Quantized weights become float32, four bytes each. The folder stays in the cache, under the digest
of the file.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rejoinder.encode.transformer.model_folder import WEIGHTS, cached_file_digest
from rejoinder.encode.transformer.tokenizer import explain_failure, quiet_transformers
from rejoinder.encode.transformer.transformers_network import silenced
from rejoinder.errors import missing_extra
from rejoinder.files.cache import open_cache
from rejoinder.files.made_once import made_once
from rejoinder.files.paths import expand_user, is_file, is_folder

SUFFIX = ".gguf"
FORMAT = 1
"""Part of the folder's name; to be increased when files are converted in another way."""


def find_gguf(model: str) -> Path | None:
    """Return the GGUF file that a user named: itself, or by a folder with nothing else in it."""
    path = expand_user(model)
    if is_file(path):
        return path if path.suffix == SUFFIX else None
    if not is_folder(path) or is_file(path / "config.json"):
        return None
    files = list(path.glob(f"*{SUFFIX}"))
    return files[0] if len(files) == 1 else None


def converted_file(path: Path) -> Path:
    """Return the folder of a GGUF file of the user."""
    digest = cached_file_digest(path, open_cache()).hex()
    return converted(path.stem, digest, lambda work: path)


def converted(
    name: str,
    digest: str,
    whole: Callable[[Path], Path],
    languages: frozenset[str] | None = None,
) -> Path:
    """Return the folder of a converted file; ``whole`` gives the file, for which it may use the
    folder that it gets."""

    def make(work: Path) -> Path:
        folder = work / "model"
        folder.mkdir()
        _convert(whole(work), name, folder)
        if languages:
            names = ", ".join(sorted(languages))
            (folder / "README.md").write_text(f"---\nlanguage: [{names}]\n---\n", "utf-8")
        return folder

    return made_once(
        f"models/{name}-{digest[:12]}-{FORMAT}", make, what=f"model '{name}'", done="converted"
    )


def _convert(path: Path, name: str, folder: Path) -> None:
    quiet_transformers()
    try:
        import accelerate  # noqa: F401  # transformers reads GGUF files only with it
        import gguf  # noqa: F401
        import torch
        import transformers
        from safetensors.torch import save_model
    except ImportError:
        raise missing_extra(
            "gguf", "torch", "transformers", "gguf", "accelerate", task=f"model '{name}'"
        ) from None
    arguments: dict[str, Any] = {
        "gguf_file": path.name,
        "local_files_only": True,
        "trust_remote_code": False,
    }
    with (
        silenced(transformers),
        _without_bar(),
        torch.random.fork_rng(devices=[]),
        explain_failure(path, "the file can't be read as GGUF", name),
    ):
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            str(path.parent), dtype=torch.float32, **arguments
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path.parent), **arguments)
        tokenizer.save_pretrained(folder)
        # save_pretrained of the model refuses weights that were quantized
        save_model(model, str(folder / WEIGHTS), metadata={"format": "pt"})
        model.generation_config.save_pretrained(folder)
    config = model.config.to_dict() | {"architectures": [type(model).__name__]}
    for key in ("quantization_config", "_name_or_path"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config, indent=1, default=str), "utf-8")


@contextlib.contextmanager
def _without_bar() -> Iterator[None]:
    """Switch off the progress bar of the conversion, for which transformers has no setting."""
    from transformers import modeling_gguf_pytorch_utils

    module: Any = modeling_gguf_pytorch_utils
    bar = getattr(module, "tqdm", None)
    if bar is not None:
        module.tqdm = partial(bar, disable=True)
    try:
        yield
    finally:
        if bar is not None:
            module.tqdm = bar

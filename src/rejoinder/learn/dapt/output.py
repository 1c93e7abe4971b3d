"""Write the adapted encoder as a model folder: like the original, with new weights.

It has the same tokenizer and, for sentence-transformers, the same pooling, so that it can replace
the original everywhere. ``manifest.json`` and ``README.md`` say where it comes from; neither has a
date or a path in it, so that the same run writes the same bytes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from rejoinder.encode.transformer.model_folder import SETTINGS, TOKENIZERS, ModelFolder
from rejoinder.errors import DataError
from rejoinder.files.checked import inside, read_json
from rejoinder.files.paths import is_file, is_folder
from rejoinder.learn.checkpoint import write_weights
from rejoinder.learn.dapt.model import MaskedLanguageModel, save_head

KIND = "rejoinder adapted encoder"
MANIFEST = "manifest.json"
MODULES = "modules.json"
_COPIED = (*SETTINGS, *TOKENIZERS, "config_sentence_transformers.json", MODULES)


def write_encoder(
    target: Path, source: ModelFolder, model: MaskedLanguageModel, manifest: dict[str, Any]
) -> None:
    """Write the model folder into an empty folder."""
    for name in _COPIED:
        if is_file(source.path / name):
            shutil.copyfile(source.path / name, target / name)
    for path in _module_folders(source.path):
        shutil.copytree(source.path / path, target / path)
    config = {
        # the type of the original weights: the new ones are float32
        key: value
        for key, value in source.config.items()
        if key not in ("dtype", "torch_dtype")
    }
    config["architectures"] = [type(model.encoder).__name__]
    _write_json(target / "config.json", config)
    write_weights(target / "model.safetensors", model.encoder.state_dict())
    save_head(target, model)
    _write_json(target / MANIFEST, manifest)
    (target / "README.md").write_text(_card(manifest, source.languages), encoding="utf-8")


def is_adapted_encoder(folder: Path) -> bool:
    """Return whether this is an adapted encoder, which another one may replace."""
    try:
        manifest = read_json(folder / MANIFEST, dict[str, Any])
    except DataError:
        return False
    return bool(manifest.get("kind") == KIND)


def _module_folders(folder: Path) -> list[str]:
    """Return folders that sentence-transformers needs beside the encoder, such as 1_Pooling."""
    if not is_file(folder / MODULES):
        return []
    modules = read_json(folder / MODULES, list[dict[str, Any]])
    paths = [str(module.get("path", "")) for module in modules]
    return [path for path in paths if path and "/" not in path and is_folder(inside(folder, path))]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _card(manifest: dict[str, Any], languages: frozenset[str] | None) -> str:
    """Return the model card; its front matter keeps the languages of the original model."""
    codes = "".join(f"- {code}\n" for code in sorted(languages or ()))
    front_matter = f"---\nlanguage:\n{codes}---\n\n" if codes else ""
    result, data = manifest["result"], manifest["data"]
    settings = "\n".join(f"- {key}: {value}" for key, value in manifest["settings"].items())
    return f"""{front_matter}# An encoder adapted to a domain

Made by Rejoinder {manifest["rejoinder"]} from the model `{manifest["model"]["name"]}` (digest
{manifest["model"]["digest"]}) by domain-adaptive pre-training (Gururangan et al., 2020): masked
language modelling was continued on pairs of utterance and response.

## Data

{data["train_taken"]:,} of {data["train"]:,} training pairs of `{data["file"]}` (SHA-256
{data["digest"]}). Losses were measured on {data["validation_taken"]:,} held-out pairs, split by
{data["split_by"]}; no dialogue is on both sides.

## Result

Perplexity of masked tokens in held-out pairs: {result["perplexity_before"]:,.1f} before
({result["head"]} head), {result["perplexity_after"]:,.1f} after (step {result["best_step"]:,} of
{result["steps"]:,}). Predicting tokens by their frequency: {result["perplexity_unigram"]:,.1f}.

## Settings

{settings}

## Use

Use it as any model folder of Hugging Face, or as `model=` in Rejoinder's metrics. A lower
perplexity does not mean that sentence similarities are better: this training does not optimise
them, and may make them worse. Check with `rejoinder meta` before you rely on it. The encoder
reflects the texts that it was trained on, and may reproduce rare phrases of them.
"""

"""The adapted encoder as a folder: like the one it was made from, with new weights.

It has the same tokenizer and, from sentence-transformers, the same pooling, so that it stands in
for the old one everywhere. ``manifest.json`` and ``README.md`` say where it comes from; neither
has a date or a path in it, so that the same run makes the same bytes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from rejoinder.encode.transformer.folder import SETTINGS, TOKENIZERS, ModelFolder
from rejoinder.learn.checkpoint import write_weights
from rejoinder.learn.dapt.model import MaskedModel, save_head

KIND = "rejoinder adapted encoder"
MANIFEST = "manifest.json"
_COPIED = (*SETTINGS, *TOKENIZERS, "config_sentence_transformers.json", "modules.json")


def write_encoder(
    target: Path, source: ModelFolder, model: MaskedModel, manifest: dict[str, Any]
) -> None:
    """Fill an empty folder."""
    for name in _COPIED:
        if (source.path / name).is_file():
            shutil.copyfile(source.path / name, target / name)
    for path in _modules(source.path):
        shutil.copytree(source.path / path, target / path)
    config = {
        # the type of the old weights: the new ones are float32
        key: value
        for key, value in source.config.items()
        if key not in ("dtype", "torch_dtype")
    }
    config["architectures"] = [type(model.encoder).__name__]
    _write_json(target / "config.json", config)
    write_weights(target / "model.safetensors", model.encoder.state_dict())
    save_head(target, model)
    _write_json(target / MANIFEST, manifest)
    (target / "README.md").write_text(_card(manifest), encoding="utf-8")


def is_ours(folder: Path) -> bool:
    """Whether this is an adapted encoder, which another one may replace."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == KIND


def _modules(folder: Path) -> list[str]:
    """Folders that sentence-transformers needs beside the encoder, such as 1_Pooling."""
    try:
        listed = json.loads((folder / "modules.json").read_bytes())
    except (OSError, ValueError):
        return []
    paths = [str(module.get("path", "")) for module in listed]
    return [path for path in paths if path and "/" not in path and (folder / path).is_dir()]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _card(manifest: dict[str, Any]) -> str:
    """The model card."""
    result, data = manifest["result"], manifest["data"]
    settings = "\n".join(f"- {key}: {value}" for key, value in manifest["settings"].items())
    return f"""# An encoder adapted to a domain

Made by Rejoinder {manifest["rejoinder"]} from the model `{manifest["model"]["name"]}` (digest
{manifest["model"]["digest"]}) by domain-adaptive pre-training (Gururangan et al., 2020): it went
on learning to guess hidden words, in pairs of utterance and response.

## Data

{data["train_taken"]:,} of {data["train"]:,} training pairs of `{data["file"]}` (SHA-256
{data["digest"]}). Losses were measured on {data["validation_taken"]:,} pairs, held out by
{data["split_by"]}; no dialogue is on both sides.

## Result

Perplexity of hidden tokens of the pairs held out: {result["perplexity_before"]:,.1f} before
({result["head"]} head), {result["perplexity_after"]:,.1f} after (step {result["best_step"]:,} of
{result["steps"]:,}). Guessing by the frequency of words alone: {result["perplexity_unigram"]:,.1f}.

## Settings

{settings}

## Use

As any folder of Hugging Face, or as `model=` of Rejoinder's metrics. A lower perplexity does not
say that similarities of sentences are better: this training does not look at them, and may
spoil what the model knew of them. Check with `rejoinder meta` before you rely on it. The texts it
learnt from shape what it finds likely; it may remember rare phrases of them.
"""

"""Evaluators, indexes, vectors and models that were tampered with, with digests that fit.

Whoever passes on an evaluator writes its manifest, too, so a digest protects from accidents only.
Every part is read through checks of type, shape, range and size: a bad one ends with exit code 3
(or 2, 4) and the part's name, never with a traceback, and never runs code.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from attacks.commands import inputs
from attacks.running import refused
from attacks.tampering import Change, changes_of, of_json, parts_of, seal, without
from fitted import small_evaluator
from rejoinder.retrieve.index_folder import build_index
from rejoinder.retrieve.retriever import make_retriever
from tiny_models import tiny_model

Make = Callable[[Path], list[list[str]]]


def items() -> str:
    return str(inputs()["items"])


EVALUATOR: Make = lambda folder: [  # noqa: E731
    ["score", items(), "-m", "rejoinder", "-m", "vbleu", "--evaluator", str(folder)],
    ["expand", items(), "--evaluator", str(folder), "-o", str(folder.parent / "out.jsonl")],
    ["compare", items(), "-m", "unreferenced", "--evaluator", str(folder), "--resamples", "100"],
    ["reply", items(), "--system", "c-vectors", "--evaluator", str(folder)],
]
INDEX: Make = lambda folder: [  # noqa: E731
    ["expand", items(), "--pool", str(folder), "-o", str(folder.parent / "out.jsonl")],
    ["reply", items(), "--system", "c-bm25", "--pool", str(folder)],
]


@cache
def built_index() -> Path:
    _FOLDERS.append(TemporaryDirectory(prefix="rejoinder-index-"))
    folder = Path(_FOLDERS[-1].name) / "index"
    build_index(str(inputs()["pairs"]), make_retriever("bm25"), folder)
    return folder


_FOLDERS: list[TemporaryDirectory[str]] = []

MAKERS = {"evaluator": small_evaluator, "index": built_index}
LISTED = {
    "evaluator": (
        "held-out.json",
        "manifest.json",
        "pool/index/utterance.npy",
        "pool/manifest.json",
        "pool/pairs.arrow",
        "pool/replies.npy",
        "rater/input.json",
        "rater/model.safetensors",
        "unreferenced/input.json",
        "unreferenced/model.safetensors",
        "vectors/counts.npy",
        "vectors/hashes.npy",
        "vectors/manifest.json",
        "vectors/order.npy",
        "vectors/starts.npy",
        "vectors/vectors.npy",
        "vectors/words.txt",
    ),
    "index": (
        "index/utterance-00000.npz",
        "index/utterance-rows.npy",
        "index/utterance-words.json",
        "index/utterance.json",
        "manifest.json",
        "pairs.arrow",
        "replies.npy",
    ),
}
"""Parts, with the digest in the name of the index folder left out."""

UNDETECTED = {
    ("vectors/counts.npy", "1e12"),
    ("vectors/words.txt", "empty"),
    ("held-out.json", "a list"),
    # equal numbers mark equal replies, whatever they are
    *((f"{folder}replies.npy", value) for folder in ("", "pool/") for value in ("-1", "1e12")),
    # whole numbers are weights, too
    *((f"{name}/model.safetensors", "another type") for name in ("rater", "unreferenced")),
}
"""Changes that give other scores, but nothing that could be noticed."""


def short(path: Path) -> str:
    parts = ["index" if part.startswith("index-") else part for part in path.parts]
    return "/".join(parts)


@pytest.mark.parametrize("kind", MAKERS)
def test_all_parts_are_listed(kind: str) -> None:
    assert sorted(map(short, parts_of(MAKERS[kind]()))) == list(LISTED[kind])


def attacked(kind: str, part: str, change: str | Change, tmp_path: Path) -> Path:
    """Return a copy of a folder with one part changed and sealed again."""
    folder = shutil.copytree(MAKERS[kind](), tmp_path / kind)
    (path,) = [folder / path for path in parts_of(folder) if short(path) == part]
    change = changes_of(path)[change] if isinstance(change, str) else change
    if path.name == "manifest.json":
        seal(folder)
        path.write_bytes(change(path.read_bytes()))
        if path.parent != folder:
            seal_outer(folder, path)
    else:
        path.write_bytes(change(path.read_bytes()))
        seal(folder)
    return folder


def seal_outer(folder: Path, changed: Path) -> None:
    """Seal the evaluator around a manifest that is to stay as the attacker wrote it."""
    content = changed.read_bytes()
    changed.write_bytes(b"[]")  # left alone
    seal(folder)
    changed.write_bytes(content)
    outer = json.loads((folder / "manifest.json").read_bytes())
    import hashlib

    name = changed.relative_to(folder).as_posix()
    outer["parts"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(outer))


def kinds_of(part: str) -> list[str]:
    from attacks import tampering as t

    suffix = Path(part).suffix
    if suffix == ".npy":
        floats = ("utterance.npy", "vectors.npy")
        more = t.FLOATS if part.endswith(floats) else {} if "hashes" in part else t.INTEGERS
        return [*t.ARRAYS, *more]
    by_suffix = {".npz": t.ZIPPED, ".arrow": t.TABLES, ".safetensors": t.TENSORS, ".json": t.JSON}
    return list(by_suffix.get(suffix, ("empty",)))


CASES = [
    (kind, part, change)
    for kind, parts in LISTED.items()
    for part in parts
    for change in kinds_of(part)
]


def check_all_verbs(commands: list[list[str]], capsys: Any, *, detected: bool) -> None:
    """The first command reads all parts; the others may not need the one that is bad."""
    for number, arguments in enumerate(commands):
        codes = (2, 3, 4) if detected and number == 0 else (0, 2, 3, 4)
        refused(arguments, capsys, codes)


@pytest.mark.parametrize(("kind", "part", "change"), CASES)
def test_a_tampered_part_is_refused(
    kind: str, part: str, change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = attacked(kind, part, change, tmp_path)
    commands = (EVALUATOR if kind == "evaluator" else INDEX)(folder)
    detected = (part, change) not in UNDETECTED and part != "vectors/counts.npy"
    check_all_verbs(commands, capsys, detected=detected)


def nested(**values: Any) -> Change:
    """Return a change of fields of a JSON object: ``retrieval__k=-1``."""

    def change(found: Any) -> Any:
        for name, value in values.items():
            *path, last = name.split("__")
            here = found
            for key in path:
                here = here[key]
            here[last] = value
        return found

    return of_json(change)


FIELDS: dict[str, tuple[str, str, Change]] = {
    "k of 1e12": ("evaluator", "manifest.json", nested(retrieval__k=10**12)),
    "k of -1": ("evaluator", "manifest.json", nested(retrieval__k=-1)),
    "a retriever of a folder": (
        *("evaluator", "manifest.json"),
        nested(retrieval__by="vectors(encoder=sentence(model=/etc))"),
    ),
    "no retriever": ("evaluator", "manifest.json", nested(retrieval__by="nothing")),
    "another language": ("evaluator", "manifest.json", nested(language="xx")),
    "ranges backwards": ("evaluator", "manifest.json", nested(ranges={"unreferenced": [1, 0]})),
    "a range of nothing": ("evaluator", "manifest.json", nested(ranges={"unreferenced": []})),
    "a part outside": (
        *("evaluator", "manifest.json"),
        nested(parts__x={"size": 1, "sha256": "0"}),
    ),
    "no parts": ("evaluator", "manifest.json", without("parts")),
    "another format": ("evaluator", "manifest.json", nested(format=10**12)),
    "rows of 1e12": ("evaluator", "pool/manifest.json", nested(rows=10**12)),
    "rows of -1": ("evaluator", "pool/manifest.json", nested(rows=-1)),
    "rows of an index": ("index", "manifest.json", nested(rows=10**12)),
    "another retriever": ("index", "manifest.json", nested(retriever="bm25(on=response)")),
    "dimensions of 1e12": ("evaluator", "vectors/manifest.json", nested(dimensions=10**12)),
    "words of 1e12": ("evaluator", "vectors/manifest.json", nested(words=10**12)),
    "words of -1": ("evaluator", "vectors/manifest.json", nested(words=-1)),
    "an input of nothing": ("evaluator", "rater/input.json", nested(input="nothing")),
    "an input of a program": ("evaluator", "rater/input.json", nested(input="os.system")),
    "buckets of 1e12": (
        *("evaluator", "unreferenced/input.json"),
        nested(char_ngram_buckets=10**12),
    ),
    "an encoder of nothing": ("evaluator", "unreferenced/input.json", nested(encoder="x(y=z)")),
    "an encoder elsewhere": (
        *("evaluator", "unreferenced/input.json"),
        nested(encoder="vectors(vectors=/etc/passwd)"),
    ),
    "held-out numbers": ("evaluator", "held-out.json", of_json(lambda found: [1, 2])),
    "words of postings": ("index", "index/utterance-words.json", of_json(lambda f: {"a": -1})),
}
TOLERATED = {
    *("ranges backwards", "another retriever", "no parts", "a retriever of a folder"),
    "no retriever",  # that of the pool counts
}
"""May be refused or not; what matters is how it ends."""


@pytest.mark.parametrize("name", FIELDS)
def test_tampered_fields_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, part, change = FIELDS[name]
    folder = attacked(kind, part, change, tmp_path)
    commands = (EVALUATOR if kind == "evaluator" else INDEX)(folder)
    check_all_verbs(commands, capsys, detected=name not in TOLERATED)


@pytest.mark.parametrize("part", ["manifest.json", "pool/pairs.arrow", "rater/model.safetensors"])
def test_a_link_out_of_an_evaluator_is_not_followed(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(small_evaluator(), tmp_path / "evaluator")
    outside = tmp_path / "outside"
    shutil.move(folder / part, outside)
    (folder / part).symlink_to(outside)
    message = refused(EVALUATOR(folder)[0], capsys, (3,))
    assert "leaves the folder" in message


def test_a_folder_that_is_a_link_out_of_an_evaluator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(small_evaluator(), tmp_path / "evaluator")
    shutil.move(folder / "pool", tmp_path / "outside")
    (folder / "pool").symlink_to(tmp_path / "outside")
    refused(EVALUATOR(folder)[0], capsys, (3,))


# --- folders of models

MODEL: Make = lambda folder: [  # noqa: E731
    ["score", items(), "-m", f"sentence-cosine(model={folder})"],
    ["score", items(), "-m", f"bertscore(model={folder},layer=1)"],
    [
        *("train", "calibration", items(), "--model", str(folder), "--layer", "1", "--pairs", "3"),
        *("-o", str(folder.parent / "calibration.json")),
    ],
]

CODE = """
import pathlib
pathlib.Path({marker!r}).touch()
from transformers import BertConfig as Config, BertModel as Model, PreTrainedTokenizerFast as Words
"""


class Touch:
    """Unpickled, it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return (open, (self.path, "w"))


@cache
def built_model() -> Path:
    _FOLDERS.append(TemporaryDirectory(prefix="rejoinder-model-"))
    return tiny_model(Path(_FOLDERS[-1].name) / "model")


def model(tmp_path: Path) -> Path:
    return shutil.copytree(built_model(), tmp_path / "model")


def test_code_in_a_model_folder_never_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, marker = model(tmp_path), tmp_path / "ran"
    names = ("AutoConfig", "AutoModel", "AutoTokenizer")
    classes = ("Config", "Model", "Words")
    auto_map: dict[str, Any] = {n: f"code.{c}" for n, c in zip(names, classes, strict=True)}
    (folder / "code.py").write_text(CODE.format(marker=str(marker)))
    asked = []

    def agree(*prompt: object) -> str:
        asked.append(prompt)
        return "y"

    monkeypatch.setattr("builtins.input", agree)
    for kind in ("bert", "made-up"):
        config = json.loads((folder / "config.json").read_text())
        config |= {"model_type": kind, "auto_map": auto_map}
        (folder / "config.json").write_text(json.dumps(config))
        words = json.loads((folder / "tokenizer_config.json").read_text())
        words |= {"auto_map": {"AutoTokenizer": ["code.Words", "code.Words"]}}
        (folder / "tokenizer_config.json").write_text(json.dumps(words))
        for arguments in MODEL(folder):
            refused(arguments, capsys, (0, 2, 3, 4))
        assert not marker.exists()
        assert not asked


def test_pickled_weights_are_never_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, marker = model(tmp_path), tmp_path / "ran"
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "model.bin", "training_args.bin"):
        (folder / name).write_bytes(pickle.dumps(Touch(marker)))
    for arguments in MODEL(folder):
        refused(arguments, capsys)
    assert not marker.exists()


def of_config(**values: Any) -> Change:
    return of_json(lambda found: {**found, **values})


MODELS: dict[str, tuple[str, Change]] = {
    **{f"config {k}": ("config.json", c) for k, c in changes_of(Path("x.json")).items()},
    **{f"tokenizer {k}": ("tokenizer.json", c) for k, c in changes_of(Path("x.json")).items()},
    "sizes of 1e12": ("config.json", of_config(hidden_size=10**12)),
    "words of 1e12": ("config.json", of_config(vocab_size=10**12)),
    "layers of 1e12": ("config.json", of_config(num_hidden_layers=10**12)),
    "layers of -1": ("config.json", of_config(num_hidden_layers=-1)),
    "sizes in text": ("config.json", of_config(hidden_size="24")),
    "sizes null": ("config.json", of_config(hidden_size=None)),
    "heads of 0": ("config.json", of_config(num_attention_heads=0)),
    "positions of -1": ("config.json", of_config(max_position_embeddings=-1)),
    "a type of nothing": ("config.json", of_config(model_type="nothing")),
    "a type of a number": ("config.json", of_config(model_type=7)),
    "weights empty": ("model.safetensors", lambda content: b""),
    "weights cut": ("model.safetensors", lambda content: content[:-100]),
    "weights no JSON": ("model.safetensors", lambda content: content[:8] + b"x" * 1000),
}
TOLERATED_MODELS = {"config digits", "words of 1e12", "positions of -1"}
"""The weights say how large they are."""


@pytest.mark.parametrize("name", MODELS)
def test_tampered_models_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, change = MODELS[name]
    folder = model(tmp_path)
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    for arguments in MODEL(folder):
        refused(arguments, capsys, (2, 3, 4) if name not in TOLERATED_MODELS else (0, 2, 3, 4))


@pytest.mark.parametrize("value", [[], 7, None, {"a": 1}, {"a": "../../x"}, {"a": "/etc/passwd"}])
def test_a_weight_map_of_the_wrong_type(
    value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model(tmp_path)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": value}))
    for arguments in MODEL(folder):
        refused(arguments, capsys)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_weights_that_are_no_numbers(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np
    from safetensors.numpy import load_file, save_file

    folder = model(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    broken = {name: np.full_like(tensor, float(value)) for name, tensor in tensors.items()}
    save_file(broken, folder / "model.safetensors", {"format": "pt"})
    for arguments in MODEL(folder):
        refused(arguments, capsys)

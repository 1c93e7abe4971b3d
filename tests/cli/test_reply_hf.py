"""``rejoinder reply --system 'hf(…)'`` as a user starts it."""

from __future__ import annotations

import json
from pathlib import Path

from support import Run
from tiny_models import tiny_model, tiny_text_model

CONTEXTS = (
    b'{"id": "1", "context": ["hello", "is the kitchen blue ?"]}\n'
    b'{"id": "2", "context": ["' + b"and " * 200 + b'"]}\n'
    b'{"id": "3", "context": [""]}\n'
)


def test_replies_of_a_model_folder(run: Run, tmp_path: Path) -> None:
    tiny_text_model(tmp_path / "model")
    arguments = ["-s", "hf(model=model,max_tokens=8)", "-n", "3", "--seed", "4"]
    done = run("reply", "-", *arguments, "-o", "out.jsonl", "--json", stdin=CONTEXTS)
    assert done.returncode == 0, done.stderr
    (outcome,) = json.loads(done.stdout)["systems"]
    assert outcome == {
        "system": "hf(model=model,max_tokens=8,seed=4)",
        "replies": 6,
        "without_reply": {"the last turn is empty": 1},
    }
    assert b"1 contexts are longer than the model takes: their beginning was left out" in (
        done.stderr
    )
    items = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [item["id"] for item in items[:2]] == [
        "1:hf(model=model,max_tokens=8,seed=4):1",
        "1:hf(model=model,max_tokens=8,seed=4):2",
    ]
    # the replies to a context are the same alone
    alone = run("reply", "-", *arguments, stdin=CONTEXTS.splitlines()[0])
    assert [json.loads(line) for line in alone.stdout.splitlines()] == items[:3]


def test_folders_that_cannot_be_used(run: Run, tmp_path: Path) -> None:
    tiny_model(tmp_path / "encoder")
    tiny_text_model(tmp_path / "incomplete")
    (tmp_path / "incomplete" / "tokenizer.json").unlink()
    tiny_text_model(tmp_path / "pickle")
    (tmp_path / "pickle" / "model.safetensors").rename(tmp_path / "pickle" / "pytorch_model.bin")
    for name, code, complaint in (
        ("encoder", 3, "describes a model of type bert, which writes no text"),
        ("incomplete", 4, "is incomplete: there is no tokenizer.json"),
        ("pickle", 3, "the weights are a pickle (pytorch_model.bin), which could run any code"),
        ("./nowhere", 4, "model './nowhere' is not on this machine, and nothing is downloaded"),
    ):
        done = run("reply", "-", "-s", f"hf(model={name})", stdin=CONTEXTS)
        assert done.returncode == code, done.stderr
        assert complaint in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
        assert not done.stdout

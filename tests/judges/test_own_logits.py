"""Scores weighted by probabilities against a computation by hand from the model's own logits, in
this process and over HTTP, from the same file of weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import rejoinder
import serve_model
from rejoinder.items import Item
from rejoinder.llm.folder.loading import load, open_folder
from rejoinder.llm.folder.prompts import Prompts
from tiny_gguf import tiny_gguf

RUBRIC = "---\nscale: 1-5\n---\n# Question\n{context} | {reply} | {scale}\n"
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
ITEMS = [
    Item("1", "Fine, thanks.", ["How are you?"]),
    Item("2", "blue", ["hello", "Is it blue?"]),
    Item("3", "", ["What is that?"]),
    Item("4", "5 5 5", ["And now?", "Who knows?", "Nobody."]),
]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A model of random weights that writes one of the digits 1 to 5."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REJOINDER_CACHE", str(folder / "cache"))
        (folder / "m").mkdir()
        (folder / "rubric.md").write_text(RUBRIC)
        yield tiny_gguf(folder / "m" / "tiny.gguf", TEMPLATE, window=400, favoured="12345")


def by_hand(weights: Path, item: Item) -> tuple[float, float]:
    """The mean of the scale by the probabilities of the next token, and their sum."""
    model = load(open_folder(str(weights)))
    judge = rejoinder.Judge(model=str(weights), rubric=str(weights.parent.parent / "rubric.md"))
    ids = Prompts(model, 400).of_messages(judge.rater._messages(item))
    with torch.inference_mode():
        logits = model.network(input_ids=torch.tensor([ids])).logits[0, -1].double()
    p = logits.exp() / logits.exp().sum()
    digits = {s: p[model.tokenizer.convert_tokens_to_ids(str(s))].item() for s in range(1, 6)}
    mass = sum(digits.values())
    return sum(s * q for s, q in digits.items()) / mass, mass


def check(spec: str, weights: Path) -> None:
    output = weights.parent.parent / "scores.jsonl"
    rejoinder.score(ITEMS, spec, parts=True, output=output)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    expected = [by_hand(weights, item) for item in ITEMS]
    values = [value for value, _ in expected]
    assert [line["value"] for line in lines] == pytest.approx(values, abs=1e-4)
    masses = [line["parts"]["mass"] for line in lines]
    assert masses == pytest.approx([mass for _, mass in expected], abs=1e-4)
    # neither all the same, nor whole numbers: the probabilities count
    assert max(values) - min(values) > 0.01
    assert all(abs(value - round(value)) > 1e-3 for value in values)


def test_in_process(weights: Path) -> None:
    rubric = weights.parent.parent / "rubric.md"
    check(f"judge(model={weights},rubric={rubric},max_tokens=1)", weights)


@pytest.mark.xdist_group("smollm2")
def test_over_http(weights: Path) -> None:
    serve_model.need_server(model=False)
    rubric = weights.parent.parent / "rubric.md"
    with serve_model.serving(str(weights)) as address:
        check(
            f"judge(url={address}/v1,model=tiny,rubric={rubric},max_tokens=1,structured=false)",
            weights,
        )

"""``likelihood``: equal to a loop over transformers; batches, windows, follow-ups, cache."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import score_with

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.files.cache import Cache
from rejoinder.items import Item
from rejoinder.llm.folder import likelihood as model_module
from rejoinder.llm.folder.likelihood import Continuation, LikelihoodModel
from rejoinder.llm.folder.loading import load, open_folder
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.llm.followups import read_followups
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.reasons import BLANK_REPLY, NO_CONTEXT
from tiny_models import WORDS, tiny_model, tiny_text_model

CONTEXTS = [
    ["hello !"],
    ["the kitchen is blue", "and painted", "is the kitchen blue ?"],
    ["a b c d e f g h", "x y z"],
]
REPLIES = ["blue", "hello hello hello", "the kitchen is finally painted !", "is it ?", "zebra"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("models")
    return {kind: str(tiny_text_model(root / kind, kind)) for kind in ("gpt2", "llama")}


@pytest.fixture
def nothing_cached(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Results of one call are forgotten at the next."""
    monkeypatch.setattr(LikelihoodModel, "cache", property(lambda self: Cache(None)))
    yield


def items(contexts: list[list[str]], replies: list[str]) -> list[Item]:
    pairs = [(context, reply) for context in contexts for reply in replies]
    return [Item(id=str(i), context=c, response=r) for i, (c, r) in enumerate(pairs)]


def metric(model: str, **parameters: object) -> ItemMetric:
    inside = "".join(f",{key}={value}" for key, value in parameters.items())
    made = make_metric(f'likelihood(model="{model}"{inside})')
    assert isinstance(made, ItemMetric)
    return made


def values(made: ItemMetric, some: list[Item], batch_size: int = 8192) -> np.ndarray:
    scored = evaluate(some, [made], batch_size=batch_size)
    return np.concatenate([result.values for _, (result,) in scored])


def alone(folder: str, before: list[str], text: str) -> tuple[float, int]:
    """The log-probability of a text and its tokens: one forward pass, nothing batched."""
    model = load(open_folder(folder))

    def ids(some: str) -> list[int]:
        return list(model.tokenizer(some, add_special_tokens=False)["input_ids"])

    # the tokenizer drops line breaks and adds [CLS], token 2, before a text
    prefix = [2, *(token for turn in before for token in ids(turn + "\n"))]
    tokens = ids(text)
    with torch.inference_mode():
        logits = model.network(input_ids=torch.tensor([prefix + tokens])).logits[0].double()
    logprobs = logits.log_softmax(-1)[len(prefix) - 1 : -1]
    return float(logprobs.gather(-1, torch.tensor(tokens)[:, None]).sum()), len(tokens)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_equals_a_loop_over_transformers(
    models: dict[str, str], kind: str, nothing_cached: None
) -> None:
    some = items(CONTEXTS, REPLIES)
    expected: dict[str, list[float]] = {"gain": [], "reply": [], "context": []}
    for item in some:
        given_context, size = alone(models[kind], item.context, item.response)
        by_itself, _ = alone(models[kind], [], item.response)
        back, context_size = alone(models[kind], [item.response], "\n".join(item.context))
        expected["gain"].append((given_context - by_itself) / size)
        expected["reply"].append(given_context / size)
        expected["context"].append(back / context_size)
    for of, numbers in expected.items():
        found = values(metric(models[kind], of=of), some)
        np.testing.assert_allclose(found, numbers, atol=1e-4)
    # log-probabilities of one item, by hand from its parts
    (_, (result,)) = next(iter(evaluate(some[:1], [metric(models[kind])])))
    parts = {k: v[0] for k, v in result.metric.ingredients(result.rows).items()}
    gain = (parts["given-context"] - parts["alone"]) / parts["tokens"]
    assert result.values[0] == pytest.approx(gain)
    whole = values(metric(models[kind], of="reply", per="text"), some)
    np.testing.assert_allclose(
        whole / [len(i.response) for i in some],
        values(metric(models[kind], of="reply", per="character"), some),
    )


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_batches_and_order_do_not_matter(models: dict[str, str], data: st.DataObject) -> None:
    words = st.sampled_from([*WORDS, "x", "ja"])
    texts = st.lists(words, min_size=1, max_size=9).map(" ".join)
    some = data.draw(
        st.lists(
            st.tuples(st.lists(texts, max_size=3), texts | st.just(" ")), min_size=1, max_size=8
        )
    )
    made = [Item(id=str(i), context=c, response=r) for i, (c, r) in enumerate(some)]
    order = data.draw(st.permutations(range(len(made))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LikelihoodModel, "cache", property(lambda self: Cache(None)))
        for of in ("gain", "context"):
            scorer = metric(models["llama"], of=of)
            expected = values(scorer, made)
            turned = values(scorer, [made[i] for i in order], batch_size=3)
            np.testing.assert_allclose(turned, expected[list(order)], atol=1e-4)
            for item, value in zip(made, expected, strict=True):
                assert math.isnan(value) == (not item.context or not item.response.strip())


def test_small_batches_give_the_same(
    models: dict[str, str], nothing_cached: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = items(CONTEXTS, REPLIES)
    expected = values(metric(models["gpt2"]), some)
    monkeypatch.setattr(model_module, "PREFIX_TOKENS", 30)
    monkeypatch.setattr(model_module, "CACHED_TOKENS", 50)
    monkeypatch.setattr(model_module, "LOGITS", 80 * 9)
    np.testing.assert_allclose(values(metric(models["gpt2"]), some), expected, atol=1e-4)


def test_contexts_longer_than_the_window_are_cut_from_the_front(
    models: dict[str, str], nothing_cached: None
) -> None:
    """The model takes 64 tokens: [CLS], 59 of the context, and 4, the reply's 3 rounded up."""
    made = metric(models["gpt2"], of="reply")
    long = ["and " * 50, "the kitchen " * 20]
    (found,) = values(made, items([long], ["is it blue"]))
    kept = ["and " * 19 + "the kitchen " * 20]
    expected, size = alone(models["gpt2"], kept, "is it blue")
    assert size == 4  # i t are two pieces
    assert found == pytest.approx(expected / size, abs=1e-4)
    assert made.notes() == [
        "1 contexts are longer than the 64 tokens that " + models["gpt2"] + " takes: their"
        " beginning was left out"
    ]
    last = metric(models["gpt2"], of="reply", turns=1)
    values(last, items([long], ["blue"]))
    assert last.notes() == []
    assert np.isfinite(values(metric(models["gpt2"], of="context"), items([long], REPLIES))).all()


def test_reasons(models: dict[str, str]) -> None:
    some = [
        Item(id="1", response=" ", context=["hello"]),
        Item(id="2", response="hello"),
        Item(id="3", response="and " * 90, context=["hello"]),
        Item(id="4", response="blue", context=["", "hello"]),
    ]
    summary = score_with(some, metric(models["llama"]))
    (_, (result,)) = next(iter(evaluate(some, [metric(models["llama"])])))
    assert list(result.reasons) == [
        BLANK_REPLY,
        NO_CONTEXT,
        "the reply is longer than the model's window",
        None,
    ]
    (corpus,) = summary.corpus.values()
    assert corpus is not None
    assert corpus.value == pytest.approx(result.values[3])
    only_long = values(metric(models["llama"]), some[2:3])
    assert math.isnan(only_long[0])


def test_follow_ups(models: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[clear]\ngood = ["hello !"]\nbad = ["is it ?", "and"]\n[kind]\nbad = ["x"]\n')
    made = metric(models["llama"], of="followup", followups=f'"{path}"')
    (item,) = items(CONTEXTS[1:2], ["blue"])
    before = [*item.context, "blue"]

    def each(text: str) -> float:
        total, size = alone(models["llama"], before, text)
        return total / size

    clear = each("hello !") - (each("is it ?") + each("and")) / 2
    kind = -each("x")
    (_, (result,)) = next(iter(evaluate([item], [made])))
    assert result.values[0] == pytest.approx((clear + kind) / 2, abs=1e-4)
    parts = made.ingredients(result.rows)
    assert parts["clear"][0] == pytest.approx(clear, abs=1e-4)
    assert parts["kind"][0] == pytest.approx(kind, abs=1e-4)
    assert "|followups:mine@" in made.signature()
    for code in ("en", "ja", "zh"):
        qualities = read_followups(code).qualities
        assert [q.name for q in qualities] == [q.name for q in read_followups("en").qualities]
        assert all(q.good and q.bad for q in qualities)
    path = tmp_path / "bad.toml"
    path.write_text('a = 1\n[b]\ngood = ["x", 3]\n[c]\nuseful = ["x"]\n[d]\ngood = []\n')
    with pytest.raises(DataError) as caught:
        read_followups(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: [a] must have good")
    for part in ("[b] good is not a list", "[c] must have", "[d] has no follow-ups"):
        assert part in message
    with pytest.raises(UsageError, match="neither a file nor one of en, ja, zh"):
        make_metrics(f'likelihood(model="{models["llama"]}",of=followup,followups=fr)')


def test_specs_signatures_and_wrong_parameters(models: dict[str, str]) -> None:
    for text in (
        "likelihood",
        "likelihood(model=gemma3-270m,of=reply,per=text)",
        'likelihood(model=/a/b,separator=" | ",turns=2)',
    ):
        assert str(make_metric(text)) == text
    gpt2, llama = metric(models["gpt2"]).signature(), metric(models["llama"]).signature()
    assert gpt2.startswith("likelihood|model:gpt2@")
    assert "|of:gain|per:token|separator:'\\n'|turns:None|followups:none|" in gpt2
    assert gpt2 != llama.replace("llama", "gpt2")
    for wrong in ("of=loss", "per=word", 'separator=""', "turns=0"):
        with pytest.raises(UsageError, match=wrong.partition("=")[0]):
            make_metric(f"likelihood({wrong})")


def test_wrong_folders(models: dict[str, str], tmp_path: Path) -> None:
    some = items(CONTEXTS, REPLIES)
    with pytest.raises(MissingExtra, match="not on this machine"):
        make_metrics("likelihood(model=/no/such/folder)")
    no_tokenizer = tiny_text_model(tmp_path / "m")
    (no_tokenizer / "tokenizer.json").unlink()
    with pytest.raises(MissingExtra, match=r"there is no tokenizer\.json"):
        make_metrics(f'likelihood(model="{no_tokenizer}")')
    with pytest.raises(DataError, match="type bert, which writes no text"):
        values(metric(str(tiny_model(tmp_path / "bert"))), some)
    with pytest.raises(DataError, match="expected a causal language model"):
        values(metric(str(tiny_text_model(tmp_path / "t5", "t5"))), some)
    japanese = tiny_text_model(tmp_path / "ja")
    (japanese / "README.md").write_text("---\nlanguage: ja\n---\n")
    english = [Item(id="1", context=["How are you today, my friend?"], response="I am very well.")]
    with pytest.raises(DataError, match=r"likelihood: .* the language model .* Japanese"):
        values(metric(str(japanese)), english)


def test_results_are_cached_by_model_and_text(
    models: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LikelihoodModel, "cache", property(lambda self: Cache(tmp_path)))
    asked = [Continuation(("hello",), "blue"), Continuation(("hello",), "blue", " ")]
    first = LikelihoodModel(models["gpt2"]).likelihoods(asked)
    other = LikelihoodModel(models["llama"]).likelihoods(asked)
    assert first[0] != other[0]
    again = LikelihoodModel(models["gpt2"])
    # an entry that another version wrote is computed again
    Cache(tmp_path, kind="vectors").put([(again._key(asked[1]), b"from another version")])
    with monkeypatch.context() as patch:
        patch.setattr(model_module, "load_shared", lambda name: pytest.fail("loaded"))
        assert again.likelihoods(asked[:1]) == first[:1]
    assert again.likelihoods(asked) == first


def test_two_runs_on_one_cache_at_the_same_time(models: dict[str, str], tmp_path: Path) -> None:
    """Real processes; a third finds everything there and gives the same bytes."""
    data = tmp_path / "items.jsonl"
    lines = [
        {"id": i.id, "context": i.context, "response": i.response} for i in items(CONTEXTS, REPLIES)
    ]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def start(name: str) -> tuple[subprocess.Popen[bytes], Path]:
        target = tmp_path / name
        spec = f'likelihood(model="{models["llama"]}")'
        command = [sys.executable, "-m", "rejoinder", "score", data, "-m", spec, "-o", target]
        environment = {"REJOINDER_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        ), target

    runs = [start("a"), start("b")]
    for process, _ in runs:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    process, third = start("c")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors

    def values_in(path: Path) -> list[float]:
        return [json.loads(line)["value"] for line in path.read_text().splitlines()]

    assert len(values_in(third)) == 15
    for _, path in runs:
        np.testing.assert_allclose(values_in(path), values_in(third), atol=1e-4)

"""``hf`` with small random models: batches, draws, templates, and contexts that are too long."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.llm.folder.loading import load, open_folder
from rejoinder.llm.folder.prompts import CUT, REFUSED_TURN, Prompts
from rejoinder.llm.folder.sampling import SeededChoice
from rejoinder.systems.system import Replies, make_system
from tiny_models import tiny_model, tiny_text_model

TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }} {{ m.content }} ! {% endfor %}"
    "{% if add_generation_prompt %}a{% endif %}"
)
STRICT = (
    "{% if messages[0].role == 'assistant' %}{{ raise_exception('user first') }}{% endif %}"
    + TEMPLATE
)
CONTEXTS = [
    ["hello"],
    ["the kitchen is blue", "and painted", "is the kitchen blue ?"],
    ["blue " * 20],
    ["a b c d e f g h", "x y z"],
    ["finally"],
]

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "gpt2": tiny_text_model(root / "gpt2"),
        "llama": tiny_text_model(root / "llama", "llama", TEMPLATE),
        "t5": tiny_text_model(root / "t5", "t5"),
    }


def reply(folder: Path, contexts: list[list[str]], n: int = 1, **parameters: object):
    inside = ",".join(f"{key}={value}" for key, value in parameters.items())
    spec = f'hf(model="{folder}",max_tokens=12{"," if inside else ""}{inside})'
    return make_system(spec).reply(contexts, n=n)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_replies_do_not_depend_on_the_batch(
    models: dict[str, Path], kind: str, temperature: float
) -> None:
    together = reply(models[kind], CONTEXTS, temperature=temperature)
    assert len({answer.texts for answer in together}) > 1
    for i, context in enumerate(CONTEXTS):
        assert reply(models[kind], [context], temperature=temperature) == [together[i]]
    backwards = reply(models[kind], [*CONTEXTS, *CONTEXTS][::-1], temperature=temperature)
    assert backwards[::-1] == together * 2


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_greedy_is_that_of_transformers(models: dict[str, Path], kind: str) -> None:
    """The most probable token each time, found here without padding, batches or caches."""
    model = load(open_folder(str(models[kind])))
    context = CONTEXTS[1]
    ids = Prompts(model, 52).tokens(context)
    written: list[int] = [] if kind == "gpt2" else [0]
    for _ in range(12):
        with torch.inference_mode():
            if kind == "gpt2":
                logits = model.network(input_ids=torch.tensor([ids + written])).logits
            else:
                logits = model.network(
                    input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([written])
                ).logits
        token = int(logits[0, -1].argmax())
        if token == 3:
            break
        written.append(token)
    expected = model.tokenizer.decode(written, skip_special_tokens=True).strip()
    (answer,) = reply(models[kind], [context], temperature=0)
    assert answer.texts == ((expected,) if expected else ())


def test_seeds_and_several_replies(models: dict[str, Path]) -> None:
    one = reply(models["llama"], CONTEXTS, n=5)
    assert one == reply(models["llama"], CONTEXTS, n=5)
    assert one != reply(models["llama"], CONTEXTS, n=5, seed=1)
    assert {len(answer.texts) for answer in one} == {5}
    # the first of five is the one that is given alone
    alone = reply(models["llama"], CONTEXTS)
    assert [answer.texts[0] for answer in one] == [answer.texts[0] for answer in alone]
    greedy = reply(models["llama"], CONTEXTS, n=5, temperature=0)
    assert {len(answer.texts) for answer in greedy} == {1}


def test_draws_follow_the_probabilities() -> None:
    """Probabilities .5 .3 .2; of top_p=.6 the first two remain, .625 and .375; of top_k=1 one."""
    scores = torch.log(torch.tensor([[0.2, 0.5, 0.3]]))

    def shares(**settings: float) -> list[float]:
        rng = np.random.default_rng(1)
        choice = SeededChoice([rng], **({"temperature": 1.0, "top_k": 0, "top_p": 1.0} | settings))
        counts = Counter(int(choice(None, scores).argmax()) for _ in range(4000))
        return [counts[token] / 4000 for token in range(3)]

    # standard deviation of a share: below .008
    assert shares() == pytest.approx([0.2, 0.5, 0.3], abs=0.03)
    assert shares(top_p=0.6) == pytest.approx([0, 0.625, 0.375], abs=0.03)
    assert shares(top_k=2, top_p=0.7) == pytest.approx([0, 0.625, 0.375], abs=0.03)
    assert shares(top_k=1) == [0, 1, 0]
    assert shares(top_p=0.01) == [0, 1, 0]
    # at temperature .5 probabilities are squared: .04 .25 .09 of .38
    assert shares(temperature=0.5) == pytest.approx([0.105, 0.658, 0.237], abs=0.03)


def test_prompts(models: dict[str, Path]) -> None:
    context = ["hello", "blue", "is the kitchen blue ?"]
    gpt2 = load(open_folder(str(models["gpt2"])))

    def read(ids: list[int], **settings: bool) -> str:
        text = gpt2.tokenizer.decode(ids, **settings)
        return text.replace(" ?", "?").replace(" !", "!")

    assert read(Prompts(gpt2, 60).tokens(context)) == (
        "hello [SEP] blue [SEP] is the kitchen blue? [SEP]"
    )
    lines = Prompts(gpt2, 60, separator=" !", system="and").tokens(context)
    assert read(lines) == "and! hello! blue! is the kitchen blue?!"
    llama = load(open_folder(str(models["llama"])))
    assert read(Prompts(llama, 60).tokens(context[1:]), skip_special_tokens=True) == (
        "a blue! u is the kitchen blue?! a"
    )
    opened = Prompts(llama, 60, system="and", opening="hello").tokens(context[1:])
    assert read(opened, skip_special_tokens=True).startswith("s and! u hello! a blue!")
    t5 = load(open_folder(str(models["t5"])))
    assert read(Prompts(t5, 60).tokens(context)) == ("[CLS] hello blue is the kitchen blue? [SEP]")


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5"])
def test_long_contexts_are_cut_from_the_front(models: dict[str, Path], kind: str) -> None:
    model = load(open_folder(str(models[kind])))
    prompts = Prompts(model, 20)
    turns = ["hello " * 14, "blue " * 6, "the kitchen"]
    ids = prompts.tokens(turns)
    assert len(ids) <= 20
    text = model.tokenizer.decode(ids)
    assert "hello" not in text
    assert text.count("blue") == 6
    assert prompts.changes == {CUT: 1}
    ids = prompts.tokens([*turns, "and " * 30 + "finally"])
    assert len(ids) <= 20
    assert "and and finally" in model.tokenizer.decode(ids)
    assert prompts.changes == {CUT: 2}
    notes: list[str] = []
    system = make_system(f'hf(model="{models[kind]}",max_tokens=12)')
    system.reply([["and " * 90], ["hello"]], on_note=notes.append)
    assert notes == [f"1 contexts {CUT}"]


def test_a_template_that_wants_the_user_first(tmp_path: Path) -> None:
    folder = tiny_text_model(tmp_path / "m", "llama", STRICT)
    notes: list[str] = []
    (answer,) = make_system(f'hf(model="{folder}",max_tokens=4)').reply(
        [["hello", "blue"]], on_note=notes.append
    )
    assert answer.texts
    assert notes == [f"1 contexts {REFUSED_TURN}"]
    notes.clear()
    opened = make_system(f'hf(model="{folder}",max_tokens=4,opening=hello)')
    opened.reply([["hello", "blue"]], on_note=notes.append)
    assert not notes


def test_an_empty_reply_has_its_reason(tmp_path: Path) -> None:
    """A model for which the end of the text is always the most probable token."""
    from safetensors.numpy import load_file, save_file

    folder = tiny_text_model(tmp_path / "m", "llama", tie_word_embeddings=False)
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][:] = np.sign(weights["model.norm.weight"])
    weights["lm_head.weight"][:] = 0
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    # all tokens are equally probable: greedy takes the first, the padding, which is not shown
    (answer,) = reply(folder, [["hello"]], temperature=0)
    assert answer == Replies(reason="the reply is empty")


def test_settings_of_the_folder_do_not_change_the_decoding(models: dict[str, Path]) -> None:
    before = reply(models["gpt2"], CONTEXTS)
    path = models["gpt2"] / "generation_config.json"
    text = path.read_text()
    settings = json.loads(text) | {"repetition_penalty": 9.0, "num_beams": 3, "do_sample": True}
    path.write_text(json.dumps(settings))
    assert reply(models["gpt2"], CONTEXTS) == before
    path.write_text(text)


def test_folders_that_write_no_text(tmp_path: Path, models: dict[str, Path]) -> None:
    bert = tiny_model(tmp_path / "bert")
    with pytest.raises(DataError, match="type bert, which writes no text"):
        reply(bert, [["hello"]])
    with pytest.raises(MissingExtra, match="not on this machine, and nothing is downloaded"):
        make_system("hf(model=/no/such/folder)")
    no_tokenizer = tiny_text_model(tmp_path / "m")
    (no_tokenizer / "tokenizer.json").unlink()
    with pytest.raises(MissingExtra, match=r"is incomplete: there is no tokenizer\.json"):
        make_system(f'hf(model="{no_tokenizer}")')
    code = tiny_text_model(tmp_path / "code")
    config = json.loads((code / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoModelForCausalLM": "mine.Model"}}
    (code / "config.json").write_text(json.dumps(config))
    (code / "mine.py").write_text("raise SystemExit('code of the folder was run')")
    with pytest.raises(DataError, match="can't be opened"):
        reply(code, [["hello"]])


@pytest.mark.parametrize(
    "parameter", ["temperature=-1", "top_k=-1", "top_p=0", "max_tokens=0", "batch_size=0"]
)
def test_wrong_parameters(models: dict[str, Path], parameter: str) -> None:
    with pytest.raises(UsageError, match=parameter.partition("=")[0]):
        make_system(f'hf(model="{models["gpt2"]}",{parameter})')

"""Chats answered by a model folder: like a server, with the model's own probabilities."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rejoinder.errors import DataError
from rejoinder.files.cache import Cache
from rejoinder.llm.answers import Answers
from rejoinder.llm.budget import Budget
from rejoinder.llm.chat import Answer, Chat, Failure, Message
from rejoinder.llm.folder import client as folder_client
from rejoinder.llm.folder.client import FolderClient
from rejoinder.llm.folder.loading import load, open_folder
from rejoinder.llm.folder.prompts import Prompts
from rejoinder.llm.model import open_model
from tiny_models import tiny_text_model

TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }} {{ m.content }} ! {% endfor %}"
    "{% if add_generation_prompt %}a{% endif %}"
)
TEXTS = ["hello", "is the kitchen blue ?", "and painted", "blue " * 10]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_text_model(tmp_path_factory.mktemp("m") / "llama", "llama", TEMPLATE))


def chat(text: str, draw: int = 0, **parameters: object) -> Chat:
    return Chat((Message("user", text),), {"max_tokens": 6} | parameters, draw)


def no_cache() -> Answers:
    return Answers(Cache(None))


def test_answers_do_not_depend_on_their_neighbours(folder: str) -> None:
    chats = [chat(text, draw) for text in TEXTS for draw in range(2)]
    together = FolderClient(folder, answers=no_cache()).ask(chats)
    assert all(isinstance(each, Answer) for each in together)
    assert len({each.text for each in together}) == len(chats)
    for one, expected in zip(chats, together, strict=True):
        (alone,) = FolderClient(folder, answers=no_cache()).ask([one])
        assert alone.text == expected.text
    seeds = FolderClient(folder, answers=no_cache()).ask([chat("hello", seed=n) for n in range(5)])
    assert len({each.text for each in seeds}) > 1


def test_probabilities_are_those_of_the_model(folder: str) -> None:
    asked = chat("is the kitchen blue ?", max_tokens=2, temperature=0, logprobs=True)
    asked.parameters["top_logprobs"] = 5
    (answer,) = FolderClient(folder, answers=no_cache()).ask([asked])
    model = load(open_folder(folder))
    ids = Prompts(model, 60).of_messages(asked.messages)
    with torch.inference_mode():
        logits = model.network(input_ids=torch.tensor([ids])).logits[0, -1]
    logprobs = logits.double().log_softmax(-1)
    best = logprobs.topk(5)
    first = answer.logprobs["content"][0]
    assert first["logprob"] == pytest.approx(float(best.values[0]), abs=1e-4)
    found = [each["logprob"] for each in first["top_logprobs"]]
    assert found == pytest.approx(best.values.tolist(), abs=1e-4)
    assert [each["token"] for each in first["top_logprobs"]] == [
        model.tokenizer.decode([token]) for token in best.indices.tolist()
    ]
    assert answer.prompt_tokens == len(ids)


def test_a_second_run_asks_nothing(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = [chat(text) for text in TEXTS]
    first = FolderClient(folder, answers=Answers(Cache(tmp_path))).ask(chats)
    monkeypatch.setattr(folder_client, "load_shared", lambda name: pytest.fail("loaded again"))
    again = FolderClient(folder, answers=Answers(Cache(tmp_path)))
    assert again.estimate(chats).requests == 0
    assert again.ask([*chats, *chats]) == first * 2
    assert again.spending.requests == 0


def test_the_budget_and_the_window(folder: str) -> None:
    client = FolderClient(folder, answers=no_cache(), budget=Budget(max_requests=2))
    messages: list[str] = []
    results = client.ask([chat(text) for text in TEXTS], on_message=messages.append)
    assert [isinstance(each, Answer) for each in results] == [True, True, False, False]
    assert results[2] == Failure("budget: 2 requests were sent")
    assert "the budget allows 2 requests" in messages[0]
    (long,) = FolderClient(folder, answers=no_cache()).ask([chat("and " * 80)])
    assert isinstance(long, Failure)
    assert "the model takes 64" in long.reason


def test_what_a_folder_cannot_do(folder: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no parameter response_format"):
        FolderClient(folder).ask([chat("hello", response_format={"type": "json_object"})])
    t5 = tiny_text_model(tmp_path / "t5", "t5")
    with pytest.raises(DataError, match="which holds no chats"):
        FolderClient(str(t5), answers=no_cache()).ask([chat("hello")])


def test_one_protocol(folder: str) -> None:
    local, server = open_model(folder), open_model("any", "http://127.0.0.1:9/v1")
    assert server.identity == "any@http://127.0.0.1:9/v1"
    digest = open_folder(folder).digest(Cache(None))
    assert local.identity == f"llama@{digest}"
    assert server.estimate([chat("hello")]) == local.estimate([chat("hello")])

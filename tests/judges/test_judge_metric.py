"""The metric ``judge`` against a server on loopback that answers, and fails, as it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from planted_server import (
    Action,
    Handler,
    Server,
    completion,
    cut,
    planted_server,
    raw,
    slow,
    status,
    text,
)
from rejoinder.errors import ResourceError, UsageError
from rejoinder.items import Item, Reference
from rejoinder.verbs.monitor import Monitor

SETTINGS = "logprobs=false,structured=false"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))


def item(number: int, response: str = "Fine.", **fields: Any) -> Item:
    return Item(f"i{number}", response, [f"How is number {number}?"], **fields)


def turn(of: Item, spec: str = "judge") -> str:
    """The question that a judge asks about an item."""
    judge = rejoinder.Judge() if spec == "judge" else rejoinder.Judge(rubric=spec)
    return judge.rater._messages(of)[-1].content


def asking(server: Server, more: str = SETTINGS) -> str:
    return f"judge(url={server.url},model=m{',' if more else ''}{more})"


def planned(failures: dict[str, list[Any]], said: str = "4") -> Any:
    return planted_server(failures, lambda body: said)


def test_every_failure_ends_with_a_score_or_a_reason() -> None:
    items = [item(n) for n in range(12)]
    plan: list[tuple[list[Callable[..., None]], str | None]] = [
        ([], None),
        ([status(429, "slow down", Retry_After="0.2")], None),
        ([status(500), status(503)], None),
        ([cut], None),
        ([raw(b"<html>")], "the answer is not JSON"),
        ([text("Sure! It is great."), text("Great!")], "the answer cannot be read: 'Great!'"),
        ([text("とても良い"), text("4")], None),
        ([text(None, message={"refusal": "I can't."})] * 2,
         "the model refused to answer: 'I can't.'"),
        ([text(""), text("")], "the answer is empty"),
        ([text("9"), text("7")], "the answer is not on the scale: '7'"),
        ([status(400, "bad")], "the server said 400 Bad Request: bad"),
        ([slow(3)] * 3, "no answer within 1 s after 3 tries"),
    ]  # fmt: skip
    failures: dict[str, list[Any]] = {}
    for each, (actions, _) in zip(items, plan, strict=True):
        failures[turn(each)] = list(actions)
    again = rejoinder.Judge().opened_rubric.fill("Again", {})
    # what cannot be read is asked again in a further turn, which is the same for all of them
    repeats = [5, 6, 7, 9]
    failures[again] = [failures[turn(items[n])].pop() for n in repeats]
    # there is no answer to repeat after an empty one
    failures[f"{turn(items[8])}\n\n{again}"] = [failures[turn(items[8])].pop()]
    with planned(failures) as server:
        spec = asking(server, SETTINGS + ",timeout=1,concurrency=1")
        result = rejoinder.score(items, spec)
        scores = result[spec]
        for each, (_, reason) in zip(items, plan, strict=True):
            assert scores.unscored.get(each.id) == reason
        assert [value for value in scores.values if value == value] == [4.0] * 5
        kinds = {reason: count for (_, reason), count in result.unscored.items()}
        assert kinds["the answer cannot be read"] == kinds["the answer is not on the scale"] == 1
        assert (
            "judge: 5 answers could not be read and were asked for again; 1 could be read then"
            in (result.notes)
        )


def test_a_second_run_asks_nothing_and_gives_the_same_bytes(tmp_path: Path) -> None:
    items = [item(n) for n in range(5)]
    with planned({}) as server:
        rejoinder.score(items, asking(server), output=tmp_path / "a.jsonl")
        assert sum(server.asked.values()) == 5
        rejoinder.score(items, asking(server), output=tmp_path / "b.jsonl")
        assert sum(server.asked.values()) == 5
        # another dimension, temperature, seed or rubric is another question
        rejoinder.score(items, asking(server, SETTINGS + ",seed=1"))
        rejoinder.score(items, asking(server, SETTINGS + ",temperature=0.5"))
        rejoinder.score(items, asking(server, SETTINGS + ",rubric=coherence"))
        rejoinder.score(items, asking(server, SETTINGS + ",language=ja"))
        assert sum(server.asked.values()) == 25
    first = (tmp_path / "a.jsonl").read_bytes()
    assert first == (tmp_path / "b.jsonl").read_bytes()
    line = json.loads(first.splitlines()[0])
    assert line["value"] == 4.0
    assert line["judging"]["requests"] == 1 and line["judging"]["tokens"] == 12
    signed = dict(part.partition(":")[::2] for part in line["signature"].split("|")[1:])
    assert signed["model"] == "m" and signed["said"] == "planted"
    assert signed["rubric"] == f"appropriateness-{rejoinder.Judge().opened_rubric.digest}"
    assert (signed["n"], signed["temperature"], signed["seed"]) == ("1", "0", "0")
    assert len(signed["asked"]) == len("2026-01-31") or ".." in signed["asked"]


def test_several_answers_are_averaged_and_their_spread_is_told(tmp_path: Path) -> None:
    with planted_server(say=lambda body: str(body["seed"] + 1)) as server:
        spec = asking(server, SETTINGS + ",n=4")
        rejoinder.score([item(1)], spec, output=tmp_path / "s.jsonl")
        assert {body["temperature"] for body in server.bodies} == {1.0}
    line = json.loads((tmp_path / "s.jsonl").read_text())
    # 1, 2, 3, 4: mean 2.5, variance (2.25 + .25 + .25 + 2.25) / 3 = 5/3
    assert line["value"] == 2.5
    assert line["judging"]["spread"] == pytest.approx((5 / 3) ** 0.5)
    assert line["judging"]["answers"] == 4


def test_dimensions_are_parts_and_their_mean_is_the_score() -> None:
    said = '{"content": 1, "grammar": 5, "relevance": 2, "appropriateness": 2}'
    with planned({}, said) as server:
        whole = asking(server, "logprobs=false,rubric=llm-eval")
        one = asking(server, "logprobs=false,rubric=llm-eval,dimension=grammar")
        result = rejoinder.score([item(1)], [whole, one])
        assert result[whole].values.tolist() == [2.5]
        assert result[one].values.tolist() == [5.0]
        assert sum(server.asked.values()) == 1, "one answer has all dimensions"
        schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
        assert schema["required"] == ["content", "grammar", "relevance", "appropriateness"]
        assert schema["properties"]["content"]["enum"] == [1, 2, 3, 4, 5]


def test_a_server_without_probabilities_and_schemas_is_asked_without() -> None:
    """Which form it takes is known from the cache in the next run."""
    items = [item(n) for n in range(4)]

    refused = [status(400, "unknown field")] * 3
    with planned({turn(items[0]): list(refused)}) as server:
        spec = asking(server, "")
        result = rejoinder.score(items, spec)
        assert result[spec].values.tolist() == [4.0] * 4
        forms = [("logprobs" in body, "response_format" in body) for body in server.bodies]
        assert forms[:4] == [(True, True), (True, False), (False, True), (False, False)]
        assert set(forms[4:]) == {(False, False)} and len(forms) == 3 + 4
        rejoinder.score(items, asking(server, ""))
        assert len(server.bodies) == 7


def too_long_for_the_server(handler: Handler) -> None:
    status(400, "the question is too long")(handler)


def without_probabilities(said: str) -> Action:
    """What a server does that gives no probabilities."""

    def act(handler: Handler) -> None:
        (status(400, "no logprobs") if "logprobs" in handler.body else text(said))(handler)

    return act


@pytest.mark.parametrize("first", [too_long_for_the_server, status(503, "busy"), status(413)])
def test_a_first_question_that_fails_does_not_decide_how_others_are_asked(first: Action) -> None:
    items = [item(n) for n in range(5)]
    failures = {turn(each): [without_probabilities("4")] * 9 for each in items[1:]}
    failures[turn(items[0])] = [first] * 9
    with planned(failures) as server:
        spec = asking(server, "structured=false,retries=0")
        scores = rejoinder.score(items, spec)[spec]
        assert scores.values[1:].tolist() == [4.0] * 4
        assert list(scores.unscored) == ["i0"]
        # the first in both forms or in one, the third in both, then four, as the third is known
        tries = 2 if first is too_long_for_the_server else 1
        assert len(server.bodies) == tries + 2 + 4
        rejoinder.score(items, asking(server, "structured=false,retries=0"))
        assert len(server.bodies) == tries + 2 + 4 + 1, "the form is known from other answers"


def test_parameters_that_a_server_has_not_implemented_are_left_out_at_once() -> None:
    with planned({turn(item(1)): [status(501, "no logprobs")]}) as server:
        spec = asking(server, "structured=false")
        assert rejoinder.score([item(1)], spec)[spec].values.tolist() == [4.0]
        assert ["logprobs" in body for body in server.bodies] == [True, False]


def test_a_server_that_answers_nothing_is_an_error() -> None:
    items = [item(n) for n in range(5)]
    with planned({turn(each): [status(503, "busy")] * 9 for each in items}) as server:
        with pytest.raises(ResourceError, match=r"none of 1 requests was answered: .* 503"):
            rejoinder.score(items, asking(server, "retries=0"))
        assert len(server.bodies) == 3


def test_references_are_shown_where_they_are_wanted() -> None:
    with_reference = item(1, references=[
        Reference("bad", weight=-0.5), Reference("good", weight=0.2), Reference("best"),
    ])  # fmt: skip
    without = item(2)
    with planned({}) as server:
        for wanted in ("auto", "true", "false"):
            spec = asking(server, f"{SETTINGS},references={wanted}")
            unscored = rejoinder.score([with_reference, without], spec)[spec].unscored
            assert unscored == ({"i2": "no references"} if wanted == "true" else {})
    shown = [body["messages"][-1]["content"] for body in server.bodies]
    references = "<reference>\nbest\n</reference>\n<reference>\ngood\n</reference>"
    # auto asks both, true one that was asked already, false the other one
    assert [references in each for each in shown].count(True) == 1
    assert len(shown) == 3 and not any("bad" in each for each in shown)


def test_a_long_context_loses_its_beginning() -> None:
    turns = [f"Turn {n} " + "x " * 100 for n in range(30)]
    long = Item("i", "Fine.", turns)
    with planned({}) as server:
        spec = asking(server, f"{SETTINGS},window=1000")
        result = rejoinder.score([long], spec)
        (body,) = server.bodies
    asked = body["messages"][-1]["content"]
    assert "Turn 29" in asked and "Turn 0 " not in asked
    assert len(asked) / 4 < 1000
    note = "judge: 1 contexts are longer than window=1000: their beginning was left out"
    assert note in result.notes
    huge = Item("i", "Fine.", ["y" * 10_000 + " end"])
    with planned({}) as server:
        rejoinder.score([huge], asking(server, f"{SETTINGS},window=600"))
        (body,) = server.bodies
    asked = body["messages"][-1]["content"]
    assert "y end" in asked and len(asked) / 4 < 600


def test_items_without_context_or_reply() -> None:
    with planned({}) as server:
        spec = asking(server)
        scores = rejoinder.score([Item("a", "x"), Item("b", "", ["Hi"])], spec)[spec]
        assert scores.unscored == {"a": "no context"}
        assert scores.values[1] == 4.0
        assert len(server.bodies) == 1


def test_a_server_that_is_down_wrong_or_wants_a_key() -> None:
    from planted_server import unused_url

    url = unused_url()
    with pytest.raises(ResourceError, match="cannot be reached"):
        rejoinder.score([item(1)], f"judge(url={url},model=m)")
    with planned({}) as server:
        server.key = "right-key"
        with pytest.raises(ResourceError, match="wants a key: set the environment variable"):
            rejoinder.score([item(1)], asking(server))
        with pytest.raises(ResourceError, match="has no model 'm', or is not the address"):
            rejoinder.score([item(1)], f"judge(url={server.url}/nowhere,model=m)")


def test_wrong_parameters_are_reported_together() -> None:
    with pytest.raises(UsageError) as error:
        rejoinder.Judge(
            url="ftp://x", model="m", n=3, temperature=0, window=3, references="maybe", seed=-1
        )
    assert len(error.value.messages) == 5
    with pytest.raises(UsageError, match="needs a model: judge"):
        rejoinder.score([item(1)], "judge")
    with pytest.raises(UsageError, match="dimension=tone: the rubric 'llm-eval' has content"):
        rejoinder.score([item(1)], "judge(url=http://x/v1,model=m,rubric=llm-eval,dimension=tone)")
    with pytest.raises(UsageError, match="password"):
        rejoinder.score([item(1)], 'judge(url="http://u:p@x/v1",model=m)')


def test_a_key_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    with planned({}) as server:
        server.key = secret
        rejoinder.score([item(1)], asking(server), output=tmp_path / "s.jsonl")
        assert server.keys == {f"Bearer {secret}"}
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()


class Messages(Monitor):
    def __init__(self) -> None:
        self.said: list[str] = []

    def message(self, text: str) -> None:
        self.said.append(text)


def test_meta_reads_the_scores_of_several_days(tmp_path: Path) -> None:
    """The dates in the signatures of one run may differ; anything else may not."""
    rated = [item(n, f"Reply {n}", ratings=float(n)) for n in range(5)]
    with planted_server(
        say=lambda body: str(len(body["messages"][-1]["content"]) % 5 + 1)
    ) as server:
        rejoinder.score(rated, asking(server), output=tmp_path / "s.jsonl")
    lines = (tmp_path / "s.jsonl").read_text().splitlines()
    day = json.loads(lines[0])["signature"].split("|asked:")[1][:10]
    lines[0] = lines[0].replace(f"asked:{day}", "asked:2020-01-31")
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    assert rejoinder.meta(rated, scores=tmp_path / "s.jsonl", resamples=0).results[0].unscored == 0


def test_progress_and_cost_reach_the_monitor() -> None:
    monitor = Messages()
    with planned({}) as server:
        rejoinder.score([item(1), item(2)], asking(server), monitor=monitor)
    assert len(monitor.said) == 1 and monitor.said[0].startswith("judge by m to http://127.0.0.1")


def test_answers_of_another_shape() -> None:
    """Parts instead of a text, and no count of tokens."""
    body = json.loads(completion("x"))
    body["choices"][0]["message"]["content"] = [{"type": "text", "text": "5"}]
    del body["usage"]
    with planned({turn(item(1)): [raw(json.dumps(body).encode())]}) as server:
        spec = asking(server)
        assert rejoinder.score([item(1)], spec)[spec].values.tolist() == [5.0]

"""``expand --by llm(…)`` against a server on loopback: different replies, or a reason for none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rejoinder
from fitted import small_evaluator
from planted_server import cut, planted_server, raw, slow, status, text, unused_url
from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.items import Item
from rejoinder.llm.chat import Answer
from rejoinder.llm.readable import Unreadable
from rejoinder.retrieve.written.replies import read_replies
from rejoinder.retrieve.written.writer import LlmWriter
from rejoinder.verbs.monitor import RejoinderWarning
from tiny_models import tiny_text_model

SIX = ["Yes, I do.", "Not at all, sorry.", "Why do you ask?", "My brother has three of them.",
       "That depends on the weather.", "Let us talk about something else."]  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))


def write(path: Path, contexts: list[list[str]], systems: int = 1, **fields: Any) -> str:
    lines = [
        json.dumps({"id": f"{n}:{s}", "context": context, "response": f"reply {s}"} | fields)
        for n, context in enumerate(contexts)
        for s in range(systems)
    ]
    path.write_text("\n".join(lines))
    return str(path)


def listed(*replies: str) -> str:
    return json.dumps({"replies": replies})


def expanded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("said", "replies"),
    [
        (listed("a b", "c"), ["a b", "c"]),
        ('["a b", "c"]', ["a b", "c"]),
        ('```json\n{"replies": ["a b"]}\n```', ["a b"]),
        ("1. a b\n2) c\n\n3: d", ["a b", "c", "d"]),
        ("Here are two replies:\n- a b\n* c", ["a b", "c"]),
        ('1. "a b"\n2. B: c', ["a b", "c"]),
        ("1、「そうですね。」\n2、『 いいえ 』", ["そうですね。", "いいえ"]),
        ('1. "Yes" and "no"', ['"Yes" and "no"']),
        ("<think>hm</think>1. a", ["a"]),
    ],
)
def test_lists_of_replies(said: str, replies: list[str]) -> None:
    assert read_replies(Answer(said)) == replies


@pytest.mark.parametrize(
    "said",
    ["", "Sure, I can help.", "1. a\nand so on", '{"replies": "a"}', '{"replies": [1]}', "{",
     '{"answers": ["a"]}', "I'm sorry, but I can't do that."],
)  # fmt: skip
def test_answers_that_are_no_list(said: str) -> None:
    assert isinstance(read_replies(Answer(said)), Unreadable)


def test_a_list_that_was_cut_short_loses_its_last_reply() -> None:
    assert read_replies(Answer("1. a\n2. b\n3. beca", finish_reason="length")) == ["a", "b"]
    assert isinstance(read_replies(Answer('{"replies": ["a", "b', finish_reason="length")),
                      Unreadable)  # fmt: skip


def test_one_request_for_each_context_and_the_source_is_marked(tmp_path: Path) -> None:
    items = write(tmp_path / "i.jsonl", [["Do you like cats?"], ["And dogs?"]], systems=3,
                  references=["Yes, I do."])  # fmt: skip
    with planted_server(say=lambda body: listed(*SIX)) as server:
        result = rejoinder.expand(
            items, by=f"llm(url={server.url},model=org/m)", k=6, output=tmp_path / "o.jsonl"
        )
        assert sum(server.asked.values()) == 2
        assert server.bodies[0]["response_format"]["json_schema"]["schema"]["required"] == [
            "replies"
        ]
        assert all("reply 0" not in json.dumps(body) for body in server.bodies)
    for record in expanded(tmp_path / "o.jsonl"):
        own, *new = record["references"]
        assert own == "Yes, I do." or own == {"text": "Yes, I do."}
        # the first of the six is a reference already
        assert new == [{"text": reply, "source": "llm:m"} for reply in SIX[1:]]
    report = result.report.to_dict()
    assert (report["written"], report["references"], report["fewer"]) == (12, 30, 6)
    assert (report["requests"], report["tokens"]) == (2, 24)


def test_near_duplicates_are_replaced_by_further_ones(tmp_path: Path) -> None:
    items = write(tmp_path / "i.jsonl", [["Do you like the cats of my aunt?"]])

    def say(body: Any) -> str:
        if len(body["messages"]) == 2:
            return listed("I like them very much!", "I like them very much", "No, not really.",
                          "Do you like the cats of my aunt??")  # fmt: skip
        # what there is stands in the chat
        assert json.loads(body["messages"][2]["content"])["replies"] == [
            "I like them very much!", "No, not really."
        ]  # fmt: skip
        assert "Write 2 more replies" in body["messages"][3]["content"]
        return listed("no not really", "How many has she got?", "What a question.", "too many")

    with planted_server(say=say) as server:
        result = rejoinder.expand(
            items, by=f"llm(url={server.url},model=m)", k=4, output=tmp_path / "o.jsonl"
        )
        assert sum(server.asked.values()) == 2
    (record,) = expanded(tmp_path / "o.jsonl")
    assert [each["text"] for each in record["references"]] == [
        "I like them very much!", "No, not really.", "How many has she got?", "What a question."
    ]  # fmt: skip
    assert result.report.to_dict()["repeated"] == 3


def test_a_model_that_repeats_itself_is_asked_so_many_times_and_no_more(tmp_path: Path) -> None:
    items = write(tmp_path / "i.jsonl", [["Do you like cats?"]])
    with planted_server(say=lambda body: listed("Yes, very much.")) as server:
        result = rejoinder.expand(
            items, by=f"llm(url={server.url},model=m,tries=3)", k=4, output=tmp_path / "o.jsonl"
        )
        assert sum(server.asked.values()) <= 3
    report = result.report.to_dict()
    assert (report["references"], report["fewer"]) == (1, 1)


def test_the_question_is_in_the_language_of_the_items(tmp_path: Path) -> None:
    """Replies in another language are left out."""
    items = write(tmp_path / "i.jsonl", [["猫は好きですか。昨日、駅前で可愛い猫を見ました。"]])
    replies = [
        "はい、大好きです。",
        "I like cats very much indeed, thank you.",
        "犬の方が好きです。",
    ]
    with planted_server(say=lambda body: listed(*replies)) as server:
        result = rejoinder.expand(
            items, by=f"llm(url={server.url},model=m,tries=1)", k=3, output=tmp_path / "o.jsonl"
        )
        assert "返答を 3 個" in server.bodies[0]["messages"][-1]["content"]
    (record,) = expanded(tmp_path / "o.jsonl")
    assert [each["text"] for each in record["references"]] == [replies[0], replies[2]]
    assert result.report.to_dict()["foreign"] == 1


def test_contexts_of_a_few_dialogues_in_another_language(tmp_path: Path) -> None:
    """The language is that of each context, not that of most."""
    english = [[f"Do you like the cats that my {who} has?"] for who in ("aunt", "uncle", "son")]
    japanese = ["猫は好きですか。昨日、駅前で可愛い猫を見ました。"]
    short = ["猫は好き?"]
    items = write(tmp_path / "i.jsonl", [*english, japanese, short])

    def say(body: Any) -> str:
        asked = json.dumps(body["messages"], ensure_ascii=False)
        in_japanese = ["はい、大好きです。", "犬の方が好きだと思います。"]
        return listed(*(in_japanese if "猫" in asked else SIX[:2]))

    with planted_server(say=say) as server:
        spec = f"llm(url={server.url},model=m,tries=1)"
        result = rejoinder.expand(items, by=spec, k=2, output=tmp_path / "o.jsonl")
        questions = [body["messages"][-1]["content"] for body in server.bodies]
        assert ["返答を 2 個" in each for each in questions if "昨日" in each] == [True]
        assert sum("返答を 2 個" in each for each in questions) == 1
    assert [len(each["references"]) for each in expanded(tmp_path / "o.jsonl")] == [2] * 5
    report = result.report.to_dict()
    assert report["foreign"] == 0 and "language=" not in report["writer"]


@pytest.mark.parametrize("temperature", [0, 1])
def test_tries_that_brought_nothing_are_followed_by_another_question(
    tmp_path: Path, temperature: int
) -> None:
    items = write(tmp_path / "i.jsonl", [["Do you like the cats of my aunt?"]])
    said = iter([["Do you like the cats of my aunt?"], ["Do you like the cats of my aunt"], SIX])
    with planted_server(say=lambda body: listed(*next(said))) as server:
        spec = f"llm(url={server.url},model=m,temperature={temperature})"
        result = rejoinder.expand(items, by=spec, k=6, output=tmp_path / "o.jsonl")
    assert [body["seed"] for body in server.bodies] == [0, 1, 2]
    shown = [[m["content"] for m in body["messages"][2:3]] for body in server.bodies]
    assert shown == [
        [],
        [listed("Do you like the cats of my aunt?")],
        [listed("Do you like the cats of my aunt")],
    ]
    assert result.report.to_dict()["references"] == 6


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        (["Do you like the cats that my aunt has at home?"], "near-duplicates"),
        (["x" * 1001], "longer than 1,000 characters"),
        (
            ["はい、大好きです。", "Yes. " * 300],
            "in another language or longer than 1,000 characters",
        ),
    ],
)
def test_why_no_reply_was_kept(tmp_path: Path, replies: list[str], reason: str) -> None:
    items = write(tmp_path / "i.jsonl", [["Do you like the cats that my aunt has at home?"]])
    with planted_server(say=lambda body: listed(*replies)) as server:
        result = rejoinder.expand(
            items, by=f"llm(url={server.url},model=m,tries=1)", k=2, output=tmp_path / "o.jsonl"
        )
    assert result.report.unexpanded == {f"all replies were {reason}": 1}
    assert result.report.to_dict()["long"] == sum(len(each) > 1000 for each in replies)


def test_every_failure_leaves_items_as_they_were_with_a_reason(tmp_path: Path) -> None:
    contexts = [[f"How is number {n}?"] for n in range(9)]
    items = write(tmp_path / "i.jsonl", [*contexts, [], [""]])
    writer = LlmWriter().in_language("en")
    from rejoinder.retrieve.written.writer import _Asked

    turns = [_Asked(writer, context, 2, None).messages()[-1].content for context in contexts]
    again = writer.prompts.fill("again", 2)
    plan: list[list[Any]] = [
        [status(429, "slow down", Retry_After="0.2")],
        [status(500), status(503)],
        [cut],
        [raw(b"<html>")],
        [status(400, "bad")],
        [slow(3)] * 3,
        [text(None, message={"refusal": "I can't."})],
        [text("Sure!")],
        [text("")],
    ]
    failures = dict(zip(turns, plan, strict=True))
    failures[again] = [text(None, message={"refusal": "No."}), text("1. Fine.\n2. Not so well.")]
    failures[f"{turns[8]}\n\n{again}"] = [text("")]
    with planted_server(failures, lambda body: listed("Very well.", "It is gone.")) as server:
        spec = f"llm(url={server.url},model=m,structured=false,timeout=1,concurrency=1)"
        result = rejoinder.expand(items, by=spec, k=2, output=tmp_path / "o.jsonl")
    assert result.report.to_dict()["unexpanded"] == {
        "the answer is not JSON": 1,
        "the server said 400 Bad Request: bad": 1,
        "no answer within 1 s after 3 tries": 1,
        "the model refused to answer": 1,
        "the answer is empty": 1,
        "no context": 2,
    }
    assert [len(each.get("references", ())) for each in expanded(tmp_path / "o.jsonl")] == [
        2, 2, 2, 0, 0, 0, 0, 2, 0, 0, 0,
    ]  # fmt: skip


def test_a_second_run_asks_nothing_and_the_budget_holds(tmp_path: Path) -> None:
    items = write(tmp_path / "i.jsonl", [[f"How is number {n}?"] for n in range(6)])
    with planted_server(say=lambda body: listed("Very well.", "It is gone.")) as server:
        spec = f"llm(url={server.url},model=m,most_requests=4,concurrency=1)"
        first = rejoinder.expand(items, by=spec, k=2, output=tmp_path / "a.jsonl")
        assert first.report.unexpanded == {"budget: 4 requests were sent": 2}
        rejoinder.expand(items, by=spec, k=2, output=tmp_path / "b.jsonl")
        assert sum(server.asked.values()) == 6
        rejoinder.expand(items, by=spec, k=2, output=tmp_path / "c.jsonl")
        assert sum(server.asked.values()) == 6
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()


def test_an_evaluator_gives_weights_that_weighted_metrics_use(tmp_path: Path) -> None:
    evaluator = small_evaluator()
    items = write(tmp_path / "i.jsonl", [["how are you today ?"]], systems=2,
                  references=["i am very well"])  # fmt: skip
    replies = ["fine , thank you .", "no .", "the station is over there"]
    with planted_server(say=lambda body: listed(*replies)) as server:
        spec = f"llm(url={server.url},model=m)"
        rejoinder.expand(items, by=spec, k=3, evaluator=evaluator, output=tmp_path / "o.jsonl")
    for record in expanded(tmp_path / "o.jsonl"):
        weights = [each["weight"] for each in record["references"][1:]]
        assert len(set(weights)) > 1 and all(-1 <= weight <= 1 for weight in weights)
    # ∆BLEU of one-grams is what the weights of references with the reply's words come to, over
    # their number times the highest weight (1, of the reference that the item came with)
    (own, *written) = rejoinder.load(tmp_path / "o.jsonl")[0].references
    raised = [own, msgspec.structs.replace(written[1], weight=0.25)]
    for words, value in (("no .", 0.25), ("zebra", 0.0)):
        scored = rejoinder.score([Item("x", words, references=raised)], "delta-bleu(n=1)")
        assert scored["delta-bleu(n=1)"].values[0] == pytest.approx(value)
    # metrics over references that an evaluator adds count the written ones, too
    both = rejoinder.score([Item("x", "no .", ["how are you ?"], references=raised)],
                           "vbleu(n=1)", evaluator=evaluator)  # fmt: skip
    bare = rejoinder.score([Item("x", "no .", ["how are you ?"], references=[own])],
                           "vbleu(n=1)", evaluator=evaluator)  # fmt: skip
    assert both["vbleu(n=1)"].values[0] >= bare["vbleu(n=1)"].values[0]


def test_wrong_arguments_and_servers(tmp_path: Path) -> None:
    items = write(tmp_path / "i.jsonl", [["How are you?"]])
    output = tmp_path / "o.jsonl"
    with pytest.raises(UsageError, match="llm needs a model: llm\\(url="):
        rejoinder.expand(items, by="llm", output=output)
    with pytest.raises(UsageError) as error:
        rejoinder.expand(items, by="llm(url=ftp://x,model=m,near=2,tries=0,language=fr,seed=-1)",
                         output=output)  # fmt: skip
    assert len(error.value.messages) == 5
    with pytest.raises(UsageError, match="searches nothing: leave out pool=, keep_leaks=True"):
        rejoinder.expand(items, by="llm(model=m)", pool="x", keep_leaks=True, output=output)
    with pytest.raises(ResourceError, match="cannot be reached"):
        rejoinder.expand(items, by=f"llm(url={unused_url()},model=m)", output=output)
    with planted_server() as server:
        server.key = "right-key"
        with pytest.raises(ResourceError, match="wants a key: set the environment variable"):
            rejoinder.expand(items, by=f"llm(url={server.url},model=m)", output=output)
    assert not output.exists()
    assert not list(tmp_path.glob(".*")), "no working folder is left"


def test_a_long_context_loses_its_beginning(tmp_path: Path) -> None:
    items = write(tmp_path / "i.jsonl", [[f"Turn {n} " + "x " * 100 for n in range(30)]])
    with (
        planted_server(say=lambda body: listed("Yes.", "No.")) as server,
        pytest.warns(RejoinderWarning, match="1 contexts are longer than window=1000"),
    ):
        spec = f"llm(url={server.url},model=m,window=1000)"
        rejoinder.expand(items, by=spec, k=2, output=tmp_path / "o.jsonl")
    asked = server.bodies[0]["messages"][-1]["content"]
    assert "Turn 29" in asked and "Turn 0 " not in asked


def test_a_model_folder_in_another_language_is_refused(tmp_path: Path) -> None:
    items = write(tmp_path / "i.jsonl", [["猫は好きですか。昨日、駅前で可愛い猫を見ました。"]])
    folder = tiny_text_model(tmp_path / "model", "gpt2")
    (folder / "README.md").write_text("---\nlanguage: en\n---\n")
    with pytest.raises(DataError, match="knows only English; use a model for this language"):
        rejoinder.expand(items, by=f"llm(model={folder})", output=tmp_path / "o.jsonl")

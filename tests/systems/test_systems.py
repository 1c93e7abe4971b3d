"""Each system on a small pool with known replies."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planted_server import planted_server
from rejoinder.errors import UsageError
from rejoinder.registry import SYSTEMS
from rejoinder.retrieve.index_folder import open_pool
from rejoinder.retrieve.pool import Pool
from rejoinder.systems.controls import NOTHING_LEFT, most_frequent
from rejoinder.systems.retrieval import NOTHING_SIMILAR
from rejoinder.systems.system import EMPTY_TURN, NO_TURN, Replies, make_system
from tiny_models import tiny_text_model
from trained import trained_system

PAIRS = [
    # context, utterance, response
    (["my cat is ill"], "what should i do", "Call a vet."),  # 0
    (["my car is broken"], "what should i do", "Find a garage."),  # 1
    ([], "what is your cat called", "My cat is called Tom."),  # 2
    ([], "do you like rain", "I don't know."),  # 3
    ([], "do you like snow", "i don't know"),  # 4
    ([], "where is my umbrella", "i don't know"),  # 5
    ([], "shall we go", "Yes!"),  # 6
    ([], "shall we stay", "Yes!"),  # 7
    ([], "are you there", "…"),  # 8
]


REQUIRED = {
    "aiml": 'aiml(rules="{folder}")',
    "openai": "openai(url={url},model=any)",
    "hf": 'hf(model="{folder}/model")',
    "trained": 'trained(model="{trained}",top_k=3)',
    "command": 'command(run="{python} {folder}/bot.py")',
}
"""Specs of systems that have a parameter without a default; {folder} has what they need,
{trained} a trained network."""


@pytest.fixture(params=SYSTEMS.names())
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A spec of each system."""
    rule = "<category><pattern>*</pattern><template>Well.</template></category>"
    (tmp_path / "rules.aiml").write_text(f"<aiml>{rule}</aiml>")
    reply = 'for line in open(0): print(\'{"response": "Well."}\')'
    (tmp_path / "bot.py").write_text(reply)
    name: str = request.param
    trained = trained_system("seq2seq") if name == "trained" else ""
    if name == "hf":
        tiny_text_model(tmp_path / "model")
    with planted_server() as server:
        yield REQUIRED.get(name, name).format(
            folder=tmp_path, trained=trained, url=server.url, python=sys.executable
        )


def write(path: Path, pairs: list[tuple[list[str], str, str]]) -> str:
    context, utterance, response = zip(*pairs, strict=True)
    kinds = [pa.list_(pa.string()), pa.string(), pa.string()]
    columns = [pa.array(c, k) for c, k in zip((context, utterance, response), kinds, strict=True)]
    pq.write_table(pa.table(columns, names=["context", "utterance", "response"]), path)
    return str(path)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with open_pool(write(tmp_path / "pool.parquet", PAIRS)) as opened:
        yield opened


def say(
    pool: Pool | None, spec: str, *context: str, n: int = 1, leaks: list[int] | None = None
) -> Replies:
    mask = None if leaks is None else np.isin(np.arange(len(PAIRS)), leaks)
    (answer,) = make_system(spec).reply([list(context)], pool, n=n, leaks=mask)
    return answer


@pytest.mark.parametrize("system", ["c-bm25", "c-tfidf"])
def test_the_whole_context_is_compared(pool: Pool, system: str) -> None:
    """Rows 0 and 1 have the same utterance; only the turn before it tells them apart."""
    assert say(pool, system, "the car broke down", "what should i do").texts == ("Find a garage.",)
    assert say(pool, system, "the cat looks sad", "what should i do").texts == ("Call a vet.",)


@pytest.mark.parametrize("system", ["c-bm25(turns=1)", "c-tfidf(turns=1)", "ir-status"])
def test_the_last_turn_alone(pool: Pool, system: str) -> None:
    """Rows 0 and 1 are equally like it: the lower row is taken, whatever was said before."""
    for before in ("the car broke down", "the cat looks sad"):
        assert say(pool, system, before, "what should i do").texts == ("Call a vet.",)


@pytest.mark.parametrize("by", ["bm25", "tfidf"])
def test_ir_response_looks_at_responses(pool: Pool, by: str) -> None:
    """'what is your cat called' stands in row 2 as an utterance; of the responses, row 2's is also
    the one with 'cat'. 'garage' stands in a response only."""
    assert say(pool, f"ir-response(by={by})", "a garage").texts == ("Find a garage.",)
    nothing = say(pool, f"ir-status(by={by})", "a garage")
    assert nothing == Replies((), "no word of the utterance occurs in the pool")
    assert say(pool, f"ir-response(by={by})", "umbrella") == Replies((), NOTHING_SIMILAR)
    # a vet? response of row 0 has it; ir-status sees only 'cat' in the utterance of row 2
    assert say(pool, f"ir-response(by={by})", "has your cat a vet").texts == ("Call a vet.",)
    assert say(pool, f"ir-status(by={by})", "has your cat a vet").texts == (
        "My cat is called Tom.",
    )


def test_leaked_pairs_are_not_used_as_replies(pool: Pool) -> None:
    answer = say(pool, "ir-status", "what should i do", leaks=[0])
    assert answer.texts == ("Find a garage.",)
    for system in ("ir-status", "ir-response", "c-bm25", "c-tfidf"):
        nothing = say(pool, system, "what should i do", leaks=list(range(len(PAIRS))))
        assert nothing == Replies((), NOTHING_SIMILAR)
    assert say(pool, "random", "hello", leaks=list(range(len(PAIRS)))).reason == NOTHING_LEFT
    assert say(pool, "random", "hello", leaks=list(range(1, len(PAIRS)))).texts == ("Call a vet.",)


def test_several_replies_are_different(pool: Pool) -> None:
    """Both rows with 'shall we' have the same response, and so do rows 4 and 5."""
    assert say(pool, "ir-status", "shall we", n=5).texts == ("Yes!",)
    assert say(pool, "ir-status", "like my umbrella", n=5).texts[:2] == (
        "i don't know",  # row 5 has the rarest word, and row 4 says the same
        "I don't know.",
    )
    for seed in range(20):
        texts = say(pool, f"random(seed={seed})", "hello", n=3).texts
        assert len(set(texts)) == len(texts) <= 3
    assert set(say(pool, "dull(top=3)", "hello", n=9).texts) == {
        "i don't know",
        "Yes!",
        "Call a vet.",
    }


def test_the_parrot_needs_no_pool() -> None:
    assert say(None, "parrot", "well", "How are you?", n=3).texts == ("How are you?",)


def test_random_is_fair_and_repeatable(pool: Pool) -> None:
    contexts = [[f"context {i}"] for i in range(3000)]
    answers = make_system("random").reply(contexts, pool)
    assert answers == make_system("random").reply(contexts, pool)
    assert answers != make_system("random(seed=1)").reply(contexts, pool)
    # a context is answered the same whatever stands beside it in the file
    assert make_system("random").reply(contexts[1234:1235], pool) == answers[1234:1235]
    counts = Counter(answer.texts[0] for answer in answers)
    # 3000 draws of 9 rows: 333 each, standard deviation 17; two rows say 'Yes!', one '…'
    assert counts["Call a vet."] == pytest.approx(333, abs=90)
    assert counts["Yes!"] == pytest.approx(667, abs=120)


def test_dull_gives_the_most_frequent_responses(pool: Pool) -> None:
    """Spelling counts as one: 3 × I don't know (twice without full stop), 2 × Yes!, then single
    ones in the order of the pool. '…' has no letter."""
    assert most_frequent(pool, 4) == {
        "i don't know": 3,
        "Yes!": 2,
        "Call a vet.": 1,
        "Find a garage.": 1,
    }
    contexts = [[f"context {i}"] for i in range(3000)]
    assert {a.texts for a in make_system("dull(top=1)").reply(contexts, pool)} == {
        ("i don't know",)
    }
    answers = make_system("dull(top=2)").reply(contexts, pool)
    share = sum(a.texts == ("i don't know",) for a in answers) / len(answers)
    assert share == pytest.approx(3 / 5, abs=0.05)  # 0.6, standard deviation 0.009


def test_dull_needs_responses_with_letters(tmp_path: Path) -> None:
    with open_pool(write(tmp_path / "p.parquet", [([], "a", "…"), ([], "b", "!!")])) as pool:
        assert say(pool, "dull", "hello").reason == "no response of the pool has a letter"


def test_contexts_without_text_get_no_reply(pool: Pool, spec: str) -> None:
    answers = make_system(spec).reply([[], ["hello there", " "], ["what should i do"]], pool)
    assert [answer.reason for answer in answers[:2]] == [NO_TURN, EMPTY_TURN]
    assert answers[2].texts
    assert answers[2].reason is None


def test_a_system_prints_as_it_is_parsed(spec: str) -> None:
    system = make_system(spec)
    assert str(system) == (spec if " " in spec else spec.replace('"', ""))
    assert make_system(str(system)) == system


def test_the_seed_applies_to_random_systems_that_set_none() -> None:
    assert str(make_system("random", 7)) == "random(seed=7)"
    assert str(make_system("random(seed=3)", 7)) == "random(seed=3)"
    assert str(make_system("random", 12345)) == "random"
    assert str(make_system("parrot", 7)) == "parrot"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("c-bm52", "unknown dialogue system 'c-bm52': did you mean 'c-bm25'"),
        ("c-bm25(turns=0)", "turns=0 is not from 1 to 50"),
        ("c-bm25(tok=words)", "unknown tokenizer 'words'"),
        ("ir-status(on=both)", "has no parameter 'on'"),
        ("ir-status(by=bm25(on=both))", "by: on is fixed for ir-status"),
        ("ir-response(by=google)", "unknown retriever 'google'"),
        ("dull(top=0)", "top=0 is not from 1"),
        ("random(seed=-1)", "seed=-1 is not from 0"),
    ],
)
def test_wrong_specs(spec: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint.replace("(", r"\(")):
        make_system(spec)


def test_a_pool_must_be_named() -> None:
    with pytest.raises(UsageError, match="c-bm25 takes its replies from a pool"):
        make_system("c-bm25").reply([["hello"]])

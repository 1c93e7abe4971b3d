"""``aiml`` as a dialogue system: contexts, seeds, several replies, both ways of matching."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from aiml_bots import category, write
from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.systems.aiml.cosine import PatternIndex
from rejoinder.systems.aiml.rules import load
from rejoinder.systems.aiml.session import NO_MATCH
from rejoinder.systems.aiml.system import NOTHING_SIMILAR
from rejoinder.systems.system import Replies, make_system


def reply(spec: str, *contexts: list[str], n: int = 1) -> list[Replies]:
    return make_system(spec).reply(list(contexts), n=n)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    drawn = "".join(f"<li>n{i}</li>" for i in range(40))
    write(
        tmp_path,
        category("MY NAME IS *", '<think><set name="name"><star/></set></think>Hello!'),
        category("WHO AM I", 'You are <get name="name"/>.'),
        category("YES", "Yes?"),
        category("YES", "Green or black?", that="DO YOU LIKE TEA"),
        category("DRAW", f"<random>{drawn}</random>"),
        category("REMEMBER", '<think><set name="x"><srai>DRAW</srai></set></think>OK'),
        category("RECALL", '<get name="x"/>'),
        category("WHAT DID I SAY", "<input index='2'/>"),
    )
    return f"rules={tmp_path}"


def test_a_context_is_a_conversation(folder: str) -> None:
    """The last turn is the input, the one before it the bot's, the one before that an input."""
    found = reply(
        f"aiml({folder})",
        ["My name is Ann", "Nice.", "Who am I?"],
        ["I said: my name is Bob", "My name is Ann", "Who am I?"],
        ["It is late. Do you like tea?", "yes"],
        ["Do you like tea? It is late.", "yes"],
        ["yes", "Do you like tea?"],
        ["one", "two", "three", "four", "What did I say?"],
    )
    assert found == [
        Replies(("You are Ann.",)),
        Replies(("You are .",)),  # the bot's own name is not the user's
        Replies(("Green or black?",)),
        Replies(("Yes?",)),  # the last sentence counts
        Replies(reason=NO_MATCH),
        Replies(("three",)),
    ]


def test_what_is_drawn_depends_on_seed_and_context_alone(folder: str) -> None:
    contexts = [["a", "b", "draw"], ["draw"], ["c", "draw"], ["remember", "OK", "recall"]]
    first = reply(f"aiml({folder})", *contexts)
    assert reply(f"aiml({folder})", *reversed(contexts)) == first[::-1]
    assert [reply(f"aiml({folder})", context)[0] for context in contexts] == first
    assert len({answer.texts for answer in first}) > 1
    others = [reply(f"aiml({folder},seed={seed})", ["draw"])[0].texts for seed in range(20)]
    assert len(set(others)) > 5
    assert str(make_system(f"aiml({folder})", 7)).endswith(",seed=7)")


def test_several_replies_are_different(folder: str) -> None:
    drawn, fixed, none = reply(f"aiml({folder})", ["draw"], ["yes"], ["zzz"], n=5)
    assert len(drawn.texts) == len(set(drawn.texts)) == 5
    assert drawn.texts[:1] == reply(f"aiml({folder})", ["draw"])[0].texts
    assert fixed.texts == ("Yes?",)
    assert none == Replies(reason=NO_MATCH)


def test_learning_ends_with_the_context(tmp_path: Path) -> None:
    teach = (
        "<learn><category><pattern>WHAT IS <eval><star/></eval></pattern>"
        "<template><eval><star index='2'/></eval></template></category></learn>"
    )
    write(tmp_path, category("* IS *", f"OK.{teach}"), category("WHAT IS *", "No idea."))
    contexts = [["Tea is hot", "OK.", "What is tea?"], ["What is tea?"]]
    learning = reply(f"aiml(rules={tmp_path},learn=true)", *contexts)
    assert [answer.texts for answer in learning] == [("hot",), ("No idea.",)]
    silent = reply(f"aiml(rules={tmp_path})", *contexts)
    assert [answer.texts for answer in silent] == [("No idea.",), ("No idea.",)]


def test_a_fixed_date(tmp_path: Path) -> None:
    write(tmp_path, category("DATE", '<date format="%d.%m.%Y"/>'))
    found = reply(f'aiml(rules={tmp_path},date="2026-01-31")', ["date"])
    assert found == [Replies(("31.01.2026",))]


def test_the_most_similar_pattern(tmp_path: Path) -> None:
    """Input 'do you like green tea': 5 words, each once, norm √5.

    DO YOU LIKE *       3 shared, norm √3: 3 / √15 = 0.775
    GREEN TEA           2 shared, norm √2: 2 / √10 = 0.632
    TEA TEA COFFEE      2 × 1 shared, norm √5: 2 / 5 = 0.4
    * and HELLO         nothing shared
    """
    write(
        tmp_path,
        category("*", "anything"),
        category("HELLO", "hello"),
        category("TEA TEA COFFEE", "much tea"),
        category("DO YOU LIKE *", "I like <star/>!"),
        category("GREEN TEA", "<srai>HELLO</srai>, tea"),
        category("DO YOU LIKE GREEN TEA", "only after that", that="TEA"),
    )
    index = PatternIndex(load(str(tmp_path)).rules)
    found = [
        (" ".join(rule.pattern), round(cosine, 3))
        for rule, cosine in index.best(["do", "you", "like", "green", "tea"])
    ]
    assert found == [("DO YOU LIKE *", 0.775), ("GREEN TEA", 0.632), ("TEA TEA COFFEE", 0.4)]
    spec = f"aiml(rules={tmp_path},match=cosine)"
    assert reply(spec, ["Do you like Green tea?"], n=9) == [
        Replies(("I like Green tea!", "hello, tea", "much tea"))
    ]
    assert reply(spec, ["zzz"]) == [Replies(reason=NOTHING_SIMILAR)]


def test_equally_similar_patterns_come_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, category("B C", "1"), category("A B", "2"), category("C A", "3"))
    spec = f"aiml(rules={tmp_path},match=cosine)"
    assert reply(spec, ["a b c"], n=3) == [Replies(("1", "2", "3"))]


def test_a_tokenizer_for_languages_without_spaces(tmp_path: Path) -> None:
    """'お茶が好きですか' and the pattern 'お茶 は 好き' share words only if both are segmented."""
    write(tmp_path, category("お茶は好き", "はい"), category("映画を見る", "いいえ"))
    spaces = reply(f"aiml(rules={tmp_path},match=cosine)", ["お茶が好きですか"])
    assert spaces == [Replies(reason=NOTHING_SIMILAR)]
    mecab = reply(f"aiml(rules={tmp_path},match=cosine,tok=ja-mecab)", ["お茶が好きですか"])
    assert mecab == [Replies(("はい",))]


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("aiml", "aiml needs rules=…"),
        ("aiml(rules=x,match=fuzzy)", "match=fuzzy is not one of standard, cosine"),
        ("aiml(rules=x,tok=13a)", "tok is the tokenizer of match=cosine"),
        ("aiml(rules=x,match=cosine,tok=words)", "unknown tokenizer 'words'"),
        ("aiml(rules=x,seed=-1)", "seed=-1 is not from 0"),
        ("aiml(rules=x,date=monday)", "date=monday is not a date"),
    ],
)
def test_wrong_specs(spec: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make_system(spec)


def test_missing_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="nowhere: cannot be read: no such file or folder"):
        reply(f"aiml(rules={tmp_path}/nowhere)", ["a"])
    with pytest.raises(DataError, match="no AIML files"):
        reply(f"aiml(rules={tmp_path})", ["a"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'rejoinder\[aiml\]'"):
        make_system("aiml(rules=alice)")


def test_free_rule_files_of_another_author(data: Path) -> None:
    """37 files with 8,259 categories, of which 7,281 have different patterns."""
    folder = data / "aiml-free"
    assert load(str(folder)).graph.size == 7281
    assert reply(f"aiml(rules={folder})", ["What is the currency of Japan?"]) == [
        Replies(("Yen.",))
    ]

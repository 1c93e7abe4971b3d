"""Each element of templates."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from aiml_bots import bot, category, chat
from rejoinder.systems.aiml.session import Session


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("<star/>", "My dog likes ME"),
        ("<uppercase><star/></uppercase>", "MY DOG LIKES ME"),
        ("<lowercase><star/></lowercase>", "my dog likes me"),
        ("<formal><star/></formal>", "My Dog Likes Me"),
        ("<sentence>hELLO world</sentence>", "Hello world"),
        ("<person/>", "His dog likes HIM"),
        ("<person2><star/></person2>", "Your dog likes YOU"),
        ("<gender>he saw her</gender>", "she saw him"),
        ("<think>no</think>yes", "yes"),
        ("<srai>OTHER <star/></srai>", "other: My dog likes ME"),
        ("<sr/>", "the dog"),
        ('<set name="x">tea</set>, <get name="x"/>', "tea, tea"),
        ("<set><name>x</name>tea</set>, <get><name>x</name></get>", "tea, tea"),
        ('<think><set var="x">tea</set></think><get var="x"/> <get var="y"/>', "tea unknown"),
        ("<first><star/></first>|<rest><star/></rest>", "My|dog likes ME"),
        ("<explode>abc</explode>", "a b c"),
        ('<map name="capital">france</map> <map name="capital">x</map>', "Paris unknown"),
        ('<bot name="name"/> <bot name="no"/>', "Rejoinder"),
        ("<input/>", "ask My dog likes ME"),
        ("<random><li>a</li> <li>b</li></random>", "b"),
        ("<random></random>x", "x"),
        ("<size/>", "4"),
        ("<date/>", "Sat Jan 31 12:05:00 2026"),
        ('<date format="%Y-%m-%d"/>', "2026-01-31"),
        ("one<br/>two <em>three</em> <a href='x'>four</a>", "one two three four"),
        ("a &amp; b &lt;c&gt;", "a & b <c>"),
        ("<star index='2'/>none", "none"),
        ("<star index='x'/>", "My dog likes ME"),
    ],
)
def test_elements(tmp_path: Path, template: str, expected: str) -> None:
    (tmp_path / "capital.map").write_text("France:Paris\nJapan:Tokyo\n")
    rules = bot(
        tmp_path,
        category("ASK *", template),
        category("OTHER *", "other: <star/>"),
        category("MY DOG *", "the dog"),
        category("MY DOG", "unused"),
    )
    session = Session(rules, lambda count: count - 1, lambda: datetime(2026, 1, 31, 12, 5))
    assert session.respond("ask My dog likes ME") == (expected, None)


def test_conditions(tmp_path: Path) -> None:
    tail = "<li value='*'>set</li><li>not set</li>"
    rules = bot(
        tmp_path,
        category("SET *", '<think><set name="mood"><star/></set></think>done'),
        category("ONE", '<condition name="mood" value="good">yes</condition>!'),
        category("SOME", f'<condition name="mood"><li value="Good">fine</li>{tail}</condition>'),
        category("ANY", '<condition><li name="mood" value="bad">sorry</li><li>hm</li></condition>'),
        category("NONE", '<condition name="mood"><li value="unknown">new</li></condition>'),
    )
    assert chat(rules, "one", "some", "any", "none") == ["!", "not set", "hm", "new"]
    assert chat(rules, "set good", "one", "some", "any", "none")[1:] == ["yes!", "fine", "hm", ""]
    assert chat(rules, "set bad", "one", "some", "any")[1:] == ["!", "set", "sorry"]


def test_a_loop_ends_with_its_condition(tmp_path: Path) -> None:
    """x is counted down by a map: 3, 2, 1, and at 0 nothing holds any more."""
    (tmp_path / "minus.map").write_text("3:2\n2:1\n1:0\n")
    step = '<get var="x"/> <think><set var="x"><map name="minus"><get var="x"/></map></set></think>'
    rules = bot(
        tmp_path,
        category(
            "GO",
            '<think><set var="x">3</set></think><condition var="x"><li value="0">end</li>'
            f"<li>{step}<loop/></li></condition>",
        ),
    )
    assert chat(rules, "go") == ["3 2 1 end"]


def test_history(tmp_path: Path) -> None:
    rules = bot(
        tmp_path,
        category("*", "You said <star/>."),
        category("WHAT", "<that/> <input index='2'/> <response index='2'/>"),
    )
    assert chat(rules, "a", "b", "what")[2] == "You said b. b You said a."


def test_learning_is_off_unless_asked_for(tmp_path: Path) -> None:
    teach = (
        "<learn><category><pattern>WHAT IS <eval><star/></eval></pattern>"
        "<template>It is <eval><star index='2'/></eval>.</template></category></learn>"
    )
    rules = bot(tmp_path, category("* IS *", f"OK.{teach}"), category("WHAT IS *", "No idea."))
    told = ["Tea is hot", "What is tea?"]
    assert chat(rules, *told) == ["OK.", "No idea."]
    session = Session(rules, may_learn=True)
    assert [session.respond(text)[0] for text in told] == ["OK.", "It is hot."]
    session.forget()
    assert chat(rules, told[1]) == ["No idea."]

"""Which rule matches, and what its wildcards stand for; expected by the AIML specifications."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiml_bots import bot, category, chat, write
from rejoinder.systems.aiml.graph import Graph
from rejoinder.systems.aiml.normalise import pattern_words, words_of
from rejoinder.systems.aiml.parsing import Rule
from rejoinder.systems.aiml.rules import load


def graph_of(*patterns: str) -> Graph:
    graph = Graph()
    for pattern in patterns:
        graph.add(Rule((*pattern_words(pattern), "<that>", "*", "<topic>", "*"), (pattern,)))
    return graph


def matched(graph: Graph, text: str) -> tuple[str, list[str]] | None:
    words = words_of(text)
    match = graph.match(words.words, ["X"], ["X"], lambda steps: None)
    if match is None:
        return None
    return match.rule.template[0], [words.span(*place) for place in match.star]


ORDER = ["$HELLO BOT", "# BOT", "_ BOT", "HELLO BOT", "^ BOT", "* BOT", "*"]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_order_of_preference(first: int) -> None:
    """AIML 2.0: $word, #, _, word, ^, *; the order of the rules is of no importance."""
    expected = ORDER[first]
    assert matched(graph_of(*reversed(ORDER[first:])), "hello bot")[0] == expected
    assert matched(graph_of(*ORDER[first:]), "hello bot")[0] == expected


@pytest.mark.parametrize(
    ("pattern", "text", "stars"),
    [
        ("I LIKE * AND *", "I like tea, and black coffee!", ["tea,", "black coffee!"]),
        # the first star is as short as possible
        ("* AND *", "a and b and c", ["a", "b and c"]),
        ("* *", "a b c", ["a", "b c"]),
        ("_ A", "A A", ["A"]),
        ("^ HELLO #", "hello", ["", ""]),
        ("^ HELLO #", "oh well hello to you", ["oh well", "to you"]),
        ("*", "well-known", ["well-known"]),
        ("WELL *", "well-known bots", ["known bots"]),
        ("* IS *", "What's up", ["What", "up"]),
        ("* TEA", "“Green” tea", ["“Green”"]),
    ],
)
def test_wildcards(pattern: str, text: str, stars: list[str]) -> None:
    assert matched(graph_of(pattern), text) == (pattern, stars)


def test_one_word_at_least() -> None:
    assert matched(graph_of("HELLO *", "_ HELLO"), "hello") is None


def test_a_dead_end_is_left_again() -> None:
    """HELLO leads nowhere with 'hello you', so the star is taken."""
    graph = graph_of("HELLO THERE", "* YOU")
    assert matched(graph, "hello you") == ("* YOU", ["hello"])


WORDS = st.lists(st.sampled_from("ABC"), min_size=1, max_size=6)
KEYS = st.lists(st.sampled_from([*"ABC", "*", "_", "#", "^"]), min_size=1, max_size=5)


def fits(keys: list[str], words: list[str]) -> bool:
    """The definition, without any order: does a pattern fit an input?"""
    if not keys:
        return not words
    if keys[0] in "*_#^":
        least = 1 if keys[0] in "*_" else 0
        return any(fits(keys[1:], words[n:]) for n in range(least, len(words) + 1))
    return bool(words) and keys[0] == words[0] and fits(keys[1:], words[1:])


@settings(derandomize=True)
@given(st.lists(KEYS, min_size=1, max_size=8), WORDS)
def test_a_rule_is_found_exactly_if_one_fits(patterns, words) -> None:
    found = matched(graph_of(*(" ".join(keys) for keys in patterns)), " ".join(words))
    possible = {" ".join(keys) for keys in patterns if fits(keys, words)}
    assert (found is not None) == bool(possible)
    if found is not None:
        pattern, stars = found
        assert pattern in possible
        # with its stars in their places, the pattern is the input
        rest = iter(stars)
        said = [next(rest) if key in "*_#^" else key for key in pattern.split()]
        assert " ".join(said).split() == words


def test_that_and_topic(tmp_path: Path) -> None:
    rules = bot(
        tmp_path,
        category("HELLO", "Do you like tea?"),
        category("YES", "Yes to what?"),
        category("YES", "With <thatstar/>?", that="DO YOU LIKE *"),
        category("TALK ABOUT *", '<think><set name="topic"><star/></set></think>OK.'),
        "<topic name='* FISH'>" + category("WHY", "About <topicstar/> fish.") + "</topic>",
        category("WHY", "I don't know."),
    )
    assert chat(rules, "yes", "hello", "Yes!") == ["Yes to what?", "Do you like tea?", "With tea??"]
    assert chat(rules, "why", "Talk about big fish", "why") == [
        "I don't know.",
        "OK.",
        "About big fish.",
    ]


def test_a_topic_inside_a_category(tmp_path: Path) -> None:
    """AIML 2.0 allows it."""
    rules = bot(
        tmp_path,
        category("BEGIN", '<think><set name="topic">tea</set></think>go'),
        "<category><topic>TEA</topic><pattern>*</pattern><template>tea</template></category>",
    )
    assert chat(rules, "x", "begin", "x") == ["", "go", "tea"]


def test_sets_and_properties(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "colour.txt").write_text("red\nlight blue\nlight\n")
    (tmp_path / "properties.txt").write_text("name:Ann Lee\nage=7\n")
    rules = bot(
        tmp_path,
        category("I LIKE <set>colour</set> *", "<star/>: <star index='2'/>"),
        category("I LIKE *", "no colour"),
        category("I AM <set>number</set>", "<star/> years"),
        category('HI <bot name="name"/>', 'I am <bot name="age"/>.'),
    )
    assert chat(rules, "I like light blue cars", "I like light cars", "I like tea") == [
        "light blue: cars",
        "light: cars",
        "no colour",
    ]
    assert chat(rules, "I am 40", "I am old") == ["40 years", ""]
    assert chat(rules, "Hi, Ann Lee") == ["I am 7."]


def test_sentences_and_lower_case_patterns(tmp_path: Path) -> None:
    rules = bot(tmp_path, category("Hello", "Hi!"), category("WHAT IS *", "<star/>?"))
    assert chat(rules, "Hello. What's new?") == ["Hi! new?"]
    assert chat(rules, "... hello!!") == ["Hi!"]


def test_the_last_of_equal_rules_counts(tmp_path: Path) -> None:
    write(tmp_path, category("A", "first"), name="a.aiml")
    write(tmp_path, category("A", "second"), name="b.aiml")
    rules = load(str(tmp_path))
    assert chat(rules, "a") == ["second"]
    assert rules.graph.size == 1

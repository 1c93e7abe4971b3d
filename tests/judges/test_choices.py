"""Reading which of two replies is better, with the probabilities that the model gave."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rejoinder.judges.choices import Choice, read_choice
from rejoinder.llm.chat import Answer
from rejoinder.llm.readable import Unreadable

FIRST, SECOND, TIE = Choice(1, 0, 0), Choice(0, 1, 0), Choice(0, 0, 1)


def answer(text: str, *tokens: tuple[str, dict[str, float]]) -> Answer:
    content: list[dict[str, Any]] = [
        {
            "token": written,
            "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in top.items()],
        }
        for written, top in tokens
    ]
    return Answer(text, logprobs={"content": content} if content else None)


@pytest.mark.parametrize(
    ("text", "choice"),
    [("1", FIRST), ("2.", SECOND), ("**2**", SECOND), ("Reply 1", FIRST), ("tie", TIE),
     ("Tie.", TIE), ("引き分け", TIE), ("平局", TIE), ("回复 2", SECOND), ("返答1", FIRST),
     ("A", FIRST), ("(B)", SECOND), ("Answer: A", FIRST), ('{"better": "2"}', SECOND),
     ('{"better": 1}', FIRST), ('```json\n{"better": "tie"}\n```', TIE),
     ("<think>2?</think>1", FIRST), ("１", FIRST)],
)  # fmt: skip
def test_choices_without_probabilities(text: str, choice: Choice) -> None:
    assert read_choice(Answer(text)) == choice


@pytest.mark.parametrize(
    "text",
    ["", "12", "1 or 2", "both", "3", "C", "A is better", '{"rating": 1}', '{"better": "x"}',
     '{"better": 1', "[1]"],
)  # fmt: skip
def test_no_choices(text: str) -> None:
    assert isinstance(read_choice(Answer(text)), Unreadable)


def test_probabilities_of_the_three_answers() -> None:
    found = read_choice(answer("1", ("1", {"1": 0.4, "2": 0.2, " 2": 0.1, "tie": 0.1, "x": 0.2})))
    assert isinstance(found, Choice)
    # of .8 in all: .4 for the first, .2 + .1 for the second, .1 for a tie
    assert (found.first, found.second, found.tie) == pytest.approx((0.5, 0.375, 0.125))
    assert found.mass == pytest.approx(0.8)


def test_the_letters_and_the_parts_of_a_tie() -> None:
    found = read_choice(answer(" B", (" B", {" B": 0.6, "A": 0.2, "1": 0.2})))
    assert isinstance(found, Choice)
    # digits do not count where letters were written
    assert (found.first, found.second) == pytest.approx((0.25, 0.75))
    found = read_choice(answer("tie", ("t", {"t": 0.5, "1": 0.25}), ("ie", {"ie": 1.0})))
    assert isinstance(found, Choice)
    # "t" begins the tie that was written
    assert found.tie == pytest.approx(2 / 3)


def test_a_first_token_that_could_have_been_an_answer() -> None:
    top = {"I": 0.7, "2": 0.2, "1": 0.05}
    found = read_choice(answer("I prefer the second", ("I", top), (" prefer", {})))
    assert isinstance(found, Choice)
    assert found.second == pytest.approx(0.8)
    top = {"I": 0.95, "2": 0.05}
    assert isinstance(read_choice(answer("I prefer", ("I", top))), Unreadable)


def test_probabilities_inside_json() -> None:
    tokens = [('{"', {}), ("better", {}), ('": "', {}), ("2", {"2": 0.9, "1": 0.1}), ('"}', {})]
    found = read_choice(answer('{"better": "2"}', *tokens))
    assert isinstance(found, Choice)
    assert found.first == pytest.approx(0.1)

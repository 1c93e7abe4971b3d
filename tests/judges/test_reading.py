"""Reading answers: strict, in three languages, and weighted by probabilities."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.judges.reading import ONLY, Reading, read
from rejoinder.judges.scale import Scale
from rejoinder.llm.chat import Answer
from rejoinder.llm.readable import Unreadable

FIVE = Scale(1, 5)


def token(text: str, **top: float) -> dict[str, Any]:
    """A token with the probabilities of some tokens; ``_4`` stands for " 4"."""
    tops = [{"token": k.replace("_", " "), "logprob": math.log(p)} for k, p in top.items()]
    return {
        "token": text,
        "logprob": -0.1 if not tops else tops[0]["logprob"],
        "top_logprobs": tops,
    }


def answer(text: str, *tokens: dict[str, Any], **fields: Any) -> Answer:
    return Answer(text, logprobs={"content": list(tokens)} if tokens else None, **fields)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4), (" 4\n", 4), ("4.", 4), ("**4**", 4), ("Score: 4", 4), ("Rating: 4/5", 4),
        ("My rating is 4.", 4), ("The score is 4", 4), ("4 points", 4), ("4点", 4), ("4分", 4),
        ("評価:4", 4), ("评分：4。", 4), ("「4」", 4), ("4.0", 4), ("<think>5?</think>\n4", 4),
        ('{"rating": 4}', 4),
        ('```json\n{"rating": 4}\n```', 4), ('{"rating": "4", "why": "x"}', 4),
    ],
)  # fmt: skip
def test_answers_that_are_a_number(text: str, value: int) -> None:
    assert read(answer(text), FIVE, ()) == Reading({ONLY: float(value)})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("four", "the answer cannot be read"),
        ("四", "the answer cannot be read"),
        ("Between 3 and 4", "the answer cannot be read"),
        ("4 because it fits", "the answer cannot be read"),
        ("6", "the answer is not on the scale"),
        ("0", "the answer is not on the scale"),
        ("4/10", "the answer is not on the scale"),
        ("4.5", "the answer cannot be read"),
        ("-4", "the answer cannot be read"),
        ("", "the answer is empty"),
        ("<think>hm, let me", "the answer ends while the model is thinking; a larger max_tokens"
         " may help"),
        ('{"score": 4}', "the answer has no 'rating'"),
        ('{"rating": 4.5}', "'rating' is not on the scale 1-5"),
        ('{"rating": true}', "'rating' is not on the scale 1-5"),
        ('{"rating": 9}', "'rating' is not on the scale 1-5"),
        ('{"rating": 4', "the answer cannot be read"),
        ("[4]", "the answer cannot be read"),
    ],
)  # fmt: skip
def test_answers_that_are_none(text: str, kind: str) -> None:
    found = read(answer(text), FIVE, ())
    assert isinstance(found, Unreadable)
    assert found.kind == kind
    if text and kind.startswith("the answer cannot"):
        assert found.reason == f"{kind}: '{text}'"


def test_refusals_and_cut_answers_say_so() -> None:
    refused = read(answer("", refusal="I can't help with that."), FIVE, ())
    assert refused == Unreadable("the model refused to answer", "I can't help with that.")
    cut = read(answer("", finish_reason="length"), FIVE, ())
    assert cut == Unreadable("the answer is empty (finish_reason length)")


def test_a_number_is_weighted_by_the_probabilities_at_its_place() -> None:
    # 4 has .5 + .1 (with a blank), 5 has .2, 2 has .1; .1 is said to be something else
    place = token("4", **{"4": 0.5, "_4": 0.1, "5": 0.2, "2": 0.1, "x": 0.1})
    expected = (4 * 0.6 + 5 * 0.2 + 2 * 0.1) / 0.9  # 3.6 / 0.9 = 4
    found = read(answer("Score: 4", token("Score"), token(":"), token(" "), place), FIVE, ())
    assert isinstance(found, Reading)
    assert found.values[ONLY] == pytest.approx(expected, abs=1e-12)
    assert expected == pytest.approx(4.0)
    assert found.mass == pytest.approx(0.9)


def test_prose_is_read_by_its_first_token_if_that_could_have_been_a_number() -> None:
    likely = token("I", **{"I": 0.7, "3": 0.1, "1": 0.1})
    found = read(answer("I think", likely, token(" think")), FIVE, ())
    assert isinstance(found, Reading)
    # (3 * .1 + 1 * .1) / .2 = 2
    assert found.values[ONLY] == pytest.approx(2.0)
    assert found.mass == pytest.approx(0.2)
    rarely = token("I", **{"I": 0.92, "3": 0.08})
    assert isinstance(read(answer("I think", rarely), FIVE, ()), Unreadable)


def test_dimensions_are_weighted_each_at_its_place() -> None:
    text = '{"content": 2, "grammar": 5}'
    tokens = [
        token('{"content"'), token(":"), token(" 2", _2=0.5, _4=0.5),
        token(', "grammar": '), token("5", **{"5": 0.6, "1": 0.2}), token("}"),
    ]  # fmt: skip
    found = read(answer(text, *tokens), FIVE, ("content", "grammar"))
    assert isinstance(found, Reading)
    # (2 + 4) / 2 = 3;  (5 * .6 + 1 * .2) / .8 = 3.2 / .8 = 4
    assert found.values == pytest.approx({"content": 3.0, "grammar": 4.0})
    assert found.mass == pytest.approx(0.8)
    fenced = read(answer(f"```json\n{text}\n```"), FIVE, ("content", "grammar"))
    assert fenced == Reading({"content": 2.0, "grammar": 5.0})
    missing = read(answer('{"content": 2}'), FIVE, ("content", "grammar"))
    assert isinstance(missing, Unreadable)


def test_where_numbers_begin_alike_probabilities_are_not_read() -> None:
    found = read(answer("10", token("1", **{"1": 0.9, "2": 0.1}), token("0")), Scale(1, 10), ())
    assert found == Reading({ONLY: 10.0})


@pytest.mark.parametrize(
    "logprobs", [[], {"content": 3}, {"content": [{"token": "4"}]}, {"tokens": ["4"]}, "x"]
)
def test_probabilities_in_another_form_are_left_out(logprobs: Any) -> None:
    assert read(Answer("4", logprobs=logprobs), FIVE, ()) == Reading({ONLY: 4.0})


@given(st.text(), st.lists(st.tuples(st.text(), st.floats()), max_size=6))
def test_no_answer_breaks_the_parser(text: str, tops: list[tuple[str, float]]) -> None:
    content = [
        {"token": c, "top_logprobs": [{"token": t, "logprob": p} for t, p in tops]} for c in text
    ]
    for dimensions in ((), ("a", "b")):
        found = read(Answer(text, logprobs={"content": content}), FIVE, dimensions)
        if isinstance(found, Reading):
            assert all(1 <= value <= 5 for value in found.values.values())
            assert found.mass is None or 0 < found.mass <= 1

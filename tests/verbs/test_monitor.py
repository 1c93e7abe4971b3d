"""Warnings of Python callers."""

from __future__ import annotations

import warnings

import pytest

import rejoinder
from rejoinder.verbs.monitor import RejoinderWarning


def test_guessed_columns_are_a_warning_at_the_line_of_the_caller() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"bot_answer": ["a"], "references": [["a"]]})
    with pytest.warns(RejoinderWarning, match="bot_answer") as caught:
        rejoinder.score(frame, "rouge-l")
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = pandas.DataFrame({"id": ["1"], "response": ["a"], "references": [["a"]]})
        rejoinder.score(frame, "rouge-l")

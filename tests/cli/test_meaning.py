"""Metrics of meaning as a user types them: what must be said is said."""

from __future__ import annotations

import json

import pytest

from support import Run


@pytest.mark.parametrize("verb", ["score", "compare"])
def test_texts_that_were_cut_are_counted(run: Run, verb: str) -> None:
    replies = {"one": "a word " * 600, "other": "a word"}
    lines = [
        {
            "id": f"{name} {question}",
            "system": name,
            "context": [question],
            "response": text,
            "references": ["words"],
        }
        for name, text in replies.items()
        for question in ("Well?", "What?")
    ]
    stdin = "\n".join(map(json.dumps, lines)).encode()
    done = run(verb, "-", "-m", "bertscore", stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"model minilm: 1 text was too long and truncated") == 1

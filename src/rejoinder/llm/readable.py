"""The text of an answer without what is around it, or why it cannot be read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rejoinder.llm.chat import Answer

MAX_SHOWN = 80
"""Characters of an unreadable answer that its reason shows."""
REFUSED = "the model refused to answer"
UNREADABLE = "the answer cannot be read"
THINKING = "the answer ends while the model is thinking; a larger max_tokens may help"

_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)
FENCE = re.compile(r"\s*```(?:json)?[ \t]*\n(?P<inside>.*?)\n?\s*```\s*", re.DOTALL)
"""A block of code, as models put around JSON."""


@dataclass(frozen=True)
class Unreadable:
    """Why an answer cannot be read."""

    kind: str
    text: str = ""

    @property
    def reason(self) -> str:
        shown = " ".join(self.text.split())
        shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
        return f"{self.kind}: '{shown}'" if shown else self.kind


def plain_answer(answer: Answer) -> tuple[str, int, Unreadable | None]:
    """Return the text after the model's thoughts, where it begins, and why there is none."""
    if answer.refusal is not None:
        return "", 0, Unreadable(REFUSED, answer.refusal)
    start = 0
    if answer.text.lstrip().startswith("<think>"):
        thoughts = _THOUGHTS.match(answer.text)
        if thoughts is None:
            return "", 0, Unreadable(THINKING)
        start = thoughts.end()
    text = answer.text[start:]
    if not text.strip():
        finish = answer.finish_reason
        why = "" if finish in (None, "stop") else f" (finish_reason {finish})"
        return "", 0, Unreadable(f"the answer is empty{why}")
    return text, start, None

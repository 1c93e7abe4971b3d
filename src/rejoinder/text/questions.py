"""Recognise questions by their question mark, in any language that uses one."""

from __future__ import annotations

import re

QUESTION_MARKS = "?？؟՞፧"
"""Latin, full-width, Arabic, Armenian, Ethiopic."""
OTHER_MARKS = ".!…。！｡।۔"
_MARKS = re.compile(f"[{re.escape(QUESTION_MARKS + OTHER_MARKS)}]")


def is_question(text: str) -> bool:
    """Return whether the last mark that ends a sentence is a question mark.

    >>> [is_question(t) for t in ("Fun. Was it warm?", "Was it? I see.", "何時？", "who knows", "")]
    [True, False, True, False, False]
    """
    marks = _MARKS.findall(text)
    return bool(marks) and marks[-1] in QUESTION_MARKS

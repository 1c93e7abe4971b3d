"""Does somebody ask something? Told by question marks, in any language that writes them."""

from __future__ import annotations

import re

QUESTION = "?？؟՞፧"
"""Latin, of full width, Arabic, Armenian, Ethiopic."""
OTHER = ".!…。！｡।۔"
_MARKS = re.compile(f"[{re.escape(QUESTION + OTHER)}]")


def is_question(text: str) -> bool:
    """Is the last mark that ends a sentence a question mark?

    >>> [is_question(t) for t in ("Fun. Was it warm?", "Was it? I see.", "何時？", "who knows", "")]
    [True, False, True, False, False]
    """
    marks = _MARKS.findall(text)
    return bool(marks) and marks[-1] in QUESTION

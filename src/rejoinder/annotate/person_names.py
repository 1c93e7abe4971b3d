"""Names of the people who take part."""

from __future__ import annotations

import unicodedata

MAX_NAME = 80
MAX_INVITED_NAME = 200
JOINERS = "\u200c\u200d"
"""Between letters of Persian and Indic names, and inside emoji."""


def clean_name(text: str, limit: int = MAX_NAME) -> str | None:
    """Return a name with ordinary blanks, and none at its ends; None if it is empty, too long, or
    has control characters.

    >>> clean_name(" 山田　花子 "), clean_name("a\\nb"), clean_name(" ")
    ('山田 花子', None, None)
    """
    blanks = (" " if unicodedata.category(each) == "Zs" else each for each in text)
    name = "".join(blanks).strip()
    if not name or len(name) > limit:
        return None
    return name if all(each.isprintable() or each in JOINERS for each in name) else None

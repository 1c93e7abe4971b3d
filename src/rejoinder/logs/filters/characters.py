"""Tables that classify every code point as space, emoji, letter, and so on.

They are made with the package ``regex``, because the standard library knows neither scripts nor
emoji, once in each process, when the first batch is cleaned.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

from rejoinder.kernels import cleaning as kernel
from rejoinder.text.scripts import scripts_of

# isspace(), control characters, and other blanks: zero-width, Hangul and Braille
_SPACE = r"[\s\p{Cc}\p{Z}\u180e\u200b\u2060\ufeff\u2800\u3164]"
# symbols that are also ordinary text are emoji only before an emoji variation selector
_TEXTUAL = r"[©®‼⁉™ℹ↔-↪〰〽㊗㊙Ⓜ]"
_EMOJI = rf"(?!{_TEXTUAL})[\p{{Emoji}}--[\x00-\x7f]]|[\U0001f000-\U0001ffff&&\p{{ExtPict}}]"
_PART = r"[\u200d\u20e3\ufe0e\ufe0f\U000e0020-\U000e007f]"

_PATTERNS = {
    kernel.SPACE: _SPACE,
    kernel.EMOJI: _EMOJI,
    kernel.TEXTUAL: _TEXTUAL,
    kernel.PART: _PART,
    kernel.LETTER: r"\p{L}",
    kernel.DIGIT: r"\p{Nd}",
    kernel.NAME: r"[A-Za-z0-9_]",
    kernel.TAG: r"[\p{L}\p{M}\p{Nd}_]",
}

UNSPACED = frozenset(("ja", "zh", "th", "lo", "km", "my", "bo", "dz"))
"""Languages without spaces between words."""

_PROLONGED = {"ja": "ーｰ"}  # shared by several scripts


@cache
def table(language: str) -> NDArray[np.uint16]:
    """Return the bits of ``kernels.cleaning`` for every code point, with OWN for this language."""
    scripts = "".join(rf"\p{{Script={script}}}" for script in scripts_of(language))
    own = rf"[[{scripts}]&&\p{{L}}]"
    if language in _PROLONGED:
        own += f"|[{_PROLONGED[language]}]"
    kinds = _common().copy()
    _set(kinds, own, kernel.OWN)
    return kinds


@cache
def _common() -> NDArray[np.uint16]:
    kinds = np.zeros(0x110000, np.uint16)
    for bit, pattern in _PATTERNS.items():
        _set(kinds, pattern, bit)
    return kinds


def _set(kinds: NDArray[np.uint16], pattern: str, bit: int) -> None:
    for match in regex.finditer(f"(?:{pattern})+", _all_characters(), flags=regex.V1):
        kinds[match.start() : match.end()] |= bit


@cache
def _all_characters() -> str:
    return "".join(map(chr, range(0x110000)))

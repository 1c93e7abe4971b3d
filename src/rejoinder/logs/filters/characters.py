"""What each code point is, as one table of bits a language, and how languages are written.

The tables come from the package ``regex``, which knows scripts and emoji; the standard library
does not. They are made once a process, when the first batch is cleaned.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

from rejoinder.kernels import cleaning as kernel

# isspace(), controls, and blanks that others use as such: zero-width, Hangul and Braille ones
_SPACE = r"[\s\p{Cc}\p{Z}\u180e\u200b\u2060\ufeff\u2800\u3164]"
# pictures that are also ordinary signs of a text count as emoji only when the style mark says so
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

_CYRILLIC = "ab av ba be bg ce cu cv kv ky mk mn os ru tg tt uk"
_SCRIPTS = {
    "ja": "Hiragana Katakana Han",
    "zh": "Han Bopomofo",
    "ko": "Hangul",
    "el": "Greek",
    "hy": "Armenian",
    "ka": "Georgian",
    "th": "Thai",
    "lo": "Lao",
    "km": "Khmer",
    "my": "Myanmar",
    "si": "Sinhala",
    "ta": "Tamil",
    "te": "Telugu",
    "kn": "Kannada",
    "ml": "Malayalam",
    "gu": "Gujarati",
    "or": "Oriya",
    "dv": "Thaana",
    "ii": "Yi",
    "pa": "Gurmukhi Arabic",
    "iu": "Canadian_Aboriginal Latin",
    "cr": "Canadian_Aboriginal Latin",
    "oj": "Canadian_Aboriginal Latin",
    **dict.fromkeys(("he", "yi"), "Hebrew"),
    **dict.fromkeys(("am", "ti"), "Ethiopic"),
    **dict.fromkeys(("bo", "dz"), "Tibetan"),
    **dict.fromkeys(("as", "bn"), "Bengali"),
    **dict.fromkeys(("hi", "mr", "ne", "sa", "pi"), "Devanagari"),
    **dict.fromkeys(("ar", "fa", "ps", "ug", "ur"), "Arabic"),
    **dict.fromkeys(("ks", "sd"), "Arabic Devanagari"),
    **dict.fromkeys(("ku", "ms"), "Latin Arabic"),
    **dict.fromkeys(_CYRILLIC.split(), "Cyrillic"),
    **dict.fromkeys(("az", "bs", "kk", "sr", "tk", "uz"), "Cyrillic Latin"),
}
_PROLONGED = {"ja": "ーｰ"}  # in no script of their own: several share them


def scripts(language: str) -> tuple[str, ...]:
    """The Unicode scripts in which a language is written; Latin where nothing else is known."""
    return tuple(_SCRIPTS.get(language, "Latin").split())


@cache
def table(language: str) -> NDArray[np.uint16]:
    """For every code point the bits of ``kernels.cleaning``, OWN of this language."""
    shares = "".join(rf"\p{{Script={script}}}" for script in scripts(language))
    own = rf"[[{shares}]&&\p{{L}}]"
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
    for match in regex.finditer(f"(?:{pattern})+", _everything(), flags=regex.V1):
        kinds[match.start() : match.end()] |= bit


@cache
def _everything() -> str:
    return "".join(map(chr, range(0x110000)))

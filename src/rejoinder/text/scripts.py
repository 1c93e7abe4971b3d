"""Scripts of languages, and detection of text that a tokenizer failed to split.

A tokenizer that splits at spaces makes one long "word" of a Japanese sentence. Texts that were
tokenized beforehand are fine, so the tokens are examined, not the text: a run of characters that
is longer than any word. Katakana alone is exempt: loan words such as コミュニケーション are long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA, _KATAKANA = "\u3041-\u309f", "\u30a0-\u30ff"
_SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"


@dataclass(frozen=True)
class Script:
    """A script without spaces, and the tokenizers that split it."""

    name: str
    advice: str


CHINESE = Script("Chinese", "tok=zh-jieba or tok=char")
JAPANESE = Script("Japanese", "tok=ja-mecab or tok=char")
SOUTH_EAST_ASIAN = Script("Thai, Lao, Khmer or Burmese", "tok=char")

_KANA = re.compile(f"[{_HIRAGANA}{_KATAKANA}]")


@cache
def _too_long(max_length: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of runs too long for a word, in East and South East Asian scripts."""
    east = (
        f"(?=[{_KATAKANA}]*[{_HIRAGANA}{_HAN}])[{_HIRAGANA}{_KATAKANA}{_HAN}]{{{max_length + 1},}}"
    )
    # Thai and its neighbours write several code points a letter
    south_east = f"[{_SOUTH_EAST}]{{{4 * max_length},}}"
    return re.compile(east), re.compile(south_east)


def unsplit_script(tokens: Sequence[str], max_length: int) -> Script | None:
    """Return the script of a token that is longer than ``max_length`` characters, or None."""
    east, south_east = _too_long(max_length)
    for token in tokens:
        if len(token) > max_length and not token.isascii():
            if east.search(token):
                return JAPANESE if any(map(_KANA.search, tokens)) else CHINESE
            if south_east.search(token):
                return SOUTH_EAST_ASIAN
    return None


def scripts_of(language: str) -> tuple[str, ...]:
    """Return the Unicode scripts in which a language is written; Latin if it is not listed.

    >>> scripts_of("ja"), scripts_of("en")
    (('Hiragana', 'Katakana', 'Han'), ('Latin',))
    """
    return tuple(_SCRIPTS.get(language, "Latin").split())


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

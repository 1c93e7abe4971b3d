"""Scripts that are written without spaces, and how to notice text left in one piece.

A tokenizer that splits at spaces makes one long "word" of a Japanese sentence. Text that was
split beforehand is fine, so what counts is the token, not the text: a run of characters that
is longer than words are. Katakana alone is exempt: コミュニケーション is one word, and such
loan words grow long.
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
    """A way of writing, and the tokenizers that split it."""

    name: str
    advice: str


CHINESE = Script("Chinese", "tok=zh-jieba or tok=char")
JAPANESE = Script("Japanese", "tok=ja-mecab or tok=char")
SOUTH_EAST_ASIAN = Script("Thai, Lao, Khmer or Burmese", "tok=char")

_KANA = re.compile(f"[{_HIRAGANA}{_KATAKANA}]")


@cache
def _too_long(longest: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Runs that are no words: of Han and kana but not of katakana alone, and further south."""
    east = f"(?=[{_KATAKANA}]*[{_HIRAGANA}{_HAN}])[{_HIRAGANA}{_KATAKANA}{_HAN}]{{{longest + 1},}}"
    # Thai and its neighbours write several code points a letter
    south_east = f"[{_SOUTH_EAST}]{{{4 * longest},}}"
    return re.compile(east), re.compile(south_east)


def unsplit(tokens: Sequence[str], longest: int) -> Script | None:
    """The script of tokens of which one runs on for more than ``longest`` characters, or None."""
    east, south_east = _too_long(longest)
    for token in tokens:
        if len(token) > longest and not token.isascii():
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

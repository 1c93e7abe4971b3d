"""Dictionary forms and readings of single Japanese words, by MeCab with the IPA dictionary."""

from __future__ import annotations

import unicodedata

from rejoinder.text.tokenizers.ja_mecab import tagger

_BASE_FORM, _READING = 6, 7
"""Fields of the features in the IPA dictionary."""
_KATAKANA_TO_HIRAGANA = {code: code - 0x60 for code in range(ord("ァ"), ord("ヶ") + 1)}


def base_form(word: str) -> str | None:
    """Return the dictionary form of one morpheme, None if it is none or unknown.

    >>> base_form("思っ"), base_form("今日は")
    ('思う', None)
    """
    return _feature(word, _BASE_FORM)


def hiragana_reading(word: str) -> str | None:
    """Return how one morpheme is read, in hiragana; None if it is none or unknown.

    >>> hiragana_reading("出来る")
    'できる'
    """
    reading = _feature(word, _READING)
    return None if reading is None else reading.translate(_KATAKANA_TO_HIRAGANA)


def normal_width(word: str) -> str:
    """Return a word with full-width Latin letters and half-width katakana in the usual width.

    >>> normal_width("ｗ"), normal_width("ﾃｽﾄ")
    ('w', 'テスト')
    """
    return unicodedata.normalize("NFKC", word)


def _feature(word: str, number: int) -> str | None:
    morphemes = tagger()(word.replace("\0", " ").encode("utf-8", "replace").decode())
    if len(morphemes) != 1:
        return None
    features = morphemes[0].feature
    return str(features[number]) if len(features) > number and features[number] != "*" else None

"""Which language a post is in: the platform's label, and a classifier that must agree.

The classifier is CLD2, whose tables lie in the package ``pycld2``. On short, slangy posts it
names rare languages (Klingon for "oh yeah ..."), so it is believed only where it is reliable,
has read enough, and names a language that people post in.

Measured: it removes 0.43 % of the posts of twitter/conversations.txt (46, of which some 28 are
Spanish, French, Portuguese or Hindi indeed), 0.07 % of DailyDialog, 0.002 % of
real-persona-chat-ja and none of xdailydialog-zh. Of short sentences in other languages (Django's
messages, 15 to 140 characters) taken for English, classifier and script together remove 79 %
(Italian) to 99 % of those in Latin script and 91 % to 100 % of the others; of Chinese taken for
Japanese 95 %, of Japanese taken for Chinese 99.9 %. Without "names a language that people post
in" and 16 bytes, 2.4 % of the real tweets would go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.errors import MissingExtra
from rejoinder.logs.filters.rewrite import EMAIL_MASK, PHONE_MASK

FEWEST_BYTES = 16
"""What CLD2 must have read: 16 Latin letters and spaces, or 5 Chinese characters."""

_CODES = """\
ar bg bn cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt ro ru sk sl sr
sv ta te th tl tr uk ur vi zh"""
POSTED = frozenset(_CODES.split())
"""Languages that are often posted: any other verdict is taken for slang."""

# old codes and names of one language in different places; Scots and English differ too little
_SAME = {
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "jw": "jv",
    "fil": "tl",
    "msa": "ms",
    "nb": "no",
    "nn": "no",
    "sco": "en",
    "cmn": "zh",
    "yue": "zh",
}
# what platforms write when they do not know: und, zxx, art, mis, mul, Twitter's qme, qht, …
_NO_LANGUAGE = re.compile(r"|und|un|unknown|zxx|art|mis|mul|q[a-z]{2}|xx.*")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\uff66-\uff9d]")


def plain(code: str) -> str:
    """The language of a tag, nothing else: ``zh-Hant`` is ``zh``; empty for none."""
    first = re.split("[-_]", code.strip().lower())[0]
    return "" if _NO_LANGUAGE.fullmatch(first) else _SAME.get(first, first)


def labelled_otherwise(labels: pa.Array, language: str) -> NDArray[np.bool_]:
    """Where the platform names another language; no label, or an unknown one, names none."""
    if labels.null_count == len(labels):
        return np.zeros(len(labels), np.bool_)
    names = labels.dictionary_encode()
    other = pa.array([plain(n) not in ("", plain(language)) for n in names.dictionary.to_pylist()])
    found = pc.fill_null(other.take(names.indices), False)
    return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def sounds_otherwise(texts: Sequence[str], language: str) -> list[bool]:
    """Which texts the classifier is sure to be in another language."""
    own = plain(language)
    return [_sure_of_another(text, own) for text in texts]


def _sure_of_another(text: str, own: str) -> bool:
    cld2 = classifier()
    if "<" in text:
        text = text.replace(EMAIL_MASK, " ").replace(PHONE_MASK, " ")
    try:
        reliable, size, found = cld2.detect(text, bestEffort=True)
    except cld2.error:  # a code point that it takes for broken text
        return False
    verdict = plain(found[0][1])
    if not reliable or size < FEWEST_BYTES or verdict == own or verdict not in POSTED:
        return False
    if own == "zh" and verdict == "ja" and not _KANA.search(text):
        return False  # nothing but Han, as in 当然可以: the label may decide, letters cannot
    return not any(plain(code) == own and percent >= 20 for _, code, percent, _ in found)


@cache
def classifier():  # type: ignore[no-untyped-def]
    """The module, loaded when it is first asked."""
    try:
        import pycld2
    except ImportError:
        raise MissingExtra(
            "the language filter needs pycld2: pip install pycld2, or leave the classifier out"
        ) from None
    return pycld2

"""Rewriting filters with regular expressions: entities, URLs, e-mail addresses, phone numbers.

Each gets only the texts that may match, as determined by ``kernels.cleaning.scan``. A removed part
is replaced by a space, so that the words around it stay separate; white space is cleaned later.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.entities import html5

import pyarrow as pa
import pyarrow.compute as pc

EMAIL_MASK, PHONE_MASK = "<email>", "<phone>"

# an archive that escapes twice turns < into &amp;lt;
_ENTITY = re.compile(r"&((?:amp;)*)(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

# A URL is ASCII: Japanese may follow without a space. It does not end with punctuation.
_IN_URL = r"[!#-;=?-Z\[\]_a-z~]"
_END_OF_URL = r"[#-&*+/-9=@-Z_a-z~-]"
_HOST = r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*"
# without a scheme only with a path and a well-known ending: "Amazon.com" may be just a name
_ENDINGS = "com|net|org|info|jp|cn|tw|kr|uk|de|fr|ru|be|ly|gl|co|io|tv|fm|me"
# both cases are spelled out: ignoring case, RE2 matches ſ as an s
_URL = (
    rf"(?:(?:[Hh][Tt][Tt][Pp][Ss]?|[Ff][Tt][Pp])://(?:{_IN_URL}*{_END_OF_URL})?"
    rf"|[Ww]{{3}}\.{_HOST}\.[A-Za-z]+(?:[/?:]{_IN_URL}*{_END_OF_URL})?"
    rf"|{_HOST}\.(?:{_ENDINGS})/{_IN_URL}*{_END_OF_URL})…?"
)

# @name@host.example is a user of another server, not an address
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?<!^[@＠])(?<![^A-Za-z0-9_][@＠])"
    r"[A-Za-z0-9_][A-Za-z0-9._%+-]*[@＠](?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,24}"
)

_D, _S = "[0-9０-９]", "[ .‐‑‒–−－ー-]"
_OPEN, _CLOSE = "[(（]?", "[)）]?"
_PHONE = re.compile(
    # not inside a word or number, not an amount of money or a list number
    rf"(?<![0-9０-９A-Za-z_$€£¥￥#=])(?<![0-9０-９][.,:/-])"
    r"(?:"
    # +81 90 1234 5678, +1 (415) 555-2671
    rf"(?P<international>[+＋]{_D}{{1,3}}(?:{_S}?{_OPEN}{_D}{{1,5}}{_CLOSE}){{1,5}})"
    # 03-1234-5678, (03)1234-5678, 0120-123-456, 020 7946 0958, 01 23 45 67 89, 07911 123456
    rf"|(?P<national>{_OPEN}[0０]{_D}{{1,4}}{_CLOSE}(?:{_S}?{_OPEN}{_D}{{1,8}}{_CLOSE}){{1,4}})"
    # (415) 555-2671, 1-800-555-0199, 4155552671
    rf"|(?:[1１]{_S})?{_OPEN}[2-9２-９]{_D}{{2}}{_CLOSE}{_S}?{_D}{{3}}{_S}{_D}{{4}}"
    rf"|[2-9２-９]{_D}{{2}}[2-9２-９]{_D}{{6}}"
    # 13812345678, 138-1234-5678
    rf"|[1１][3-9３-９]{_D}{_S}?{_D}{{4}}{_S}?{_D}{{4}}"
    rf")(?![0-9０-９A-Za-z_])(?![.,:/-][0-9０-９])(?! ?[円元万億亿%％])"
)
_DIGIT = re.compile(_D)


def entities(texts: pa.Array) -> pa.Array:
    """Decode ``&amp;`` to ``&``, also if escaped twice; unknown names are kept."""
    return _each(texts, lambda text: _ENTITY.sub(_character, text))


def urls(texts: pa.Array) -> pa.Array:
    """Remove URLs, also those that a platform cut off."""
    return pc.replace_substring_regex(texts, _URL, " ")


def emails(texts: pa.Array) -> pa.Array:
    """Mask e-mail addresses, so that an evaluator does not contain personal data."""
    return _each(texts, lambda text: _EMAIL.sub(EMAIL_MASK, text))


def phones(texts: pa.Array) -> pa.Array:
    """Mask phone numbers, but not years, prices, scores and dates."""
    return _each(texts, lambda text: _PHONE.sub(_mask, text))


def _character(match: re.Match[str]) -> str:
    escaped, body = match.groups()
    if body.startswith("#") or body + ";" in html5:
        return html.unescape(f"&{body};")
    return f"&{body};" if escaped else match[0]


def _mask(match: re.Match[str]) -> str:
    digits = len(_DIGIT.findall(match[0]))
    if match["international"]:
        return PHONE_MASK if 8 <= digits <= 15 else match[0]
    if match["national"]:
        return PHONE_MASK if 10 <= digits <= 12 else match[0]
    return PHONE_MASK


def _each(texts: pa.Array, change: Callable[[str], str]) -> pa.Array:
    return pa.array([change(text) for text in texts.to_pylist()], pa.string())

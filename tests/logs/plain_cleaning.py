"""The cleaning rules in plain Python, one post at a time.

Nothing is shared with the package but the settings and the expressions of bot clients. It is
the truth that tests compare with, and the peer that the benchmark measures against.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache

import pycld2
import regex

from rejoinder.logs.clean import Cleaning

SPACE = r"\s\p{Cc}\p{Z}\u180e\u200b\u2060\ufeff\u2800\u3164"
TEXTUAL = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u24c2\u3030\u303d\u3297\u3299"

ENTITY = re.compile(r"&(?:amp;)*(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});", re.A)
TAIL = r"[!#-;=?-Z\[\]_a-z~]*[A-Za-z0-9#$%&*+/=@_~-]"
ENDING = r"com|net|org|info|jp|cn|tw|kr|uk|de|fr|ru|be|ly|gl|co|io|tv|fm|me"
HOST = r"[A-Za-z\d-]+(?:\.[A-Za-z\d-]+)*"
URL = re.compile(
    rf"(?:(?i:https?|ftp)://(?:{TAIL})?|(?i:www)\.{HOST}\.[A-Za-z]+(?:[/?:]{TAIL})?"
    rf"|{HOST}\.(?:{ENDING})/{TAIL})…?",
    re.A,
)
EMAIL = regex.compile(
    r"(?<![\w.%+-])(?<!(?<!\w)[@＠])\w[\w.%+-]*[@＠](?:[a-z\d][a-z\d-]*\.)+[a-z]{2,24}",
    regex.I | regex.A,
)
USER = re.compile(r"(?<!\w)[@＠]\w+(?:[@＠][a-z\d](?:[a-z\d.-]*[a-z\d])?)?", re.I | re.A)
HASHTAG = regex.compile(
    r"(?<![\p{L}\p{M}\p{Nd}_&])[#＃](?=[\p{M}\p{Nd}_]*\p{L})[\p{L}\p{M}\p{Nd}_]+"
)
PICTURE = (
    rf"(?:(?![{TEXTUAL}\x00-\x7f])\p{{Emoji}}|(?=[\U0001f000-\U0001ffff])\p{{ExtPict}}"
    rf"|[{TEXTUAL}]\ufe0f|[0-9#*]\ufe0f?\u20e3)"
)
EMOJI = regex.compile(
    rf"{PICTURE}(?:{PICTURE}|[\u200d\u20e3\ufe0e\ufe0f\U000e0020-\U000e007f])*|[\ufe0e\ufe0f]"
)
SPACES = regex.compile(f"[{SPACE}]+")
WORD = regex.compile(f"[^{SPACE}]+")
LETTER = regex.compile(r"\p{L}")

D, S = r"[\d０-９]", "[ .‐‑‒–−－ー-]"
NOT_BEFORE = rf"(?<![\w０-９$€£¥￥#=])(?<!{D}[.,:/-])"
NOT_AFTER = rf"(?![\w０-９])(?![.,:/-]{D})(?! ?[円元万億亿%％])"
PHONE_PATTERNS = [  # in the order in which they are tried, with the fewest and most digits
    (rf"[+＋]{D}{{1,3}}(?:{S}?[(（]?{D}{{1,5}}[)）]?){{1,5}}", 8, 15),
    (rf"[(（]?[0０]{D}{{1,4}}[)）]?(?:{S}?[(（]?{D}{{1,8}}[)）]?){{1,4}}", 10, 12),
    (rf"(?:[1１]{S})?[(（]?[2-9２-９]{D}{D}[)）]?{S}?{D}{{3}}{S}{D}{{4}}", 10, 11),
    (rf"[2-9２-９]{D}{D}[2-9２-９]{D}{{6}}", 10, 10),
    (rf"[1１][3-9３-９]{D}{S}?{D}{{4}}{S}?{D}{{4}}", 11, 11),
]
PHONES = [
    (re.compile(NOT_BEFORE + p + NOT_AFTER, re.A), low, high) for p, low, high in PHONE_PATTERNS
]
MAYBE_PHONE = re.compile(rf"(?:{D}\D*){{8}}", re.A)

UNSPACED = {"ja", "zh", "th", "lo", "km", "my", "bo", "dz"}
SCRIPTS = {
    "ja": r"[\p{Hiragana}\p{Katakana}\p{Han}ーｰ]",
    "zh": r"[\p{Han}\p{Bopomofo}]",
    "en": r"\p{Latin}",
    "ru": r"\p{Cyrillic}",
    "ar": r"\p{Arabic}",
    "th": r"\p{Thai}",
}
_CODES = """\
ar bg bn cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt ro ru sk sl sr
sv ta te th tl tr uk ur vi zh"""
OFTEN = set(_CODES.split())
NAMES = {"iw": "he", "in": "id", "fil": "tl", "msa": "ms", "nb": "no", "nn": "no", "sco": "en"}
NAMES |= {"ji": "yi", "jw": "jv", "cmn": "zh", "yue": "zh"}


def entities(text: str, cleaning: Cleaning) -> str:
    def character(match: re.Match[str]) -> str:
        once = "&" + match[0].removeprefix("&").removeprefix("amp;")
        while once.startswith("&amp;") and once != "&amp;":
            once = "&" + once.removeprefix("&amp;")
        if match[0] == "&amp;" or once == "&":
            return "&"
        if once.startswith("&#") or once[1:] in html.entities.html5:
            return html.unescape(once)
        return once

    return ENTITY.sub(character, text) if "&" in text else text


def urls(text: str, cleaning: Cleaning) -> str:
    return URL.sub(" ", text) if "/" in text or "." in text else text


def emails(text: str, cleaning: Cleaning) -> str:
    return EMAIL.sub("<email>", text) if "@" in text or "＠" in text else text


def phones(text: str, cleaning: Cleaning) -> str:
    if not MAYBE_PHONE.search(text):
        return text
    at, done = 0, []
    while True:
        # the leftmost match counts, of several the first format
        found = [(m.start(), n) for n, (p, _, _) in enumerate(PHONES) if (m := p.search(text, at))]
        if not found:
            return "".join(done) + text[at:]
        start, number = min(found)
        pattern, low, high = PHONES[number]
        match = pattern.match(text, start)
        assert match is not None
        digits = len(re.findall(D, match[0], re.A))
        done += [text[at:start], "<phone>" if low <= digits <= high else match[0]]
        at = match.end()


def users(text: str, cleaning: Cleaning) -> str:
    return USER.sub(" ", text) if "@" in text or "＠" in text else text


def hashtags(text: str, cleaning: Cleaning) -> str:
    return HASHTAG.sub(" ", text) if "#" in text or "＃" in text else text


def emoji(text: str, cleaning: Cleaning) -> str:
    if text.isascii():
        return text
    return EMOJI.sub(lambda match: "" if match[0] in "\ufe0e\ufe0f" else " ", text)


@lru_cache
def runs(most: int) -> regex.Pattern[str]:
    return regex.compile(rf"([^\p{{Nd}}{SPACE}])\1{{{most},}}")


def letters(text: str, cleaning: Cleaning) -> str:
    return runs(cleaning.max_letter_run).sub(lambda match: match[1] * cleaning.max_letter_run, text)


def words(text: str, cleaning: Cleaning) -> str:
    found = list(WORD.finditer(text))
    tokens = [match[0] for match in found]
    most, pieces, copied, at = cleaning.max_word_run, [], 0, 0
    while len(set(tokens)) < len(tokens) and at < len(tokens):
        step = 1
        for size in range(1, min(10, (len(tokens) - at) // (most + 1)) + 1):
            unit = tokens[at : at + size]
            times = 1
            while tokens[at + times * size : at + (times + 1) * size] == unit:
                times += 1
            if times > most and LETTER.search("".join(unit)):
                pieces.append(text[copied : found[at + size * most - 1].end()])
                step = size * times
                copied = found[at + step - 1].end()
                break
        at += step
    text = "".join(pieces) + text[copied:]
    if cleaning.language in UNSPACED and repeated(most).search(text):
        text = pieces_of(text, most)
    return text


@lru_cache
def repeated(most: int) -> re.Pattern[str]:
    return re.compile(rf"(?s)(.{{2,10}}?)\1{{{most},}}")


def pieces_of(text: str, most: int) -> str:
    """Where there are no spaces: pieces with a letter and with two different characters."""
    kept, at = [], 0
    while at < len(text):
        step, keep = 1, text[at]
        for size in range(2, 11):
            unit, times = text[at : at + size], 1
            while len(unit) == size and text.startswith(unit, at + times * size):
                times += 1
            if times > most and len(set(unit)) > 1 and LETTER.search(unit):
                step, keep = times * size, unit * most
                break
        kept.append(keep)
        at += step
    return "".join(kept)


def spaces(text: str, cleaning: Cleaning) -> str:
    return SPACES.sub(" ", text).strip(" ")


CHANGES = {
    "entities": entities,
    "urls": urls,
    "emails": emails,
    "phones": phones,
    "users": users,
    "hashtags": hashtags,
    "emoji": emoji,
    "letters": letters,
    "words": words,
    "spaces": spaces,
}


def plain_code(code: str) -> str:
    first = re.split("[-_]", code.strip().lower())[0]
    nothing = ("", "und", "un", "unknown", "zxx", "art", "mis", "mul")
    if first in nothing or re.fullmatch("q[a-z][a-z]|xx.*", first):
        return ""
    return NAMES.get(first, first)


def another_language(text: str, own: str) -> bool:
    try:
        masked = text.replace("<email>", " ").replace("<phone>", " ")
        reliable, size, found = pycld2.detect(masked, bestEffort=True)
    except pycld2.error:
        return False
    codes = [plain_code(code) for _, code, percent, _ in found if percent >= 20]
    first = plain_code(found[0][1])
    if not reliable or size < 16 or own in (first, *codes) or first not in OFTEN:
        return False
    kana = any("ぁ" <= c <= "ゖ" or "ァ" <= c <= "ヺ" or "ｦ" <= c <= "ﾝ" for c in masked)
    return not (own == "zh" and first == "ja" and not kana)


@lru_cache
def own_letters(language: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?V1)[{SCRIPTS[language]}&&\p{{L}}]")


@lru_cache
def bots(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.I)


def removed_by(text: str, label: str | None, client: str | None, cleaning: Cleaning) -> str | None:
    for name in cleaning.filters:
        if name == "bot-client":
            if client and bots(cleaning.clients).search(client):
                return name
        elif name == "language":
            if label and plain_code(label) not in ("", plain_code(cleaning.language)):
                return name
            if cleaning.classifier and another_language(text, plain_code(cleaning.language)):
                return name
        elif name == "short":
            if len(text) < cleaning.min_characters:
                return name
        elif name == "script":
            unmasked = text.replace("<email>", "").replace("<phone>", "")
            total = len(LETTER.findall(unmasked))
            own = len(own_letters(cleaning.language).findall(unmasked))
            if total == 0 or own < cleaning.script_share * total:
                return name
    return None


def clean_plain(
    text: str, label: str | None, client: str | None, cleaning: Cleaning
) -> tuple[str, list[str], str | None]:
    """The cleaned text, the filters that changed it, and the one that removed it."""
    changed = set()
    for _ in range(10):
        before = text
        for name, change in CHANGES.items():
            if name in cleaning.filters:
                after = change(text, cleaning)
                if after != text:
                    changed.add(name)
                    text = after
        if text == before:
            break
    names = [name for name in cleaning.filters if name in changed]
    return text, names, removed_by(text, label, client, cleaning)

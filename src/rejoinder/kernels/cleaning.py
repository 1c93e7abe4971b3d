"""Clean posts code point by code point, much faster than regular expressions.

``scan`` reads the bytes once and returns which rows a regular expression could match at all.
``tidy`` handles user names, hashtags, emoji, repeated letters, repeated words and white space in
one pass, in place: no step makes a text longer. ``measure`` counts letters for the filters that
remove posts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Bytes = NDArray[np.uint8]
Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

# what a row may contain: the result of scan()
ENTITY, URL, EMAIL, PHONE = 1, 2, 4, 8
# kinds of code points: bits of the table for tidy() and measure()
SPACE, EMOJI, TEXTUAL, PART, LETTER, DIGIT, NAME, TAG, OWN = (1 << bit for bit in range(9))
# steps of tidy(), in their order
USERS, HASHTAGS, EMOJIS, LETTERS, WORDS, SPACES = (1 << bit for bit in range(6))
MIN_DIGITS = 8  # of a phone number
MAX_UNIT = 10  # words of a repeated phrase, characters of a repeated string

_AT, _WIDE_AT, _HASH, _WIDE_HASH, _AMPERSAND = 0x40, 0xFF20, 0x23, 0xFF03, 0x26
_TEXT_STYLE, _EMOJI_STYLE, _KEYCAP, _STAR = 0xFE0E, 0xFE0F, 0x20E3, 0x2A
_MASKS = np.array([[ord(c) for c in mask] for mask in ("<email>", "<phone>")], dtype=np.int32)
_ALNUM = np.zeros(256, dtype=np.bool_)
_ALNUM[[c for c in range(128) if chr(c).isalnum()]] = True
_LOCAL = _ALNUM.copy()  # characters of an e-mail address before its @
_LOCAL[[ord(c) for c in "._%+-"]] = True
_DIAL = np.zeros(256, dtype=np.bool_)  # allowed between the digits of a phone number
_DIAL[[ord(c) for c in " +-.()"]] = True
_DIAL[128:] = True


@compiled
def _address(before, after, local, alnum):
    return EMAIL if local[before] and alnum[after] else 0


@compiled
def _scan(data, offsets, alnum, local, dial, flags):
    for row in range(offsets.size - 1):
        begin, end = offsets[row], offsets[row + 1]
        bits, digits, point = 0, 0, False
        for i in range(begin, end):
            c = data[i]
            if 48 <= c <= 57:
                digits += 1
                if digits >= MIN_DIGITS:
                    bits |= PHONE
                continue
            if c >= 128:
                # U+FF10 to U+FF19 are EF BC 90 to EF BC 99; other bytes are ignored
                if 0x90 <= c <= 0x99 and i - begin >= 2 and data[i - 1] == 0xBC:
                    digits += 1
                    if digits >= MIN_DIGITS:
                        bits |= PHONE
                elif c == 0xA0 and i - begin >= 3 and data[i - 1] == 0xBC:  # a full-width @
                    bits |= _address(data[i - 3], data[i + 1] if i + 1 < end else 0, local, alnum)
                continue
            if not dial[c]:
                digits = 0
            if c == 38:  # &
                if i + 2 < end and (data[i + 1] == 35 or alnum[data[i + 1]]):
                    bits |= ENTITY
            elif c == 46:  # .
                point = True
                if i - begin >= 3 and (data[i - 1] | 32) == 119 and (data[i - 2] | 32) == 119:
                    bits |= URL
            elif c == 47:  # /
                if i > begin and (data[i - 1] == 58 or (point and alnum[data[i - 1]])):
                    bits |= URL
            elif c == 64 and i > begin:  # @
                bits |= _address(data[i - 1], data[i + 1] if i + 1 < end else 0, local, alnum)
        flags[row] = bits


@compiled
def _decode(data, offsets, codes, starts):
    n = 0
    for row in range(offsets.size - 1):
        starts[row] = n
        i, end = offsets[row], offsets[row + 1]
        while i < end:
            c = np.int32(data[i])
            if c < 0x80:
                size = 1
            elif c < 0xE0:
                size = 2
            elif c < 0xF0:
                size = 3
            else:
                size = 4
            if i + size > end:  # invalid text must not be read beyond the row
                c, size = np.int32(0xFFFD), 1
            elif size == 2:
                c = (c & 0x1F) << 6 | (data[i + 1] & 0x3F)
            elif size == 3:
                c = (c & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)
            elif size == 4:
                c = (
                    (c & 0x07) << 18
                    | (data[i + 1] & 0x3F) << 12
                    | (data[i + 2] & 0x3F) << 6
                    | (data[i + 3] & 0x3F)
                )
            codes[n] = min(c, 0x10FFFF)
            n += 1
            i += size
    starts[offsets.size - 1] = n
    return n


@compiled
def _encode(codes, starts, ends, data, offsets):
    n = 0
    for row in range(ends.size):
        offsets[row] = n
        for i in range(starts[row], ends[row]):
            c = codes[i]
            if c < 0x80:
                data[n] = c
                n += 1
            elif c < 0x800:
                data[n] = 0xC0 | c >> 6
                data[n + 1] = 0x80 | (c & 0x3F)
                n += 2
            elif c < 0x10000:
                data[n] = 0xE0 | c >> 12
                data[n + 1] = 0x80 | (c >> 6 & 0x3F)
                data[n + 2] = 0x80 | (c & 0x3F)
                n += 3
            else:
                data[n] = 0xF0 | c >> 18
                data[n + 1] = 0x80 | (c >> 12 & 0x3F)
                data[n + 2] = 0x80 | (c >> 6 & 0x3F)
                data[n + 3] = 0x80 | (c & 0x3F)
                n += 4
    offsets[ends.size] = n
    return n


@compiled
def _in_host(c, kinds):
    return (kinds[c] & NAME) != 0 and c != 95


@compiled
def _users(codes, begin, end, kinds):
    """Replace ``@name`` and ``@name@host`` by a space, unless a name precedes the @."""
    w = i = begin
    while i < end:
        c = codes[i]
        if (
            c in (_AT, _WIDE_AT)
            and i + 1 < end
            and kinds[codes[i + 1]] & NAME
            and not (i > begin and kinds[codes[i - 1]] & NAME)
        ):
            i += 1
            while i < end and kinds[codes[i]] & NAME:
                i += 1
            if i + 1 < end and codes[i] in (_AT, _WIDE_AT):
                j = i + 1
                if _in_host(codes[j], kinds):  # a host neither begins nor ends with . or -
                    while j < end and (_in_host(codes[j], kinds) or 45 <= codes[j] <= 46):
                        if _in_host(codes[j], kinds):
                            i = j + 1
                        j += 1
            codes[w] = 32
        else:
            codes[w] = c
            i += 1
        w += 1
    return w


@compiled
def _hashtags(codes, begin, end, kinds):
    """Replace ``#tag`` with a letter in it by a space; keep ``#1`` and ``&#39``."""
    w = i = begin
    while i < end:
        c, after = codes[i], i + 1
        if c in (_HASH, _WIDE_HASH) and not (
            i > begin and (kinds[codes[i - 1]] & TAG or codes[i - 1] == _AMPERSAND)
        ):
            letter = False
            while after < end and kinds[codes[after]] & TAG:
                letter |= (kinds[codes[after]] & LETTER) != 0
                after += 1
            if letter:
                c = 32
            else:
                after = i + 1
        codes[w] = c
        w += 1
        i = after
    return w


@compiled
def _emoji_at(codes, i, end, kinds):
    """Return the number of code points of the emoji that begins here; 0 if there is none."""
    c = codes[i]
    if kinds[c] & EMOJI:
        return 1
    following = codes[i + 1] if i + 1 < end else 0
    if kinds[c] & TEXTUAL and following == _EMOJI_STYLE:
        return 2
    if c in (_HASH, _STAR) or 48 <= c <= 57:
        if following == _KEYCAP:
            return 2
        if following == _EMOJI_STYLE and i + 2 < end and codes[i + 2] == _KEYCAP:
            return 3
    return 0


@compiled
def _emojis(codes, begin, end, kinds):
    """Replace a run of emoji by a space, and delete stray style marks."""
    w = i = begin
    changed = False
    while i < end:
        c = codes[i]
        size = 0
        if c >= 0x80 or c < 58:
            size = _emoji_at(codes, i, end, kinds)
        if size:
            while size:
                i += size
                size = 0
                if i < end:
                    size = _emoji_at(codes, i, end, kinds)
                    if size == 0 and kinds[codes[i]] & PART:
                        size = 1
            codes[w] = 32
            w += 1
            changed = True
        elif c in (_EMOJI_STYLE, _TEXT_STYLE):
            i += 1
            changed = True
        else:
            codes[w] = c
            w += 1
            i += 1
    return w, changed


@compiled
def _letters(codes, begin, end, kinds, max_run):
    """Shorten runs of one character, neither digit nor white space, to ``max_run``."""
    w, run, last = begin, 0, -1
    for i in range(begin, end):
        c = codes[i]
        if c == last:
            run += 1
        else:
            run, last = 1, c
        if run <= max_run or kinds[c] & (DIGIT | SPACE):
            codes[w] = c
            w += 1
    return w


@compiled
def _equal(codes, a, a_end, b, b_end):
    if a_end - a != b_end - b:
        return False
    for k in range(a_end - a):  # noqa: SIM110
        if codes[a + k] != codes[b + k]:
            return False
    return True


@compiled
def _same_words(codes, t, unit, limit, n, begins, ends, keys):
    """Return how many words from t on, at most ``limit``, are repeated ``unit`` words later."""
    same = 0
    while same < limit and t + same + unit < n:
        one, other = t + same, t + same + unit
        if keys[one] != keys[other]:
            break
        if not _equal(codes, begins[one], ends[one], begins[other], ends[other]):
            break
        same += 1
    return same


@compiled
def _words(codes, begin, end, kinds, max_repeats, begins, ends, keys):
    """Shorten a phrase of up to MAX_UNIT words that is repeated to ``max_repeats`` times."""
    n, i = 0, begin
    while i < end:
        if kinds[codes[i]] & SPACE:
            i += 1
            continue
        begins[n] = i
        key = 0
        while i < end and not kinds[codes[i]] & SPACE:
            key = key * 31 + codes[i]
            i += 1
        ends[n], keys[n] = i, key
        n += 1
    if n <= max_repeats:
        return end
    w, copied, t = begin, begin, 0
    while t < n:
        step = 1
        for unit in range(1, min(MAX_UNIT, (n - t) // (max_repeats + 1)) + 1):
            same = _same_words(codes, t, unit, unit * max_repeats, n, begins, ends, keys)
            if same < unit * max_repeats:
                continue
            letter = False
            for k in range(begins[t], ends[t + unit - 1]):
                letter |= (kinds[codes[k]] & LETTER) != 0
            if letter:  # only now are all repetitions counted
                same = _same_words(codes, t, unit, n, n, begins, ends, keys)
                # words that are still to be examined are not overwritten
                stop = ends[t + unit * max_repeats - 1]
                for k in range(copied, stop):
                    codes[w] = codes[k]
                    w += 1
                step = unit * (same // unit + 1)
                copied = ends[t + step - 1]
                break
        t += step
    if copied == begin:
        return end
    for k in range(copied, end):
        codes[w] = codes[k]
        w += 1
    return w


@compiled
def _strings(codes, begin, end, kinds, max_repeats):
    """Shorten repeated strings of 2 to MAX_UNIT characters that are not all the same."""
    w = i = begin
    while i < end:
        step, kept = 1, 1
        for unit in range(2, min(MAX_UNIT, (end - i) // (max_repeats + 1)) + 1):
            if codes[i] != codes[i + unit]:
                continue
            same, enough = 1, unit * max_repeats
            while same < enough and codes[i + same] == codes[i + same + unit]:
                same += 1
            if same < enough:
                continue
            letter = various = False
            for k in range(i, i + unit):
                letter |= (kinds[codes[k]] & LETTER) != 0
                various |= codes[k] != codes[i]
            if letter and various:  # only now are all repetitions counted
                while i + same + unit < end and codes[i + same] == codes[i + same + unit]:
                    same += 1
                step, kept = unit * (same // unit + 1), enough
                break
        for k in range(kept):
            codes[w] = codes[i + k]
            w += 1
        i += step
    return w


@compiled
def _spaces(codes, begin, end, kinds):
    """Replace runs of white space by one space, and delete it at the ends."""
    w = begin
    changed = False
    for i in range(begin, end):
        c = codes[i]
        if kinds[c] & SPACE:
            if w > begin and codes[w - 1] != 32:
                changed |= c != 32
                codes[w] = 32
                w += 1
            else:
                changed = True
        else:
            codes[w] = c
            w += 1
    if w > begin and codes[w - 1] == 32:
        w -= 1
        changed = True
    return w, changed


@compiled
def _tidy(codes, starts, kinds, steps, letters, words, unspaced, ends, changed):
    longest = 1
    for row in range(starts.size - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    token_begins = np.empty(longest // 2 + 1, np.int64)
    token_ends = np.empty(longest // 2 + 1, np.int64)
    keys = np.empty(longest // 2 + 1, np.int64)
    for row in range(starts.size - 1):
        begin, end = starts[row], starts[row + 1]
        bits, before = 0, end
        if steps & USERS:
            end = _users(codes, begin, end, kinds)
            if end != before:
                bits |= USERS
        before = end
        if steps & HASHTAGS:
            end = _hashtags(codes, begin, end, kinds)
            if end != before:
                bits |= HASHTAGS
        if steps & EMOJIS:
            end, yes = _emojis(codes, begin, end, kinds)
            if yes:
                bits |= EMOJIS
        before = end
        if steps & LETTERS:
            end = _letters(codes, begin, end, kinds, letters)
            if end != before:
                bits |= LETTERS
        before = end
        if steps & WORDS:
            end = _words(codes, begin, end, kinds, words, token_begins, token_ends, keys)
            if unspaced:
                end = _strings(codes, begin, end, kinds, words)
            if end != before:
                bits |= WORDS
        if steps & SPACES:
            end, yes = _spaces(codes, begin, end, kinds)
            if yes:
                bits |= SPACES
        ends[row], changed[row] = end, bits


@compiled
def _measure(codes, starts, kinds, masks, letters, own):
    width = masks.shape[1]
    for row in range(starts.size - 1):
        i, end = starts[row], starts[row + 1]
        all_letters = own_letters = 0
        while i < end:
            c = codes[i]
            if c == masks[0, 0] and i + width <= end:
                masked = False
                for mask in range(masks.shape[0]):
                    k = 0
                    while k < width and codes[i + k] == masks[mask, k]:
                        k += 1
                    masked |= k == width
                if masked:
                    i += width
                    continue
            kind = kinds[c]
            all_letters += (kind & LETTER) != 0
            own_letters += (kind & OWN) != 0
            i += 1
        letters[row], own[row] = all_letters, own_letters


def scan(data: Bytes, offsets: Codes) -> Bytes:
    """Return for every row which of ENTITY, URL, EMAIL and PHONE it may contain."""
    flags = np.zeros(offsets.size - 1, np.uint8)
    _scan(data, offsets, _ALNUM, _LOCAL, _DIAL, flags)
    return flags


def decode(data: Bytes, offsets: Codes) -> tuple[Codes, Ints]:
    """Decode UTF-8 to code points; return them and [rows + 1] where each row begins."""
    starts = np.empty(offsets.size, np.int64)
    codes = np.empty(int(offsets[-1] - offsets[0]), np.int32)
    return codes[: _decode(data, offsets, codes, starts)], starts


def encode(codes: Codes, starts: Ints, ends: Ints) -> tuple[Bytes, Codes]:
    """Encode rows of code points as UTF-8; return it and [rows + 1] where each row begins."""
    data = np.empty(4 * int((ends - starts[:-1]).sum()), np.uint8)
    offsets = np.empty(ends.size + 1, np.int32)
    return data[: _encode(codes, starts, ends, data, offsets)], offsets


def tidy(
    codes: Codes,
    starts: Ints,
    kinds: NDArray[np.uint16],
    steps: int,
    *,
    letters: int,
    words: int,
    unspaced: bool,
) -> tuple[Ints, Ints]:
    """Clean every row in place; return its new end, and which steps changed it."""
    ends, changed = np.empty(starts.size - 1, np.int64), np.empty(starts.size - 1, np.int64)
    _tidy(codes, starts, kinds, steps, letters, words, unspaced, ends, changed)
    return ends, changed


def measure(codes: Codes, starts: Ints, kinds: NDArray[np.uint16]) -> tuple[Ints, Ints]:
    """Count the letters of every row, and those of the language's script; masks are not counted."""
    letters, own = np.empty(starts.size - 1, np.int64), np.empty(starts.size - 1, np.int64)
    _measure(codes, starts, kinds, _MASKS, letters, own)
    return letters, own

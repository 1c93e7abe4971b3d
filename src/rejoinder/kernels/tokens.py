"""Split texts into tokens and number the tokens, without creating a string for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

# white space as in str.split()
_SPACES = np.zeros(0x3001, dtype=np.bool_)
_SPACES[[c for c in range(0x3001) if chr(c).isspace()]] = True

ORDINARY, ALONE, POINT, DIGIT, HYPHEN = range(5)
# the classes of mteval-v13a: every ASCII punctuation mark but ' - . , is a token of its own
_CLASSES = np.zeros(128, dtype=np.int8)
_CLASSES[[ord(c) for c in '!"#$%&()*+/:;<=>?@[\\]^_`{|}~']] = ALONE
_CLASSES[[ord(c) for c in ".,"]] = POINT
_CLASSES[[ord(c) for c in "0123456789"]] = DIGIT
_CLASSES[ord("-")] = HYPHEN


@compiled
def _whitespace(codes, starts, spaces, begins, ends, counts):
    count = 0
    for text in range(starts.size - 1):
        before, begin = count, -1
        for i in range(starts[text], starts[text + 1]):
            if codes[i] < spaces.size and spaces[codes[i]]:
                if begin >= 0:
                    begins[count], ends[count], begin = begin, i, -1
                    count += 1
            elif begin < 0:
                begin = i
        if begin >= 0:
            begins[count], ends[count] = begin, starts[text + 1]
            count += 1
        counts[text] = count - before
    return count


@compiled
def _mteval13a(codes, starts, spaces, classes, begins, ends, counts):
    count = 0
    for text in range(starts.size - 1):
        before, begin, last = count, -1, starts[text + 1]
        previous, marked = ORDINARY, False
        for i in range(starts[text], last):
            code = codes[i]
            kind = classes[code] if code < 128 else ORDINARY
            space = code < spaces.size and spaces[code]
            alone = kind == ALONE or (kind == HYPHEN and previous == DIGIT)
            if kind == POINT:
                # a token of its own after a non-digit, unless that is a point which this rule has
                # split off (it consumes the character before it), or before a non-digit
                marked = previous != DIGIT and not marked
                following = codes[i + 1] if i + 1 < last else 32
                alone = marked or not (following < 128 and classes[following] == DIGIT)
            else:
                marked = False
            if (space or alone) and begin >= 0:
                begins[count], ends[count], begin = begin, i, -1
                count += 1
            if alone:
                begins[count], ends[count] = i, i + 1
                count += 1
            elif not space and begin < 0:
                begin = i
            previous = kind
        if begin >= 0:
            begins[count], ends[count] = begin, last
            count += 1
        counts[text] = count - before
    return count


@compiled
def _number(codes, begins, ends, ids, firsts):
    size = 64
    while size < 2 * begins.size:
        size *= 2
    table = np.full(size, -1, np.int32)
    words = 0
    for token in range(begins.size):
        begin, length = begins[token], ends[token] - begins[token]
        key = np.uint64(14695981039346656037)
        for i in range(begin, begin + length):
            key = (key ^ np.uint64(codes[i])) * np.uint64(1099511628211)
        slot = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(size - 1))
        while True:
            word = table[slot]
            if word < 0:
                table[slot], firsts[words], ids[token] = words, token, words
                words += 1
                break
            first = begins[firsts[word]]
            same = ends[firsts[word]] - first == length
            k = 0
            while same and k < length:
                same = codes[first + k] == codes[begin + k]
                k += 1
            if same:
                ids[token] = word
                break
            slot = (slot + 1) & (size - 1)
    return words


def whitespace_spans(codes: Codes, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return begin and end of every token between white space, and the number in each text."""
    begins, ends = np.empty(codes.size, np.int64), np.empty(codes.size, np.int64)
    counts = np.empty(starts.size - 1, np.int64)
    count = _whitespace(codes, starts, _SPACES, begins, ends, counts)
    return begins[:count], ends[:count], counts


def mteval13a_spans(codes: Codes, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the same for the tokenization of mteval-v13a."""
    begins, ends = np.empty(codes.size, np.int64), np.empty(codes.size, np.int64)
    counts = np.empty(starts.size - 1, np.int64)
    count = _mteval13a(codes, starts, _SPACES, _CLASSES, begins, ends, counts)
    return begins[:count], ends[:count], counts


def number_tokens(codes: Codes, begins: Ints, ends: Ints) -> tuple[Codes, Ints]:
    """Return the id of every token, and for each id the first token that has it.

    Equal tokens have equal ids. Tokens are compared code point by code point; hashes only speed
    up the search.
    """
    ids, firsts = np.empty(begins.size, np.int32), np.empty(begins.size, np.int64)
    words = _number(codes, begins, ends, ids, firsts)
    return ids, firsts[:words]

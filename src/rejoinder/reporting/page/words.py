"""The answer in a sentence or two. Names of systems are marked, so that the page can set them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rejoinder.meta_evaluation.ranking import ALPHA, Order, Pair
from rejoinder.reporting.page.findings import Placed

Phrase = list[tuple[str, str]]
"""Pieces of text, each of a kind: "system", "metric" or "" for plain words."""

MOST_NAMED = 6
MOST_PAIRS = 2


def plain(phrase: Phrase) -> str:
    return "".join(text for _, text in phrase)


def system(name: str) -> tuple[str, str]:
    return "system", name


def metric(name: str) -> tuple[str, str]:
    return "metric", name


def listed(names: Sequence[str], of: Callable[[str], tuple[str, str]] = system) -> Phrase:
    """a; a and b; a, b and c; the first few and how many more."""
    more = len(names) - MOST_NAMED
    if more > 1:
        return [*_commas([of(name) for name in names[:MOST_NAMED]]), ("", f" and {more} others")]
    pieces = [of(name) for name in names]
    return pieces if len(names) < 2 else [*_commas(pieces[:-1]), ("", " and "), pieces[-1]]


def _commas(pieces: Phrase) -> Phrase:
    found: Phrase = []
    for number, piece in enumerate(pieces):
        found += [("", ", "), piece] if number else [piece]
    return found


def answer(placed: Placed) -> Phrase:
    """Which system is better, by one metric."""
    by: Phrase = [("", "By "), metric(placed.name), ("", ", ")]
    names = [row.system for row in placed.systems]
    if not names:
        return [("", "Nothing could be scored by "), metric(placed.name), ("", ".")]
    if len(names) == 1 and placed.unplaced:
        return [*by, ("", "only "), system(names[0]), ("", " could be scored.")]
    if len(names) == 1:
        return [system(names[0]), ("", " is the only system: there is nothing to compare it with.")]
    if placed.order is None:
        return [
            *by,
            system(names[0]),
            ("", " has the best average, but the systems could not be tested against each other."),
        ]
    return [*by, *_told_apart(placed.order), ("", ".")]


def _told_apart(order: Order) -> Phrase:
    names = [row.system for row in order.systems]
    surely = [pair for pair in order.pairs if (p := pair.p_adjusted) is not None and p <= ALPHA]
    if not surely and len(names) > MOST_NAMED:
        return [("", f"no two of the {len(names)} systems can be told apart")]
    if not surely:
        return [*listed(names), ("", " can’t be told apart")]
    tiers = _tiers(order)
    if tiers is not None:
        return _by_tiers(tiers)
    if len(surely) <= MOST_PAIRS:
        found: Phrase = []
        for number, pair in enumerate(surely):
            found += [("", " and ")] if number else []
            found += [system(pair.better), ("", " is better than "), system(pair.worse)]
        return [*found, ("", "; the others can’t be told apart")]
    return _by_ends(order, surely)


def _letters(group: str) -> list[str]:
    """a … z, then a1, b1 …"""
    return re.findall(r"[a-z]\d*", group)


def _tiers(order: Order) -> list[list[str]] | None:
    """Groups that don't overlap, best first; None where some do."""
    tiers: dict[str, list[str]] = {}
    for row in order.systems:
        tiers.setdefault(row.group, []).append(row.system)
    apart = all(len(_letters(group)) == 1 for group in tiers)
    return list(tiers.values()) if apart else None


def _by_tiers(tiers: Sequence[list[str]]) -> Phrase:
    found: Phrase = []
    if all(len(tier) == 1 for tier in tiers) and len(tiers) > 3:
        names = [tier[0] for tier in tiers]
        return [("", "from best to worst: "), *listed(names), ("", "; each differs from the next")]
    for number, tier in enumerate(tiers):
        found += listed(tier)
        tied, last = len(tier) > 1, number == len(tiers) - 1
        if tied:
            found.append(("", ", which can’t be told apart"))
        if number == 0:
            found.append(("", ", are better than " if tied else " is better than "))
        elif not last:
            found.append(("", " and are better than " if tied else ", which is better than "))
    return found


def _by_ends(order: Order, surely: Sequence[Pair]) -> Phrase:
    """Groups overlap: say what is sure about the best and the worst.

    One with a letter of its own differs from its neighbour, but not always from all others.
    """
    rows = [(row.system, _letters(row.group)) for row in order.systems]
    best, worst = rows[0][1][0], rows[-1][1][-1]
    leaders = [name for name, letters in rows if best in letters]
    trailers = [name for name, letters in rows if worst in letters]
    beaten = sum(pair.better == leaders[0] for pair in surely)
    beating = sum(pair.worse == trailers[-1] for pair in surely)
    found = listed(leaders)
    if len(leaders) > 1:
        found.append(("", " lead and can’t be told apart"))
    else:
        all_of_them = beaten == len(rows) - 1
        found.append(("", " is better than all others" if all_of_them else " leads"))
    if len(trailers) == 1 and beating == len(rows) - 1:
        found += [("", "; "), system(trailers[0]), ("", " is worse than all others")]
    return found


def others(chosen: Placed, rest: Sequence[Placed]) -> Phrase:
    """Whether the other metrics put the same system first, of those that have a value for all."""
    if len(chosen.systems) < 2:
        return []
    best = chosen.systems[0].system
    ranked = [each for each in rest if each.systems and not each.unplaced]
    different = [each for each in ranked if each.systems[0].system != best]
    if not different:
        said: Phrase = [("", "All other metrics put "), system(best), ("", " first too.")]
        return said if ranked else []
    firsts: dict[str, list[str]] = {}
    for each in different:
        firsts.setdefault(each.systems[0].system, []).append(each.name)
    found: Phrase = []
    for number, (first, names) in enumerate(firsts.items()):
        found.append(("", "; " if number else "However, "))
        found += [*listed(names, of=metric), ("", " puts " if len(names) == 1 else " put ")]
        found += [system(first), ("", " first")]
    return [*found, ("", ".")]

"""The verdict of a report in a few sentences.

Names of systems and metrics are marked, so that the page can set them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rejoinder.meta_evaluation.ranking import (
    PEOPLE,
    Ranking,
    SystemPair,
    reversed_pairs,
    significant_pairs,
)
from rejoinder.reporting.page.analysis import SystemOrder

Phrase = list[tuple[str, str]]
"""Pieces of text, each with its kind: "system", "metric" or "" for plain words."""

BY_MEAN = "by the mean over replies"
"""How the page ranks systems; the corpus value of a metric may rank them in another way."""
MAX_NAMED = 6
MAX_PAIRS = 2


def plain(phrase: Phrase) -> str:
    """Return a phrase as text."""
    return "".join(text for _, text in phrase)


def system(name: str) -> tuple[str, str]:
    return "system", name


def metric(name: str) -> tuple[str, str]:
    return "metric", name


def join_names(names: Sequence[str], of: Callable[[str], tuple[str, str]] = system) -> Phrase:
    """Return "a", "a and b", "a, b and c", or the first few and how many more."""
    more = len(names) - MAX_NAMED
    if more > 1:
        return [*_commas([of(name) for name in names[:MAX_NAMED]]), ("", f" and {more} others")]
    pieces = [of(name) for name in names]
    return pieces if len(names) < 2 else [*_commas(pieces[:-1]), ("", " and "), pieces[-1]]


def _commas(pieces: Phrase) -> Phrase:
    phrase: Phrase = []
    for number, piece in enumerate(pieces):
        phrase += [("", ", "), piece] if number else [piece]
    return phrase


def answer(order: SystemOrder) -> Phrase:
    """Say which system is better by one metric, or by people."""
    by: Phrase = [("", "By "), metric(order.name), ("", ", ")]
    if order.name == PEOPLE:
        by = [("", "By people’s ratings, ")]
    names = [row.system for row in order.systems]
    if not names:
        return [("", "No reply could be scored by "), metric(order.name), ("", ".")]
    if len(names) == 1 and order.unranked:
        return [*by, ("", "only "), system(names[0]), ("", " could be scored.")]
    if len(names) == 1:
        return [system(names[0]), ("", " is the only system: there is nothing to compare it with.")]
    if order.ranking is None:
        return [
            *by,
            system(names[0]),
            ("", " has the best average, but the systems could not be tested against each other."),
        ]
    return [*by, *_differences(order.ranking), ("", ".")]


def _differences(ranking: Ranking) -> Phrase:
    names = [row.system for row in ranking.systems]
    significant = significant_pairs(ranking)
    if ranking.neighbours_only:
        return _first_two(names, significant)
    if not significant and len(names) > MAX_NAMED:
        return [("", f"no two of the {len(names)} systems can be told apart")]
    if not significant:
        return [*join_names(names), ("", " can’t be told apart")]
    if reversed_pairs(ranking):  # the order of the ranking would contradict the tests
        return _pairs(significant, " is better than ")
    tiers = _tiers(ranking)
    if tiers is not None:
        return _by_tiers(tiers)
    if len(significant) <= MAX_PAIRS:
        phrase: Phrase = []
        for number, pair in enumerate(significant):
            phrase += [("", " and ")] if number else []
            phrase += [system(pair.better), ("", " is better than "), system(pair.worse)]
        return [*phrase, ("", "; the others can’t be told apart")]
    return _by_ends(ranking, significant)


def _first_two(names: Sequence[str], significant: Sequence[SystemPair]) -> Phrase:
    """Say whether the first system is better than the second, if only neighbours were tested."""
    first, second = names[:2]
    if any(pair.better == first and pair.worse == second for pair in significant):
        return [
            system(first),
            ("", f" is the best of {len(names):,} systems, better than the next, "),
            system(second),
        ]
    both = [system(first), ("", " and "), system(second)]
    return [*both, ("", f", the first of {len(names):,} systems, can’t be told apart")]


def _letters(group: str) -> list[str]:
    """Split a … z, then a1, b1 …"""
    return re.findall(r"[a-z]\d*", group)


def _tiers(ranking: Ranking) -> list[list[str]] | None:
    """Return the groups, best first; None if some of them overlap."""
    tiers: dict[str, list[str]] = {}
    for row in ranking.systems:
        tiers.setdefault(row.group, []).append(row.system)
    apart = all(len(_letters(group)) == 1 for group in tiers)
    return list(tiers.values()) if apart else None


def _by_tiers(tiers: Sequence[list[str]]) -> Phrase:
    phrase: Phrase = []
    if all(len(tier) == 1 for tier in tiers) and len(tiers) > 3:
        names = [tier[0] for tier in tiers]
        return [
            ("", "from best to worst: "),
            *join_names(names),
            ("", "; each differs from the next"),
        ]
    for number, tier in enumerate(tiers):
        phrase += join_names(tier)
        tied, last = len(tier) > 1, number == len(tiers) - 1
        if tied:
            phrase.append(("", ", which can’t be told apart"))
        if number == 0:
            phrase.append(("", ", are better than " if tied else " is better than "))
        elif not last:
            phrase.append(("", " and are better than " if tied else ", which is better than "))
    return phrase


def _by_ends(ranking: Ranking, significant: Sequence[SystemPair]) -> Phrase:
    """Describe the best and the worst system, for groups that overlap.

    A system with a letter of its own differs from its neighbour, but not always from all others.
    """
    rows = [(row.system, _letters(row.group)) for row in ranking.systems]
    best, worst = rows[0][1][0], rows[-1][1][-1]
    leaders = [name for name, letters in rows if best in letters]
    trailers = [name for name, letters in rows if worst in letters]
    beaten = sum(pair.better == leaders[0] for pair in significant)
    beating = sum(pair.worse == trailers[-1] for pair in significant)
    phrase = join_names(leaders)
    if len(leaders) > 1:
        phrase.append(("", " lead and can’t be told apart"))
    else:
        all_of_them = beaten == len(rows) - 1
        phrase.append(("", " is better than all others" if all_of_them else " leads"))
    if len(trailers) == 1 and beating == len(rows) - 1:
        phrase += [("", "; "), system(trailers[0]), ("", " is worse than all others")]
    return phrase


def other_metrics_on_the_best(chosen: SystemOrder, rest: Sequence[SystemOrder]) -> Phrase:
    """Say whether the other metrics rank the same system first, if they rank all systems.

    "All metrics" are at least two, each of which ranks all systems.
    """
    if len(chosen.systems) < 2:
        return []
    best = chosen.systems[0].system
    ranked = [each for each in rest if each.systems and not each.unranked]
    different = [each for each in ranked if each.systems[0].system != best]
    if not different:
        if not ranked:
            return []
        which = [("", "All metrics" if chosen.name == PEOPLE else "All other metrics")]
        if len(ranked) == 1 or len(ranked) < len(rest):
            which = join_names([each.name for each in ranked], of=metric)
        verb = " ranks " if len(ranked) == 1 else " rank "
        return [*which, ("", verb), system(best), ("", f" first too, {BY_MEAN}.")]
    firsts: dict[str, list[str]] = {}
    for each in different:
        firsts.setdefault(each.systems[0].system, []).append(each.name)
    phrase: Phrase = []
    for number, (first, names) in enumerate(firsts.items()):
        phrase.append(("", "; " if number else f"However, {BY_MEAN}, "))
        phrase += [*join_names(names, of=metric), ("", " ranks " if len(names) == 1 else " rank ")]
        phrase += [system(first), ("", " first")]
    return [*phrase, ("", ".")]


@dataclass(frozen=True)
class Contrast:
    """How the significant differences of a metric relate to those of people."""

    agree: list[SystemPair] = field(default_factory=list)
    """Pairs that both tell apart in the same way; all pairs are as people order them."""
    contradict: list[SystemPair] = field(default_factory=list)
    """Pairs that the metric orders the other way round."""
    undecided: list[SystemPair] = field(default_factory=list)
    """Pairs that people tell apart and the metric does not."""
    beyond: list[SystemPair] = field(default_factory=list)
    """Pairs, as the metric orders them, that it tells apart and people do not."""


def contrast(people: Ranking, other: Ranking) -> Contrast:
    """Compare the significant differences of a metric with those of people, pair by pair."""
    result = Contrast()
    of_people = {frozenset((pair.better, pair.worse)): pair for pair in significant_pairs(people)}
    of_metric = {frozenset((pair.better, pair.worse)): pair for pair in significant_pairs(other)}
    tested = {frozenset((pair.better, pair.worse)) for pair in other.pairs}
    for names, pair in of_people.items():
        same = of_metric.get(names)
        if same is None and names in tested:
            result.undecided.append(pair)
        elif same is not None:
            (result.agree if same.better == pair.better else result.contradict).append(pair)
    tested_by_people = {frozenset((pair.better, pair.worse)) for pair in people.pairs}
    result.beyond.extend(
        pair
        for names, pair in of_metric.items()
        if names not in of_people and names in tested_by_people
    )
    return result


def metric_against_people(people: SystemOrder, order: SystemOrder) -> Phrase:
    """Say whether a metric agrees with people about the systems, contradicts them, or misses
    differences that people see."""
    if people.ranking is None or order.ranking is None:
        return []
    pairs = contrast(people.ranking, order.ranking)
    name = metric(order.name)
    if pairs.contradict:
        return [
            name,
            ("", " contradicts people: it ranks "),
            *_pairs(pairs.contradict, " below "),
            ("", ", significantly."),
        ]
    if pairs.undecided:
        agreed = f" It separates {len(pairs.agree)} other pairs as people do." * (
            len(pairs.agree) > 1
        )
        return [
            name,
            ("", " can’t tell what people can: "),
            *_pairs(pairs.undecided, " is better than "),
            ("", f".{agreed}"),
        ]
    if pairs.agree:
        return [name, ("", " separates the same systems, in the same order.")]
    if pairs.beyond:
        return [
            name,
            ("", " sees differences that people do not: "),
            *_pairs(pairs.beyond, " above "),
            ("", "."),
        ]
    return []


def uncorrelated_metrics(names: Sequence[str]) -> Phrase:
    """Name the metrics whose correlation with people over replies may as well be zero."""
    if not names:
        return []
    one = len(names) == 1
    return [
        ("", f"The correlation{'' if one else 's'} of "),
        *join_names(names, of=metric),
        ("", f" with people on single replies {'is' if one else 'are'}"),
        ("", " not distinguishable from zero."),
    ]


def _pairs(pairs: Sequence[SystemPair], between: str) -> Phrase:
    """Return some pairs as "a is better than b", and how many more there are."""
    phrase: Phrase = []
    for number, pair in enumerate(pairs[:MAX_PAIRS]):
        phrase += [("", ", ")] if number else []
        phrase += [system(pair.better), ("", between), system(pair.worse)]
    more = len(pairs) - MAX_PAIRS
    return [*phrase, ("", f" and {more:,} more pairs")] if more > 0 else phrase


def other_metrics_against_people(people: SystemOrder, rest: Sequence[SystemOrder]) -> Phrase:
    """Name the other metrics that contradict people, and those that miss differences they see."""
    if people.ranking is None:
        return []
    contradicting, undecided = [], []
    for order in rest:
        if order.ranking is None:
            continue
        pairs = contrast(people.ranking, order.ranking)
        if pairs.contradict:
            contradicting.append(order.name)
        elif pairs.undecided:
            undecided.append(order.name)
    phrase: Phrase = []
    if contradicting:
        verb = " contradicts" if len(contradicting) == 1 else " contradict"
        phrase += [*join_names(contradicting, of=metric), ("", f"{verb} people on some pair")]
    if undecided:
        verb = " misses" if len(undecided) == 1 else " miss"
        phrase += [("", "; ")] if phrase else []
        phrase += [*join_names(undecided, of=metric), ("", f"{verb} differences that people see")]
    return [*phrase, ("", ".")] if phrase else []

"""``plan``: which replies people should rate next, and how many it takes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from rejoinder.errors import DataError, UsageError
from rejoinder.estimation.estimates import CONFIDENCE, standard_scores
from rejoinder.estimation.looks import Look, StopRule, looks
from rejoinder.estimation.people import check_one_scale
from rejoinder.estimation.planning import (
    QUESTIONS,
    Planned,
    Question,
    Units,
    asked_about,
    choose,
    missing_ratings,
    ratings_until,
    unit_sizes,
    units_of,
)
from rejoinder.estimation.prediction_powered import TARGETS, Floats, Target
from rejoinder.estimation.sample_size import Needed, SizePoint, Spread
from rejoinder.estimation.studied import SQRT2, study_of
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.files.paths import check_different, check_output
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import join
from rejoinder.verbs.arguments import SEED, as_names, check_number, check_resampling
from rejoinder.verbs.calibrate import chosen_labels
from rejoinder.verbs.items import Items
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, Svg, TableResult, records_to_columns, to_plain
from rejoinder.verbs.scores import check_order, open_scores
from rejoinder.verbs.source import open_items, path_of
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.scores import ScoresLike

MAX_BUDGET = 10_000_000
MAX_RATINGS = 1000


@dataclass(frozen=True)
class PlanResult(TableResult):
    """The replies to rate next, and what more ratings would tell.

    The frame has a row per point of the curve: the number of ratings, the expected width of the
    interval, and the power if a difference was stated. ``items`` has the replies to rate next.
    """

    question: Question
    systems: list[str]
    items: Items
    """The replies to rate next, in their order, with their inclusion probabilities."""
    budget: int | None
    ratings: int
    """Ratings that the chosen replies need."""
    planned: Planned
    rated: int
    """Replies that are rated already."""
    spread: Spread
    needed_for_width: Needed | None
    needed_for_power: Needed | None
    curve: list[SizePoint]
    looks: list[Look]
    """What the ratings so far decide."""
    width: float | None = None
    power: float | None = None
    difference: float | None = None
    seed: int = SEED
    output: str | None = None
    notes: Sequence[str] = ()
    frame_kind: str | None = field(default=None, compare=False)

    @property
    def decided(self) -> bool:
        """Whether the stop rule is met for all means, or pairs."""
        return bool(self.looks) and all(look.decided for look in self.looks)

    def columns(self) -> FrameColumns:
        return records_to_columns(to_plain(self.curve))

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "systems": self.systems,
            "budget": self.budget,
            "replies": len(self.items),
            "ratings": self.ratings,
            "units": self.planned.units,
            "asked": self.planned.asked,
            "rated": self.rated,
            "spread": to_plain(self.spread),
            "width": self.width,
            "needed_for_width": to_plain(self.needed_for_width),
            "power": self.power,
            "difference": self.difference,
            "needed_for_power": to_plain(self.needed_for_power),
            "curve": to_plain(self.curve),
            "looks": to_plain(self.looks),
            "decided": self.decided,
            "next": [
                {
                    "id": item.id,
                    "system": item.system,
                    "inclusion_probability": item.inclusion_probability,
                }
                for item in self.items
            ],
            "seed": self.seed,
            "output": self.output,
            "notes": list(self.notes),
        }

    def plot(self) -> Svg:
        """Draw the expected width of the interval over the number of ratings."""
        from rejoinder.reporting.plan_tables import curve_chart
        from rejoinder.reporting.plots.line_chart import line_chart_svg

        return Svg(line_chart_svg(curve_chart(self.curve, self.question, self.width)))


@dataclass(frozen=True)
class _Given:
    """Items with their scores, higher is better."""

    items: list[Item]
    rows: Floats
    """[metrics, items]"""
    score: Floats | None
    """[items] the mean over metrics."""


@keep_notes
def plan(
    items: ItemsLike,
    scores: ScoresLike | None = None,
    *,
    budget: int | None = None,
    output: str | os.PathLike[str] | None = None,
    all_items: str | os.PathLike[str] | None = None,
    question: Question | None = None,
    systems: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    width: float | None = None,
    power: float | None = None,
    difference: float | None = None,
    sd: float | None = None,
    correlation: float | None = None,
    ratings_per_reply: int = 1,
    uneven: float = 0.0,
    target: Target = "contexts",
    confidence: float = CONFIDENCE,
    columns: Columns | None = None,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> PlanResult:
    """Choose the replies that people should rate next, and say how many ratings an answer takes.

    ``question`` is "mean" (how good is each system), "difference" (which of two is better) or
    "ranking" (of several); by default what fits the number of ``systems``, which are all, or those
    that are named. For differences whole contexts are chosen, for means single replies. ``budget``
    is the number of ratings to ask for; without it, as many as ``width`` (of the interval) or
    ``power`` (to see a true ``difference``) need. Replies with ``ratings_per_reply`` ratings are
    not asked again.

    ``output`` receives the chosen replies, in the order in which they are to be rated, with their
    ``inclusion_probability``; a larger budget with the same ``seed`` adds replies at the end.
    ``all_items`` receives all items, of which those that are rated have the probability that they
    have after this plan.

    How much ratings vary is taken from the ratings so far; ``sd`` (of replies' ratings) and
    ``correlation`` (of the scores with them) say it where there are too few. ``uneven`` is the
    share of the choice that goes by how far scores are apart; the default 0 treats all alike, which
    on judged sets is as good.
    """
    counts = {"budget": budget, "width": width, "power": power}
    all_problems = [*problems, *_problems(question, target, counts, difference)]
    if all_problems:
        raise UsageError(*all_problems)
    _check_numbers(
        budget=budget,
        width=width,
        power=power,
        difference=difference,
        sd=sd,
        correlation=correlation,
        ratings_per_reply=ratings_per_reply,
        uneven=uneven,
        confidence=confidence,
    )
    check_resampling(0, seed)
    if scores is not None:
        check_order(items, scores)
    for path in (output, all_items):
        check_output(path, [path_of(items), path_of(scores)])
    check_different(output, all_items)
    with open_items(items, columns=columns, monitor=monitor) as source:
        given = _read(list(source.read()), scores, as_names(metrics), source.name)
        check_one_scale(given.items, None, can_be_stated=False)
        chosen, asked = asked_about(given.items, as_names(systems), question)
    units = units_of(given.items, asked, chosen)
    _say_what_is_missing(units, given.items, chosen, asked, monitor)
    study, rated_units = study_of(
        given.items,
        given.score,
        units,
        chosen,
        asked,
        ratings=ratings_per_reply,
        target=target,
        confidence=confidence,
    )
    study = replace(study, spread=_stated(study.spread, sd, correlation, asked))
    sizes = unit_sizes(units, given.rows, uneven)
    more = partial(
        ratings_until,
        given.items,
        units,
        sizes,
        of_each=asked == "mean",
        ratings=ratings_per_reply,
        seed=seed,
    )
    for_width = for_power = None
    if width is not None:
        wanted = width
        for_width = study.needed(lambda n: study.width(n) <= wanted, more)
    if power is not None and difference is not None:
        share, size = power, difference
        for_power = study.needed(lambda n: study.power(n, size) >= share, more)
    if (width is not None or power is not None) and not study.spread.known_from and sd is None:
        monitor.note(
            "too few ratings to know how much they vary: a standard deviation of"
            f" {study.spread.sd:.3g} is assumed for"
            f" {'single replies' if asked == 'mean' else 'differences'}; if you know better, give"
            f" that of replies' ratings with {option('sd')}"
        )
    everything = missing_ratings(given.items, units, ratings_per_reply)
    spent = _budget(budget, for_width, for_power, everything, monitor)
    planned = choose(given.items, units, sizes, spent, ratings=ratings_per_reply, seed=seed)
    made = [
        msgspec.structs.replace(
            given.items[n], inclusion_probability=float(planned.probability[n]), ratings=None
        )
        for n in planned.chosen
    ]
    result = PlanResult(
        asked,
        chosen,
        Items(made, source.frame_kind),
        budget,
        planned.cost,
        planned,
        sum(item.is_rated for item in given.items),
        study.spread,
        for_width,
        for_power,
        study.curve(rated_units, difference),
        looks(given.items, given.score, chosen, StopRule(asked, confidence, width), target=target),
        width,
        power,
        difference,
        seed,
        None if output is None else os.fspath(output),
        frame_kind=source.frame_kind,
    )
    _say_what_was_found(result, monitor)
    write_jsonl_file(output, made)
    if all_items is not None:
        write_jsonl_file(all_items, _updated(given.items, planned))
    elif made and any(
        item.is_rated and abs(chance - (item.inclusion_probability or 1.0)) > 1e-9  # NaN is not
        for item, chance in zip(given.items, planned.probability.tolist(), strict=True)
    ):
        monitor.note(
            "after this plan, the rated replies have other inclusion probabilities: write all items"
            f" with {option('all_items')}, and estimate from them"
        )
    return result


def _problems(
    question: Any,
    target: Any,
    counts: Mapping[str, Any],
    difference: float | None,
) -> list[str]:
    problems = []
    if question is not None and question not in QUESTIONS:
        problems.append(f"{option('question')} '{question}': expected {', '.join(QUESTIONS)}")
    if target not in TARGETS:
        problems.append(f"target '{target}': expected {', '.join(TARGETS)}")
    if all(value is None for value in counts.values()):
        problems.append(
            f"nothing says how many: give {option('budget')}, or what the answer needs:"
            f" {option('width')}, or {option('power')} with {option('difference')}"
        )
    if counts["power"] is not None and difference is None:
        problems.append(
            f"{option('power', counts['power'])} needs {option('difference')}: the difference to be"
            " seen"
        )
    return problems


def _check_numbers(
    *,
    budget: int | None,
    width: float | None,
    power: float | None,
    difference: float | None,
    sd: float | None,
    correlation: float | None,
    ratings_per_reply: int,
    uneven: float,
    confidence: float,
) -> None:
    """Raise UsageError for a number out of its range."""
    limits: list[tuple[str, Any, float, float]] = [
        ("width", width, 1e-9, 1e9),
        ("power", power, 0.01, 0.999),
        ("difference", difference, 1e-9, 1e9),
        ("sd", sd, 1e-9, 1e9),
        ("correlation", correlation, 0, 0.999),
        ("uneven", uneven, 0, 0.9),
        ("confidence", confidence, 0.5, 0.999),
    ]
    if budget is not None:
        check_number("budget", budget, 1, MAX_BUDGET)
    check_number("ratings_per_reply", ratings_per_reply, 1, MAX_RATINGS)
    for name, value, low, high in limits:
        if value is not None:
            check_number(name, value, low, high, whole=False)


def _read(
    items: list[Item], scores: ScoresLike | None, metrics: Sequence[str], name: str | None
) -> _Given:
    """Join scores to items, and bring them to mean 0 and deviation 1."""
    if scores is None:
        if metrics:
            raise UsageError(f"{option('metrics', metrics[0])} can only be used with scores")
        return _Given(items, np.zeros((0, len(items))), None)
    lines = open_scores(scores)
    joined = join(items, lines.lines, items_name=name or "items", scores_name=lines.name)
    labels = chosen_labels(joined, metrics, lines.name)
    score = standard_scores(joined, labels)
    if np.isnan(score).all():
        raise DataError(f"no item has a score by {' and '.join(labels)}", path=lines.name)
    rows = np.array([standard_scores(joined, [label]) for label in labels])
    return _Given(items, rows, score)


def _stated(
    spread: Spread, sd: float | None, correlation: float | None, question: Question
) -> Spread:
    """Return the spread with what the user states; differences vary √2 times as much as ratings."""
    if sd is not None:
        spread = replace(spread, sd=sd if question == "mean" else sd * SQRT2, known_from=0)
    if correlation is not None:
        spread = replace(spread, correlation=correlation)
    return spread


def _budget(
    budget: int | None,
    width: Needed | None,
    power: Needed | None,
    everything: int,
    monitor: Monitor,
) -> int:
    """Return how many ratings to ask for: what is stated, or what the answer needs, and if it can't
    be had, ``everything``."""
    if budget is not None:
        return budget
    wanted = [needed for needed in (width, power) if needed is not None]
    if any(needed.more is None for needed in wanted):
        monitor.note("not even ratings of all replies suffice: all that are left are chosen")
        return everything
    return max((needed.more or 0 for needed in wanted), default=0)


def _say_what_is_missing(
    units: Units,
    items: Sequence[Item],
    systems: Sequence[str],
    question: Question,
    monitor: Monitor,
) -> None:
    """Report replies that are of no use for the question."""
    if question == "mean":
        return
    used = sum(map(len, units.members))
    asked = sum(item.system in systems for item in items)
    if len(units.members) and max(map(len, units.members)) == 1:
        monitor.note(
            "no context was answered by two of the systems: they are compared by replies to"
            " different contexts, which takes more ratings"
        )
    elif used < asked:
        monitor.note(
            f"{asked - used:,} replies to contexts that only one of the systems answered are not"
            " chosen"
        )


def _say_what_was_found(result: PlanResult, monitor: Monitor) -> None:
    pairs = result.question != "mean"
    if result.items and (elsewhere := result.planned.elsewhere):
        monitor.note(
            f"{elsewhere:,} rated {'contexts' if pairs else 'replies'} are not those that this plan"
            " begins with: they are treated as a random sample"
        )
    if result.budget is not None and not result.items:
        monitor.note("all replies of these systems that could be chosen are rated already")


def _updated(items: Sequence[Item], planned: Planned) -> list[Item]:
    """Return all items, the rated ones with the probability that they have after the plan."""
    updated = []
    for number, item in enumerate(items):
        chance = float(planned.probability[number])
        known = item.is_rated and not math.isnan(chance)
        updated.append(
            msgspec.structs.replace(item, inclusion_probability=chance) if known else item
        )
    return updated

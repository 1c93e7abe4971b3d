"""The contents of each part of the report; the template only arranges them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from markupsafe import Markup

from rejoinder.reporting.page import agreement as parts
from rejoinder.reporting.page.analysis import Agreement, Analysis
from rejoinder.reporting.page.few_ratings import few_ratings_section
from rejoinder.reporting.page.item_browser import BrowserData, shortened
from rejoinder.reporting.page.judges import judge_section
from rejoinder.reporting.page.rankings import (
    MAX_ORDERS,
    MAX_SYSTEMS,
    MAX_TABLES,
    interval,
    orders,
    ranking_table,
)
from rejoinder.reporting.page.references import references
from rejoinder.reporting.page.verdict import (
    Phrase,
    answer,
    metric,
    metric_against_people,
    other_metrics_against_people,
    other_metrics_on_the_best,
    plain,
    uncorrelated_metrics,
)
from rejoinder.reporting.plots.scales import shown
from rejoinder.reporting.plots.svg import PALETTE, SHAPES, key
from rejoinder.reporting.tables import has_own_contexts
from rejoinder.version import __version__

MAX_REASONS = 60
PACKAGES = ("numpy", "scipy", "torch", "transformers")
COVERAGE = {"nearest": "Similarity of the nearest utterances", "agreement": "Agreement of replies"}


@dataclass(frozen=True)
class Provenance:
    """How the report was made."""

    title: str
    command: str
    inputs: list[tuple[str, str]]
    """Files and their digests."""


def build(analysis: Analysis, provenance: Provenance) -> dict[str, Any]:
    """Return the variables of the template."""
    data, headline = analysis.data, analysis.headline
    every_order = orders(analysis)
    by_people = [analysis.people] if analysis.people else []
    shown_orders = by_people + analysis.orders[:MAX_TABLES]
    shown_orders.sort(key=lambda order: order is not headline)
    tables = [ranking_table(order, data.numbers, large=order is headline) for order in shown_orders]
    return {
        "title": provenance.title,
        "answer": answer(headline),
        "summary": plain(answer(headline)),
        "lead": _lead(analysis),
        "facts": _facts(analysis),
        "keys": Markup("").join(key(number) for number in range(PALETTE * len(SHAPES))),
        "legend": [(key(n), name) for n, name in enumerate(data.systems[:MAX_SYSTEMS])],
        "metric": data.metric,
        "rankings": tables,
        "more_rankings": max(0, len(analysis.orders) - MAX_TABLES),
        "more_orders": max(0, len(analysis.orders) - MAX_ORDERS),
        "orders": every_order,
        "places": max((len(places) for _, places in every_order), default=0),
        "sets": _sets(analysis),
        "agreement": _agreement(analysis),
        "judges": judge_section(analysis.judges),
        "few": few_ratings_section(
            analysis.few, data.items, dict(data.numbers), analysis.data.metric
        ),
        "references": references(data.items),
        "curves": parts.curve_plots(analysis.curves),
        "curve_rows": parts.curve_rows(analysis.curves),
        "unscored": [
            (name, shortened(reason, 300), count, name in data.metrics)
            for name, reason, count in data.notes.counted()[:MAX_REASONS]
        ],
        "unscored_more": max(0, len(data.notes.counted()) - MAX_REASONS),
        "evaluator": analysis.evaluator,
        "coverage": analysis.coverage,
        "provenance": provenance,
        "signatures": [(n, shortened(s, 600)) for n, s in data.notes.signatures.items()],
        "versions": _versions(),
        "settings": analysis.settings,
        "ranking_resamples": analysis.ranking_resamples,
    }


def browser_variables(items: BrowserData, max_items: int) -> dict[str, Any]:
    """Return the variables of the table of items."""
    return {"browse": items, "payload": items.payload.decode(), "max_items": max_items}


def _lead(analysis: Analysis) -> list[Phrase]:
    """Return sentences that qualify the answer: the tests, people, contamination."""
    headline, people = analysis.headline, analysis.people
    sentences = []
    if headline.ranking is not None and len(headline.systems) > 1:
        tested = "neighbours" if headline.ranking.neighbours_only else "pairs"
        each = ", each pair on all that the two answered" * has_own_contexts(headline.ranking)
        sentences.append(
            [
                (
                    "",
                    f"Compared on {headline.ranking.contexts:,} contexts that all systems"
                    f" answered{each}. “Better” means significant at the 5 % level after correction"
                    f" for the number of {tested}.",
                )
            ]
        )
    if headline is people:
        sentences.append(metric_against_people(headline, analysis.orders[0]))
        sentences.append(other_metrics_against_people(headline, analysis.orders[1:]))
        sentences.append(other_metrics_on_the_best(headline, analysis.orders))
    else:
        sentences.append(other_metrics_on_the_best(headline, analysis.orders[1:]))
        if people is not None and len(people.systems) > 1:
            sentences.append(answer(people))
    sentences.append(_correlation(analysis))
    sentences.append(uncorrelated_metrics(_uncorrelated(analysis)))
    if analysis.evaluator is not None:
        if analysis.evaluator.only_for_tests:
            why = "its preset, tiny, is only for tests and demonstrations"
            sentences.append([("", f"Caution: do not rely on the evaluator: {why}.")])
        contamination = analysis.evaluator.contamination
        if contamination.seen:
            sentences.append([("", f"Caution: {contamination} by the evaluator.")])
        if (copied := contamination.describe_replies()) is not None:
            sentences.append([("", f"Caution: {copied}.")])
    return [sentence for sentence in sentences if sentence]


def _correlation(analysis: Analysis) -> Phrase:
    """State the correlation of the ranking metric with people."""
    agreement = analysis.agreement
    if agreement.items is None:
        return [("", agreement.missing or "")]
    name = analysis.data.metric
    result = next((r for r in agreement.items.results if r.metric == name), None)
    estimate = None if result is None else result.correlations.spearman
    if result is None or estimate is None or estimate.value is None:
        return []
    value = f"{shown(estimate.value)} {interval(estimate.low, estimate.high, 2)}"
    return [
        ("", f"Over {result.correlations.n:,} rated replies, "),
        metric(name),
        ("", f" has a Spearman correlation with people of {value}."),
    ]


def _uncorrelated(analysis: Analysis) -> list[str]:
    """Return the metrics whose correlation with people has an interval that includes zero."""
    items = analysis.agreement.items
    estimates = {r.metric: r.correlations.spearman for r in items.results} if items else {}
    return [
        name
        for name in analysis.data.metrics
        if (e := estimates.get(name)) is not None
        and e.low is not None
        and e.high is not None
        and e.low <= 0 <= e.high
    ]


def _facts(analysis: Analysis) -> list[tuple[str, str]]:
    data = analysis.data
    contexts = int(data.joined.contexts.max()) + 1
    unscored = len({name for some in data.notes.reasons.values() for name in some})
    facts = [
        _counted(len(data.systems), "system", "systems"),
        _counted(contexts, "context", "contexts"),
        _counted(len(data.items), "reply", "replies"),
        _counted(len(data.joined.order), "metric", "metrics"),
        ("rated by people", f"{analysis.agreement.rated:,}"),
    ]
    return [*facts, ("unscored by some metric", f"{unscored:,}")] if unscored else facts


def _counted(count: int, singular: str, plural: str) -> tuple[str, str]:
    return singular if count == 1 else plural, f"{count:,}"


def _sets(analysis: Analysis) -> dict[str, Any] | None:
    """Return the values of metrics that score all replies of a system together."""
    joined = analysis.data.joined
    names = [name for name in analysis.data.set_metrics if name in joined.system_scores]
    if not names:
        return None
    rows = []
    for number, system in enumerate(analysis.data.systems[:MAX_SYSTEMS]):
        values = (joined.system_scores[name].get(system) for name in names)
        rows.append((key(number), system, [shown(value) for value in values]))
    return {"names": names, "rows": rows}


def _agreement(analysis: Analysis) -> dict[str, Any]:
    agreement = analysis.agreement
    if agreement.items is None:
        return {"missing": agreement.missing}
    names = _in_order(agreement, analysis.data.metrics)
    plotted = names[: parts.MAX_PLOTS]
    results = sorted(agreement.items.results, key=lambda r: names.index(r.metric))
    figures, table = parts.system_plots(analysis, plotted)
    without = parts.correlation_table(results, lambda r: r.without_human)
    by_system = sorted(
        agreement.systems.results if agreement.systems else [],
        key=lambda r: names.index(r.metric) if r.metric in names else len(names),
    )
    return {
        "missing": None,
        "sampled": len(agreement.joined.items),
        "rated": agreement.rated,
        "table": parts.correlation_table(results, lambda r: r.correlations),
        "without_human": without if without.rows else None,
        "human_system": analysis.settings.human_system,
        "annotators": parts.annotators(agreement.items),
        "scatters": parts.scatters(analysis, plotted),
        "system_figures": figures,
        "system_table": table,
        "by_system": parts.correlation_table(by_system, lambda r: r.correlations)
        if by_system
        else None,
        "not_plotted": len(names) - len(plotted),
        "undefined": [(r.metric, r.undefined) for r in results if r.undefined],
        "thirds": _thirds(agreement),
    }


def _in_order(agreement: Agreement, order: Sequence[str]) -> list[str]:
    metrics = {r.metric for r in agreement.items.results} if agreement.items else set()
    return [name for name in order if name in metrics]


def _thirds(agreement: Agreement) -> list[list[str]]:
    thirds = agreement.items.by_coverage if agreement.items else []
    return [
        [
            t.metric,
            COVERAGE.get(t.by, t.by),
            t.third,
            f"{shown(t.low)} to {shown(t.high)}",
            f"{shown(t.correlations.spearman.value)}{parts.stars(t.correlations.spearman.p)}",
            interval(t.correlations.spearman.low, t.correlations.spearman.high, 2),
            f"{t.correlations.n:,}",
        ]
        for t in thirds
    ]


def _versions() -> list[tuple[str, str]]:
    versions = [("rejoinder", __version__), ("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            versions.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return versions

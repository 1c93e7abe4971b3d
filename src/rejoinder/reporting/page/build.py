"""From findings to what each part of the page shows; nothing is computed after this."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from markupsafe import Markup

from rejoinder.reporting.page import people
from rejoinder.reporting.page.browse import Browsable, shortened
from rejoinder.reporting.page.findings import Agreement, Findings
from rejoinder.reporting.page.ranks import (
    MOST_ORDERS,
    MOST_SYSTEMS,
    MOST_TABLES,
    interval,
    orders,
    ranks,
)
from rejoinder.reporting.page.references import references
from rejoinder.reporting.page.words import Phrase, answer, metric, others, plain
from rejoinder.reporting.plots.scales import shown
from rejoinder.reporting.plots.svg import PALETTE, SHAPES, key
from rejoinder.version import __version__

MOST_REASONS = 60
PACKAGES = ("numpy", "scipy", "torch", "transformers")
THIRDS = {"nearest": "Similarity of the nearest utterances", "agreement": "Agreement of replies"}


@dataclass(frozen=True)
class Made:
    """How the page was made."""

    title: str
    command: str
    inputs: list[tuple[str, str]]
    """Files and their digests."""


def build(findings: Findings, made: Made) -> dict[str, Any]:
    """What the template shows."""
    material = findings.material
    chosen = findings.placed[0]
    every_order = orders(findings)
    return {
        "title": made.title,
        "answer": answer(chosen),
        "summary": plain(answer(chosen)),
        "lead": _lead(findings),
        "facts": _facts(findings),
        "keys": Markup("").join(key(number) for number in range(PALETTE * len(SHAPES))),
        "legend": [(key(n), name) for n, name in enumerate(material.systems[:MOST_SYSTEMS])],
        "ranks": [
            ranks(placed, material.numbers, large=placed is chosen)
            for placed in findings.placed[:MOST_TABLES]
        ],
        "more_ranks": max(0, len(findings.placed) - MOST_TABLES),
        "more_orders": max(0, len(findings.placed) - MOST_ORDERS),
        "people_ranks": None
        if findings.people is None
        else ranks(findings.people, material.numbers),
        "orders": every_order,
        "places": max((len(places) for _, places in every_order), default=0),
        "sets": _sets(findings),
        "agreement": _agreement(findings),
        "references": references(material.items),
        "curves": people.curve_plots(findings.curves),
        "curve_rows": people.curve_rows(findings.curves),
        "unscored": [
            (name, shortened(reason, 300), count, name in material.metrics)
            for name, reason, count in material.notes.counted()[:MOST_REASONS]
        ],
        "unscored_more": max(0, len(material.notes.counted()) - MOST_REASONS),
        "evaluated": findings.evaluated,
        "covered": findings.covered,
        "made": made,
        "signatures": [(n, shortened(s, 600)) for n, s in material.notes.signatures.items()],
        "versions": _versions(),
        "settings": findings.settings,
    }


def browsing(items: Browsable, asked: int) -> dict[str, Any]:
    """What the table of items says of itself."""
    return {"browse": items, "payload": items.payload.decode(), "asked": asked}


def _lead(findings: Findings) -> list[Phrase]:
    """What a reader should know before believing the answer."""
    chosen = findings.placed[0]
    said = [others(chosen, findings.placed[1:])]
    if chosen.order is not None and len(chosen.systems) > 1:
        said.append(
            [
                (
                    "",
                    f"That is over {chosen.order.contexts:,} contexts that all systems answered;"
                    " differences count that are significant at the 5 % level after correction"
                    " for the number of pairs.",
                )
            ]
        )
    said.append(_trust(findings))
    if findings.evaluated is not None and findings.evaluated.guarded.seen:
        said.append([("", f"Caution: {findings.evaluated.guarded} by the evaluator.")])
    return [phrase for phrase in said if phrase]


def _trust(findings: Findings) -> Phrase:
    found = findings.agreement
    if found.items is None:
        return [("", found.missing or "")]
    name = findings.material.metric
    result = next((r for r in found.items.results if r.metric == name), None)
    estimate = None if result is None else result.correlations.spearman
    if result is None or estimate is None or estimate.value is None:
        return []
    told = f"{shown(estimate.value)} {interval(estimate.low, estimate.high, 2)}"
    return [
        ("", f"Over {result.correlations.n:,} rated replies, "),
        metric(name),
        ("", f" has a Spearman correlation with people of {told}."),
    ]


def _facts(findings: Findings) -> list[tuple[str, str]]:
    material = findings.material
    contexts = int(material.joined.contexts.max()) + 1
    unscored = len({name for some in material.notes.reasons.values() for name in some})
    facts = [
        ("systems", f"{len(material.systems):,}"),
        ("contexts", f"{contexts:,}"),
        ("replies", f"{len(material.items):,}"),
        ("metrics", f"{len(material.joined.order):,}"),
        ("rated by people", f"{findings.agreement.rated:,}"),
    ]
    return [*facts, ("not scored by all", f"{unscored:,}")] if unscored else facts


def _sets(findings: Findings) -> dict[str, Any] | None:
    """Metrics that judge all replies of a system together."""
    joined = findings.material.joined
    names = [name for name in findings.material.set_metrics if name in joined.system_scores]
    if not names:
        return None
    rows = []
    for number, system in enumerate(findings.material.systems[:MOST_SYSTEMS]):
        values = (joined.system_scores[name].get(system) for name in names)
        rows.append((key(number), system, [_known(value) for value in values]))
    return {"names": names, "rows": rows}


def _known(value: float | None) -> str:
    return shown(None if value is None or value != value else value)


def _agreement(findings: Findings) -> dict[str, Any]:
    found = findings.agreement
    if found.items is None:
        return {"missing": found.missing}
    names = _first(found, findings.material.metrics)
    plotted = names[: people.MOST_PLOTS]
    results = sorted(found.items.results, key=lambda r: names.index(r.metric))
    figures, table = people.system_plots(findings, plotted)
    without = people.correlation_table(results, lambda r: r.without_human)
    by_system = sorted(
        found.systems.results if found.systems else [],
        key=lambda r: names.index(r.metric) if r.metric in names else len(names),
    )
    return {
        "missing": None,
        "studied": len(found.joined.items),
        "rated": found.rated,
        "table": people.correlation_table(results, lambda r: r.correlations),
        "without_human": without if without.rows else None,
        "human_system": findings.settings.human_system,
        "annotators": people.annotators(found.items),
        "scatters": people.scatters(findings, plotted),
        "system_figures": figures,
        "system_table": table,
        "by_system": people.correlation_table(by_system, lambda r: r.correlations)
        if by_system
        else None,
        "not_plotted": len(names) - len(plotted),
        "undefined": [(r.metric, r.undefined) for r in results if r.undefined],
        "thirds": _thirds(found),
    }


def _first(found: Agreement, order: Sequence[str]) -> list[str]:
    known = {r.metric for r in found.items.results} if found.items else set()
    return [name for name in order if name in known]


def _thirds(found: Agreement) -> list[list[str]]:
    thirds = found.items.by_coverage if found.items else []
    return [
        [
            t.metric,
            THIRDS.get(t.by, t.by),
            t.third,
            f"{shown(t.low)} to {shown(t.high)}",
            f"{shown(t.correlations.spearman.value)}{people.marks(t.correlations.spearman.p)}",
            interval(t.correlations.spearman.low, t.correlations.spearman.high, 2),
            f"{t.correlations.n:,}",
        ]
        for t in thirds
    ]


def _versions() -> list[tuple[str, str]]:
    found = [("rejoinder", __version__), ("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found

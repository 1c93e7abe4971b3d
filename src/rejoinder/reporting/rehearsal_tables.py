"""Tables of ``rejoinder annotate rehearse``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from rejoinder.reporting.study_tables import duration
from rejoinder.reporting.tables import number, plain_table

MAX_ERRORS = 5


def summary_lines(rehearsal: Mapping[str, Any]) -> list[str]:
    """Return what happened, as sentences."""
    r = rehearsal
    latency = r["latency"]
    lines = [
        f"{len(r['people'])} simulated people gave {r['answers']:,} of {r['wanted']:,} answers in"
        f" {r['seconds']:.0f} s ({r['database']})",
        f"{r['complete']:,} of {r['tasks']:,} tasks complete, {r['over']} with too many answers;"
        f" {r['acknowledged']:,} answers acknowledged, {r['lost']} lost,"
        f" {r['sent_again']} sent twice and stored once",
        f"an answer and the next page took {1000 * latency['median']:.0f} ms (median),"
        f" {1000 * latency['95']:.0f} ms (95 %), {1000 * latency['99']:.0f} ms (99 %)",
        f"real people would work {duration(3600 * r['hours'])} in all, one of them"
        f" {duration(3600 * r['hours_longest'])}",
    ]
    if r["repeats"]:
        lines.append(
            f"{r['repeats_refused']:,} of {r['repeats']:,} answers that repeat a text were refused"
        )
    if r["complete"] < r["tasks"]:
        lines.append("the study is not complete: it needs more people, or more tasks per person")
    lines += [f"error: {error}" for error in r["errors"][:MAX_ERRORS]]
    if len(r["errors"]) > MAX_ERRORS:
        lines.append(f"and {len(r['errors']) - MAX_ERRORS} further errors")
    return lines


def comparison_table(rehearsal: Mapping[str, Any]) -> Table:
    """Return what was planted beside what came out."""
    table = plain_table(
        "", "planted", "found", "filtered", right=[1, 2, 3],
        title="Planted and found (filtered: without people whom the study would leave out)",
    )  # fmt: skip
    agreement = rehearsal["agreement"]
    if agreement["planted"] is not None:
        table.add_row(
            "alpha of those who read",
            number(agreement["planted"], 2),
            number(agreement["careful"], 2),
            "",
        )
        table.add_row(
            "alpha of all",
            "",
            number(agreement["everyone"], 2),
            number(agreement["without_unreliable"], 2),
        )
    if rehearsal["correlation"] is not None:
        table.add_row(
            "correlation with the planted quality",
            "",
            number(rehearsal["correlation"], 2),
            number(rehearsal["correlation_without_unreliable"], 2),
        )
    for system in rehearsal["systems"]:
        table.add_row(
            f"mean of {system['system'] or 'the items without a system'}",
            number(system["planted"], 2),
            number(system["found"], 2),
            "",
        )
    for each in rehearsal["detection"]:
        precision = each["precision"]
        note = "" if precision is None else f" (precision {precision:.0%})"
        table.add_row(f"{each['manner']} people{note}", str(each["people"]), str(each["found"]), "")
    return table


def people_table(rehearsal: Mapping[str, Any]) -> Table:
    """Return each simulated person, and what the study shows against them."""
    table = plain_table("person", "manner", "answers", "kappa", "found by", right=[2, 3])
    for person in rehearsal["people"]:
        table.add_row(
            person["name"],
            person["manner"],
            f"{person['answers']:,}",
            number(person["kappa"], 2),
            ", ".join(person["found_by"]),
        )
    return table

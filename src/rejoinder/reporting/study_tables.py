"""Tables of ``rejoinder annotate status``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from rejoinder.reporting.tables import interval, number, plain_table


def progress_lines(status: Mapping[str, Any]) -> list[str]:
    """Return progress and agreement as sentences."""
    lines = [
        f"{status['answers']:,} of {status['wanted']:,} answers,"
        f" {status['complete']:,} of {status['tasks']:,} tasks complete"
        + (", paused" if status["paused"] else "")
    ]
    if status["seconds_left"]:
        lines[0] += f", about {duration(status['seconds_left'])} left at the current pace"
    lines.append(agreement_line("agreement", status["agreement"]))
    if status["without_unreliable"] is not None:
        lines.append(
            agreement_line("without the people marked below", status["without_unreliable"])
        )
    return lines


def agreement_line(label: str, agreement: Mapping[str, Any]) -> str:
    """Return alpha and kappa with their intervals."""
    parts = []
    for name, key in (("alpha", "ci"), ("kappa", "kappa_ci")):
        value, interval = agreement[name], agreement[key]
        if value is not None:
            ends = f" [{number(interval[0], 2)}, {number(interval[1], 2)}]" if interval else ""
            parts.append(f"{name} {number(value, 2)}{ends}")
    return f"{label}: {', '.join(parts) or 'no task has answers of two people yet'}"


def people_table(status: Mapping[str, Any]) -> Table:
    """Return each person's answers, speed and reliability."""
    table = plain_table(
        "person", "answers", "refused", "seconds", "kappa", "distractors", "notes",
        right=[1, 2, 3, 4, 5],
        title="People (seconds: median per answer; distractors: share preferred)",
    )  # fmt: skip
    for person in status["people"]:
        table.add_row(
            person["name"],
            f"{person['answers']:,}",
            f"{sum(person['refused'].values()):,}",
            number(person["median_seconds"], 1),
            number(person["kappa"], 2),
            number(person["distractor_share"], 2),
            _notes(person),
        )
    return table


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return what a planned study has decided, as sentences."""
    lines = [
        "decided: you may stop" if plan["decided"] else f"not decided yet: {plan['question']}",
    ]
    for look in plan["looks"]:
        name = look["a"] if look["b"] is None else f"{look['a']} - {look['b']}"
        ends = look["anytime_ci"]
        shown = interval(ends[0], ends[1], 2) if ends else "too few contexts yet"
        mark = ", decided" if look["decided"] else ""
        lines.append(f"{name}: {number(look['estimate'], 2)}, at all times {shown}{mark}")
    return lines


def ranking_table(status: Mapping[str, Any]) -> Table:
    """Return the systems by people's mean rating."""
    table = plain_table("system", "mean", "95 % interval", right=[1, 2], title="Ranking so far")
    for row in status["ranking"]:
        low, high = row["ci"]
        table.add_row(
            row["system"], number(row["mean"], 3), f"{number(low, 3)} to {number(high, 3)}"
        )
    return table


def duration(seconds: float) -> str:
    """Return a time in the largest unit that fits.

    >>> duration(90), duration(7200), duration(200_000)
    ('2 minutes', '2 hours', '2 days')
    """
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 1.5 * size or unit == "minute":
            count = max(round(seconds / size), 1)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    raise AssertionError("unreachable")


def _notes(person: Mapping[str, Any]) -> str:
    notes = [f"{name.replace('_', ' ')} {count}" for name, count in person["flags"].items()]
    if person["state"] != "active":
        notes.insert(0, person["state"])
    if person["unreliable"]:
        notes.insert(0, f"would be left out: {person['unreliable']}")
    return "; ".join(notes)

"""Leaving annotators out: the options of the verbs that read what people said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from rejoinder.cli.common import not_shares
from rejoinder.errors import UsageError

LEAST_KAPPA = 0.2
"""The limit of Gupta et al. 2019."""
MOST_DISTRACTOR = 0.25
DISTRACTOR = "distractor"
NO_DISTRACTOR = "none"

DropAnnotatorOption = Annotated[
    list[str] | None,
    typer.Option("--drop-annotator", metavar="NAME", help="Leave these out; repeat."),
]
DropBadOption = Annotated[
    bool, typer.Option("--drop-bad", help="Leave out those who are listed as bad.")
]
LeastKappaOption = Annotated[
    float, typer.Option("--least-kappa", metavar="K", help="Below it an annotator is bad.")
]
MostDistractorOption = Annotated[
    float,
    typer.Option(
        "--most-distractor", metavar="S", help="Who prefers distractors more often is bad."
    ),
]
DistractorOption = Annotated[
    str,
    typer.Option("--distractor", metavar="NAME", help="System of planted bad replies, or none."),
]


def wrong_limits(least_kappa: float, most_distractor: float) -> list[str]:
    """What is wrong with the limits that were given."""
    problems = not_shares({"--most-distractor": most_distractor})
    if not -1 <= least_kappa <= 1:
        problems.append(f"--least-kappa must be from -1 to 1, got {least_kappa:g}")
    return problems


def check_distractor(name: str, systems: Iterable[str]) -> None:
    """Refuse a system of distractors that was named, and is not there."""
    from rejoinder.spec import did_you_mean

    known = sorted(set(systems))
    if name not in (DISTRACTOR, NO_DISTRACTOR, *known):
        raise UsageError(
            f"--distractor {name}: no reply is of this system: {did_you_mean(name, known)}"
        )


def check_names(names: Sequence[str], there: Sequence[str]) -> None:
    """Refuse to leave out whom nobody knows."""
    from rejoinder.spec import did_you_mean

    if names and not there:
        raise UsageError(f"--drop-annotator {names[0]}: annotators are unknown: nobody is named")
    if unknown := [name for name in names if name not in there]:
        raise UsageError(*(f"--drop-annotator {n}: {did_you_mean(n, there)}" for n in unknown))

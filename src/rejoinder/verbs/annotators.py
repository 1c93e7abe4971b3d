"""Limits of unreliable annotators, for the verbs that read judgements of people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rejoinder.errors import UsageError
from rejoinder.meta_evaluation.annotators import DISTRACTOR
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

NO_DISTRACTOR = "none"


def limit_problems(min_kappa: float, max_distractor: float) -> list[str]:
    """Return a message for each limit that is out of range."""
    problems = []
    if not 0 <= max_distractor <= 1:
        problems.append(f"{option('max_distractor')} must be from 0 to 1, got {max_distractor:g}")
    if not -1 <= min_kappa <= 1:
        problems.append(f"{option('min_kappa')} must be from -1 to 1, got {min_kappa:g}")
    return problems


def check_distractor(name: str, systems: Iterable[str]) -> None:
    """Refuse a system of distractors that was named but has no replies."""
    names = sorted(set(systems))
    if name not in (DISTRACTOR, NO_DISTRACTOR, *names):
        raise UsageError(
            f"{option('distractor', name)}: no reply is of this system: {did_you_mean(name, names)}"
        )


def check_annotators(names: Sequence[str], annotators: Sequence[str]) -> None:
    """Refuse to drop annotators who gave no judgement."""
    if names and not annotators:
        raise UsageError(f"{option('drop_annotators', names[0])}: the data name no annotators")
    if unknown := [name for name in names if name not in annotators]:
        raise UsageError(
            *(f"{option('drop_annotators', n)}: {did_you_mean(n, annotators)}" for n in unknown)
        )

"""Which scores are runs of the same judge, and which systems use the judge's own model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rejoinder.errors import UsageError
from rejoinder.spec import Spec, parse

JUDGE = "judge"


def parsed(label: str) -> Spec | None:
    """Return the spec that a label is; None if it is none."""
    try:
        return parse(label)
    except UsageError:
        return None


def is_judge(label: str) -> bool:
    """Return whether a metric is a judge.

    >>> is_judge("judge(model=smollm2)"), is_judge("bleu(n=2)")
    (True, False)
    """
    return label.partition("(")[0] == JUDGE


def same_question(labels: Iterable[str]) -> list[list[str]]:
    """Return the judges that differ in nothing but their seed, those of two or more runs.

    >>> same_question(["judge(model=a,seed=1)", "bleu", "judge(model=a,seed=2)", "judge(model=b)"])
    [['judge(model=a,seed=1)', 'judge(model=a,seed=2)']]
    """
    groups: dict[str, list[str]] = {}
    for label in labels:
        spec = parsed(label) if is_judge(label) else None
        if spec is not None:
            rest = tuple(pair for pair in spec.params if pair[0] != "seed")
            groups.setdefault(str(Spec(spec.name, rest)), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def own_systems(label: str, systems: Sequence[str]) -> list[str]:
    """Return the systems that use the model of a judge: whose spec names it, or whose name it is.

    >>> own_systems("judge(model=qwen3)", ["openai(url=http://a/v1,model=qwen3)", "qwen3", "hred"])
    ['openai(url=http://a/v1,model=qwen3)', 'qwen3']
    """
    model = _model(label)
    if not is_judge(label) or model is None:
        return []
    return [name for name in systems if model in (_model(name), _short(name))]


def _model(label: str) -> str | None:
    spec = parsed(label)
    value = dict(spec.params).get("model") if spec is not None else None
    return _short(value) if isinstance(value, str) else None


def _short(name: str) -> str:
    """Return the last part of a path or of a name with its owner, in small letters."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1].lower()

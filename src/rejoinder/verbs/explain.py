"""``explain``: a metric's definition, parameters and signature."""

from __future__ import annotations

import inspect
import sys
from dataclasses import asdict, dataclass
from typing import Any

from rejoinder.metrics.metric import Metric
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.spec import parameters, print_value
from rejoinder.verbs.results import Result


@dataclass(frozen=True)
class ExplainResult(Result):
    """A metric in words."""

    metric: str
    definition: str
    """The text of its documentation."""
    parameters: dict[str, str | None]
    """None: chosen by the language or the evaluator."""
    signature: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def explain(metric: str | Metric) -> ExplainResult:
    """Return the definition of a metric, its parameters and its signature."""
    metric_set = make_metrics([metric], ready=False)
    ((made, label),) = metric_set.labels.items()
    values = {key: getattr(made, key) for key in parameters(type(made))}
    return ExplainResult(
        label,
        inspect.getdoc(sys.modules[type(made).__module__]) or "",
        {key: None if value is None else print_value(value) for key, value in values.items()},
        made.signature(),
    )

"""``rejoinder explain``: what a metric computes, in words and formulas."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def explain(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A metric, such as 'bleu(n=2)'.")],
) -> None:
    """Print a metric's definition, its parameters, and its signature."""
    import inspect

    from rejoinder.metrics.request import requests
    from rejoinder.spec import parameters, print_value

    asked = requests([spec], ready=False)
    (metric,) = asked.labels
    text = inspect.getdoc(sys.modules[type(metric).__module__]) or ""
    out = [text.rstrip(), "", "Parameters:"]
    for key in parameters(type(metric)):
        value = getattr(metric, key)
        out.append(f"  {key} = {'(default)' if value is None else print_value(value)}")
    out += ["", f"Signature: {metric.signature()}", ""]
    sys.stdout.write("\n".join(out))

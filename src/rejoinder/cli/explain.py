"""``rejoinder explain``: what a metric computes, in words and formulas."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rejoinder.cli.common import WIDTH


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
    out = [told(text), "", "Parameters:"]
    for key in parameters(type(metric)):
        value = getattr(metric, key)
        out.append(f"  {key} = {'(default)' if value is None else print_value(value)}")
    out += ["", f"Signature: {metric.signature()}", ""]
    sys.stdout.write("\n".join(out))


def told(text: str) -> str:
    """A docstring for a terminal: lines that fit, quotes instead of marks; formulas and examples as
    they are.

    >>> print(told("``a``: one\\ntwo.\\n\\n    x = y\\n\\n- three\\n  four\\n- five"))
    'a': one two.
    <BLANKLINE>
        x = y
    <BLANKLINE>
    - three four
    - five
    """
    import re
    import textwrap

    blocks = []
    for block in text.strip("\n").split("\n\n"):
        if block.startswith((" ", ">>>")):
            blocks.append(block)
            continue
        words = re.sub(r"``(.+?)``", r"'\1'", block)
        items = re.split(r"\n(?=- )", words)
        blocks.append(
            "\n".join(
                textwrap.fill(
                    " ".join(item.split()),
                    WIDTH,
                    subsequent_indent="  " if item.startswith("- ") else "",
                    break_on_hyphens=False,
                )
                for item in items
            )
        )
    return "\n\n".join(blocks).rstrip()

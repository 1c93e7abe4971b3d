"""``rejoinder explain``."""

from __future__ import annotations

import re
import sys
import textwrap
from typing import Annotated

import typer

from rejoinder.cli.options import JsonOption, PluginOption, complete_metric, load_plugins
from rejoinder.cli.terminal import WIDTH, print_json


def explain(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC", help="A metric, such as 'bleu(n=2)'.", autocompletion=complete_metric
        ),
    ],
    plugin: PluginOption = None,
    json: JsonOption = False,
) -> None:
    """Print a metric's definition, its parameters, and its signature."""
    from rejoinder.verbs.explain import explain as run

    load_plugins(plugin)
    result = run(spec)
    if json:
        print_json(result)
        return
    lines = [wrapped(result.definition), "", "Parameters:"]
    lines += [f"  {key} = {value or '(default)'}" for key, value in result.parameters.items()]
    lines += ["", f"Signature: {result.signature}", ""]
    sys.stdout.write("\n".join(lines))


def wrapped(text: str) -> str:
    """Return a docstring for a terminal: wrapped paragraphs and lists, formulas as they are.

    >>> print(wrapped("``a``: one\\ntwo.\\n\\n    x = y\\n\\n- three\\n  four\\n- five"))
    'a': one two.
    <BLANKLINE>
        x = y
    <BLANKLINE>
    - three four
    - five
    """
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

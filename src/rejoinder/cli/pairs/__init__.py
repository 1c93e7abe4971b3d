"""``rejoinder pairs``: which pairs of replies to ask about, and scores from the answers."""

from __future__ import annotations

import typer

from rejoinder.cli.pairs import curve, fit, plan, simulate

app = typer.Typer(
    help="Plan comparisons of replies, and turn people's answers into scores.",
    no_args_is_help=True,
)

app.command("plan")(plan.plan)
app.command("fit")(fit.fit)
app.command("curve")(curve.curve)
app.command("simulate")(simulate.simulate)

"""``rejoinder train``: what is learnt from pairs, one file a subject."""

from __future__ import annotations

import typer

from rejoinder.cli.train import calibration, dapt, vectors

app = typer.Typer(no_args_is_help=True, help="Learn word vectors, an encoder, a calibration.")

app.command("calibration")(calibration.calibration)
app.command("dapt")(dapt.dapt)
app.command("vectors")(vectors.vectors)

"""``rejoinder pairs curve``: how many pairs are enough."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rejoinder.cli.common import (
    JsonOption,
    SvgOption,
    check_output,
    draw,
    drawn_to_stdout,
    naming,
    print_json,
    seeded,
    show,
)
from rejoinder.cli.pairs.common import (
    AnswersArgument,
    CandidatesArgument,
    StrictOption,
    read_candidates,
    read_comparisons,
    stdin_twice,
)
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import UsageError


def curve(
    candidates: CandidatesArgument,
    answers: AnswersArgument,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", min=1, max=10_000, help="Draws of each share.")
    ] = 20,
    seed: Annotated[int, seeded("Seed of the draws.")] = 12345,
    svg: SvgOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """How many pairs are enough? Agreement over the share of judged pairs.

    Winning rates from some of an annotator's answers, against those from all of
    them (in annotator) and from all of another's (between annotators).
    """
    from rejoinder.pairwise.agreement import share_curve
    from rejoinder.reporting.pairs import curve_chart, curve_table

    if problems := stdin_twice([candidates, *answers]) + drawn_to_stdout(svg):
        raise UsageError(*problems)
    check_output(svg, [candidates, *answers])
    comparisons = read_comparisons(read_candidates(candidates), answers, strict=strict)
    with naming(answers[0]), pieces_progress("drawing") as advance:
        points = share_curve(comparisons, draws=draws, seed=seed, on_progress=advance)
    if svg is not None:
        draw(svg, curve_chart(points))
    if json:
        print_json({"curve": [asdict(point) for point in points]})
    else:
        show(curve_table(points))

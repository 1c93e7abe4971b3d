"""How many comparisons do winning rates need? Random pairs compared with planned pairs.

Two simulated judges of 100 references, whose complete winning rates correlate at .783 (see
rejoinder/pairwise/simulate.py), in many seeds. Winning rates from a share of the first judge's
answers are correlated with the same judge's complete rates (in annotator) and with the other's
(between): Figure 2 of Sugiyama, Meguro & Higashinaka (2019), who found .924 and .731 at 12 %.

Rates of random pairs are counted, as in the paper, and for comparison fitted with Bradley-Terry.
Planned pairs are chosen 25 at a time from the answers so far, and fitted with Bradley-Terry.
Planned pairs must reach the agreement of 12 % drawn ones with at most half as many comparisons.

    python benchmarks/pairs.py docs/pairs-curve.svg

also draws the curves into a file.
"""

import sys
import time
from pathlib import Path

import numpy as np

from rejoinder.pairwise.simulate import (
    REFERENCES,
    asked_as_planned,
    asked_at_random,
    rates_by_counting,
    rates_by_strength,
    two_judges,
)
from rejoinder.reporting.plots.line_chart import Line, LineChart, line_chart_svg
from table import show

SEEDS, BATCH, STEP = 100, 25, 25
PAIRS = REFERENCES * (REFERENCES - 1) // 2
PAPER = round(0.12 * PAIRS)
COUNTS = np.array([*range(STEP, PAPER, STEP), PAPER])
WAYS = ("drawn, counted", "drawn, fitted", "planned, fitted")
MARKS = ("o", "+", "*")
NOISES = (0.0, 1.0)
"""Of other judges: who never contradict themselves, and who often do."""


def run_seed(seed: int, **judges: float) -> tuple[np.ndarray, float]:
    """[ways, counts, in and between] correlations, and that of the complete rates."""
    rng = np.random.default_rng(seed)
    first, second = two_judges(rng, **judges)
    whole = first.rates, second.rates
    drawn = list(asked_at_random(first, rng, COUNTS))
    planned = asked_as_planned(first, rng, COUNTS, batch=BATCH)
    rates = [
        [rates_by_counting(wins) for wins in drawn],
        [rates_by_strength(wins) for wins in drawn],
        [rates_by_strength(wins) for wins in planned],
    ]
    table = [[[np.corrcoef(r, w)[0, 1] for w in whole] for r in row] for row in rates]
    return np.array(table), float(np.corrcoef(*whole)[0, 1])


def enough(found: np.ndarray) -> list[int | None]:
    """[ways] comparisons from which on the mean is that of the paper's share drawn and counted."""
    means = found.mean(axis=0)[:, :, 0]
    target = means[0, -1]
    return [int(COUNTS[np.argmax(row >= target)]) if row.max() >= target else None for row in means]


def run(seeds: int = SEEDS, **judges: float) -> tuple[np.ndarray, np.ndarray]:
    results = [run_seed(seed, **judges) for seed in range(seeds)]
    return np.array([table for table, _ in results]), np.array([whole for _, whole in results])


def print_table(found: np.ndarray, between: np.ndarray) -> None:
    """Mean ± standard deviation over seeds."""
    print(f"{len(found)} seeds, {REFERENCES} references; complete rates of the two judges")
    print(f"correlate at {between.mean():.3f} ± {between.std(ddof=1):.3f} (paper: .783)\n")
    print("correlation with complete rates: in annotator, between annotators")
    print(f"{'':14}" + "".join(f"{way:>22}" for way in WAYS))
    means, spreads = found.mean(axis=0), found.std(axis=0, ddof=1)
    for number, count in enumerate(COUNTS):
        if count % 50 and count != PAPER:
            continue
        cells = [
            f"{mean[0]:.3f} ±{spread[0]:.3f} {mean[1]:.3f}"
            for mean, spread in zip(means[:, number], spreads[:, number], strict=True)
        ]
        print(f"{count:>4} ({count / PAIRS:5.1%})  " + "".join(f"{cell:>22}" for cell in cells))


def figure(found: np.ndarray) -> None:
    """Figure 2 of the paper, in annotator, and the same for planned pairs."""
    means = found.mean(axis=0)[:, :, 0]
    marks = dict(zip(MARKS, means, strict=True))
    rows = np.linspace(1, 0.4, 25)
    half = (rows[0] - rows[1]) / 2
    print("in annotator, over the number of pairs")
    print(", ".join(f"{mark} {way}" for mark, way in zip(MARKS, WAYS, strict=True)))
    for row in rows:
        line = ""
        for number in range(len(COUNTS)):
            here = [m for m, curve in marks.items() if abs(curve[number] - row) <= half]
            dot = "." if abs(means[0, -1] - row) <= half else " "
            line += f"{here[-1] if here else dot:<3}"
        print(f"{row:.3f} |{line.rstrip()}")
    print("      +" + "-" * 3 * len(COUNTS))
    print("       " + "".join(f"{c if c % 100 == 0 else '':<3}" for c in COUNTS) + "\n")


def chart(found: np.ndarray) -> LineChart:
    """The same as a picture."""
    means, spreads = found.mean(axis=0)[:, :, 0], found.std(axis=0, ddof=1)[:, :, 0]
    x = COUNTS.tolist()
    lines = [
        Line(way, x, mean.tolist(), (mean - spread).tolist(), (mean + spread).tolist())
        for way, mean, spread in zip(WAYS, means, spreads, strict=True)
    ]
    target = float(means[0, -1])
    lines.append(Line(f"what {PAPER} pairs drawn and counted reach", [x[0], x[-1]], [target] * 2))
    return LineChart(
        f"How many of {PAIRS:,} pairs are enough: drawn at random, or planned",
        "pairs that were judged",
        "correlation with complete rates",
        lines,
        f"one standard deviation over {len(found)} seeds, either way",
    )


def main() -> None:
    start = time.perf_counter()
    found, between = run()
    print_table(found, between)
    print()
    figure(found)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(line_chart_svg(chart(found)))
    _, fitted, planned = enough(found)
    target = found.mean(axis=0)[0, -1, 0]
    print(f"the {target:.3f} of {PAPER} drawn and counted pairs is reached with")
    print(f"  {fitted or 'more'} drawn pairs and Bradley-Terry,")
    print(f"  {planned or 'more'} planned pairs and Bradley-Terry")
    if planned is not None:
        half = int(np.searchsorted(COUNTS, PAPER / 2, side="right")) - 1
        wins = np.mean(found[:, 2, half, 0] >= found[:, 0, -1, 0])
        print(f"{COUNTS[half]} planned pairs beat {PAPER} drawn ones in {wins:.0%} of the seeds")
    for noise in NOISES:
        other, _ = run(SEEDS // 4, noise=noise)
        _, fitted_other, planned_other = enough(other)
        drawn = other.mean(axis=0)[0, -1, 0]
        print(f"judges with noise {noise:g}: {drawn:.3f} with {PAPER} drawn and counted,", end=" ")
        print(f"{fitted_other or 'more'} drawn, {planned_other or 'more'} planned")
    print(f"{time.perf_counter() - start:.0f} seconds\n")
    show(
        [
            {
                "name": f"comparisons, planned, for the agreement of {PAPER} drawn and counted",
                "ours_seconds": planned or np.nan,
                "peer_seconds": PAPER,
                "ratio": PAPER / planned if planned else 0.0,
                "required": 2.0,
            }
        ]
    )


if __name__ == "__main__":
    main()

"""Agreement over the share of judged pairs: by hand, and as it must grow."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from duels import candidates, compared
from rejoinder.errors import DataError
from rejoinder.pairwise.agreement_curve import agreement_curve
from rejoinder.pairwise.simulate import two_judges

SIZE = 12
NAMES = [f"{n:02}" for n in range(SIZE)]


def judged(contexts: int):
    """Two judges who have answered everything about some contexts; rates of each."""
    items, duels, rates = [], [], []
    for context in range(contexts):
        names = [f"{context}:{name}" for name in NAMES]
        items += candidates(names, str(context))
        judges = two_judges(np.random.default_rng(context), references=SIZE)
        for who, judge in zip(("ann", "bob"), judges, strict=True):
            for i, j in combinations(range(SIZE), 2):
                duels.append((names[i], names[j], "a" if judge.wins[i, j] else "b", who))
        rates.append([judge.rates for judge in judges])
    return compared(items, duels), rates


def test_all_answers_agree_with_themselves_and_as_the_judges_do() -> None:
    comparisons, rates = judged(4)
    (whole,) = agreement_curve(comparisons, shares=[1.0])
    assert whole.pairs == SIZE * (SIZE - 1) / 2
    assert whole.within == pytest.approx(1)
    expected = np.mean([np.corrcoef(*pair)[0, 1] for pair in rates])
    assert whole.between == pytest.approx(expected)
    assert whole.within_std is None  # one draw


def test_more_answers_agree_more() -> None:
    comparisons, _ = judged(6)
    curve = agreement_curve(comparisons, shares=[0.2, 0.5, 0.9], draws=10)
    inside = [point.within for point in curve]
    assert inside == sorted(inside)
    assert all(0 < (point.within_std or 0) < 0.2 for point in curve)
    assert all((point.between or 1) < (point.within or 0) for point in curve)
    assert curve == agreement_curve(comparisons, shares=[0.2, 0.5, 0.9], draws=10)
    assert curve != agreement_curve(comparisons, shares=[0.2, 0.5, 0.9], draws=10, seed=1)


def test_every_draw_of_three_answers_out_of_four_turns_up_and_no_other() -> None:
    items = candidates("wxyz")
    duels = [("w", "x", "a"), ("x", "y", "a"), ("y", "z", "a"), ("z", "w", "tie")]
    comparisons = compared(items, [(*duel, "ann") for duel in duels])
    # three of four answers; whole rates: w 1.5/2, x 1/2, y 1/2, z .5/2. Without wx: w .5, x 1,
    # y .5, z .25. Without xy: w .75, x 0, y 1, z .25. Without yz: w .75, x .5, y 0, z .5. Without
    # zw: w 1, x .5, y .5, z 0.
    whole = [0.75, 0.5, 0.5, 0.25]
    parts = [[0.5, 1, 0.5, 0.25], [0.75, 0, 1, 0.25], [0.75, 0.5, 0, 0.5], [1, 0.5, 0.5, 0]]
    possible = [np.corrcoef(part, whole)[0, 1] for part in parts]
    found = {
        round(point.within or 0, 9)
        for seed in range(40)
        for point in agreement_curve(comparisons, shares=[0.75], draws=1, seed=seed)
    }
    assert found == {round(float(value), 9) for value in possible}


def test_one_annotator_has_no_between_agreement() -> None:
    comparisons = compared(candidates("xyz"), [("x", "y", "a", "ann"), ("y", "z", "a", "ann")])
    (point,) = agreement_curve(comparisons, shares=[1.0])
    assert (point.between, point.between_std) == (None, None)


def test_without_names_there_is_no_curve() -> None:
    with pytest.raises(DataError, match="names its annotator"):
        agreement_curve(compared(candidates("xy"), [("x", "y", "a")]))

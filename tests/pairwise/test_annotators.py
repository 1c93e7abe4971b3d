"""Who agrees with whom, against Cohen's kappa itself, and whose answers are left out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from duels import candidates, compared
from rejoinder.meta_evaluation.agreement import krippendorff_alpha, mean_pairwise_kappa
from rejoinder.meta_evaluation.annotators import MAX_ANNOTATORS, MIN_COMMON, Resampling
from rejoinder.meta_evaluation.correlate import draw_counts
from rejoinder.pairwise.annotators import (
    comparison_agreement,
    pairwise_kappas,
    unreliable_annotators,
)

NAMES = "tuvwxyz"
PAIRS = list(combinations(NAMES, 2))
WINNERS = {1: "a", 0: "tie", -1: "b"}


def said(verdicts: dict[str, list[int | None]]):
    """Each annotator's verdicts on PAIRS, None where there is none."""
    return [
        (a, b, WINNERS[verdict], who)
        for who, row in verdicts.items()
        for (a, b), verdict in zip(PAIRS, row, strict=False)
        if verdict is not None
    ]


def test_kappa_without_ties_is_twice_the_equal_share_less_one() -> None:
    # 21 pairs, 3 differ: 2 * 18/21 - 1
    ann = [1] * 21
    bob = [-1] * 3 + [1] * 18
    found = comparison_agreement(compared(candidates(NAMES), said({"ann": ann, "bob": bob})))
    assert found.kappa == pytest.approx(2 * 18 / 21 - 1)
    assert [who.kappa for who in found.annotators] == [found.kappa] * 2
    # alpha of the 84 values in both directions, as many 1 as -1: observed disagreement 6 of 42,
    # expected 84/2 of 83; 1 - (6/42) / (42/83)
    assert found.alpha == pytest.approx(1 - (6 / 42) * 83 / 42)


@given(
    st.lists(
        st.tuples(*[st.sampled_from([-1, 0, 1])] * 3), min_size=MIN_COMMON, max_size=len(PAIRS)
    )
)
def test_kappa_is_sklearns_of_both_directions(rows) -> None:
    verdicts = dict(zip(("ann", "bob", "cy"), map(list, zip(*rows, strict=True)), strict=True))
    found = pairwise_kappas(compared(candidates(NAMES), said(verdicts)))
    for (i, one), (j, other) in combinations(enumerate(verdicts.values()), 2):
        both = [one + [-v for v in one], other + [-v for v in other]]
        if not np.any(both):
            assert np.isnan(found[i, j])
            continue
        # three categories even where a tie was never seen
        peer = cohen_kappa_score(*both, labels=[-1, 0, 1], weights="quadratic")
        assert found[i, j] == found[j, i] == pytest.approx(peer)


def test_few_pairs_in_common_are_no_agreement() -> None:
    few = MIN_COMMON - 1
    found = comparison_agreement(
        compared(candidates(NAMES), said({"ann": [1] * 21, "bob": [1] * few, "cy": [1]}))
    )
    assert found.kappa is None
    assert [(who.name, who.answers, who.kappa) for who in found.annotators] == [
        ("ann", 21, None),
        ("bob", few, None),
        ("cy", 1, None),
    ]
    one_more = said({"ann": [1] * 21, "bob": [1] * MIN_COMMON})
    assert comparison_agreement(compared(candidates(NAMES), one_more)).kappa == 1


def test_an_annotator_with_one_answer_is_not_unreliable() -> None:
    rows = {"ann": [1] * 21, "bob": [1] * 21, "cy": [1] * 21, "once": [-1]}
    assert unreliable_annotators(compared(candidates(NAMES), said(rows)), min_kappa=0.99) == []


def test_the_lowest_kappa_is_removed_first_and_the_others_are_kept() -> None:
    # bad contradicts everybody: the others' mean kappas are (1 + 1 - 1)/3 = 1/3 with him, below
    # the limit, and 1 without him
    good = [1, -1] * 10
    rows = {"ann": good, "bob": good, "cy": good, "bad": [-v for v in good]}
    comparisons = compared(candidates(NAMES), said(rows))
    found = comparison_agreement(comparisons)
    assert [who.kappa for who in found.annotators] == pytest.approx([1 / 3] * 3 + [-1])
    (bad,) = unreliable_annotators(comparisons, min_kappa=0.5)
    assert bad.name == "bad"
    assert bad.reason == "kappa with the others is -1.00"
    assert comparison_agreement(comparisons.without(["bad"])).kappa == 1
    assert unreliable_annotators(comparisons, min_kappa=-1) == []


def test_two_annotators_who_disagree_are_both_kept() -> None:
    rows = {"ann": [1] * 20, "bob": [-1] * 20}
    assert unreliable_annotators(compared(candidates(NAMES), said(rows)), min_kappa=0.5) == []


def test_annotators_who_prefer_distractors_are_unreliable() -> None:
    items = [*candidates(NAMES[:1], system="distractor"), *candidates(NAMES[1:])]
    six = PAIRS[:6]  # t, the distractor, against each other one
    assert all(a == "t" for a, _ in six)
    rows = {"good": [-1] * 6, "so-so": [1, -1, -1, 0, -1, -1], "bad": [1] * 6, "few": [1] * 4}
    comparisons = compared(items, said(rows))
    found = {
        who.name: (who.planted, who.preferred)
        for who in comparison_agreement(comparisons).annotators
    }
    assert found == {"good": (6, 0), "so-so": (6, 0.25), "bad": (6, 1), "few": (4, 1)}
    assert [b.name for b in unreliable_annotators(comparisons, max_distractor=0.25)] == ["bad"]
    assert [b.name for b in unreliable_annotators(comparisons, max_distractor=0.2)] == [
        "so-so",
        "bad",
    ]
    # the same where the distractor stands last
    last = [*candidates(NAMES[:-1]), *candidates(NAMES[-1:], system="distractor")]
    against = [(name, NAMES[-1], "a", "good") for name in NAMES[:-1]]
    (good,) = comparison_agreement(compared(last, against)).annotators
    assert (good.planted, good.preferred) == (6, 0)
    other = unreliable_annotators(comparisons, max_distractor=0.25, distractor="none such")
    assert other == []


def test_a_repeated_answer_is_no_agreement() -> None:
    one = said({"ann": [1] * 20, "bob": [1] * 15 + [-1] * 5})
    once = comparison_agreement(compared(candidates(NAMES), one))
    twice = comparison_agreement(compared(candidates(NAMES), one + one))
    assert once.kappa == twice.kappa == 0.5
    assert once.alpha == twice.alpha


def test_unnamed_answers_have_alpha_only() -> None:
    duels = [(a, b, "a") for a, b in PAIRS] * 2
    found = comparison_agreement(compared(candidates(NAMES), duels))
    assert (found.annotators, found.kappa, found.alpha) == ([], None, 1)


def test_hundreds_of_annotators_are_not_compared_one_by_one() -> None:
    rows = {f"p{n}": [1, -1] * 6 for n in range(MAX_ANNOTATORS + 1)}
    comparisons = compared(candidates(NAMES), said(rows))
    found = comparison_agreement(comparisons)
    assert found.kappa is None
    assert found.left_out is not None
    assert found.alpha == 1
    assert unreliable_annotators(comparisons, min_kappa=0.5) == []


def several_contexts(seed: int):
    """Twelve contexts of four replies; three annotators, of whom the last answers few pairs."""
    rng = np.random.default_rng(seed)
    items, rows = [], []
    for context in range(12):
        names = [f"{context}{name}" for name in "abcd"]
        items += candidates(names, str(context))
        for a, b in combinations(names, 2):
            better = rng.choice([-1, 0, 1])
            for who, care in (("ann", 0.9), ("bob", 0.7), ("cy", 0.5)):
                if who != "cy" or rng.random() < 0.4:
                    verdict = better if rng.random() < care else rng.choice([-1, 0, 1])
                    rows.append((a, b, WINNERS[int(verdict)], who))
    return items, rows


def test_intervals_of_comparisons_are_those_of_the_plain_bootstrap() -> None:
    """The contexts are drawn one by one, and agreement is computed of both directions of the
    pairs, with contexts repeated."""
    items, rows = several_contexts(4)
    found = comparison_agreement(compared(items, rows), resampling=Resampling(100, 9))
    pairs = {(a, b): n for n, (a, b) in enumerate(dict.fromkeys((a, b) for a, b, *_ in rows))}
    table = np.full((3, len(pairs)), np.nan)
    for a, b, winner, who in rows:
        table[["ann", "bob", "cy"].index(who), pairs[a, b]] = {"a": 1, "b": -1, "tie": 0}[winner]
    context = np.array([int(a[:-1]) for a, _ in pairs])
    (drawn,) = draw_counts(np.random.default_rng(9), 12, 100)
    alphas, kappas = [], []
    for counts in drawn:
        both = np.repeat(table, counts[context], axis=1)
        both = np.hstack([both, -both])
        alphas.append(krippendorff_alpha(both))
        kappas.append(mean_pairwise_kappa(both, weights="quadratic", categories=[-1, 0, 1]))
    assert found.alpha_ci == pytest.approx(np.quantile(alphas, [0.025, 0.975]))
    assert found.kappa_ci == pytest.approx(np.quantile(kappas, [0.025, 0.975]))
    assert found.alpha_ci[0] < found.alpha < found.alpha_ci[1]  # type: ignore[index, operator]
    assert comparison_agreement(compared(items, rows), resampling=Resampling(0)).alpha_ci is None


def test_one_context_and_one_annotator_have_no_interval() -> None:
    one = comparison_agreement(
        compared(candidates(NAMES), said({"ann": [1] * 21, "bob": [1] * 21}))
    )
    assert (one.alpha, one.alpha_ci, one.kappa, one.kappa_ci) == (1, None, 1, None)
    items, rows = several_contexts(1)
    alone = comparison_agreement(compared(items, [row for row in rows if row[3] == "ann"]))
    assert (alone.alpha, alone.alpha_ci, alone.kappa, alone.kappa_ci) == (None,) * 4
    nobody = comparison_agreement(compared(items, []))
    assert (nobody.alpha, nobody.alpha_ci, nobody.kappa_ci) == (None,) * 3

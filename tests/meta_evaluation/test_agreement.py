import math
import tracemalloc

import krippendorff
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from rejoinder.items import Item
from rejoinder.meta_evaluation.agreement import (
    alpha_interval,
    cohen_kappa,
    kappa_interval,
    krippendorff_alpha,
    mean_pairwise_kappa,
)
from rejoinder.meta_evaluation.agreement_sums import RatedItems
from rejoinder.meta_evaluation.annotators import (
    AnnotatorLimits,
    AnnotatorReview,
    HumanAgreement,
    Resampling,
    correlation_with_annotators,
)
from rejoinder.meta_evaluation.correlate import draw_counts
from rejoinder.reporting.meta_tables import annotator_facts

NAN = math.nan
LEVELS = ["nominal", "ordinal", "interval", "ratio"]
WEIGHTS = ["none", "linear", "quadratic"]

scores = st.integers(1, 5).map(float)
two = st.lists(st.tuples(scores, scores), min_size=1, max_size=30)


@st.composite
def matrices(draw):
    annotators = draw(st.integers(2, 5))
    cell = st.sampled_from([NAN, 0.0, 1.0, 2.0, 4.5, 7.0])
    column = st.lists(cell, min_size=annotators, max_size=annotators)
    return np.array(draw(st.lists(column, min_size=1, max_size=15))).T


# Cohen's kappa


def test_kappa_by_hand():
    a, b = [1, 1, 1, 2, 2, 3], [1, 1, 2, 2, 3, 3]
    # agreement 4/6; by chance (3*2 + 2*2 + 1*2)/36 = 1/3; (2/3 - 1/3) / (1 - 1/3) = 1/2
    assert cohen_kappa(a, b) == pytest.approx(0.5)
    # linear prices: observed 2 confusions by one step: 2. Expected, margins a 3 2 1 and b 2 2 2:
    # (3*2*1 + 3*2*2 + 2*2*1 + 2*2*1 + 1*2*2 + 1*2*1) / 6 = 32/6; 1 - 2 * 6/32 = .625
    assert cohen_kappa(a, b, weights="linear") == pytest.approx(0.625)
    # quadratic: observed 2; expected (6 + 24 + 4 + 4 + 8 + 2) / 6 = 8; 1 - 2/8
    assert cohen_kappa(a, b, weights="quadratic") == pytest.approx(0.75)


@given(two, st.sampled_from(WEIGHTS))
def test_kappa_is_sklearns(pairs, weights):
    a, b = np.array(pairs).T
    found = cohen_kappa(a, b, weights=weights)
    if np.unique(pairs).size == 1:
        assert found is None
    else:
        peer = cohen_kappa_score(a, b, weights=None if weights == "none" else weights)
        assert found == pytest.approx(peer, abs=1e-12)


@given(two, st.sampled_from(WEIGHTS))
def test_kappa_on_a_whole_scale_is_sklearns_with_labels(pairs, weights):
    a, b = np.array(pairs).T
    found = cohen_kappa(a, b, weights=weights, categories=[5, 4, 3, 2, 1])
    if np.unique(pairs).size > 1:
        peer = None if weights == "none" else weights
        expected = cohen_kappa_score(a, b, weights=peer, labels=[1, 2, 3, 4, 5])
        assert found == pytest.approx(expected, abs=1e-12)


def test_unused_categories_matter_for_weighted_kappa_only():
    a, b = [1, 1, 2, 5, 5, 5], [1, 2, 2, 5, 5, 1]
    whole = [1, 2, 3, 4, 5]
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa(a, b, categories=whole))
    used = cohen_kappa(a, b, weights="linear")
    assert used != pytest.approx(cohen_kappa(a, b, weights="linear", categories=whole))


def test_missing_ratings_are_left_out_pairwise():
    a = [1, 1, NAN, 1, 2, 2, 3, NAN]
    b = [1, 1, 3, 2, 2, 3, 3, NAN]
    assert cohen_kappa(a, b) == pytest.approx(0.5)  # the rest is the example by hand


@given(two)
def test_kappa_is_symmetric_and_one_for_copies(pairs):
    a, b = np.array(pairs).T
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa(b, a), abs=1e-12)
    if np.unique(a).size > 1:
        assert cohen_kappa(a, a, weights="quadratic") == 1.0


def test_mean_pairwise_kappa_is_the_mean_over_defined_pairs():
    table = np.array(
        [
            [1, 1, 1, 2, 2, 3, NAN],
            [1, 1, 2, 2, 3, 3, NAN],
            [2, 1, 2, 2, 3, 1, 1],
            [NAN, NAN, NAN, NAN, NAN, NAN, 1],  # shares one item with the third: undefined
        ]
    )
    pairs = [cohen_kappa_score(table[i, :6], table[j, :6]) for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert mean_pairwise_kappa(table) == pytest.approx(np.mean(pairs))


def test_kappa_undefined():
    assert cohen_kappa([], []) is None
    assert cohen_kappa([NAN, 1], [1, NAN]) is None
    assert cohen_kappa([2, 2, 2], [2, 2, 2]) is None
    assert mean_pairwise_kappa([[1, 2, 3]]) is None
    assert mean_pairwise_kappa(np.empty((0, 0))) is None


def test_kappa_refuses():
    with pytest.raises(ValueError, match="a has 2 items but b has 3"):
        cohen_kappa([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="outside the categories"):
        cohen_kappa([1, 2], [1, 3], categories=[1, 2])
    with pytest.raises(ValueError, match="unknown weights 'cubic'"):
        cohen_kappa([1, 2], [1, 2], weights="cubic")
    with pytest.raises(ValueError, match="ratings: expected 2 dimension"):
        mean_pairwise_kappa([1, 2])
    with pytest.raises(ValueError, match="a: infinite"):
        cohen_kappa([1, math.inf], [1, 2])


# Krippendorff's alpha

# The example of Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", part C.
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


@pytest.mark.parametrize(
    ("level", "alpha"),
    [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)],
)
def test_alpha_is_the_published_one(level, alpha):
    assert krippendorff_alpha(PUBLISHED, level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_by_hand():
    # Two raters, three items: 1 1, 2 2, 1 2. Margins: 1 three times, 2 three times; n = 6.
    # o_12 + o_21 = 2; n_1 n_2 + n_2 n_1 = 18; alpha = 1 - (6 - 1) * 2 / 18 = 4/9
    assert krippendorff_alpha([[1, 2, 1], [1, 2, 2]], "nominal") == pytest.approx(4 / 9)


@given(matrices(), st.sampled_from(LEVELS))
def test_alpha_is_the_peers(table, level):
    found = krippendorff_alpha(table, level)
    paired = table[:, np.count_nonzero(~np.isnan(table), axis=0) >= 2]
    if np.unique(paired[~np.isnan(paired)]).size < 2:
        assert found is None
    else:
        expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
        assert found == pytest.approx(expected, abs=1e-9)


@given(matrices(), st.sampled_from(LEVELS), st.integers(0, 1000))
def test_alpha_does_not_depend_on_the_order_of_annotators_or_items(table, level, seed):
    rng = np.random.default_rng(seed)
    found = krippendorff_alpha(table, level)
    mixed = krippendorff_alpha(rng.permutation(rng.permutation(table, axis=0), axis=1), level)
    assert found == (mixed if found is None else pytest.approx(mixed, abs=1e-9))


@given(matrices())
def test_alpha_is_invariant_as_its_level_says(table):
    def same(level, changed):
        before, after = krippendorff_alpha(table, level), krippendorff_alpha(changed, level)
        assert before == (after if before is None else pytest.approx(after, abs=1e-9))

    same("nominal", -table)
    same("ordinal", np.exp(table))
    same("interval", 3 * table - 5)
    same("ratio", 3 * table)


def test_alpha_is_near_zero_for_guessing_and_one_for_agreement():
    guesses = np.random.default_rng(0).integers(1, 6, (3, 3000)).astype(float)
    for level in LEVELS:
        assert krippendorff_alpha(guesses, level) == pytest.approx(0, abs=0.03)
        assert krippendorff_alpha(np.tile(guesses[0], (3, 1)), level) == 1.0


def test_alpha_undefined():
    for level in LEVELS:
        assert krippendorff_alpha(np.empty((2, 0)), level) is None
        assert krippendorff_alpha([[1, 2, 3]], level) is None
        assert krippendorff_alpha([[1, NAN], [NAN, 2]], level) is None
        assert krippendorff_alpha([[2, 2], [2, 2]], level) is None


def test_alpha_refuses():
    with pytest.raises(ValueError, match="unknown level 'cardinal'"):
        krippendorff_alpha([[1, 2], [1, 2]], "cardinal")
    with pytest.raises(ValueError, match="no negative values"):
        krippendorff_alpha([[-1, 2], [-1, 2]], "ratio")
    with pytest.raises(ValueError, match="expected 2 dimension"):
        krippendorff_alpha([1, 2])


# large inputs: no table of values by values, and no pair of annotators by thousands


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_of_measurements_needs_little_memory(level):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=20_000)
    table = truth + 0.5 * rng.normal(size=(2, 20_000))  # 40,000 distinct values
    tracemalloc.start()
    found = krippendorff_alpha(table, level)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * 2**20
    # interval: 1 / (1 + 0.25) of the variance is shared; normal ranks, hardly less; all differ
    assert found == pytest.approx({"nominal": 0, "ordinal": 0.79, "interval": 0.8}[level], abs=0.02)


def test_ratio_alpha_of_measurements_in_blocks():
    table = np.exp(np.random.default_rng(0).normal(size=(3, 60)))
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement="ratio")
    assert krippendorff_alpha(table, "ratio") == pytest.approx(expected, abs=1e-9)


def test_kappa_is_for_categories():
    scale = np.arange(1001.0)
    assert cohen_kappa(scale[:1000], scale[:1000]) == 1.0
    assert cohen_kappa(scale, scale) is None
    assert cohen_kappa([1, 2], [1, 2], categories=scale) is None


def test_thousands_of_annotators_have_an_alpha_and_say_why_no_more():
    rng = np.random.default_rng(0)
    items = [
        Item(
            id=str(i),
            response="x",
            ratings={f"a{k}": float(i % 5) for k in rng.choice(2000, 3, replace=False)},
        )
        for i in range(5000)
    ]
    humans = HumanAgreement.of(items)
    assert (humans.annotators, humans.alpha, humans.kappa) == (1999, 1.0, None)
    assert humans.pairwise == humans.against_others == {}
    assert humans.left_out == "more than 200 annotators are not compared one by one"
    assert annotator_facts(humans).endswith(humans.left_out)
    assert correlation_with_annotators(items, rng.normal(size=5000)) is None


def test_each_annotator_against_the_others_by_hand():
    """The average of the others of a is that of b and c, where they rated."""
    rng = np.random.default_rng(1)
    table = rng.integers(1, 6, (3, 40)).astype(float)
    table[1, :5] = np.nan
    items = [
        Item(
            id=str(i),
            response="x",
            ratings={n: v for n, v in zip("abc", column, strict=True) if v == v},
        )
        for i, column in enumerate(table.T)
    ]
    humans = HumanAgreement.of(items)
    others = np.nanmean(table[1:], axis=0)
    assert humans.against_others["a"]["spearman"] == pytest.approx(
        stats.spearmanr(table[0], others)[0]
    )
    pairs = [(0, 1), (0, 2), (1, 2)]
    taus = [stats.kendalltau(table[i, 5:], table[j, 5:])[0] for i, j in pairs]
    taus[1] = stats.kendalltau(table[0], table[2])[0]
    assert humans.pairwise["kendall"]["mean"] == pytest.approx(np.mean(taus))
    assert humans.left_out is None


# intervals


def repeated(table, counts):
    """The plain bootstrap: each column as often as it was drawn."""
    return np.repeat(table, counts, axis=1)


@given(matrices(), st.sampled_from(LEVELS), st.integers(0, 1000))
def test_alphas_of_resamples_are_those_of_repeated_items(table, level, seed):
    items = RatedItems.of(table, level)
    counts = np.random.default_rng(seed).integers(0, 4, (5, items.kept.size)).astype(np.int32)
    for row, found in zip(counts, items.alphas(counts), strict=True):
        expected = krippendorff_alpha(repeated(table[:, items.kept], row), level)
        assert math.isnan(found) if expected is None else found == pytest.approx(expected, abs=1e-9)


def test_intervals_are_those_of_the_plain_bootstrap():
    """The same draws, one by one, with the items repeated; missing ratings and clusters."""
    rng = np.random.default_rng(2)
    table = rng.integers(1, 6, (4, 30)).astype(float)
    table[rng.random(table.shape) < 0.3] = NAN
    clusters = np.arange(30) // 3
    several = np.count_nonzero(~np.isnan(table), axis=0) >= 2
    assert 20 < several.sum() < 30
    table, clusters = np.hstack([table, table[:, :1] * NAN]), np.append(clusters, 77)  # unrated
    several = np.append(several, False)
    labels = np.unique(clusters[several], return_inverse=True)[1]
    (drawn,) = draw_counts(np.random.default_rng(5), labels.max() + 1, 200)
    resamples = [repeated(table[:, several], counts[labels]) for counts in drawn]
    alphas = [krippendorff_alpha(each) for each in resamples]
    assert alpha_interval(table, clusters, resamples=200, seed=5) == pytest.approx(
        np.quantile(alphas, [0.025, 0.975]), abs=1e-12
    )
    scale = [1, 2, 3, 4, 5]
    kappas = [mean_pairwise_kappa(x, weights="quadratic", categories=scale) for x in resamples]
    assert kappa_interval(table, clusters, resamples=200, seed=5) == pytest.approx(
        np.quantile(kappas, [0.025, 0.975]), abs=1e-12
    )


def test_interval_by_hand():
    # two items, 1 1 2 and 2 2 2. A resample has both once (half of all): margins 2 and 4, n = 6,
    # nominal o = (9 - 5) / 2 = 2, alpha = 1 - 5 * 2 / (36 - 4 - 16) = 3/8; twice the first (a
    # quarter): margins 4 and 2, o = 4, 1 - 5 * 4 / 16 = -1/4; or twice the second: one value, not
    # defined. So a third of the defined resamples is -1/4, two thirds are 3/8.
    table = [[1, 2], [1, 2], [2, 2]]
    assert krippendorff_alpha(table, "nominal") == pytest.approx(3 / 8)
    assert alpha_interval(table, level="nominal") == pytest.approx((-1 / 4, 3 / 8))


def test_intervals_repeat_with_the_seed():
    table = np.random.default_rng(0).integers(1, 6, (3, 40)).astype(float)
    for interval in (alpha_interval, kappa_interval):
        assert interval(table) == interval(table) == interval(table, np.arange(40))
        assert interval(table, seed=1) != interval(table, seed=2)


def test_no_interval_where_nothing_can_be_resampled():
    table = np.array([[1.0, 2, 3, 1], [1, 2, 2, 1]])
    for interval in (alpha_interval, kappa_interval):
        assert interval(table) is not None
        assert interval(table, resamples=0) is None
        assert interval(table, [7, 7, 7, 7]) is None  # one cluster
        assert interval(np.full((2, 5), 2.0)) is None  # one value
        assert interval(table[:1]) is None  # one annotator
        assert interval(np.empty((0, 0))) is None
        assert interval([[1, NAN], [NAN, 2]]) is None  # no item was rated twice
        assert interval([[1, NAN, 2], [2, 1, NAN]]) is None  # a single item was
        with pytest.raises(ValueError, match="clusters has 2 items but ratings has 4"):
            interval(table, [1, 2])
        with pytest.raises(ValueError, match=r"clusters: expected 1 dimension\(s\), got 2"):
            interval(table, [[1, 2, 3, 4]])
    assert kappa_interval(np.tile(np.arange(1001.0), (2, 1))) is None
    # 1,500 annotators of one item and another: 2 * 1500 * 1499 / 2 pairs of ratings
    assert kappa_interval(np.tile([1.0, 2.0], (1500, 1))) is None
    assert alpha_interval(np.tile([[1.0, 2.0]], (1500, 20))) == (1, 1)


def study(rng, contexts, replies, effect):
    """Three annotators rate replies on a scale of 1 to 5; replies to one context are alike."""
    quality = rng.normal(size=contexts * replies)
    quality += effect * np.repeat(rng.normal(size=contexts), replies)
    ratings = 3 + 0.8 * (quality + rng.normal(size=(3, quality.size)))
    return np.clip(np.rint(ratings), 1, 5), np.repeat(np.arange(contexts), replies)


@pytest.mark.parametrize(("contexts", "replies", "effect"), [(200, 1, 0.0), (60, 5, 1.5)])
def test_intervals_have_the_true_agreement_in_95_of_100_studies(contexts, replies, effect):
    """Of 1,000 simulated studies; three standard errors are .02, and with few contexts percentiles
    lack a percent or two. Replies drawn one by one would give intervals that are too narrow."""
    rng = np.random.default_rng(11)
    everybody, _ = study(rng, 100_000, replies, effect)
    true_alpha = krippendorff_alpha(everybody)
    true_kappa = mean_pairwise_kappa(everybody, weights="quadratic")
    hits = np.zeros(3)
    for seed in range(1000):
        table, clusters = study(rng, contexts, replies, effect)
        found = [
            (true_alpha, alpha_interval(table, clusters, resamples=300, seed=seed)),
            (true_kappa, kappa_interval(table, clusters, resamples=300, seed=seed)),
            (true_alpha, alpha_interval(table, resamples=300, seed=seed)),
        ]
        hits += [low <= true <= high for true, (low, high) in found]
    alpha, kappa, one_by_one = hits / 1000
    assert 0.92 < alpha < 0.97
    assert 0.92 < kappa < 0.97
    assert one_by_one < 0.89 if replies > 1 else one_by_one == alpha


def test_the_agreement_of_ratings_has_intervals_by_context():
    rng = np.random.default_rng(3)
    table = np.clip(rng.integers(1, 5, 60) + rng.integers(0, 2, (3, 60)), 1, 5).astype(float)
    contexts = np.repeat(np.arange(20), 3)
    items = [
        Item(str(n), "x", context_id=f"c{c}", ratings=dict(zip("abc", row.tolist(), strict=True)))
        for n, (c, row) in enumerate(zip(contexts, table.T, strict=True))
    ]
    humans = HumanAgreement.of(items, Resampling(200, 7))
    assert humans.alpha_ci == alpha_interval(table, contexts, resamples=200, seed=7)
    assert humans.kappa_ci == kappa_interval(table, contexts, resamples=200, seed=7)
    assert humans.alpha_ci[0] < humans.alpha < humans.alpha_ci[1]
    assert humans.kappa_ci[0] < humans.kappa < humans.kappa_ci[1]
    low, high = (f"{end:.2f}".lstrip("0") for end in humans.alpha_ci)
    assert annotator_facts(humans).endswith(f" [{low}, {high}]")
    review = AnnotatorReview.of(items, AnnotatorLimits(), resampling=Resampling(200, 7)).agreement
    assert (review.alpha_ci, review.kappa_ci) == (humans.alpha_ci, humans.kappa_ci)
    unnamed = [msgspec.structs.replace(i, ratings=list(i.ratings.values())) for i in items]
    anonymous = HumanAgreement.of(unnamed, Resampling(200, 7))
    assert (anonymous.alpha_ci, anonymous.kappa_ci) == (humans.alpha_ci, None)
    none = HumanAgreement.of(items, Resampling(0))
    assert (none.alpha_ci, none.kappa_ci) == (None, None)

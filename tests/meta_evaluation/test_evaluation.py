"""From items and scores to agreement: joining, levels, annotators, curves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rejoinder.errors import DataError
from rejoinder.items import Item, Reference, Score
from rejoinder.meta_evaluation.annotators import HumanAgreement, correlation_with_annotators
from rejoinder.meta_evaluation.evaluation import MetaSettings, evaluate_metrics
from rejoinder.meta_evaluation.join import Joined, join
from rejoinder.meta_evaluation.reference_curve import reference_curve
from rejoinder.metrics.metric import ItemMetric, make_metric

SYSTEMS = ("human", "bot", "other", "dull")
FAST = MetaSettings(resamples=200)


def replies(contexts: int = 12, seed: int = 0) -> list[Item]:
    rng = np.random.default_rng(seed)
    return [
        Item(
            id=f"{c}:{system}",
            context_id=f"{c:02}",
            response="x",
            system=system,
            ratings={f"a{k}": float(rng.integers(1, 6)) for k in range(3)},
        )
        for c in range(contexts)
        for system in SYSTEMS
    ]


def scores_of(items: list[Item], metric: str = "m", seed: int = 1) -> list[tuple[int, Score]]:
    rng = np.random.default_rng(seed)
    return [
        (line + 1, Score(item.id, metric, float(item.rating() or 0) + rng.normal()))
        for line, item in enumerate(items)
    ]


def joined(items: list[Item], scores: list[tuple[int, Score]]) -> Joined:
    return join(items, scores, items_name="items.jsonl", scores_name="scores.jsonl")


def test_item_level_equals_scipy() -> None:
    items = replies()
    scores = scores_of(items)
    found = evaluate_metrics(joined(items, scores), "item", FAST)
    values = [score.value for _, score in scores]
    human = [item.rating() for item in items]
    (result,) = found.results
    assert result.correlations.n == 48
    assert result.correlations.spearman.value == pytest.approx(stats.spearmanr(values, human)[0])
    assert result.correlations.pearson.p == pytest.approx(stats.pearsonr(values, human)[1])
    bots = [i for i, item in enumerate(items) if item.system != "human"]
    expected = stats.kendalltau(np.array(values)[bots], np.array(human)[bots])[0]
    assert result.without_human is not None
    assert result.without_human.n == 36
    assert result.without_human.kendall.value == pytest.approx(expected)


def test_unscored_and_unrated_are_counted_not_zero() -> None:
    items = replies()
    items[3] = Item(id=items[3].id, context_id="00", response="x", system="dull")
    scores = scores_of(items)
    scores[5] = (6, Score(items[5].id, "m", None, unscored="no references"))
    found = evaluate_metrics(joined(items, scores), "item", FAST)
    assert (found.rated, found.unrated) == (47, 1)
    assert (found.results[0].unscored, found.results[0].correlations.n) == (1, 46)


def test_metrics_keep_the_order_of_the_scores_file() -> None:
    items = replies()
    lines = []
    for name in ("zeta", "alpha", "mid"):
        lines += scores_of(items, name, seed=len(name))
    found = evaluate_metrics(joined(items, lines), "item", FAST)
    assert [result.metric for result in found.results] == ["zeta", "alpha", "mid"]
    assert len(found.differences) == 3
    assert all((row.difference or 0) >= 0 for row in found.differences)


def test_system_level_is_the_correlation_of_averages() -> None:
    items = replies()
    scores = scores_of(items)
    found = evaluate_metrics(joined(items, scores), "system", FAST)
    values = np.array([score.value for _, score in scores]).reshape(-1, 4).mean(axis=0)
    human = np.array([item.rating() for item in items]).reshape(-1, 4).mean(axis=0)
    result = found.results[0].correlations
    assert result.n == 4
    assert result.pearson.value == pytest.approx(stats.pearsonr(values, human)[0])
    assert result.spearman.value == pytest.approx(stats.spearmanr(values, human)[0])
    assert result.kendall.value == pytest.approx(stats.kendalltau(values, human)[0])
    assert result.pearson.low is not None
    assert result.pearson.low <= result.pearson.value <= (result.pearson.high or -2)


def test_system_level_interval_equals_explicit_resampling() -> None:
    """The same draws of contexts, materialised item by item, give the same percentiles."""
    from rejoinder.meta_evaluation.correlate import draw_counts

    items = replies()
    scores = scores_of(items)
    table = np.array([score.value for _, score in scores]).reshape(-1, 4)
    human = np.array([item.rating() for item in items], dtype=float).reshape(-1, 4)
    # np.unique orders systems by name; correlations do not care
    drawn = []
    for counts in draw_counts(np.random.default_rng(12345), 12, 200, row_bytes=8):
        for row in counts:
            chosen = np.repeat(np.arange(12), row)
            drawn.append(stats.pearsonr(table[chosen].mean(axis=0), human[chosen].mean(axis=0))[0])
    low, high = np.quantile(drawn, [0.025, 0.975])
    found = evaluate_metrics(joined(items, scores), "system", FAST).results[0].correlations.pearson
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_two_systems_are_refused_at_system_level() -> None:
    items = [item for item in replies() if item.system in ("bot", "dull")]
    with pytest.raises(
        DataError, match=r"at least 3 systems that are rated and scored, found 2 .bot, dull.: with"
    ):
        evaluate_metrics(joined(items, scores_of(items)), "system", FAST)


def test_an_unrated_system_is_left_out_at_system_level() -> None:
    items = [
        Item(id=i.id, context_id=i.context_id, response="x", system=i.system)
        if i.system == "dull"
        else i
        for i in replies()
    ]
    found = evaluate_metrics(joined(items, scores_of(items)), "system", FAST)
    assert found.results[0].correlations.n == 3


def test_set_metrics_have_no_item_level() -> None:
    items = replies()
    sets = [
        (1, Score(s, "distinct", 0.1 * k, level="system", system=s)) for k, s in enumerate(SYSTEMS)
    ]
    both = [*scores_of(items), *sets]
    found = evaluate_metrics(joined(items, both), "item", FAST)
    assert [r.metric for r in found.results] == ["m"]
    assert "scores sets" in found.refused["distinct"]
    with pytest.raises(DataError, match="distinct: it scores sets"):
        evaluate_metrics(joined(items, sets), "item", FAST)
    by_system = evaluate_metrics(joined(items, both), "system", FAST)
    assert [r.metric for r in by_system.results] == ["m", "distinct"]
    human = np.array([i.rating() for i in items], dtype=float).reshape(-1, 4).mean(axis=0)
    expected = stats.spearmanr([0, 1, 2, 3], human)[0]
    assert by_system.results[1].correlations.spearman.value == pytest.approx(expected)


def test_context_level_correlates_sets_with_their_average_rating() -> None:
    items = [
        Item(id=f"{c}:{k}", context_id=str(c), response="x", system="s", ratings=float(c % 4))
        for c in range(8)
        for k in range(2)
    ]
    sets = [
        (c + 1, Score(str(c), "self-bleu", float(c % 4) * 2, level="context", system="s"))
        for c in range(8)
    ]
    found = evaluate_metrics(joined(items, sets), "context", FAST)
    assert found.results[0].correlations.n == 8
    assert found.results[0].correlations.pearson.value == pytest.approx(1.0)


def test_no_ratings_at_all() -> None:
    items = [Item(id="1", response="x"), Item(id="2", response="y")]
    with pytest.raises(DataError, match="no item has ratings"):
        evaluate_metrics(
            joined(items, [(1, Score("1", "m", 1.0)), (2, Score("2", "m", 1.0))]), "item", FAST
        )


def test_ids_that_do_not_match_are_named() -> None:
    items = replies(2)
    scores = scores_of(items)
    with pytest.raises(DataError, match=r"^scores.jsonl:9: the item 'ghost' is not in items.jsonl"):
        joined(items, [*scores, (9, Score("ghost", "m", 1.0))])
    with pytest.raises(DataError, match=r"^scores.jsonl:9: a second score of '0:human' by m"):
        joined(items, [*scores, (9, Score("0:human", "m", 1.0))])
    with pytest.raises(DataError, match=r"^items.jsonl: 1 of 8 items, the first is '1:dull', have"):
        joined(items, scores[:-1])


def test_extremes_over_annotators_by_hand() -> None:
    """a agrees perfectly with the scores, b is their reverse."""
    items = [
        Item(id=str(i), response="x", ratings={"a": float(i), "b": float(-i), "c": 1.0})
        for i in range(12)
    ]
    found = correlation_with_annotators(items, np.arange(12.0))
    assert found is not None
    expected = {"max": pytest.approx(1.0), "min": pytest.approx(-1.0), "mean": pytest.approx(0.0)}
    assert found["spearman"] == expected
    humans = HumanAgreement.of(items)
    assert humans is not None
    assert humans.identified
    # the constant annotator correlates with nobody: one pair is left, a against b
    assert humans.pairwise["pearson"]["mean"] == pytest.approx(-1.0)


def test_unidentified_annotators_have_alpha_only() -> None:
    items = [Item(id=str(i), response="x", ratings=[float(i), float(i)]) for i in range(4)]
    humans = HumanAgreement.of(items)
    assert humans is not None
    assert (humans.identified, humans.alpha, humans.kappa) == (False, pytest.approx(1.0), None)
    assert correlation_with_annotators(items, np.arange(4.0)) is None
    assert HumanAgreement.of([Item(id="1", response="x", ratings=3.0)]) is None


def metric(spec: str) -> ItemMetric:
    made = make_metric(spec)
    assert isinstance(made, ItemMetric)
    return made


def test_curve_ends_at_the_score_over_all_references() -> None:
    rng = np.random.default_rng(3)
    words = "abcdef"
    items = [
        Item(
            id=f"{c}:{s}",
            context_id=str(c),
            response=" ".join(rng.choice(list(words), 4)),
            references=[Reference(" ".join(rng.choice(list(words), 4))) for _ in range(3)],
            ratings=float(rng.integers(1, 6)),
        )
        for c in range(10)
        for s in range(3)
    ]
    rouge = metric("rouge-l(tok=whitespace)")
    (points,) = reference_curve(items, [rouge], draws=5, seed=1)
    assert [p.references for p in points] == [1, 2, 3]
    assert [p.draws for p in points] == [5, 5, 1]
    import rejoinder

    values = rejoinder.score(items, [str(rouge)])[str(rouge)].values
    expected = stats.spearmanr(values, [i.rating() for i in items])[0]
    assert points[-1].mean["spearman"] == pytest.approx(expected)
    assert points[-1].low == points[-1].high
    assert points[0].low["spearman"] <= points[0].mean["spearman"] <= points[0].high["spearman"]
    assert reference_curve(items, [rouge], draws=5, seed=1) == [points]


def test_curve_draws_the_same_references_for_replies_to_one_context() -> None:
    from rejoinder.meta_evaluation.reference_curve import draw_references

    shared = [Reference(str(k)) for k in range(6)]
    items = [Item(id=str(i), context_id="c", response="x", references=shared) for i in range(3)]
    drawn = draw_references(items, 2, np.random.default_rng(0))
    assert len(drawn[0].references) == 2
    assert drawn[0].references == drawn[1].references == drawn[2].references


def test_names_that_differ_by_a_nul_are_different() -> None:
    items = [
        Item(id=f"{c}{k}", context_id=f"c{c}", response="x", system=name, ratings=float(c + k))
        for c in range(3)
        for k, name in enumerate(("s", "s\0", "t"))
    ]
    units = joined(items, scores_of(items)).replies()
    assert units.names == ["s", "s\0", "t"]
    assert units.of("s").tolist() == [True, False, False] * 3
    assert len(units.without("s\0").human) == 6
    assert len(units.without("nobody").human) == 9
    assert (
        evaluate_metrics(joined(items, scores_of(items)), "system", FAST).results[0].correlations.n
        == 3
    )


def test_long_names_are_not_stored_per_unit() -> None:
    items = [
        Item(id=str(i), context_id=str(i) + "x" * 10_000 * (i == 0), response="x", ratings=1.0)
        for i in range(2000)
    ]
    units = joined(items, scores_of(items)).replies()
    assert units.context.nbytes + units.system.nbytes == 2 * 8 * len(items)


def test_a_metric_name_has_one_signature() -> None:
    items = replies(2)
    lines = [
        (line, Score(score.id, "m", score.value, signature="m|n:2" if line < 5 else "m|n:4"))
        for line, score in scores_of(items)
    ]
    with pytest.raises(
        DataError, match=r"^scores.jsonl:5: m has the signature 'm\|n:4', but in line 1 'm\|n:2'"
    ):
        joined(items, lines)

"""The statistics of a report: rankings from scores, systems that can't be compared, samples."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import DataError, UsageError
from rejoinder.evaluator.contamination import ContaminationReport
from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.ranking import RankingOptions, rank_values
from rejoinder.meta_evaluation.reference_curve import CurvePoint
from rejoinder.reporting.page import analysis as module
from rejoinder.reporting.page.sample import choose
from rejoinder.reporting.page.verdict import other_metrics_on_the_best
from reporting.replies import analysis, page, replies, report_data, scored, scores


def two_systems(contexts: int = 4) -> list[Item]:
    return [
        Item(id=f"{c}{s}", context_id=str(c), response="r", system=s)
        for c in range(contexts)
        for s in "xy"
    ]


def test_systems_rank_by_the_average_of_their_scores() -> None:
    # x: (1 + 3 + 5 + 7) / 4 = 4, y: (2 + 2 + 2 + 2) / 4 = 2
    items = two_systems()
    found = analysis(items, scored("m", items, [1, 2, 3, 2, 5, 2, 7, 2]))
    (order,) = found.orders
    assert [(row.system, row.value) for row in order.systems] == [("x", 4.0), ("y", 2.0)]
    assert order.ranking is not None
    assert order.ranking.contexts == 4
    # differences 4, 2, 1 and -1: a resample may lose the lead
    assert [row.group for row in order.systems] == ["a", "a"]


def test_a_system_without_any_value_does_not_keep_the_others_from_being_compared() -> None:
    """People whose replies are the references have no BLEU; the bots are ranked all the same."""
    items = two_systems() + [
        Item(id=f"{c}p", context_id=str(c), response="r", system="people") for c in range(4)
    ]
    values = [1.0, 2.0, 3.0, 2.0, 5.0, 2.0, 7.0, 2.0]
    bleus = [*values, *4 * ["no references"]]
    both = scored("bleu", items, bleus) + scored("m", items, [*values, 9, 9, 9, 9])
    found = analysis(items, both, metric="m")
    by_all, bleu = found.orders
    assert [row.system for row in by_all.systems] == ["people", "x", "y"]
    assert [(row.system, row.value) for row in bleu.systems] == [("x", 4.0), ("y", 2.0)]
    assert bleu.ranking is not None
    assert bleu.ranking.contexts == 4
    assert (by_all.unranked, bleu.unranked) == (0, 1)
    assert (
        other_metrics_on_the_best(by_all, [bleu]) == []
    )  # that it puts another one first says nothing


def test_the_order_is_that_of_compare_where_a_metric_averages_items() -> None:
    rng = np.random.default_rng(0)
    items = [
        Item(
            id=f"{c}{s}",
            context_id=str(c),
            response=" ".join(rng.choice(list("abcdef"), 5)),
            system=s,
            references=[rejoinder.items.Reference("a b c d e")],
        )
        for c in range(30)
        for s in "xyz"
    ]
    (compared,) = rejoinder.compare(items, ["rouge-l"], resamples=300, seed=4)
    values = rejoinder.score(items, ["rouge-l"])["rouge-l"].values
    order = rank_values(items, values, options=RankingOptions(300, 4))
    assert [row.system for row in order.systems] == [row.system for row in compared.systems]
    assert [row.group for row in order.systems] == [row.group for row in compared.systems]
    for ours, theirs in zip(order.pairs, compared.pairs, strict=True):
        assert ours.p_adjusted == pytest.approx(theirs.p_adjusted)


def test_a_context_without_all_scores_is_left_out() -> None:
    items = two_systems()
    found = analysis(items, scored("m", items, [1, 2, 3, 2, 5, 2, 900, "no references"]))
    order = found.orders[0]
    assert order.ranking is not None
    assert (order.ranking.contexts, order.ranking.left_out) == (3, 1)
    assert order.systems[0].value == 3.0  # (1 + 3 + 5) / 3
    assert found.data.notes.counted() == [("m", "no references", 1)]


def test_lower_is_better_where_the_metric_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    items = two_systems()
    monkeypatch.setattr(module, "higher_is_better", lambda name: False)
    found = analysis(items, scored("m", items, [1, 2, 3, 2, 5, 2, 7, 2]))
    assert [row.system for row in found.orders[0].systems] == ["y", "x"]


def test_systems_that_answered_other_contexts_are_not_tested() -> None:
    items = [Item(id=f"{c}", context_id=str(c), response="r", system="xy"[c % 2]) for c in range(8)]
    found = analysis(items, scored("m", items, [1, 2, 1, 2, 1, 2, 1, 2]))
    (order,) = found.orders
    assert order.ranking is None
    assert "answered by all" in str(order.why_not)
    assert [(row.system, row.value, row.group) for row in order.systems] == [
        ("y", 2.0, ""),
        ("x", 1.0, ""),
    ]


def test_one_context_has_an_average_and_no_interval() -> None:
    items = two_systems(1)
    (order,) = analysis(items, scored("m", items, [0.25, 0.5])).orders
    assert [(row.system, row.value) for row in order.systems] == [("y", 0.5), ("x", 0.25)]
    assert all(math.isnan(row.low) for row in order.systems)
    shown = page(items, scored("m", items, [0.25, 0.5])).decode()
    assert "nan" not in shown.partition("<script>")[0].lower()
    nothing = page(items, scored("m", items, ["no context", "no context"])).decode()
    assert "No reply could be scored by <code>m</code>." in nothing
    half = page(items, scored("m", items, [0.25, "no context"])).decode()
    assert "By <code>m</code>, only <b><bdi>x</bdi></b> could be scored." in half
    assert ">None<" not in nothing


def test_the_page_doubts_metrics_without_correlation_and_evaluators_for_tests() -> None:
    items = replies(30)
    rng = np.random.default_rng(0)
    noise = scored("m", items, rng.normal(0, 1, len(items)))
    zero = "with people on single replies is not distinguishable from zero."
    seen = ContaminationReport(30, 0, 0, 120, 5)
    info = module.EvaluatorInfo("ev", "rejoinder 0", "abc", "en", seen, preset="tiny")
    shown = page(items, noise, evaluator=info).decode()
    assert f"The correlation of <code>m</code> {zero}" in shown
    assert "<dt>metric</dt><dd>1</dd>" in shown
    assert "All metrics" not in shown
    assert "with the preset <code>tiny</code>" in shown
    assert "tiny, is only for tests and demonstrations" in shown
    assert "5 of 120 replies occur word for word in the evaluator&#39;s logs" in shown
    trusted = page(items, scores(items), evaluator=replace(info, preset="small")).decode()
    assert "only for tests" not in trusted
    assert f"The correlation of <code>ruber</code> {zero}" not in trusted


def test_rejoinder_ranks_systems_then_ruber_then_the_last_metric() -> None:
    items = two_systems()
    ones = [1.0] * len(items)

    def chosen(*names: str, metric: str | None = None) -> str:
        found = [score for name in names for score in scored(name, items, ones)]
        return report_data(items, found, metric).metric

    assert chosen("bleu", "ruber(ref=vbleu)", "ruber", "chrf") == "ruber(ref=vbleu)"
    assert chosen("ruber", "rejoinder", "chrf") == "rejoinder"
    assert chosen("bleu", "chrf") == "chrf"
    assert chosen("bleu", "chrf", metric="bleu") == "bleu"
    assert chosen("bleu(n=2)", "chrf", metric="bleu( n = 2 )") == "bleu(n=2)"
    with pytest.raises(UsageError, match="did you mean 'chrf'"):
        chosen("bleu", "chrf", metric="chrff")


def test_a_report_needs_scores_of_single_replies() -> None:
    items = two_systems()
    only = [Score("x", "distinct", 0.5, level="system", system="x")]
    with pytest.raises(DataError, match="no metric scores single replies"):
        report_data(items, only)


def test_without_ratings_the_report_says_so() -> None:
    items = replies(5, rated=False)
    found = analysis(items, scores(items))
    assert found.people is None
    assert found.agreement.items is None
    assert "No item has ratings" in str(found.agreement.missing)
    # a curve that was asked for is shown all the same: its ratings may be in another file
    mean = {"spearman": 0.25, "pearson": 0.2}
    points = [CurvePoint(n, 5, 20, mean, mean, mean) for n in (1, 2)]
    assert (
        "By number of references" in page(items, scores(items), curves={"ruber": points}).decode()
    )


def test_many_rated_items_are_sampled_by_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RATED", 20)
    items = replies(30)
    agreement = analysis(items, scores(items)).agreement
    assert agreement.rated == 120
    assert len(agreement.joined.items) == 20  # five whole contexts of four replies
    assert len({item.group for item in agreement.joined.items}) == 5


def test_people_who_rated_some_systems_only() -> None:
    items = [
        Item(i.id, i.response, i.context, i.system, context_id=i.context_id, ratings=ratings)
        for i in two_systems()
        for ratings in [{"a": 1.0 + int(i.group) % 2} if i.system == "x" else None]
    ]
    made = page(items, scored("m", items, [1.0, 2] * 4)).decode()
    heads = made.partition('<table class="orders">')[2].partition("</thead>")[0]
    assert heads.count('scope="col"') == 1 + 2  # what orders, and two places


def test_sets_that_could_not_be_judged_are_not_counted_as_items() -> None:
    items = two_systems()
    sets = [Score("x", "distinct", None, level="system", system="x", unscored="too few")]
    made = page(items, [*scored("m", items, [1.0] * 8), *sets]).decode()
    assert '<td>too few</td><td class="num">1 (sets)</td>' in made


def test_coverage_comes_from_the_scores() -> None:
    items = two_systems()
    found = [
        Score(item.id, "ruber", 0.5, coverage={"nearest": n / 10, "agreement": 0.2})
        for n, item in enumerate(items)
    ]
    coverage = analysis(items, found).coverage
    assert coverage is not None
    assert coverage.nearest == pytest.approx(0.35)  # the median of 0, .1 … .7
    assert analysis(items, scored("m", items, [1.0] * 8)).coverage is None


def test_a_sample_has_unscored_extreme_and_disputed_items() -> None:
    items = replies(200)
    found = scores(items)
    whole = report_data(items, found)
    sample = choose(whole, 100, seed=1)
    assert len(sample.chosen) == len(set(sample.chosen)) == 100
    assert sample.of == 800
    values = whole.joined.item_scores["ruber"]
    assert {int(values.argmax()), int(values.argmin())} <= set(sample.chosen)
    unscored = np.flatnonzero(np.isnan(whole.joined.item_scores["bleu(n=2)"]))
    # two places in twenty are theirs, though some may also be drawn by rng
    assert len(set(unscored.tolist()) & set(sample.chosen)) >= 10
    # most of the others are whole contexts
    groups = [items[n].group for n in sample.chosen]
    assert sum(groups.count(group) == 4 for group in set(groups)) > 10
    assert choose(whole, 100, seed=1) == sample
    assert choose(whole, 100, seed=2) != sample
    assert choose(whole, 800, seed=1).chosen == list(range(800))


def test_the_reply_that_people_and_the_metric_disagree_over_is_in_the_sample() -> None:
    items = replies(200)
    values = np.array([item.rating() or 0.0 for item in items])
    odd = int(values.argmin())
    values = values + np.random.default_rng(0).normal(0, 0.01, len(values))
    values[odd] = np.sort(values)[-40]  # not among the highest twenty
    sample = choose(report_data(items, scored("m", items, values)), 100, seed=3)
    assert odd in sample.chosen
    assert not math.isnan(values[odd])


def test_people_give_the_verdict_where_they_can_tell() -> None:
    items = [
        Item(f"{c}:{s}", "r", context_id=str(c), system=s, ratings=5.0 if s == "x" else 1.0 + c % 2)
        for c in range(40)
        for s in "xyz"
    ]
    values = [float("xyz".index(item.system)) + int(item.context_id or 0) % 3 for item in items]
    found = analysis(items, scored("m", items, values), resamples=1000)
    assert found.headline is found.people
    shown = page(items, scored("m", items, values), resamples=1000).decode()
    assert "By people’s ratings, <b><bdi>x</bdi></b> is better than" in shown
    assert "<code>m</code> contradicts people: it ranks <b><bdi>x</bdi></b> below" in shown
    assert "By people: average rating" in shown
    unrated = [
        rejoinder.items.Item(i.id, "r", context_id=i.context_id, system=i.system) for i in items
    ]
    assert analysis(unrated, scored("m", items, values)).headline.name == "m"


def test_a_thousand_systems_take_less_than_a_minute() -> None:
    rng = np.random.default_rng(0)
    items = [
        Item(f"{c}:{s}", "r", context_id=str(c), system=f"s{s}", ratings=float(rng.integers(1, 6)))
        for c in range(4)
        for s in range(1000)
    ]
    values = rng.normal(size=len(items)).tolist()
    started = time.process_time()
    shown = page(items, scored("m", items, values), resamples=1000).decode()
    assert time.process_time() - started < 60
    assert "With 1,000 systems only neighbours in the ranking were tested" in shown
    assert "960 more systems are not listed." in shown
    assert len(shown) < 3_000_000


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1.0, 1e200, 1.7e308])
def test_scores_of_any_size_have_a_report(scale: float) -> None:
    items = [
        Item(f"{c}:{s}", "r", context_id=str(c), system=s, ratings=float(c % 5))
        for c in range(12)
        for s in "xy"
    ]
    values = [scale * ((n % 3) / 2) for n in range(len(items))]
    shown = page(items, scored("m", items, values), resamples=50).decode()
    assert "nan" not in shown.partition("<script>")[0].lower()
    equal = page(items, scored("m", items, [scale] * len(items)), resamples=50).decode()
    assert "all scores are equal" in equal

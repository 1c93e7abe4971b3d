"""What is found out: orders from scores, what can't be compared, what is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.curves import Point
from rejoinder.meta_evaluation.ranking import rank_values
from rejoinder.reporting.page import findings as module
from rejoinder.reporting.page.sample import choose
from rejoinder.reporting.page.words import others
from reporting.replies import findings, material, page, replies, scored, scores


def two_systems(contexts: int = 4) -> list[Item]:
    return [
        Item(id=f"{c}{s}", context_id=str(c), response="r", system=s)
        for c in range(contexts)
        for s in "xy"
    ]


def test_systems_rank_by_the_average_of_their_scores() -> None:
    # x: (1 + 3 + 5 + 7) / 4 = 4, y: (2 + 2 + 2 + 2) / 4 = 2
    items = two_systems()
    found = findings(items, scored("m", items, [1, 2, 3, 2, 5, 2, 7, 2]))
    (placed,) = found.placed
    assert [(row.system, row.value) for row in placed.systems] == [("x", 4.0), ("y", 2.0)]
    assert placed.order is not None
    assert placed.order.contexts == 4
    # differences 4, 2, 1 and -1: a resample may lose the lead
    assert [row.group for row in placed.systems] == ["a", "a"]


def test_a_system_without_any_value_does_not_keep_the_others_from_being_compared() -> None:
    """People whose replies are the references have no BLEU; the bots are ranked all the same."""
    items = two_systems() + [
        Item(id=f"{c}p", context_id=str(c), response="r", system="people") for c in range(4)
    ]
    values = [1.0, 2.0, 3.0, 2.0, 5.0, 2.0, 7.0, 2.0]
    bleus = [*values, *4 * ["no references"]]
    both = scored("bleu", items, bleus) + scored("m", items, [*values, 9, 9, 9, 9])
    found = findings(items, both, metric="m")
    by_all, bleu = found.placed
    assert [row.system for row in by_all.systems] == ["people", "x", "y"]
    assert [(row.system, row.value) for row in bleu.systems] == [("x", 4.0), ("y", 2.0)]
    assert bleu.order is not None
    assert bleu.order.contexts == 4
    assert (by_all.unplaced, bleu.unplaced) == (0, 1)
    assert others(by_all, [bleu]) == []  # that it puts another one first says nothing


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
    order = rank_values(items, values, resamples=300, seed=4)
    assert [row.system for row in order.systems] == [row.system for row in compared.systems]
    assert [row.group for row in order.systems] == [row.group for row in compared.systems]
    for ours, theirs in zip(order.pairs, compared.pairs, strict=True):
        assert ours.p_adjusted == pytest.approx(theirs.p_adjusted)


def test_a_context_without_all_scores_is_left_out() -> None:
    items = two_systems()
    found = findings(items, scored("m", items, [1, 2, 3, 2, 5, 2, 900, "no references"]))
    placed = found.placed[0]
    assert placed.order is not None
    assert (placed.order.contexts, placed.order.left_out) == (3, 1)
    assert placed.systems[0].value == 3.0  # (1 + 3 + 5) / 3
    assert found.material.notes.counted() == [("m", "no references", 1)]


def test_lower_is_better_where_the_metric_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    items = two_systems()
    monkeypatch.setattr(module, "higher_is_better", lambda name: False)
    found = findings(items, scored("m", items, [1, 2, 3, 2, 5, 2, 7, 2]))
    assert [row.system for row in found.placed[0].systems] == ["y", "x"]


def test_systems_that_answered_other_contexts_stand_alone() -> None:
    items = [Item(id=f"{c}", context_id=str(c), response="r", system="xy"[c % 2]) for c in range(8)]
    found = findings(items, scored("m", items, [1, 2, 1, 2, 1, 2, 1, 2]))
    (placed,) = found.placed
    assert placed.order is None
    assert "answered by all" in str(placed.why_not)
    assert [(row.system, row.value, row.group) for row in placed.systems] == [
        ("y", 2.0, ""),
        ("x", 1.0, ""),
    ]


def test_one_context_has_an_average_and_no_interval() -> None:
    items = two_systems(1)
    (placed,) = findings(items, scored("m", items, [0.25, 0.5])).placed
    assert [(row.system, row.value) for row in placed.systems] == [("y", 0.5), ("x", 0.25)]
    assert all(math.isnan(row.low) for row in placed.systems)
    shown = page(items, scored("m", items, [0.25, 0.5])).decode()
    assert "nan" not in shown.partition("<script>")[0].lower()
    nothing = page(items, scored("m", items, ["no context", "no context"])).decode()
    assert "Nothing could be scored by <code>m</code>." in nothing
    half = page(items, scored("m", items, [0.25, "no context"])).decode()
    assert "By <code>m</code>, only <b><bdi>x</bdi></b> could be scored." in half
    assert ">None<" not in nothing


def test_the_first_ruber_ranks_else_the_last_metric() -> None:
    items = two_systems()
    ones = [1.0] * len(items)

    def chosen(*names: str, metric: str | None = None) -> str:
        found = [score for name in names for score in scored(name, items, ones)]
        return material(items, found, metric).metric

    assert chosen("bleu", "ruber(ref=vbleu)", "ruber", "chrf") == "ruber(ref=vbleu)"
    assert chosen("bleu", "chrf") == "chrf"
    assert chosen("bleu", "chrf", metric="bleu") == "bleu"
    assert chosen("bleu(n=2)", "chrf", metric="bleu( n = 2 )") == "bleu(n=2)"
    with pytest.raises(UsageError, match="did you mean 'chrf'"):
        chosen("bleu", "chrf", metric="chrff")


def test_scores_of_sets_alone_rank_nobody() -> None:
    items = two_systems()
    only = [Score("x", "distinct", 0.5, level="system", system="x")]
    with pytest.raises(DataError, match="no metric has scores of single replies"):
        material(items, only)


def test_without_ratings_there_is_a_sentence() -> None:
    items = replies(5, rated=False)
    found = findings(items, scores(items))
    assert found.people is None
    assert found.agreement.items is None
    assert "No item has ratings" in str(found.agreement.missing)
    # a curve that was asked for is shown all the same: its ratings may be in another file
    mean = {"spearman": 0.25, "pearson": 0.2}
    points = [Point(n, 5, 20, mean, mean, mean) for n in (1, 2)]
    assert "With more references" in page(items, scores(items), curves={"ruber": points}).decode()


def test_many_rated_items_are_sampled_by_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STUDIED", 20)
    items = replies(30)
    agreement = findings(items, scores(items)).agreement
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
    covered = findings(items, found).covered
    assert covered is not None
    assert covered.nearest == pytest.approx(0.35)  # the median of 0, .1 … .7
    assert findings(items, scored("m", items, [1.0] * 8)).covered is None


def test_a_sample_has_what_people_look_for() -> None:
    items = replies(200)
    found = scores(items)
    whole = material(items, found)
    sample = choose(whole, 100, seed=1)
    assert len(sample.chosen) == len(set(sample.chosen)) == 100
    assert sample.of == 800
    values = whole.joined.item_scores["ruber"]
    assert {int(values.argmax()), int(values.argmin())} <= set(sample.chosen)
    unscored = np.flatnonzero(np.isnan(whole.joined.item_scores["bleu(n=2)"]))
    # two places in twenty are theirs, though some may also be drawn by chance
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
    sample = choose(material(items, scored("m", items, values)), 100, seed=3)
    assert odd in sample.chosen
    assert not math.isnan(values[odd])

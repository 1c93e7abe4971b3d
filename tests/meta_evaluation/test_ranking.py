"""Comparing systems: ranks, tests, groups, and contexts that are not shared."""

from __future__ import annotations

import io
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import rejoinder
from rejoinder.errors import DataError, GateFailed, UsageError
from rejoinder.items import Item, Reference, Score
from rejoinder.meta_evaluation import paired_tests
from rejoinder.meta_evaluation import ranking as ranking_module
from rejoinder.meta_evaluation.join import join
from rejoinder.meta_evaluation.ranking import (
    Ranking,
    RankingOptions,
    compare_people,
    compare_scores,
    compare_systems,
    rank_values,
    worse_than_baseline,
)
from rejoinder.meta_evaluation.significance import holm, randomisation_table
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.pooling import averaged
from rejoinder.reporting.page.analysis import SystemOrder
from rejoinder.reporting.page.verdict import answer, plain
from rejoinder.reporting.tables import pairs_table, ranking_notes

VOCABULARY = list("abcdefghijklmnop")
Floats = NDArray[np.float64]


def bots(contexts: int, errors: dict[str, float], seed: int = 0) -> list[Item]:
    """Replies that are a reference with some words replaced; fewer errors, better bot."""
    rng = np.random.default_rng(seed)
    items = []
    for c in range(contexts):
        truth = rng.choice(VOCABULARY, 8)
        for system, rate in errors.items():
            words = np.where(rng.random(8) < rate, rng.choice(VOCABULARY, 8), truth)
            items.append(
                Item(
                    id=f"{c}:{system}",
                    context_id=str(c),
                    response=" ".join(words),
                    system=system,
                    references=[Reference(" ".join(truth))],
                )
            )
    return items


def test_better_bots_rank_higher_and_twins_share_a_group() -> None:
    items = bots(120, {"bad": 0.8, "good": 0.1, "twin": 0.1})
    for metric in ("bleu(n=2)", "rouge-l", "bleu(n=2,refs=mean)"):
        (ranking,) = rejoinder.compare(items, [metric], resamples=500)
        assert {row.system for row in ranking.systems[:2]} == {"good", "twin"}
        assert [row.group for row in ranking.systems] == ["a", "a", "b"]
        assert all(row.low <= row.value <= row.high for row in ranking.systems)
        assert ranking.contexts == 120
        assert ranking.left_out == 0


def test_value_is_the_corpus_value() -> None:
    items = bots(30, {"a": 0.3, "b": 0.5})
    (ranking,) = rejoinder.compare(items, ["bleu(n=2)"], resamples=100)
    corpus = rejoinder.score(items, ["bleu(n=2)"], resamples=100)["bleu(n=2)"].corpus
    for row in ranking.systems:
        estimate = corpus[row.system]
        assert estimate is not None
        assert row.value == pytest.approx(estimate.value)
        # the streamed Poisson bootstrap and the paired one agree on the interval
        assert estimate.low == pytest.approx(row.low, abs=0.05)
        assert estimate.high == pytest.approx(row.high, abs=0.05)


def test_identical_systems_cannot_be_told_apart() -> None:
    items = bots(40, {"a": 0.3})
    copies = [
        Item(
            id=i.id + "'",
            context_id=i.context_id,
            response=i.response,
            system="b",
            references=i.references,
        )
        for i in items
    ]
    (ranking,) = rejoinder.compare([*items, *copies], ["bleu(n=2)"], resamples=300)
    (pair,) = ranking.pairs
    assert (pair.difference, pair.p_bootstrap, pair.p_randomisation) == (0.0, 1.0, 1.0)
    assert [row.group for row in ranking.systems] == ["a", "a"]


def test_only_shared_contexts_count() -> None:
    items = [i for i in bots(20, {"a": 0.2, "b": 0.4}) if i.id not in ("3:a", "7:b")]
    items[0] = Item(id="0:a", context_id="0", response="x", system="a")  # no references
    (ranking,) = rejoinder.compare(items, ["rouge-l"], resamples=100)
    assert (ranking.contexts, ranking.left_out) == (17, 3)


def uneven_bots() -> tuple[list[Item], list[Item]]:
    """Replies of a and b to 65 contexts, and the same with those of c to only 35 of them."""
    items = bots(65, {"a": 0.2, "b": 0.4, "c": 0.6})
    two = [item for item in items if item.system != "c"]
    return two, [item for item in items if item.system != "c" or int(item.context_id or 0) < 35]


def test_a_third_system_does_not_change_the_test_of_two_others() -> None:
    two, three = uneven_bots()
    for metric in ("rouge-l", "bleu(n=2)"):
        (alone,) = rejoinder.compare(two, [metric], resamples=500, baseline="a")
        (ranking,) = rejoinder.compare(three, [metric], resamples=500, baseline="a")
        assert (ranking.contexts, ranking.left_out) == (35, 30)
        pairs = {(pair.better, pair.worse): pair for pair in ranking.pairs}
        assert {names: pair.contexts for names, pair in pairs.items()} == {
            ("a", "b"): 65,
            ("a", "c"): 35,
            ("b", "c"): 35,
        }
        # all contexts of a and b are resampled in the same way as without c
        same, (expected,) = pairs["a", "b"], alone.pairs
        assert same.difference == pytest.approx(expected.difference)
        assert (same.low, same.high) == pytest.approx((expected.low, expected.high))
        assert same.p_bootstrap == expected.p_bootstrap
        assert same.p_randomisation == pytest.approx(expected.p_randomisation)
        tests = {test.system: test for test in ranking.baseline_tests}
        assert tests["b"].contexts == 65
        assert tests["b"].difference == pytest.approx(alone.baseline_tests[0].difference)
    lines = [line.split() for line in render(pairs_table(ranking)).splitlines()]
    assert next(line[:3] for line in lines if "better" in line) == ["better", "than", "contexts"]
    assert ["a", "b", "65"] in [line[:3] for line in lines]
    assert "Each pair is tested on all contexts in which the two have scores (35 to 65)." in (
        ranking_notes(ranking)
    )


def test_pairs_with_contexts_of_their_own_are_tested_as_if_alone() -> None:
    """Blocks of pairs do not change the numbers; randomisation is that of the pair by itself up to
    the random swaps, and so are the intervals."""
    rng = np.random.default_rng(3)
    items, values = valued({f"s{k}": k / 4 for k in range(5)}, 60)
    values[rng.random(values.size) < 0.1] = np.nan
    ranking = rank_values(items, values, options=RankingOptions(4000, 3, "s4", 0.25))
    assert len({pair.contexts for pair in ranking.pairs}) > 2
    for pair in ranking.pairs:
        both = [n for n, i in enumerate(items) if i.system in (pair.better, pair.worse)]
        options = RankingOptions(4000, 3)
        alone = rank_values([items[n] for n in both], values[both], options=options).pairs[0]
        assert pair.contexts == alone.contexts
        assert pair.difference == pytest.approx(alone.difference)
        assert (pair.low, pair.high) == pytest.approx((alone.low, alone.high), abs=0.05)
        assert pair.p_randomisation == pytest.approx(alone.p_randomisation, abs=0.03)
        assert pair.p_bootstrap == pytest.approx(alone.p_bootstrap, abs=0.03)


def test_blocks_of_pairs_do_not_change_the_numbers(monkeypatch) -> None:
    _, items = uneven_bots()
    (whole,) = rejoinder.compare(items, ["rouge-l"], resamples=200, baseline="b", margin=0.01)
    monkeypatch.setattr(paired_tests, "BLOCK_BYTES", 1)
    (blocks,) = rejoinder.compare(items, ["rouge-l"], resamples=200, baseline="b", margin=0.01)
    for ours, theirs in zip(
        [*blocks.pairs, *blocks.baseline_tests], [*whole.pairs, *whole.baseline_tests], strict=True
    ):
        assert vars(ours) == pytest.approx(vars(theirs))


def test_a_resample_without_a_context_of_a_pair_does_not_count() -> None:
    """a and b share 2 of 40 contexts: about 13 % of the resamples (e to the -2) have neither."""
    items = [Item(f"{c}:c", "x", system="c", context_id=str(c)) for c in range(40)]
    items += [Item(f"{c}:a", "x", system="a", context_id=str(c)) for c in range(21)]
    items += [Item(f"{c}:b", "x", system="b", context_id=str(c)) for c in range(19, 40)]
    values = np.array([{"a": 2.0, "b": 1.0, "c": 0.0}[item.system] for item in items])
    ranking = rank_values(items, values, options=RankingOptions(500, baseline="a", margin=0.5))
    pair = next(pair for pair in ranking.pairs if (pair.better, pair.worse) == ("a", "b"))
    assert (pair.contexts, pair.difference, pair.low, pair.high) == (2, 1, 1, 1)
    # the lead is never lost in the resamples that count, fewer than 500
    assert 2 / 501 < pair.p_bootstrap < 2 / 401


def test_a_pair_that_the_ranking_orders_the_other_way_round_is_noted() -> None:
    """In 10 contexts that all answered a is ahead of b, in the 50 others far behind."""
    items, values = [], []
    for c in range(60):
        for system in "abc" if c < 10 else "ab":
            items.append(Item(f"{c}:{system}", "x", system=system, context_id=str(c)))
            values.append({"a": 1.0, "b": 0.9 if c < 10 else 3.0, "c": 0.5}[system] + c % 3 / 10)
    ranking = rank_values(items, np.array(values), options=RankingOptions(500))
    assert [row.system for row in ranking.systems] == ["a", "b", "c"]
    assert (ranking.pairs[0].better, ranking.pairs[0].contexts) == ("b", 60)
    assert ranking.systems[0].group != ranking.systems[1].group
    assert any(
        note == "b is better than a in the 60 contexts that both answered, although it ranks lower"
        " in the 10 that all answered."
        for note in ranking_notes(ranking)
    )
    order = SystemOrder("m", ranking.systems, ranking)
    assert plain(answer(order)).startswith("By m, b is better than a")


def test_a_system_without_any_score_does_not_keep_the_others_from_being_compared() -> None:
    items = bots(20, {"a": 0.2, "b": 0.4, "c": 0.6})
    items = [msgspec.structs.replace(i, references=[]) if i.system == "c" else i for i in items]
    result = rejoinder.compare(items, ["rouge-l"], resamples=100, baseline="b")
    assert [row.system for row in result[0].systems] == ["a", "b"]
    assert (result[0].contexts, result[0].left_out, result[0].unranked) == (20, 0, ["c"])
    with pytest.raises(GateFailed, match="c: not compared: no score"):
        result.fail_if_worse()


def test_the_message_names_the_system_that_shares_no_contexts() -> None:
    items = [item for item in bots(40, {"a": 0.2, "b": 0.4, "c": 0.6}) if item.system != "c"]
    items += [
        msgspec.structs.replace(
            item, id=f"c{item.id}", context_id=f"c{item.context_id}", system="c"
        )
        for item in items[:20]
    ]
    with pytest.raises(DataError, match=r"0 contexts .* without c it would be 40\)"):
        rejoinder.compare(items, "rouge-l")


def test_nothing_to_compare() -> None:
    with pytest.raises(DataError, match="found only one system"):
        rejoinder.compare(bots(5, {"a": 0.1}), ["rouge-l"])
    apart = [
        Item(
            id=f"{s}{c}", context_id=f"{s}{c}", response="x", system=s, references=[Reference("x")]
        )
        for s in "ab"
        for c in range(3)
    ]
    with pytest.raises(DataError, match="0 contexts were answered by all of a, b"):
        rejoinder.compare(apart, ["rouge-l"])


def test_same_seed_same_result() -> None:
    items = bots(20, {"a": 0.2, "b": 0.4})
    first, second = (rejoinder.compare(items, ["chrf"], resamples=200) for _ in range(2))
    assert first == second


def test_set_metrics_that_average_over_contexts_can_be_ranked() -> None:
    rng = np.random.default_rng(5)
    items = [
        Item(
            id=f"{c}:{s}:{k}",
            context_id=str(c),
            system=s,
            response=" ".join(rng.choice(VOCABULARY[:size], 6)),
        )
        for c in range(25)
        for s, size in (("varied", 16), ("same", 2))
        for k in range(3)
    ]
    asked = make_metrics(["self-bleu(n=2)", "distinct"])
    rankings, refused = compare_systems(asked, evaluate(items, []), resamples=200, seed=1)
    assert [row.system for row in rankings[0].systems] == ["varied", "same"]
    assert [row.group for row in rankings[0].systems] == ["a", "b"]
    why = "it does not add up over contexts, so they can't be resampled"
    assert refused == {"distinct": why}
    compared = rejoinder.compare(items, ["self-bleu(n=2)", "distinct"], resamples=200, seed=1)
    assert list(compared) == rankings
    with pytest.raises(DataError, match=r"^distinct: it does not add up over contexts"):
        rejoinder.compare(items, "distinct")


def test_a_metric_that_cannot_be_compared_does_not_lose_the_others() -> None:
    items = [msgspec.structs.replace(i, references=[]) for i in bots(5, {"a": 0.2, "b": 0.4})]
    items += bots(9, {"a": 0.2, "b": 0.4})[10:]
    japanese = "今日はとても天気がいいですね"
    items = [msgspec.structs.replace(i, response=japanese) for i in items]
    asked = make_metrics(["bleu", "chrf"])
    batches = evaluate(items, asked.item_metrics, strict=False)
    rankings, refused = compare_systems(asked, batches, resamples=100, seed=1)
    assert [(ranking.by, ranking.aggregate) for ranking in rankings] == [("chrf", "corpus")]
    assert rankings[0].contexts == 4
    assert refused == {
        "bleu": "no item could be scored: the tokenizer 13a does not split Japanese"
        " text; use tok=ja-mecab or tok=char"
    }


def test_the_commonest_reason_is_named() -> None:
    items = bots(5, {"a": 0.2, "b": 0.4})
    items = [msgspec.structs.replace(i, references=[]) if i.context_id != "0" else i for i in items]
    with pytest.raises(
        DataError,
        match=r"^rouge-l: 1 contexts were answered by all of a, b and could be scored;"
        r" comparing needs at least 2 \(8 unscored: no references\)$",
    ):
        rejoinder.compare(items, "rouge-l")


def test_a_message_lists_only_some_of_many_systems() -> None:
    items = [
        Item(
            id=str(k), context_id=str(k), response="x", system=f"s{k}", references=[Reference("x")]
        )
        for k in range(300)
    ]
    with pytest.raises(DataError, match="all of s0, s1, s2, s3, s4 and 295 more and could be"):
        rejoinder.compare(items, "rouge-l")


def test_all_pairs_at_once_give_the_p_values_of_each_pair_alone() -> None:
    """All pairs at once give what each pair gives alone."""
    items = bots(30, {f"s{k}": k / 20 for k in range(12)})
    (ranking,) = rejoinder.compare(items, ["bleu(n=2)"], resamples=200)
    assert len(ranking.pairs) == 66
    for pair in ranking.pairs[::13]:
        both = [i for i in items if i.system in (pair.better, pair.worse)]
        (alone,) = rejoinder.compare(both, ["bleu(n=2)"], resamples=200)
        assert alone.pairs[0].p_randomisation == pytest.approx(pair.p_randomisation)
    lines = render(pairs_table(ranking)).splitlines()
    assert sum(" s" in line for line in lines) == 30
    assert lines[-1].strip() == "… 36 more pairs: to_dict()"


def render(table: Table) -> str:
    out = Console(width=80, file=io.StringIO())
    with out.capture() as captured:
        out.print(table)
    return captured.get()


def valued(means: dict[str, float], contexts: int = 60, seed: int = 0) -> tuple[list[Item], Floats]:
    """Items of systems and a value for each, normal around the system's mean."""
    rng = np.random.default_rng(seed)
    items = [
        Item(f"{c}:{name}", "x", system=name, context_id=str(c))
        for c in range(contexts)
        for name in means
    ]
    values = np.array([means[item.system] for item in items]) + rng.normal(size=len(items))
    return items, values


def rated(means: dict[str, float], contexts: int = 60) -> list[Item]:
    items, values = valued(means, contexts)
    return [
        msgspec.structs.replace(item, ratings=value)
        for item, value in zip(items, values.tolist(), strict=True)
    ]


def test_people_rank_systems_with_the_same_tests() -> None:
    items = rated({"bad": 0, "good": 2, "twin": 2})
    values = np.array([item.rating() for item in items], dtype=float)
    (ranking,), refused = compare_people(items, resamples=300, seed=7)
    assert (ranking.by, ranking.aggregate, ranking.contexts, refused) == ("people", "mean", 60, {})
    assert [row.group for row in ranking.systems] == ["a", "a", "b"]
    assert ranking.systems[-1].value == pytest.approx(values[::3].mean())
    expected = rank_values(items, values, by="people", options=RankingOptions(300, 7))
    assert ranking == expected


def test_unrated_items_and_systems_are_left_out_of_the_ranking_by_people() -> None:
    items = rated({"a": 0, "b": 1})
    items += [Item(f"{c}:c", "x", system="c", context_id=str(c)) for c in range(60)]
    items[3] = msgspec.structs.replace(items[3], ratings=None)
    (ranking,), _ = compare_people(items, resamples=100)
    assert [row.system for row in ranking.systems] == ["b", "a"]
    assert (ranking.contexts, ranking.left_out, ranking.unranked) == (59, 1, ["c"])
    with pytest.raises(DataError, match="no item has ratings"):
        compare_people([msgspec.structs.replace(item, ratings=None) for item in items])


def test_scores_of_a_file_rank_systems_also_those_of_other_programs() -> None:
    items, values = valued({"a": 0, "b": 3})
    lines = [Score(item.id, "my-metric", value) for item, value in zip(items, values, strict=True)]
    lines += [
        Score(item.id, "self-bleu(n=2)", value) for item, value in zip(items, values, strict=True)
    ]
    joined = join(items, enumerate(lines, 1), items_name="items", scores_name="scores")
    mine, lower = compare_scores(joined, resamples=100)[0]
    assert (mine.by, mine.signature, mine.aggregate) == ("my-metric", None, "mean")
    assert [row.system for row in mine.systems] == ["b", "a"]
    # the registry knows that lower values of this metric are better
    assert ([row.system for row in lower.systems], lower.higher_is_better) == (["a", "b"], False)
    (alone,), _ = compare_scores(joined, metrics=["self-bleu( n=2 )"], resamples=100)
    assert alone == lower
    with pytest.raises(UsageError, match="the scores have no metric 'bleu'"):
        compare_scores(joined, metrics=["bleu"])


def test_the_gate_fails_for_systems_significantly_worse_than_the_baseline() -> None:
    items = rated({"base": 1, "better": 3, "same": 1, "worse": 0})
    (ranking,), _ = compare_people(items, resamples=500, baseline="base")
    tests = {test.system: test for test in ranking.baseline_tests}
    assert set(tests) == {"better", "same", "worse"}
    assert [test.system for test in worse_than_baseline(ranking)] == ["worse"]
    pairs = {(pair.better, pair.worse): pair for pair in ranking.pairs}
    # the second smallest of three p-values against the baseline, adjusted
    assert pairs["better", "base"].p_randomisation < pairs["base", "worse"].p_randomisation
    assert tests["worse"].p == pytest.approx(2 * pairs["base", "worse"].p_randomisation)
    assert tests["worse"].difference == pairs["base", "worse"].difference > 0
    assert tests["better"].difference == -pairs["better", "base"].difference < 0
    assert tests["better"].low == -pairs["better", "base"].high
    # about 1 worse: more than .3, but not more than 2
    for margin, failing in ((0.3, ["worse"]), (2.0, [])):
        (ranking,), _ = compare_people(items, resamples=500, baseline="base", margin=margin)
        assert [test.system for test in worse_than_baseline(ranking)] == failing
    with pytest.raises(UsageError, match="baseline 'bas': no such system: did you mean 'base'"):
        compare_people(items, baseline="bas")
    with pytest.raises(UsageError, match="margin"):
        compare_people(items, baseline="base", margin=-1)


def test_the_gate_refuses_too_few_resamples_to_find_any_system_worse() -> None:
    # 6 systems against the baseline with a margin: p is at least 2 / (resamples + 1), times 6 by
    # Holm; 12 / 240 = .05 is not below .05, 12 / 241 is
    systems = {"base", *"abcdef"}
    with pytest.raises(UsageError, match="need at least 240 resamples"):
        RankingOptions(resamples=239, baseline="base", margin=0.1).check(systems)
    RankingOptions(resamples=240, baseline="base", margin=0.1).check(systems)
    RankingOptions(resamples=1, baseline="base").check(systems)  # p has no such lower limit


def test_where_lower_is_better_the_gate_fails_for_higher_values() -> None:
    items, values = valued({"base": 0, "higher": 2})
    options = RankingOptions(resamples=200, baseline="base")
    ranking = rank_values(items, values, higher_is_better=False, options=options)
    assert [test.system for test in worse_than_baseline(ranking)] == ["higher"]
    assert ranking.baseline_tests[0].difference > 1
    assert not worse_than_baseline(rank_values(items, values, options=options))


def by_neighbours(monkeypatch: pytest.MonkeyPatch, means: dict[str, float], **kwargs) -> Ranking:
    monkeypatch.setattr(ranking_module, "MAX_ALL_PAIRS", 5)
    items, values = valued(means, 40)
    return rank_values(items, values, options=RankingOptions(500, 3, **kwargs))


def test_many_systems_are_tested_against_their_neighbours(monkeypatch) -> None:
    means = {f"s{k:02}": k / 4 for k in range(12)}
    items, values = valued(means, 40)
    every = rank_values(items, values, options=RankingOptions(500, 3))
    ranking = by_neighbours(monkeypatch, means)
    assert ranking.neighbours_only
    assert not every.neighbours_only
    assert {row.group for row in ranking.systems} == {""}
    names = [row.system for row in ranking.systems]
    assert [(pair.better, pair.worse) for pair in ranking.pairs] == list(pairwise(names))
    both = {(pair.better, pair.worse): pair for pair in every.pairs}
    for row, same in zip(ranking.systems, every.systems, strict=True):
        assert (row.low, row.value, row.high) == pytest.approx((same.low, same.value, same.high))
    for pair in ranking.pairs:
        same_pair = both[pair.better, pair.worse]
        assert pair.p_randomisation == same_pair.p_randomisation
        assert pair.p_bootstrap == same_pair.p_bootstrap
        assert (pair.low, pair.high) == pytest.approx((same_pair.low, same_pair.high))
    # blocks of systems do not change the numbers
    monkeypatch.setattr(paired_tests, "CHUNK_BYTES", 8 * 500 * 4 * 3)
    blocks = by_neighbours(monkeypatch, means)
    for pair, other in zip(blocks.pairs, ranking.pairs, strict=True):
        assert vars(pair) == pytest.approx(vars(other))


@pytest.mark.parametrize("baseline", ["s00", "s05", "s11"])
def test_many_systems_are_all_tested_against_the_baseline(monkeypatch, baseline) -> None:
    means = {f"s{k:02}": k / 4 for k in range(12)}
    ranking = by_neighbours(monkeypatch, means, baseline=baseline, margin=0.5)
    assert len(ranking.baseline_tests) == 11
    assert len({(pair.better, pair.worse) for pair in ranking.pairs}) == len(ranking.pairs)
    worse = {test.system for test in worse_than_baseline(ranking)}
    assert all(means[baseline] - means[name] > 0.5 for name in worse)
    assert ("s00" in worse) == (baseline != "s00")
    monkeypatch.setattr(ranking_module, "MAX_ALL_PAIRS", 300)
    items, values = valued(means, 40)
    every = rank_values(items, values, options=RankingOptions(500, 3, baseline, 0.5))
    assert {test.system: test.p for test in ranking.baseline_tests} == pytest.approx(
        {test.system: test.p for test in every.baseline_tests}
    )


def test_extreme_values_are_ranked() -> None:
    for scale in (5e-324, 1e-300, 1e300):
        items, _ = valued({"a": 0, "b": 0}, 10)
        values = np.array([scale if item.system == "a" else 0.0 for item in items])
        ranking = rank_values(items, values, options=RankingOptions(50))
        assert [row.system for row in ranking.systems] == ["a", "b"]


def test_many_systems_can_differ_significantly_with_few_resamples() -> None:
    """12 systems have 66 pairs: with 200 resamples a p of 1 / 201 would become 66 / 201 = .33."""
    items, values = valued({f"s{k:02}": float(k) for k in range(12)}, 30)
    ranking = rank_values(items, values, options=RankingOptions(200))
    adjusted = {(pair.better, pair.worse): pair.p_adjusted for pair in ranking.pairs}
    p = adjusted["s11", "s00"]
    assert p is not None and 0 < p < 0.05


def test_equal_systems_rarely_differ_significantly() -> None:
    """200 simulations of 8 equal systems (28 pairs) with very skewed scores in 20 contexts: at the
    level of 5 %, some pair may differ in 5 % of them, that is 10. If that is the true rate, the
    probability of 17 or more is 2 %."""
    rng = np.random.default_rng(7)
    upper = np.triu_indices(8, 1)
    found = 0
    for trial in range(200):
        table = np.ones((8, 20, 2))
        table[:, :, 0] = rng.exponential(size=(8, 20)) ** 2
        p_values = randomisation_table(table, averaged, resamples=2000, seed=trial)
        found += bool((holm(p_values[upper]) <= 0.05).any())
    assert 0 < found < 17

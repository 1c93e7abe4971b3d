"""Ratings of sets of replies against set metrics: values by hand, matching, annotators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item, Reference
from rejoinder.meta_evaluation.agreement import alpha_interval
from rejoinder.verbs.monitor import RejoinderWarning

REPLIES = (("a b", "a b"), ("a b", "a c"), ("a b", "c d"), ("a a", "a a"))
"""distinct-1 is 2/4, 3/4, 4/4, 1/4. Against the references "a b" and "c d" the best ROUGE-L is 1
and 0; 1 and 1/2; 1 and 1; 1/2 and 0, so that recall has the same values. self-bleu-1 is 1, 1/2, 0
and 1."""
RATINGS = (1.0, 3.0, 4.0, 2.0)
METRICS = ["distinct(n=1,tok=whitespace)", "self-bleu(n=1,tok=whitespace)"]
METRICS += ["recall(d=rouge-l(tok=whitespace))"]


def replies(contexts: int = 12, system: str = "bot") -> list[Item]:
    """The four kinds of sets in turn."""
    references = [Reference("a b"), Reference("c d")]
    return [
        Item(f"{c}:{system}:{n}", text, context_id=str(c), system=system, references=references)
        for c in range(contexts)
        for n, text in enumerate(REPLIES[c % 4])
    ]


def ratings(contexts: int = 12, system: str = "bot") -> list[dict[str, Any]]:
    """Ann and bob, whose mean is RATINGS: bob differs by 1 in every other round of the four."""
    return [
        {
            "context_id": str(c),
            "system": system,
            "ratings": {"ann": RATINGS[c % 4] - c // 4 % 2, "bob": RATINGS[c % 4] + c // 4 % 2},
        }
        for c in range(contexts)
    ]


def found(items=None, sets=None, **options) -> rejoinder.MetaResult:
    options = {"level": "context", "resamples": 100} | options
    return rejoinder.meta(
        replies() if items is None else items,
        METRICS,
        set_ratings=ratings() if sets is None else sets,
        **options,
    )


def test_correlations_by_hand() -> None:
    result = found()
    distinct, self_bleu, recall = (each.correlations for each in result.results)
    # values 2 3 4 1 and ratings 1 3 4 2 (times 1/4; each three times): 1 - 6 * 2 / (4 * 15)
    for each in (distinct, recall):
        assert each.n == 12
        assert each.spearman.value == pytest.approx(0.8)
        assert each.pearson.value == pytest.approx(0.8)
    # low is diverse. Ranks 3.5 2 1 3.5 against 1 3 4 2, around their means 1 -.5 -1.5 1 and
    # -1.5 .5 1.5 -.5: -4.5 / sqrt(4.5 * 5)
    assert self_bleu.spearman.value == pytest.approx(-4.5 / np.sqrt(4.5 * 5))
    assert (result.rated, result.unrated) == (12, 0)


def test_annotators_of_sets_are_those_of_ratings() -> None:
    result = found()
    ann, bob = ([row["ratings"][name] for row in ratings()] for name in ("ann", "bob"))
    values = [[0.5, 0.75, 1, 0.25][c % 4] for c in range(12)]
    pearson = [np.corrcoef(values, each)[0, 1] for each in (ann, bob)]
    assert result.results[0].annotators is not None
    assert result.results[0].annotators["pearson"] == pytest.approx(
        {"max": max(pearson), "min": min(pearson), "mean": np.mean(pearson)}
    )
    assert result.humans is not None
    assert result.humans.pairwise["pearson"]["mean"] == pytest.approx(np.corrcoef(ann, bob)[0, 1])
    assert result.humans.alpha_ci == alpha_interval([ann, bob], resamples=100)
    without = found(drop_annotators=["bob"])
    assert without.results[0].correlations.pearson.value == pytest.approx(pearson[0])
    assert without.before is not None
    assert without.before[0].correlations.pearson.value == pytest.approx(0.8)


def test_intervals_draw_the_sets_of_a_context_together() -> None:
    """Two systems with the same replies and ratings: as if there were one, and the same draws."""
    both = replies() + replies(system="other")
    rated = ratings() + ratings(system="other")
    twice, once = found(both, rated).results[0], found().results[0]
    assert twice.correlations.n == 24
    for side in ("low", "high"):
        assert getattr(twice.correlations.pearson, side) == pytest.approx(
            getattr(once.correlations.pearson, side)
        )


def test_ratings_of_single_replies_are_not_read_beside_those_of_sets() -> None:
    rated = [Item(i.id, i.response, system=i.system, context_id=i.context_id,
                  references=i.references, ratings=float(n % 7))
             for n, i in enumerate(replies())]  # fmt: skip
    assert found(rated).to_dict() == found().to_dict()
    # without ratings of sets, the mean rating of the replies counts, as before
    mean = rejoinder.meta(rated, METRICS[:1], level="context", resamples=0)
    of_replies = [np.mean([n % 7, (n + 1) % 7]) for n in range(0, 24, 2)]
    values = [[0.5, 0.75, 1, 0.25][c % 4] for c in range(12)]
    assert mean.results[0].correlations.pearson.value == pytest.approx(
        np.corrcoef(values, of_replies)[0, 1]
    )
    assert mean.humans is None


def test_sets_are_matched_by_the_name_or_the_turns_of_their_context() -> None:
    items = [Item(i.id, i.response, [f"turn {i.context_id}", "then"], i.system, i.references,
                  context_id=i.context_id) for i in replies()]  # fmt: skip
    by_turns = [
        {"context": [f"turn {row['context_id']}", "then"]}
        | {key: row[key] for key in ("system", "ratings")}
        for row in ratings()
    ]
    assert found(items, by_turns).to_dict() == found().to_dict()
    nameless = [Item(i.id, i.response, i.context, i.system, i.references) for i in items]
    assert found(nameless, by_turns).to_dict() == found().to_dict()
    # a context without an id is named in the scores by its joined turns
    joined = [{**row, "context_id": "\x1f".join(row.pop("context"))} for row in by_turns]
    assert found(nameless, joined).to_dict() == found().to_dict()


def test_unrated_and_unknown_sets_are_counted() -> None:
    some = [row for row in ratings() if row["context_id"] != "3"]
    with pytest.warns(RejoinderWarning, match="1 of 12 rated sets are not among the items"):
        result = found(sets=[*some, {"context_id": "77", "system": "bot", "ratings": 3}])
    assert (result.rated, result.unrated, result.results[0].correlations.n) == (11, 1, 11)
    with pytest.raises(DataError, match="none of the 1 rated sets is among the items"):
        found(sets=[{"context_id": "0", "system": "bott", "ratings": 3}])


def test_one_line_for_each_annotator_is_merged_and_contradictions_are_errors() -> None:
    apart = [
        {**row, "ratings": {name: row["ratings"][name]}}
        for row in ratings()
        for name in ("ann", "bob")
    ]
    assert found(sets=apart).to_dict() == found().to_dict()
    with pytest.raises(DataError, match="the context '0' have two different ratings"):
        found(sets=[*ratings(), {"context_id": "0", "system": "bot", "ratings": {"ann": 5}}])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"system": "bot", "ratings": 3}, "set 1: expected the set's context"),
        ({"context_id": "1", "system": "bot"}, "set 1: ratings: expected ratings of the set"),
        ({"context_id": "1", "ratings": {}}, "set 1: ratings: expected ratings of the set"),
        ({"context_id": "1", "ratings": {"ann": "good"}}, "set 1: ratings.*: expected a number"),
        ({"context_id": "1", "ratings": [1e16]}, "set 1: ratings: expected numbers from"),
    ],
)
def test_bad_ratings_of_sets_are_named(row: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        found(sets=[ratings()[0], row])


def test_bad_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "sets.jsonl"
    path.write_text('{"context_id": "0", "system": "bot", "ratings": 1}\n{"context_id": "1"}\n')
    with pytest.raises(DataError, match=r"sets\.jsonl:2: ratings: expected ratings of the set"):
        found(sets=path)
    path.write_text("")
    with pytest.raises(DataError, match=r"sets\.jsonl: the file is empty"):
        found(sets=path)
    with pytest.raises(DataError, match="there are no ratings of sets"):
        found(sets=[])


def test_a_table_of_ratings(tmp_path: Path) -> None:
    path = tmp_path / "sets.csv"
    rows = [
        f"{row['context_id']},bot,{name},{row['ratings'][name]:g}"
        for row in ratings()
        for name in ("ann", "bob")
    ]
    path.write_text("context_id,system,annotator,rating\n" + "\n".join(rows) + "\n")
    with pytest.warns(RejoinderWarning, match="columns recognised by name: ratings = rating"):
        assert found(sets=path).to_dict() == found().to_dict()


def test_wrong_usage() -> None:
    with pytest.raises(UsageError, match="rates sets of replies: add level='context'"):
        found(level="item")
    with pytest.raises(UsageError, match="rates sets of replies"):
        found(level="system")
    with pytest.raises(UsageError, match="no ratings are read, neither those of sets"):
        found(correct="bot")


def test_equal_ratings_have_no_correlation() -> None:
    same = [{**row, "ratings": 3} for row in ratings()]
    result = found(sets=same)
    assert result.results[0].correlations.spearman.value is None
    assert result.results[0].undefined == "all ratings of the scored units are equal"

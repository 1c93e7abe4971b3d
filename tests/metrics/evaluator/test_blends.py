"""``ruber`` and ``rejoinder``: metrics brought to the same range and blended, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import scoring

from evaluators import make_evaluator, open_small, scorer_of
from rejoinder.errors import DataError, UsageError
from rejoinder.evaluator import Evaluator
from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.evaluator.blend import Blend
from rejoinder.metrics.evaluator.rejoinder import Rejoinder
from rejoinder.metrics.evaluator.ruber import Ruber
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.overlap.rouge_l import RougeL
from rejoinder.metrics.records import item_scores

ITEMS = [
    Item("1", "a b c d", context=["b e"], references=[Reference("a b c d")]),
    Item("2", "a b", context=["a b"], references=[Reference("a c")]),
    Item("3", "a", context=["a"], references=[Reference("c")]),
]
# rouge-l(beta=1): 1, ½, 0; unreferenced, see CountingScorer: 2/6, 3/4, 2/3
# rating, see CountingRater: 2 · 5/6 - 1, 2 · 2/4 - 1, 2 · 1/3 - 1
ROUGE = np.array([1.0, 0.5, 0.0])
LEARNED = np.array([1 / 3, 3 / 4, 2 / 3])
RATED = np.array([2 / 3, 0.0, -1 / 3])

RANGES = {
    "rouge-l(beta=1)": (0.25, 0.75),
    "unreferenced": (0.0, 0.5),
    "wer": (0.0, 2.0),
    "rating": (-0.5, 1.0),
}
BLENDS = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: math.sqrt(a * b),
    "min": min,
    "max": max,
}


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return open_small(make_evaluator(tmp_path / "small", ranges=RANGES, language="en"))


def score(spec: str, evaluator: Evaluator | None, items: list[Item] = ITEMS) -> list[float]:
    found: list[float] = scoring.score(items, spec, evaluator).values.tolist()
    return found


@pytest.mark.parametrize("name", ["ruber", "rejoinder"])
@pytest.mark.parametrize("blend", BLENDS)
def test_fixed_ranges(evaluator: Evaluator, blend: str, name: str) -> None:
    """(v - low) / (high - low), cut: 1, ½, 0 and ⅔, 1, 1."""
    expected = [BLENDS[blend](a, b) for a, b in ((1, 2 / 3), (0.5, 1), (0, 1))]
    rating = ",rating=false" if name == "rejoinder" else ""
    spec = f"{name}(ref=rouge-l(beta=1),blend={blend},norm=fixed,scale=plain{rating})"
    assert score(spec, evaluator) == pytest.approx(expected)
    # the scores of other items do not matter
    assert score(spec, evaluator, ITEMS[1:2]) == pytest.approx(expected[1:2])


@pytest.mark.parametrize("blend", BLENDS)
def test_ruber_takes_the_ranges_of_the_set(evaluator: Evaluator, blend: str) -> None:
    """1, ½, 0 stay; 1/3, 3/4, 2/3 become 0, 1, 4/5."""
    expected = [BLENDS[blend](a, b) for a, b in ((1, 0), (0.5, 1), (0, 0.8))]
    assert score(f"ruber(ref=rouge-l(beta=1),blend={blend})", evaluator) == pytest.approx(expected)


def test_ruber_is_the_published_metric(evaluator: Evaluator) -> None:
    """Tao et al. 2018: the cosine of pooled vectors and the unreferenced scorer, min-max over the
    evaluated set, arithmetic mean, probabilities as they are."""
    pooled, learned = (
        scoring.score(ITEMS, spec, evaluator).values for spec in ("vector-pool", "unreferenced")
    )
    expected = [
        (a + b) / 2
        for a, b in zip(
            (pooled - pooled.min()) / (pooled.max() - pooled.min()),
            (learned - learned.min()) / (learned.max() - learned.min()),
            strict=True,
        )
    ]
    assert score("ruber", evaluator) == pytest.approx(expected, abs=1e-12)
    explicit = "ruber(ref=vector-pool,unref=unreferenced,blend=arithmetic,norm=set,scale=plain)"
    assert make_metric(explicit) == make_metric("ruber") == Ruber()


@pytest.mark.parametrize("blend", BLENDS)
def test_log_odds(evaluator: Evaluator, blend: str) -> None:
    """Of the set: ln(1/2), ln 3, ln 2 become 0, 1 and 2 ln 2 / ln 6. Fixed: the range from 0 to ½
    is cut to .001 and has -ln 999 and 0; ⅓ has -ln 2, the others are above."""
    third = 2 * math.log(2) / math.log(6)
    expected = [BLENDS[blend](a, b) for a, b in ((1, 0), (0.5, 1), (0, third))]
    spec = f"rejoinder(ref=rouge-l(beta=1),blend={blend},rating=false"
    assert score(f"{spec},norm=set)", evaluator) == pytest.approx(expected)
    first = 1 - math.log(2) / math.log(999)
    expected = [BLENDS[blend](a, b) for a, b in ((1, first), (0.5, 1), (0, 1))]
    assert score(f"{spec})", evaluator) == pytest.approx(expected)


def test_only_probabilities_have_odds(evaluator: Evaluator) -> None:
    """rouge-l and wer are from 0 to 1 here as well, but are no probabilities."""
    for norm in ("fixed", "set"):
        specs = [
            f"rejoinder(ref=rouge-l(beta=1),unref=wer,norm={norm},scale={scale})"
            for scale in ("odds", "plain")
        ]
        assert score(specs[0], evaluator) == score(specs[1], evaluator)
    with pytest.raises(UsageError, match="scale=log is not one of odds, plain"):
        make_metric("rejoinder(scale=log)")


@pytest.mark.parametrize("blend", BLENDS)
def test_rejoinder_with_references(evaluator: Evaluator, blend: str) -> None:
    """(ref + (rating + unref) / 2) / 2, each in [0, 1]: 1, ½, 0; ⅔, 1, 1 without odds; and the
    ratings ⅔, 0, -⅓ in the range from -½ to 1: 7/9, 1/3, 1/9."""
    mix = BLENDS[blend]
    parts = zip((1, 0.5, 0), (7 / 9, 1 / 3, 1 / 9), (2 / 3, 1, 1), strict=True)
    expected = [mix(ref, mix(rating, unref)) for ref, rating, unref in parts]
    spec = f"rejoinder(ref=rouge-l(beta=1),blend={blend},scale=plain)"
    assert score(spec, evaluator) == pytest.approx(expected)


@pytest.mark.parametrize("scale", ["odds", "plain"])
@pytest.mark.parametrize("blend", BLENDS)
def test_rejoinder_is_a_blend_of_blends_to_the_last_bit(
    evaluator: Evaluator, blend: str, scale: str
) -> None:
    """With the rating it is the nested blend of ref, and of rating and unref."""
    options = f"blend={blend},scale={scale}"
    inner = f"rejoinder(ref=rating,{options},rating=false)"
    nested = f"rejoinder(ref=rouge-l(beta=1),unref={inner},{options},rating=false)"
    whole = f"rejoinder(ref=rouge-l(beta=1),{options})"
    assert score(whole, evaluator) == score(nested, evaluator)


def test_rejoinder_without_good_references_leaves_the_rating_out(tmp_path: Path) -> None:
    """Items without references, or with bad ones only, have the score of rating=false."""
    ranges = {"vbleu": (0.0, 0.5), "unreferenced": (0.0, 0.5), "rating": (-0.5, 1.0)}
    rows = [([], "more cheese please", "more cheese here")]
    evaluator = open_small(make_evaluator(tmp_path / "small", rows, ranges=ranges, parrot=False))
    items = [
        Item("1", "here you go", context=["some more cheese"]),
        Item("2", "here you go", context=["no more cheese"], references=[Reference("no", -1.0)]),
        Item("3", "here you go", context=["any cheese"], references=[Reference("here")]),
    ]
    whole, without = (
        score("rejoinder", evaluator, items),
        score("rejoinder(rating=false)", evaluator, items),
    )
    assert whole[:2] == without[:2]
    assert whole[2] != without[2]
    metrics = make_metrics("rejoinder", evaluator=evaluator)
    ((batch, results),) = evaluate(items, metrics.item_metrics)
    lines = item_scores(metrics.labels, batch, results, parts=True)
    assert [sorted(line.parts or {}) for line in lines] == [
        ["ref", "unref"],
        ["ref", "unref"],
        ["rating", "ref", "unref"],
    ]


def test_rejoinder_without_a_rater(tmp_path: Path) -> None:
    folder = make_evaluator(tmp_path / "small", ranges=RANGES, rater=False)
    evaluator = open_small(folder)
    spec = "rejoinder(ref=rouge-l(beta=1))"
    without = "rejoinder(ref=rouge-l(beta=1),rating=false)"
    assert score(spec, evaluator) == score(without, evaluator)
    (metric,) = make_metrics(spec, evaluator=evaluator).item_metrics
    assert metric.notes() == ["small has no rater: rejoinder is computed without rating"]
    assert "|rating:no|" in metric.signature()


def test_rejoinder_without_a_range_of_the_rating(tmp_path: Path) -> None:
    ranges = {key: value for key, value in RANGES.items() if key != "rating"}
    evaluator = open_small(make_evaluator(tmp_path / "small", ranges=ranges))
    (metric,) = make_metrics("rejoinder(ref=rouge-l(beta=1))", evaluator=evaluator).item_metrics
    assert "could not measure the range of the component rating" in metric.notes()[0]
    assert "|rating:no|" in metric.signature()


def test_the_signature_without_an_evaluator_says_whether_a_rating_is_wanted() -> None:
    assert "|rating:yes|" in make_metric("rejoinder").signature()
    assert "|rating:no|" in make_metric("rejoinder(rating=false)").signature()
    assert "|rating:no|" in make_metric("rejoinder(norm=set)").signature()


@pytest.mark.parametrize(
    ("known", "spec"),
    [
        ("vcosine(size=3)", "rejoinder"),
        ("unreferenced(size=3)", "rejoinder(ref=rouge-l(beta=1))"),
    ],
)
def test_a_range_of_a_metric_that_cannot_be_made_is_an_error_of_the_data(
    tmp_path: Path, known: str, spec: str
) -> None:
    ranges = {"rouge-l(beta=1)": (0.0, 1.0), known: (0.0, 1.0)}
    evaluator = open_small(make_evaluator(tmp_path / "small", ranges=ranges))
    with pytest.raises(DataError, match=r"manifest\.json: ranges: .*size"):
        make_metrics(spec, evaluator=evaluator)


def test_the_signature_contains_the_components(evaluator: Evaluator) -> None:
    (metric,) = make_metrics("rejoinder(ref=rouge-l(beta=1))", evaluator=evaluator).item_metrics
    for part in ("ref:(rouge-l|", "unref:(unreferenced|", "rating:(rating|", "norm:fixed"):
        assert part in metric.signature()


def test_a_blend_of_blends(evaluator: Evaluator) -> None:
    """The inner one has 1, ½, 0 and ⅔, 1, 1 (see above), and the range 0 to 1."""
    inner = "rejoinder(ref=rouge-l(beta=1),scale=plain,rating=false)"
    inside = [(1 + 2 / 3) / 2, 0.75, 0.5]
    found = score(f"rejoinder(ref=rouge-l(beta=1),unref={inner},rating=false)", evaluator)
    outside = [1, 0.5, 0]
    assert found == pytest.approx([(a + b) / 2 for a, b in zip(outside, inside, strict=True)])


def test_a_whole_set_comes_in_one_batch(evaluator: Evaluator) -> None:
    metrics = make_metrics(["ruber(ref=rouge-l(beta=1))", "rouge-l"], evaluator=evaluator)
    batches = list(evaluate(iter(ITEMS), metrics.item_metrics, batch_size=1))
    assert [len(items) for items, _ in batches] == [3]
    assert batches[0][1][0].values.tolist() == pytest.approx([0.5, 0.75, 0.4])


def test_equal_scores_have_no_range(evaluator: Evaluator) -> None:
    same = [ITEMS[0], Item("9", "a b c d", context=["b e"], references=ITEMS[0].references)]
    assert score("ruber(ref=rouge-l(beta=1))", evaluator, same) == [0.5, 0.5]
    assert score("ruber(ref=rouge-l(beta=1))", evaluator, same[:1]) == [0.5]


def test_any_two_metrics_without_an_evaluator() -> None:
    """Lower is better for wer: 0, ½, 1 become 1, ½, 0."""
    assert score("ruber(ref=rouge-l(beta=1),unref=wer)", None) == pytest.approx([1, 0.5, 0])


def test_items_that_one_component_cannot_score(evaluator: Evaluator) -> None:
    items = [
        *ITEMS,
        Item("no reference", "a", context=["a"]),
        Item("no context", "a", references=[Reference("a")]),
        Item("nothing", "a"),
    ]
    for spec in ("ruber(ref=rouge-l(beta=1))", "rejoinder(ref=rouge-l(beta=1))"):
        found = scoring.score(items, spec, evaluator)
        assert found.unscored == {
            "no reference": "no references",
            "no context": "no context",
            "nothing": "no context",
        }
        assert found.values[:3].tolist() == pytest.approx(score(spec, evaluator))
        (corpus,) = found.corpus.values()
        assert corpus is not None
        assert corpus.value == pytest.approx(found.values[:3].mean())


def test_nothing_can_be_scored(evaluator: Evaluator) -> None:
    assert np.isnan(score("rejoinder(ref=rouge-l(beta=1))", evaluator, [Item("1", "a")])).all()


def test_parts_are_the_components(evaluator: Evaluator) -> None:
    metrics = make_metrics("rejoinder(ref=rouge-l(beta=1))", evaluator=evaluator)
    ((items, results),) = evaluate(ITEMS, metrics.item_metrics)
    lines = item_scores(metrics.labels, items, results, parts=True)
    assert lines[1].parts == pytest.approx({"ref": 0.5, "unref": 1.0, "rating": 1 / 3})
    assert lines[0].coverage is None or "nearest" in lines[0].coverage


def test_an_unknown_range_is_refused_before_scoring(evaluator: Evaluator) -> None:
    message = r"small knows no range of bleu\(n=1\).*norm=set.*rouge-l\(beta=1\), unreferenced, wer"
    with pytest.raises(UsageError, match=message):
        make_metrics(["rejoinder(ref=bleu(n=1))"], evaluator=evaluator)


def test_ranges_are_listed_without_evaluator_and_tokenizer(tmp_path: Path) -> None:
    ranges = {"vbleu": (0.0, 1.0), "unreferenced": (0.0, 1.0), "expanded(d=bleu)": (0.0, 1.0)}
    rows = [([], "猫", "犬")]
    folder = make_evaluator(
        tmp_path / "ja", rows, by="bm25(tok=char)", ranges=ranges, language="ja"
    )
    evaluator = open_small(folder)
    item = Item("1", "犬が好き", context=["猫"], references=[Reference("犬が好き")])
    for spec in ("rejoinder(ref=vbleu)", "rejoinder(ref=expanded(d=bleu))"):
        (value,) = score(spec, evaluator, [item])
        assert 0 <= value <= 1
    with pytest.raises(UsageError, match=r"no range of vbleu\(tok=char\)"):
        score("rejoinder(ref=vbleu(tok=char))", evaluator, [item])


@pytest.mark.parametrize(
    ("known", "language", "chosen"),
    [
        (["vbleu", "vcosine"], "en", "vcosine"),
        (["vbleu"], "en", "vbleu"),
        (["vbleu"], "ja", "vbleu(tok=ja-mecab)"),
        ([], "en", "vcosine"),
    ],
)
def test_default_referenced_metric(
    tmp_path: Path, known: list[str], language: str, chosen: str
) -> None:
    ranges = dict.fromkeys(["unreferenced", *known], (0.0, 1.0))
    by = {"en": "bm25", "ja": "bm25(tok=ja-mecab)"}[language]
    folder = make_evaluator(tmp_path / "small", by=by, ranges=ranges, language=language)
    evaluator = open_small(folder)
    vars(evaluator)["encode"] = lambda texts: np.zeros((len(texts), 2))
    ((label, metric),) = make_metrics("rejoinder", evaluator=folder, ready=False)
    assert label == "rejoinder"
    assert isinstance(metric, Blend)
    referenced = metric.components["ref"]
    assert referenced.evaluators() == metric.evaluators() == [evaluator]
    assert referenced == make_metric(chosen, evaluator=folder)
    assert f"ref:({referenced.name}|" in metric.signature()
    if known:
        assert make_metrics("rejoinder", evaluator=folder)
    else:
        with pytest.raises(UsageError, match="knows no range of vcosine"):
            make_metrics("rejoinder", evaluator=folder)


def test_nested_metrics_are_computed_once(evaluator: Evaluator) -> None:
    specs = ["unreferenced", "rejoinder(ref=rouge-l(beta=1))", "rejoinder(ref=wer)"]
    list(evaluate(ITEMS, make_metrics(specs, evaluator=evaluator).item_metrics))
    assert len(scorer_of(evaluator).inputs_seen) == 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ruber(blend=mean)", "blend=mean is not one of arithmetic, geometric, min, max"),
        ("rejoinder(norm=none)", "norm=none is not one of fixed, set"),
        ("ruber(ref=distinct)", "ref=distinct scores sets of replies"),
        ("rejoinder(unref=ruber)", "use norm=fixed there"),
        ("ruber(ref=blue)", "did you mean 'bleu'"),
        ("ruber(ref=3)", "ref=3 is not a spec"),
        ("ruber(rating=true)", "ruber has no parameter 'rating'"),
    ],
)
def test_wrong_specs_are_refused(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_metric(spec)


def test_specs_round_trip() -> None:
    for spec in ("ruber(ref=vbleu(n=1),blend=min)", "rejoinder(ref=vbleu(n=1),rating=false)"):
        metric = make_metric(spec)
        assert isinstance(metric, ItemMetric)
        assert make_metric(str(metric)) == metric


def test_components_may_be_objects() -> None:
    metric = Rejoinder(ref=RougeL(beta=2.0), rating=False)
    assert str(metric) == "rejoinder(ref=rouge-l(beta=2.0),rating=false)"
    assert make_metric("rejoinder(ref=rouge-l(beta=2),rating=false)") == metric

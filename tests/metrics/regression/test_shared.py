"""What contexts with few references learn from one another."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import rejoinder
from rejoinder.items import Item, Reference
from rejoinder.kernels.reference_similarity import reference_features
from rejoinder.meta_evaluation.roc import auc
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import make_metric
from rejoinder.metrics.regression.ridge import Features, Ridge
from rejoinder.testsets import load
from rejoinder.verbs.monitor import RejoinderWarning

WER = "wer(tok=whitespace)"


def values(spec: str, items: list[Item]) -> np.ndarray:
    return rejoinder.score(items, spec, resamples=100)[spec].values


def test_nearness_by_hand() -> None:
    """Good ones .9, .5, .4 and .2: highest .9, of the three best .6, mean .5; one bad one .3."""
    similarity = np.array([[[0.9, 0.3, 0.5, 0.4, 0.2]]])
    columns, first = np.arange(5), np.array([0, 5])
    good = np.array([True, False, True, True, True])
    found = reference_features(similarity, np.array([0]), columns, first, good)
    np.testing.assert_allclose(found, [[0.9, 0.6, 0.5, 0.3, 0.3, 0.3]])
    found = reference_features(similarity, np.array([0]), columns[1:2], np.array([0, 1]), good[1:2])
    np.testing.assert_allclose(found, [[np.nan] * 3 + [0.3] * 3])


def test_leaving_a_group_out_is_a_fit_without_it() -> None:
    """With the same scale of features, which does not know any target; features beyond the range
    of the other groups are limited to it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    rows[::7, 1] = np.nan
    target = rng.normal(size=40)
    first = np.array([0, 10, 10, 25, 40])
    ridge = Ridge.fit(rows, target, first)
    asked = rng.normal(size=(5, 3))
    features = Features.of(rows)
    for group in range(4):
        keep = np.ones(40, bool)
        keep[first[group] : first[group + 1]] = False
        z = features(rows[keep])
        weights = np.linalg.solve(z.T @ z + np.diag(features.penalty()), z.T @ target[keep])
        expected = np.clip(features(asked), z.min(axis=0), z.max(axis=0)) @ weights
        np.testing.assert_allclose(ridge.without(group, asked), expected, rtol=0, atol=1e-10)


def test_predictions_do_not_extrapolate() -> None:
    """One feature x, from 0 to .0002, and the target 5,000 x, from 0 to 1: ½ and -½ are predicted
    like .0002 and 0. A line would give 2,500 and -2,500 there."""
    rows = np.linspace(0, 0.0002, 3000)[:, None]
    ridge = Ridge.fit(rows, 5000 * rows[:, 0], np.array([0, 1000, 2000, 3000, 3000]))
    # the penalty of 100 shrinks the slope of 3,000 standardised rows by 3,000 / 3,100
    half = 0.5 * 3000 / 3100
    predicted = ridge.without(3, np.array([[0.5], [-0.5]]))
    np.testing.assert_allclose(predicted, [0.5 + half, 0.5 - half], rtol=0, atol=1e-9)


def test_a_context_with_few_references_among_contexts_with_many() -> None:
    """Of a hundred references with six of 3,000 words each, hardly two share a word: all their mean
    similarities are about 0. In a context with three references those of replies are .1 to .4; they
    had scores of up to 66."""
    rng = np.random.default_rng(0)

    def text() -> str:
        return " ".join(f"w{word}" for word in rng.integers(0, 3000, 6))

    items = []
    for context in "abc":
        known = [Reference(text(), weight=float(rng.choice([-1, 1]))) for _ in range(100)]
        items.append(Item(context, text(), references=known, context_id=context))
    scored = (("a b c d e f", 1.0), ("a b c x y z", 1.0), ("g h i j k l", -1.0))
    known = [Reference(text, weight=weight) for text, weight in scored]
    replies = ("a b c d e g", "g h i j k m", "q r s t u v")
    items += [Item(reply, reply, references=known, context_id="few") for reply in replies]
    found = values(f"svr(d={WER})", items)
    assert ((found > -0.1) & (found < 1.1)).all()


def test_features_that_are_missing_or_never_change() -> None:
    rows = np.array([[1.0, np.nan, 2.0], [3.0, np.nan, 2.0], [np.nan, np.nan, 2.0]])
    made = Features.of(rows)(rows)
    assert np.isfinite(made).all()
    # what is missing stands for the lowest: 1, 3, 1 has the mean 5/3 and the spread √(8/9)
    np.testing.assert_allclose(made[:, 0], (np.array([1, 3, 1]) - 5 / 3) / np.sqrt(8 / 9))
    assert not made[:, 1:3].any()


def simulated(
    contexts: int, *, references: int = 4, seed: int = 0, informative: bool = True
) -> list[Item]:
    """Contexts with words of their own: good replies are made of some, wrong ones of others.
    Uninformative ones are made of the same words."""
    rng = np.random.default_rng(seed)
    items = []
    for context in range(contexts):
        words = {True: [f"g{context}-{k}" for k in range(6)]}
        words[False] = [f"b{context}-{k}" for k in range(6)] if informative else words[True]

        def text(kind: bool, words: dict[bool, list[str]] = words) -> str:
            return " ".join(rng.choice(words[kind], 4))

        known = [Reference(text(k), weight=1.0) for k in [True] * references]
        known += [Reference(text(False), weight=-1.0) for _ in range(references)]
        for number, kind in enumerate([True] * 4 + [False] * 4):
            items.append(
                Item(
                    f"{context}:{number}",
                    text(kind),
                    system="good" if kind else "wrong",
                    references=known,
                    context_id=str(context),
                )
            )
    return items


def area(items: list[Item], spec: str) -> float:
    found, good = values(spec, items), np.array([item.system == "good" for item in items])
    return auc(found[good], found[~good])


def test_the_shared_regression_helps_with_few_references() -> None:
    """With two of each kind, a context hardly knows what to make of them; others tell it."""
    few = simulated(60, references=2)
    shared, alone = (area(few, f"svr(d={WER},share={s})") for s in ("auto", "never"))
    assert shared > 0.9
    assert shared > alone


def test_one_reference_of_each_kind() -> None:
    """A good reference could only be compared with the bad one, and the reverse, which would leak
    the label: nothing is learnt, and nothing is scored."""
    items = simulated(5, references=1)
    spec = f"svr(d={WER},share=always)"
    with pytest.warns(RejoinderWarning, match="no reply could be scored: too few references"):
        scored = rejoinder.score(items, spec, resamples=100)
    reasons = set(scored[spec].unscored.values())
    assert reasons == {"too few references to learn from, here or in other contexts"}


def test_one_reference_among_contexts_with_more() -> None:
    items = simulated(20)
    first = items[0]
    known = first.references[:1]
    item = Item("x", first.response, references=known, context_id="alone")
    alone = rejoinder.score([item, *items], f"svr(d={WER},share=never)", resamples=100)
    assert list(next(iter(alone.values())).unscored) == ["x"]
    near, far = (
        values(f"svr(d={WER})", [Item("x", reply, references=known, context_id="alone"), *items])[0]
        for reply in (known[0].text + " more", "nothing of that sort")
    )
    assert near > far


def test_least_and_share() -> None:
    """Below ``least`` references a score is the shared one, from there on the context's own."""
    items = simulated(10)  # 8 references each
    auto = values(f"svr(d={WER})", items)
    always, never = (values(f"svr(d={WER},share={s})", items) for s in ("always", "never"))
    assert np.abs(always - never).max() > 0.01
    np.testing.assert_allclose(auto, always, rtol=0, atol=1e-12)
    own = values(f"svr(d={WER},min_references=8)", items)
    np.testing.assert_allclose(own, never, rtol=0, atol=1e-12)


def test_references_do_not_leak_which_one_is_scored() -> None:
    """Texts are random here, so that nothing can be predicted. A good reference is compared with
    one good reference fewer than a bad one: an estimator that learns this would seem right."""
    items = simulated(150, references=5, informative=False)
    judged = []
    for first in items[::8]:
        for number, reference in enumerate(first.references):
            judged.append(
                Item(
                    f"{first.id}:{number}",
                    reference.text,
                    system="good" if reference.weight == 1 else "wrong",
                    references=first.references,
                    context_id=first.context_id,
                )
            )
    assert area(judged, f"svr(d={WER})") == pytest.approx(0.5, abs=0.06)
    without = [
        Item(
            item.id,
            item.response,
            system=item.system,
            references=[r for r in item.references if r.text != item.response],
            context_id=item.context_id,
        )
        for item in judged
    ]
    assert area(without, f"svr(d={WER})") == pytest.approx(0.5, abs=0.06)


def test_winning_rates_do_not_leak_which_one_is_missing() -> None:
    """Rates of one context have a fixed sum, so that the mean of the others reveals the missing
    one. Texts are random here, and nothing must be predicted."""
    rng = np.random.default_rng(0)
    items, rates = [], []
    for context in range(200):
        weights = rng.permutation(np.linspace(-1, 1, 5))
        known = [Reference(" ".join(rng.choice(list("abcdefgh"), 5)), weight=w) for w in weights]
        items += [
            Item(f"{context}:{n}", r.text, references=known, context_id=str(context))
            for n, r in enumerate(known)
        ]
        rates += weights.tolist()
    found = values(f"svr(d={WER})", items)
    scored = ~np.isnan(found)
    assert scored.mean() > 0.9
    assert abs(np.corrcoef(found[scored], np.array(rates)[scored])[0, 1]) < 0.1


def test_a_reference_is_not_predicted_from_its_own_score() -> None:
    """The human score of the reply itself does not change its score."""
    items = simulated(12)
    spec = f"svr(d={WER})"

    def judged(weight: float) -> float:
        itself = Reference("g0-0 g0-1 b0-0 b0-1", weight=weight)
        known = [*items[0].references, itself]
        item = Item("x", itself.text, references=known, context_id="0")
        return float(values(spec, [item, *items[8:]])[0])

    # 1 and .2 are of one kind, so that the others that it is compared with stay the same; only the
    # scale of features, which all contexts share, can tell them apart
    assert judged(1.0) == pytest.approx(judged(0.2), abs=1e-4)


def test_the_order_of_items_is_irrelevant() -> None:
    items = simulated(8)
    spec = f"svr(d={WER})"
    order = np.random.default_rng(1).permutation(len(items))
    turned = values(spec, [items[i] for i in order])
    np.testing.assert_allclose(turned, values(spec, items)[order], rtol=0, atol=1e-8)


def test_scores_of_one_kind_only() -> None:
    """Equal scores everywhere can give nothing but that score."""
    items = [
        Item(
            i.id,
            i.response,
            references=[Reference(r.text, weight=0.5) for r in i.references],
            context_id=i.context_id,
        )
        for i in simulated(5)
    ]
    np.testing.assert_allclose(values(f"svr(d={WER})", items), 0.75, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("data")
def test_real_replies_gain_by_other_contexts() -> None:
    """The first 100 contexts of DailyDialog++ dev, 13 references each: all 1,028 of them have .87
    and .91 with cosines, which take an encoder (docs/estimators.md)."""
    items = list(islice(load("dailydialog-plusplus-dev", "scored"), 1500))
    kind = np.array([item.system for item in items])

    def separated(share: str) -> float:
        found = values(f"svr(d=bleu(smooth=nist),d2=wer,share={share})", items)
        return auc(found[kind == "good"], found[kind == "adversarial"])

    assert separated("auto") > separated("never") + 0.01


def test_progress_is_reported_while_a_whole_set_is_scored() -> None:
    """What learns from the whole set is one batch, however large: it says how far it is."""
    known = [Reference(text, weight=weight) for text, weight in (("a b", 1.0), ("c d", -1.0))]
    items = [
        Item(f"{c}:{n}", "a x", context_id=str(c), references=known)
        for c in range(3)
        for n in range(2)
    ]
    progress: list[tuple[int, int]] = []
    metrics = [make_metric("svr(d=wer(tok=whitespace))")]
    for _ in evaluate(
        items, metrics, on_progress=lambda done, total: progress.append((done, total))
    ):
        pass
    assert progress == [(2, 6), (4, 6), (6, 6)]

"""``svr``: by hand, against scikit-learn called directly, leaving out, and odd references."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import score_with
from sklearn.svm import SVR

import rejoinder
from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference
from rejoinder.kernels.svr import svr_predict
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import make_metric
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.regression.svr import Svr

WER = "wer(tok=whitespace)"
ALONE = f"svr(d={WER},share=never)"


def scored(*pairs: tuple[str, float | None]) -> list[Reference]:
    return [Reference(text, weight=weight) for text, weight in pairs]


def values(spec: str, items: list[Item]) -> np.ndarray:
    return rejoinder.score(items, spec, resamples=100)[spec].values


def one(spec: str, reply: str, references: list[Reference]) -> float:
    return rejoinder.score_one(spec, reply, references)


def why(spec: str, reply: str, references: list[Reference]) -> str:
    item = Item("1", reply, references=references)
    return rejoinder.score([item], spec, resamples=100)[spec].unscored["1"]


def test_three_references_by_hand() -> None:
    """Texts that share nothing: s is 1 for a text with itself and 0 otherwise, so references have
    the features (1,0,0), (0,1,0), (0,0,1), two apart in square, and with γ = 1 the kernel k = e^-2
    between them. Scores are 1, 0 and ½, in the middle.

    Of the two outer ones the first wants β > 0 and the second β < 0, equally much: β, -β, 0. What
    is left of the first is 1 - β(1 - k) and of the second β(1 - k); both prices are met where
    1 - β(1 - k) - ε = b = β(1 - k) + ε, that is β = (½ - ε) / (1 - k) and b = ½; the third has
    nothing left, and stays 0. With ε = .1 that is β = .4 / .8647 = .4626, below C.

    A reply that equals the first has the value β(1 - k) + ½ = ½ - ε + ½ = .9; one that shares
    nothing with any, features (0,0,0), one apart from each: ½; and "a x" with "a b" (½, 0, 0):
    β · (e^-¼ - e^-1¼) + ½.
    """
    known = scored(("a b", 1.0), ("c d", -1.0), ("e f", 0.0))
    spec = f"svr(d={WER},gamma=1,share=never,loo=false)"
    assert one(spec, "a b", known) == pytest.approx(0.9, abs=1e-5)
    assert one(spec, "c d", known) == pytest.approx(0.1, abs=1e-5)
    assert one(spec, "u v", known) == pytest.approx(0.5, abs=1e-5)
    beta = 0.4 / (1 - math.exp(-2))
    expected = 0.5 + beta * (math.exp(-0.25) - math.exp(-1.25))
    assert one(spec, "a x", known) == pytest.approx(expected, abs=1e-5)


def test_a_small_c_is_a_bound() -> None:
    """As above, with C = .2: β can't grow to .4626. b is then anything from
    0 + ε + .2(1 - k) to 1 - ε - .2(1 - k), and the middle of that is ½."""
    known = scored(("a b", 1.0), ("c d", -1.0), ("e f", 0.0))
    spec = f"svr(d={WER},c=0.2,gamma=1,share=never,loo=false)"
    expected = 0.5 + 0.2 * (1 - math.exp(-2))
    assert one(spec, "a b", known) == pytest.approx(expected, abs=1e-5)


def sentences(rng: random.Random, many: int) -> list[str]:
    return [" ".join(rng.choices("abcdefgh", k=rng.randint(1, 6))) for _ in range(many)]


def similarity(texts: list[str], known: list[str], spec: str) -> np.ndarray:
    """By the metric itself, a pair at a time."""
    items = [
        Item(str(n), text, references=[Reference(other)])
        for n, (text, other) in enumerate((t, k) for t in texts for k in known)
    ]
    return values(spec, items).reshape(len(texts), len(known))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("settings_", [{}, {"C": 0.3, "epsilon": 0.02}, {"gamma": 0.7}])
def test_scikit_learn_called_directly(seed: int, settings_: dict[str, float]) -> None:
    """Three or more references, several metrics, leave-one-out and new replies."""
    rng = random.Random(seed)
    texts = list(dict.fromkeys(sentences(rng, 3 if seed == 0 else 30)))
    weights = [rng.uniform(-1, 1) for _ in texts]
    known = scored(*zip(texts, weights, strict=True))
    new = [text for text in sentences(rng, 5) if text not in texts]
    specs = [WER, "rouge-l(tok=whitespace)"][: 1 + seed % 2]
    inner = ",".join(f"{key}={spec}" for key, spec in zip(("d", "d2"), specs, strict=False))
    own = "".join(f",{key.lower()}={value}" for key, value in settings_.items())
    svr = f"svr({inner},share=never{own})"
    replies = texts + new if len(texts) > 3 else new
    items = [
        Item(str(n), reply, references=known, context_id="c") for n, reply in enumerate(replies)
    ]
    found = values(svr, items)
    every = [similarity([*texts, *new], texts, spec) for spec in specs]
    expected = []
    for reply in replies:
        others = [i for i, text in enumerate(texts) if text != reply]
        features = np.concatenate([matrix[:, others] for matrix in every], axis=1)
        model = SVR(**{"C": 5.0, "epsilon": 0.1, "tol": 1e-8, **settings_})
        model.fit(features[others], (np.array(weights)[others] + 1) / 2)
        expected.append(model.predict(features[[[*texts, *new].index(reply)]])[0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@given(st.integers(2, 12), st.integers(0, 10**6), st.floats(0.05, 20), st.floats(0, 0.5))
@settings(max_examples=60)
def test_the_kernel_reaches_the_optimum(n: int, seed: int, c: float, epsilon: float) -> None:
    """Against scikit-learn, whatever the similarities, rows that are equal among them."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 3, (n + 2, n)) / 2
    target = rng.integers(0, 5, n) / 4
    rows, asked = np.arange(n), np.arange(n, n + 2)
    apart = ((features[:, None] - features[None, :n]) ** 2).sum(axis=-1)
    none, zero = np.zeros(0, np.int64), np.zeros(0)
    found = svr_predict(
        features[None], apart, rows, rows, none, zero, target, asked, c, epsilon, 0.5, 1e-8
    )
    model = SVR(C=c, epsilon=epsilon, gamma=0.5, tol=1e-8).fit(features[:n], target)
    if model.dual_coef_.size and (np.abs(np.abs(model.dual_coef_) - c) > 1e-9 * c).any():
        # without a coefficient between its bounds, an interval of constants is optimal
        np.testing.assert_allclose(found, model.predict(features[n:]), rtol=0, atol=1e-5)


def test_leaving_out_equals_a_file_without_the_reference() -> None:
    """The reply's own row and column are gone, whether the file leaves them out or the metric."""
    rng = random.Random(3)
    texts = list(dict.fromkeys(sentences(rng, 40)))
    known = scored(*((text, rng.uniform(-1, 1)) for text in texts))
    whole = [Item(str(n), t, references=known, context_id="c") for n, t in enumerate(texts)]
    others = [
        Item(str(n), t, references=known[:n] + known[n + 1 :], context_id="c")
        for n, t in enumerate(texts)
    ]
    np.testing.assert_allclose(values(ALONE, whole), values(ALONE, others), rtol=0, atol=1e-9)
    # and each alone in its batch, where no text is shared
    for n in (0, 7, 20):
        assert values(ALONE, [others[n]])[0] == pytest.approx(values(ALONE, others)[n], abs=2e-6)


def test_batches_of_any_size() -> None:
    rng = random.Random(4)
    texts = list(dict.fromkeys(sentences(rng, 20)))
    known = scored(*((text, rng.uniform(-1, 1)) for text in texts))
    items = [Item(str(n), t, references=known, context_id="c") for n, t in enumerate(texts)]
    metric = make_metric(ALONE)
    split = np.concatenate([r.values for _, [r] in evaluate(items, [metric], batch_size=3)])
    np.testing.assert_allclose(split, values(ALONE, items), rtol=0, atol=2e-6)


def test_a_constant_target() -> None:
    known = scored(("a b", 0.4), ("c d", 0.4), ("a d", 0.4))
    for reply in ("a b", "x y", "a"):
        assert one(f"{ALONE[:-1]},loo=false)", reply, known) == pytest.approx(0.7)


def test_identical_references() -> None:
    """Copies of one text have no features that differ; with one score, the estimate is that, and
    with several, what lies in the middle of the highest and the lowest: the kernel is 1 all over,
    so that nothing but b can be learnt, and the loss is least anywhere between them."""
    same = scored(("a b", 0.4), ("a b", 0.4), ("a  b", 0.4))
    assert one(ALONE, "c d", same) == pytest.approx(0.7)
    differ = scored(("a b", 1.0), ("a b", 0.0), ("a b", -1.0))
    assert 0.0 <= one(ALONE, "c d", differ) <= 1.0
    assert why(ALONE, "a b", differ) == "no reference but the reply itself"


def test_repeated_references_count_repeatedly() -> None:
    """One reference twice is a row and a column more, as in scikit-learn."""
    texts, weights = ["a b", "a b", "c d", "a d"], [1.0, 0.8, -1.0, 0.2]
    matrix = similarity([*texts, "a c"], texts, WER)
    model = SVR(C=5, epsilon=0.1, tol=1e-8).fit(matrix[:4], (np.array(weights) + 1) / 2)
    found = one(ALONE, "a c", scored(*zip(texts, weights, strict=True)))
    assert found == pytest.approx(model.predict(matrix[4:])[0], abs=1e-5)


def test_too_few_references() -> None:
    two = scored(("a b", 1.0), ("c d", -1.0))
    few = "fewer than 3 references with a score"
    assert why(ALONE, "x", two) == few
    assert why(ALONE, "x", two[:1]) == few
    # the reply is one of three
    assert why(ALONE, "e f", [*two, Reference("e f", weight=0.0)]) == few
    # alone in its set, a context has nothing to share
    assert why(f"svr(d={WER})", "x", two) == few
    always = why(f"svr(d={WER},share=always)", "x", two)
    assert always == "too few references to learn from, here or in other contexts"
    assert why(ALONE, "x", []) == "no references"


def test_a_reference_without_a_score() -> None:
    known = scored(("a b", 1.0), ("c d", -1.0), ("a d", 0.0), ("a c", None))
    reason = "a reference has no weight"
    assert why(ALONE, "x", known) == reason
    assert why("svr", "x", known) == reason


def test_a_regression_that_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*arguments: object) -> np.ndarray:
        return np.array([np.nan])

    monkeypatch.setattr("rejoinder.kernels.svr.svr_predict", nothing)
    known = scored(("a b", 1.0), ("c d", -1.0), ("a d", 0.0))
    with pytest.raises(UsageError, match="use a smaller c"):
        one(ALONE, "x", known)


def test_contexts_with_too_many_references_are_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Svr, "max_references", 4)
    items = [
        Item(
            f"{count}",
            "a b",
            context_id=str(count),
            references=[Reference(f"a b c{i}", weight=i / 5 - 0.5) for i in range(count)],
        )
        for count in (4, 5)
    ]
    (metric,) = make_metrics("svr").item_metrics
    found = score_with(items, metric)
    assert found.unscored == {"5": "more than 4 references in the context"}

"""Metrics over word vectors, by hand on the plane, and against plain loops on random vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plane import metric_of, parts, reason, scored, value, write_plane

from rejoinder.errors import RejoinderError, UsageError
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.embedding.static import StaticMetric
from rejoinder.metrics.evaluate import score_batch
from rejoinder.metrics.metric import make_metric

STATIC = ["embedding-average", "vector-extrema", "greedy-matching", "vector-pool"]
static = pytest.mark.parametrize("name", STATIC)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_plane(tmp_path_factory.mktemp("plane") / "plane.txt")


@pytest.mark.parametrize(
    ("name", "reply", "reference", "expected"),
    [
        # (0, 2) + (1, 0) = (1, 2) against (3, 4): 11 / (√5 · 5)
        ("embedding-average", "up right", "steep", 11 / (math.sqrt(5) * 5)),
        # a word counts as often as it stands there: (2, 2) against (0, 1)
        ("embedding-average", "up right right", "up", 1 / math.sqrt(2)),
        # the average of opposites points nowhere
        ("embedding-average", "right back", "right", 0.0),
        # dimension 0: 1 and -3 → -3, dimension 1: 0; against (3, 4): -9 / (3 · 5)
        ("vector-extrema", "right left", "steep up", -0.6),
        # 1 and -1 are equally extreme: the positive one counts
        ("vector-extrema", "right back", "right", 1.0),
        # max (1, 0), min (-3, 0) against max = min = (3, 4): (3 - 9) / (√10 · √50)
        ("vector-pool", "right left", "steep", -6 / math.sqrt(500)),
        # up finds steep 0.8, right finds steep 0.6: 0.7; steep finds up 0.8, left finds up 0: 0.4
        ("greedy-matching", "up right", "steep left", 0.55),
        # every word counts: (0.8 + 0.8 + 0.6) / 3 and 0.8
        ("greedy-matching", "up up right", "steep", (2.2 / 3 + 0.8) / 2),
        # the best match may be a bad one
        ("greedy-matching", "left", "right", -1.0),
    ],
)
def test_value(plane: str, name: str, reply: str, reference: str, expected: float) -> None:
    assert value(f"{name}(vectors={plane})", reply, reference) == pytest.approx(expected, abs=1e-6)


@static
def test_words_without_a_vector_are_left_out(plane: str, name: str) -> None:
    spec = f"{name}(vectors={plane})"
    assert value(spec, "up xyzzy", "steep plugh plugh") == value(spec, "up", "steep")
    assert parts(spec, "up xyzzy", "steep plugh plugh") == pytest.approx(
        {**parts(spec, "up", "steep"), "known_reply": 1 / 2, "known_reference": 1 / 3}
    )


@static
def test_texts_of_unknown_words_are_unscored(plane: str, name: str) -> None:
    """Unscored, not zero, with the reason; only a blank reply is zero."""
    spec = f"{name}(vectors={plane})"
    assert reason(spec, "xyzzy plugh", "up") == "no word of the reply has a vector"
    assert reason(spec, "up", "xyzzy", "plugh") == "no word of any reference has a vector"
    assert reason(spec, "xyzzy", "plugh") == "no word of the reply has a vector"
    assert reason(spec, "xyzzy") == reason(spec, "up", " ") == "no references"
    assert reason(spec, "up", Reference("up", weight=-1.0)) == "no reference has a weight above 0"
    assert value(spec, " ", "up") == 0.0
    assert reason(spec, "", "xyzzy") == "no word of any reference has a vector"


@static
@pytest.mark.parametrize("refs", ["max", "mean", "top(2)"])
def test_a_reference_of_unknown_words_is_left_out(plane: str, name: str, refs: str) -> None:
    spec = f"{name}(vectors={plane},refs={refs})"
    assert value(spec, "up", "xyzzy", "steep", "plugh") == value(spec, "up", "steep")


@static
def test_a_vector_of_zeros_has_no_direction(plane: str, name: str) -> None:
    assert value(f"{name}(vectors={plane})", "nowhere", "up") == 0.0


def test_case(plane: str) -> None:
    assert value(f"embedding-average(vectors={plane})", "UP", "Steep") == pytest.approx(0.8)


def test_parts_of_greedy_matching(plane: str) -> None:
    found = parts(f"greedy-matching(vectors={plane})", "up right", "steep left")
    assert found == pytest.approx(
        {"precision": 0.7, "recall": 0.4, "known_reply": 1.0, "known_reference": 1.0}
    )


def test_the_best_reference_counts(plane: str) -> None:
    # 0.6 for steep, 1 for right, -1 for left: the mean is 0.2, that of the best two 0.8
    references = ("steep", "right", "left")
    for refs, expected in (("max", 1.0), ("mean", 0.2), ("top(2)", 0.8)):
        spec = f"vector-extrema(vectors={plane},refs={refs})"
        assert value(spec, "right", *references) == pytest.approx(expected)


def test_against_the_query(plane: str) -> None:
    spec = f"vector-pool(vectors={plane},against=query)"
    # the last turn counts, references don't: cos = (3 · 0 + 4 · 2) · 2 / (√50 · √8)
    assert value(spec, "steep", context=["left", "up"]) == pytest.approx(0.8)
    assert value(spec, "steep", "left", context=["up"]) == pytest.approx(0.8)
    assert value(spec, "", context=["up"]) == 0.0
    assert reason(spec, "steep", "up") == reason(spec, "steep", context=["up", " "]) == "no context"
    assert (
        reason(spec, "steep", context=["xyzzy"])
        == "no word of the last turn of the context has a vector"
    )
    assert reason(spec, "xyzzy", context=["up"]) == "no word of the reply has a vector"
    items = [
        Item(id="1", response="steep", context=["up"]),
        Item(id="2", response="steep"),
        Item(id="3", response="right", context=["steep"]),
    ]
    found = score_batch(metric_of(spec), Batch.of(items))
    np.testing.assert_allclose(found.values, [0.8, np.nan, 0.6], rtol=1e-6)


def test_wrong_parameters(plane: str) -> None:
    with pytest.raises(UsageError, match="against=context is not one of reference"):
        make_metric("vector-pool(against=context)")
    with pytest.raises(UsageError, match="does not compare a reply with a reference"):
        make_metric(f"recall(d=vector-pool(against=query,vectors={plane}))")


@static
def test_signature_names_the_vectors(plane: str, name: str) -> None:
    signature = make_metric(f"{name}(vectors={plane})").signature()
    assert re.search(r"\|vectors:[^|]*plane\.txt@[0-9a-f]{12}\|", signature)


@static
def test_pieces_of_a_batch(plane: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are worked on in pieces of some letters; where they are cut changes nothing."""
    texts = ["up right", "left", "xyzzy", "steep steep up", "", "back nowhere right"]
    items = [
        Item(id=f"{i}{j}", response=a, references=[Reference(b), Reference("steep")])
        for i, a in enumerate(texts)
        for j, b in enumerate(texts)
    ]
    metric, batch = metric_of(f"{name}(vectors={plane})"), Batch.of(items)
    whole = score_batch(metric, batch)
    monkeypatch.setattr(StaticMetric, "max_characters", 25)
    pieces = score_batch(metric, batch)
    np.testing.assert_array_equal(pieces.values, whole.values)
    np.testing.assert_array_equal(pieces.rows, whole.rows)


# --- against plain loops over the definitions


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def extrema(words: list[np.ndarray]) -> np.ndarray:
    columns = zip(*words, strict=True)
    return np.array([max(column, key=lambda x: (abs(x), x)) for column in columns])


def average(words: list[np.ndarray]) -> np.ndarray:
    return sum(words) / len(words)


def ends(words: list[np.ndarray]) -> np.ndarray:
    columns = list(zip(*words, strict=True))
    return np.array([max(c) for c in columns] + [min(c) for c in columns])


def greedy(left: list[np.ndarray], right: list[np.ndarray]) -> float:
    there = [max(cosine(a, b) for b in right) for a in left]
    back = [max(cosine(a, b) for a in left) for b in right]
    return (sum(there) / len(there) + sum(back) / len(back)) / 2


def pooled(pool: Callable[[list[np.ndarray]], np.ndarray]) -> Callable[..., float]:
    return lambda left, right: cosine(pool(left), pool(right))


PLAIN = {
    "embedding-average": pooled(average),
    "vector-extrema": pooled(extrema),
    "vector-pool": pooled(ends),
    "greedy-matching": greedy,
}

MANY = [f"w{i}" for i in range(30)]
text = st.lists(st.sampled_from(MANY), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, np.ndarray]]:
    """30 words in 13 dimensions, a number that no vector register divides."""
    table = np.random.default_rng(5).normal(size=(len(MANY), 13)).round(3)
    path = tmp_path_factory.mktemp("cloud") / "cloud.txt"
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(MANY, table, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return f'"{path}"', dict(zip(MANY, table, strict=True))


@static
@given(pairs=st.lists(st.tuples(text, text), min_size=1, max_size=8))
@settings(max_examples=30)
def test_plain_loops_agree(
    cloud: tuple[str, dict[str, np.ndarray]], name: str, pairs: list[tuple[list[str], list[str]]]
) -> None:
    vectors, table = cloud
    items = [
        Item(id=str(i), response=" ".join(a), references=[Reference(" ".join(b))])
        for i, (a, b) in enumerate(pairs)
    ]
    found = score_batch(metric_of(f"{name}(vectors={vectors})"), Batch.of(items)).values
    expected = [PLAIN[name]([table[w] for w in a], [table[w] for w in b]) for a, b in pairs]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_words_are_looked_up_once(plane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All metrics of a run share the lookup."""
    words_found: list[str] = []
    metrics = [metric_of(f"{name}(vectors={plane})") for name in STATIC]
    assert isinstance(metrics[0], StaticMetric)
    vectors = metrics[0].word_vectors
    find = type(vectors).find
    monkeypatch.setattr(
        type(vectors), "find", lambda self, words: words_found.extend(words) or find(self, words)
    )
    batch = Batch.of([Item(id="1", response="up right", references=[Reference("right left")])])
    for metric in metrics:
        score_batch(metric, batch)
    assert sorted(words_found) == ["left", "right", "up"]


def test_scores_do_not_depend_on_neighbours(plane: str) -> None:
    items = [
        Item(id=str(i), response=" ".join(["up", "steep"] * (i + 1)), references=[Reference(t)])
        for i, t in enumerate(["left steep", "right", "steep up back"])
    ]
    for name in STATIC:
        metric = metric_of(f"{name}(vectors={plane})")
        together = score_batch(metric, Batch.of(items)).values
        alone = [score_batch(metric, Batch.of([item])).values[0] for item in items]
        assert together.tolist() == alone


def test_only_texts_of_the_batch_are_used(plane: str) -> None:
    """A table may hold texts that no item of the batch has; empty ones among them."""
    whole = Batch.of(
        [Item(id=t, response=t, references=[Reference("up")]) for t in ("", "xyzzy", "right up")]
    )
    for name in STATIC:
        found = score_batch(metric_of(f"{name}(vectors={plane})"), whole.take(np.array([2])))
        alone = scored(f"{name}(vectors={plane})", "right up", "up")
        assert found.values.tolist() == alone.values.tolist()


def test_a_file_of_vectors_is_needed(tmp_path: Path) -> None:
    with pytest.raises(RejoinderError):
        make_metric(f'embedding-average(vectors="{tmp_path}/nothing.txt")')

"""BERTScore and vBERTScore by hand: tokens on the plane, whose marks point left and down."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from plane import PlaneEncoder, metric_of, parts, reason, value

from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.embedding.calibration import Calibration
from rejoinder.metrics.embedding.contextual import EncoderMetric
from rejoinder.metrics.evaluate import evaluate, score_batch
from rejoinder.metrics.metric import make_metric

# "up right" against "steep left":
#   up finds steep 0.8, right finds steep 0.6                      P = 0.7
#   steep finds up 0.8; left finds the left mark of the reply, 1   R = 0.9
#   F = 2 · 0.7 · 0.9 / 1.6 = 0.7875
REPLY, REFERENCE = "up right", "steep left"
P, R, F = 0.7, 0.9, 0.7875


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> PlaneEncoder:
    opened = PlaneEncoder()
    monkeypatch.setattr("rejoinder.encode.transformer.open_encoder", lambda name: opened)
    return opened


def write_calibration(path: Path, **changes: Any) -> str:
    """Three texts: up (2) is in all, right (3) and left (4) are in one, steep (6) is in none."""
    made = Calibration(
        model="plane",
        digest=PlaneEncoder.digest,
        layer=2,
        texts=3,
        pairs=10,
        seed=1,
        random_pairs=(0.2, 0.4, 0.5),
        random_pairs_idf=(0.1, 0.2, 0.3),
        counts={0: 3, 1: 3, 2: 3, 3: 1, 4: 1},
    )
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(made, **changes)))
    return f'"{path}"'


def test_value() -> None:
    for part, expected in (("p", P), ("r", R), ("f", F)):
        assert value(f"bertscore(layer=2,part={part})", REPLY, REFERENCE) == pytest.approx(expected)
    found = parts("bertscore(layer=2)", REPLY, REFERENCE)
    assert found == pytest.approx({"precision": P, "recall": R, "f": F})


def test_the_best_reference_by_the_part() -> None:
    # "steep" gives P 0.7, R 0.8, F 0.7467; "up" gives P 0.5 and R 1, F 0.6667
    references = ("steep", "up")
    assert value("bertscore(layer=2,part=p)", REPLY, *references) == pytest.approx(0.7)
    assert value("bertscore(layer=2,part=r)", REPLY, *references) == pytest.approx(1.0)
    assert value("bertscore(layer=2,part=f)", REPLY, *references) == pytest.approx(1.12 / 1.5)
    # what is shown belongs to one reference
    assert parts("bertscore(layer=2,part=r)", REPLY, *references)["precision"] == pytest.approx(0.5)


def test_blank_texts() -> None:
    for part in "prf":
        assert value(f"bertscore(layer=2,part={part})", " ", REFERENCE) == 0.0
    assert reason("bertscore(layer=2)", REPLY, " ") == "no references"


def test_a_token_with_negative_cosines_counts_zero() -> None:
    # steep finds left -0.6 and the marks -0.6, -0.8: it counts 0, and so does P.
    # left finds the left mark: R = 1; and F = 0
    assert value("bertscore(layer=2,part=p)", "steep", "left") == 0.0
    assert value("bertscore(layer=2,part=r)", "steep", "left") == pytest.approx(1.0)
    assert value("bertscore(layer=2,part=f)", "steep", "left") == 0.0


def test_idf(tmp_path: Path) -> None:
    """log(4 / 4) = 0 for up, log(4 / 2) for right and left, log 4 = 2 · log 2 for steep."""
    spec = f"bertscore(layer=2,idf=true,calibration={write_calibration(tmp_path / 'c.json')})"
    # P = 0.6 alone, R = (2 · 0.8 + 1) / 3
    p, r = 0.6, 2.6 / 3
    found = parts(spec, REPLY, REFERENCE)
    assert found == pytest.approx({"precision": p, "recall": r, "f": 2 * p * r / (p + r)})
    # up says nothing here: no token of importance is left
    assert value(spec, "up", REFERENCE) == 0.0


def test_rescale(tmp_path: Path) -> None:
    file = write_calibration(tmp_path / "c.json")
    found = parts(f"bertscore(layer=2,rescale=true,calibration={file})", REPLY, REFERENCE)
    expected = {"precision": 0.5 / 0.8, "recall": 0.5 / 0.6, "f": (F - 0.5) / 0.5}
    assert found == pytest.approx(expected)
    # with idf, against the baseline with idf: 0.6 → 0.5 / 0.9
    both = f"bertscore(layer=2,idf=true,rescale=true,part=p,calibration={file})"
    assert value(both, REPLY, REFERENCE) == pytest.approx(0.5 / 0.9)
    # a blank reply stays the worst
    assert value(f"bertscore(layer=2,rescale=true,calibration={file})", "", REFERENCE) == -1.0


def test_corpus_is_the_mean_of_items(tmp_path: Path) -> None:
    items = [
        Item(id="1", response=REPLY, references=[Reference(REFERENCE)]),
        Item(id="2", response="up", references=[Reference("up")]),
    ]
    file = write_calibration(tmp_path / "c.json")
    for spec in ("bertscore(layer=2)", f"bertscore(layer=2,rescale=true,calibration={file})"):
        found = score_batch(metric_of(spec), Batch.of(items))
        assert found.metric.values(found.rows.sum(axis=0)) == pytest.approx(found.values.mean())


def test_signature(tmp_path: Path) -> None:
    plain = "|model:plane@0123456789ab|"
    assert plain in make_metric("bertscore(layer=2)").signature()
    assert "|calibration:none|" in make_metric("bertscore(layer=2)").signature()
    assert "|layer:3|" in make_metric("sentence-cosine").signature()
    files = [
        write_calibration(tmp_path / name, seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    a, b, c = (
        make_metric(f"bertscore(layer=2,idf=true,calibration={file})").signature() for file in files
    )
    # the content decides, not the name
    assert a == b != c
    assert str(tmp_path) not in a


def test_wrong_parameters(tmp_path: Path) -> None:
    file = write_calibration(tmp_path / "c.json")
    for spec, complaint in (
        ("bertscore(layer=9)", "layer=9: minilm has the layers 0 to 3"),
        ("bertscore(layer=-1)", "layer=-1"),
        ("bertscore(layer=2,part=g)", "part=g is not one of p, r, f"),
        ("bertscore(layer=2,idf=true)", "idf=true needs calibration=FILE; make one with"),
        ("bertscore(layer=2,rescale=true)", "rescale=true needs calibration=FILE"),
        (f"bertscore(layer=2,calibration={file})", "is for idf=true, rescale=true or both"),
        ("sentence-cosine(layer=4)", "layer=4"),
        ("sentence-cosine(pool=max)", "pool=max is not one of mean, cls"),
        ("vbertscore(layer=2,weight=between)", "weight=between is not one of outside, inside"),
    ):
        with pytest.raises(UsageError, match=complaint):
            make_metric(spec)


def test_a_calibration_of_something_else_is_refused(tmp_path: Path) -> None:
    wanted = "bertscore(layer=2,idf=true,calibration={})"
    other_model = write_calibration(tmp_path / "m.json", digest="ffffffffffff", model="large")
    with pytest.raises(DataError, match="made with the model large@ffffffffffff"):
        make_metric(wanted.format(other_model))
    other_layer = write_calibration(tmp_path / "l.json", layer=1)
    with pytest.raises(DataError, match="made with layer 1, and the metric uses layer 2"):
        make_metric(wanted.format(other_layer))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read: no such file"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "expected an object"),
        (b'{"type": "rejoinder-calibration"}', "the field is missing"),
        ({"random_pairs": (0.1, 0.2, 1.0)}, "its numbers are out of range"),
        ({"counts": {5: 4}}, "its numbers are out of range"),
        ({"counts": {-5: 1}}, "its numbers are out of range"),
    ],
)
def test_files_that_are_no_calibrations(tmp_path: Path, content: Any, complaint: str) -> None:
    path = tmp_path / "c.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        write_calibration(path, **content)
    with pytest.raises(DataError, match=complaint) as caught:
        make_metric(f'bertscore(layer=2,idf=true,calibration="{path}")')
    assert str(path) in str(caught.value)
    assert "rejoinder train calibration" in str(caught.value)


# --- weights


def test_a_weight_scales_everything() -> None:
    half = Reference(REFERENCE, weight=0.5)
    for place in ("outside", "inside"):
        found = parts(f"vbertscore(layer=2,weight={place})", REPLY, half)
        assert found == pytest.approx({"precision": P / 2, "recall": R / 2, "f": F / 2})


def test_the_best_weighted_reference_counts() -> None:
    # 0.3 · 1 for the reply itself, 0.5 · 0.7875 for the other
    references = [Reference(REPLY, weight=0.3), Reference(REFERENCE, weight=0.5)]
    assert value("vbertscore(layer=2)", REPLY, *references) == pytest.approx(F / 2)
    assert value("vbertscore(layer=2,refs=mean)", REPLY, *references) == pytest.approx(
        (0.3 + F / 2) / 2
    )


def test_bad_references() -> None:
    good, bad = Reference(REPLY, weight=0.1), Reference(REFERENCE, weight=-1.0)
    assert value("vbertscore(layer=2)", REPLY, good, bad) == pytest.approx(0.1)
    assert value("vbertscore(layer=2,refs=mean)", REPLY, good, bad) == pytest.approx((0.1 - F) / 2)
    # as the equations are printed, -1 · cos is largest where two tokens are least alike:
    # up finds the mark below, right the left mark: P = 1.
    # steep finds the mark below 0.8, left finds right 1: R = 0.9; F = 1.8 / 1.9
    printed = "vbertscore(layer=2,refs=mean,weight=inside)"
    assert value(printed, REPLY, good, bad) == pytest.approx((0.1 + 1.8 / 1.9) / 2)
    assert reason("vbertscore(layer=2)", REPLY, bad) == "no reference has a weight above 0"
    nothing = Reference(REFERENCE, weight=0.0)
    assert reason("vbertscore(layer=2)", REPLY, nothing) == "no reference has a weight above 0"


def test_weights_come_before_rescaling(tmp_path: Path) -> None:
    file = write_calibration(tmp_path / "c.json")
    spec = f"vbertscore(layer=2,rescale=true,calibration={file})"
    assert value(spec, REPLY, Reference(REFERENCE, weight=0.5)) == pytest.approx(
        (F / 2 - 0.5) / 0.5
    )


def test_the_signature_has_the_place_of_the_weight() -> None:
    assert "|weight:outside|" in make_metric("vbertscore(layer=2)").signature()


# --- batches


def test_distinct_texts_are_encoded_once(encoder: PlaneEncoder) -> None:
    items = [
        Item(id=str(i), response="up", references=[Reference("up"), Reference("right")])
        for i in range(5)
    ]
    list(evaluate(items, [metric_of("bertscore(layer=2)")]))
    assert sorted(encoder.encoded) == ["right", "up"]


@pytest.mark.parametrize("spec", ["bertscore(layer=2)", "vbertscore(layer=2,refs=mean)"])
def test_pieces_of_a_batch(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["up right", "left", "steep steep up", "", "back right"]
    items = [
        Item(id=f"{i}{j}", response=a, references=[Reference(b, weight=0.5), Reference("steep")])
        for i, a in enumerate(texts)
        for j, b in enumerate(texts)
    ]
    metric, batch = metric_of(spec), Batch.of(items)
    whole = score_batch(metric, batch)
    sizes = []
    tokens = PlaneEncoder.tokens
    monkeypatch.setattr(
        PlaneEncoder,
        "tokens",
        lambda self, some, *, layer: sizes.append(sum(map(len, some))) or tokens(self, some),
    )
    monkeypatch.setattr(EncoderMetric, "max_characters", 60)
    pieces = score_batch(metric, batch)
    np.testing.assert_array_equal(pieces.values, whole.values)
    assert len(sizes) > 10
    assert max(sizes) <= 60
    sizes.clear()
    scattered = [r.values for _, (r,) in evaluate(items, [metric])]
    np.testing.assert_array_equal(np.concatenate(scattered), whole.values)
    assert max(sizes) <= 60


def test_json_of_a_calibration(tmp_path: Path) -> None:
    """The file is JSON that others can read."""
    write_calibration(tmp_path / "c.json")
    record = json.loads((tmp_path / "c.json").read_text())
    assert record["counts"]["2"] == 3
    assert record["random_pairs"] == [0.2, 0.4, 0.5]
    made = msgspec.convert(record, Calibration, strict=False)
    assert made.idf().tolist() == pytest.approx([0, 0, 0, math.log(2), math.log(2), math.log(4)])

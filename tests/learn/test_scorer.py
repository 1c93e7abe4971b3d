"""The unreferenced scorer from pairs to scores, with all input encoders."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from learn.small import make_data
from learn.tiny import make_bert
from rejoinder.errors import DataError, UsageError
from rejoinder.learn.batches import make_rng
from rejoinder.learn.calibration import calibrate
from rejoinder.learn.checkpoint import read_checkpoint, write_checkpoint
from rejoinder.learn.inference import MODEL
from rejoinder.learn.inputs import make_input
from rejoinder.learn.inputs.input_encoder import InputEncoder
from rejoinder.learn.networks.ensemble import members_of
from rejoinder.learn.networks.folded_scorer import MIN_REPLIES
from rejoinder.learn.progress import TrainingProgress
from rejoinder.learn.rater import Rater
from rejoinder.learn.scorer import Scorer, ScorerBatches, fit_scorer, scorer_loss
from rejoinder.learn.settings import ScorerSettings, TrainingSettings
from rejoinder.learn.state import STATE
from rejoinder.learn.training import Diverged, TrainingResult
from rejoinder.learn.training_data import Pairs, TrainingData

pytestmark = pytest.mark.usefixtures("one_thread")

DATA = make_data(100)
TRAINING = TrainingSettings(
    steps=90, learning_rate=1e-2, validate_every=30, save_every_seconds=0.0, seed=1
)
SETTINGS = ScorerSettings(
    training=TRAINING, hidden_size=24, dropout=0.1, num_negatives=2, batch_size=32
)
NAMES = ["gru", "vectors", "encoder"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, InputEncoder]:
    work = tmp_path_factory.mktemp("inputs")
    bert = str(make_bert(work / "tiny"))
    gru = {"vocab_size": 60, "embedding_size": 12, "hidden_size": 12}
    options: list[tuple[str, dict[str, Any]]] = [
        ("gru", gru), ("vectors", {"model": bert}), ("encoder", {"model": bert, "frozen_layers": 1})
    ]  # fmt: skip
    return {name: make_input(name, some, DATA, work) for name, some in options}


def saved(scorer: Scorer, folder: Path) -> dict[str, bytes]:
    scorer.save(folder)
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def recall(scorer: Scorer, pairs: Pairs) -> float:
    """Return how often the true reply scores higher than one of another topic."""
    contexts, replies = pairs.contexts(2), pairs.responses
    good = scorer.score(contexts, replies)
    bad = scorer.score(contexts, [*replies[2:], *replies[:2]])
    return float((good > bad).mean())


@pytest.fixture(scope="module")
def fitted(
    inputs: dict[str, InputEncoder], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Scorer, TrainingResult]]:
    work = tmp_path_factory.mktemp("work")
    short = dataclasses.replace(SETTINGS, training=dataclasses.replace(TRAINING, steps=10))
    settings = {"gru": SETTINGS, "vectors": SETTINGS, "encoder": short}
    return {name: fit_scorer(DATA, inputs[name], settings[name], work / name) for name in NAMES}


@pytest.mark.parametrize("name", ["gru", "vectors"])
def test_the_scorer_prefers_replies_of_the_right_topic(
    fitted: dict[str, tuple[Scorer, TrainingResult]], name: str
) -> None:
    """A tiny BERT with random weights would need much longer for words it has not seen."""
    scorer, result = fitted[name]
    assert result.best_loss is not None and result.first_loss is not None
    assert result.best_loss < 0.7 * result.first_loss
    assert recall(scorer, DATA.validation) > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_a_reloaded_scorer_gives_the_same_scores(
    fitted: dict[str, tuple[Scorer, TrainingResult]], name: str, tmp_path: Path
) -> None:
    scorer, _ = fitted[name]
    scorer.save(tmp_path / "one")
    again = Scorer.open(tmp_path / "one")
    contexts, replies = DATA.validation.contexts(3), DATA.validation.responses
    found = scorer.score(contexts, replies)
    assert found.dtype == np.float64
    assert ((found > 0) & (found < 1)).all()
    np.testing.assert_array_equal(again.score(contexts, replies), found)


@pytest.mark.parametrize("name", NAMES)
def test_a_score_is_independent_of_other_items(
    fitted: dict[str, tuple[Scorer, TrainingResult]], name: str
) -> None:
    scorer, _ = fitted[name]
    contexts, replies = DATA.validation.contexts(2), DATA.validation.responses
    together = scorer.score(contexts, replies)
    alone = [float(scorer.score([c], [r])[0]) for c, r in zip(contexts, replies, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        scorer.score(contexts[::-1], replies[::-1])[::-1], together, rtol=0, atol=1e-5
    )
    assert len(scorer.score([], [])) == 0


def test_many_replies_to_a_context_score_as_each_alone(
    fitted: dict[str, tuple[Scorer, TrainingResult]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From MIN_REPLIES on, weights are folded: two contexts have as many, one has one less."""
    scorer, _ = fitted["vectors"]
    folded = scorer._folded
    assert folded is not None
    calls = []

    def counted(contexts: Tensor, replies: Tensor) -> Tensor:
        calls.append((len(contexts), len(replies)))
        return folded(contexts, replies)

    monkeypatch.setitem(scorer.__dict__, "_folded", counted)
    numbers = [MIN_REPLIES, MIN_REPLIES - 1, MIN_REPLIES]
    contexts = [[f"w{letter}"] for letter, n in zip("abc", numbers, strict=True) for _ in range(n)]
    words = [word for response in DATA.training.responses for word in response.split()]
    replies = [f"{words[i]} {words[-i - 1]}" for i in range(len(contexts))]
    found = scorer.score(contexts, replies)
    assert calls == [(2, 2 * MIN_REPLIES)]
    alone = [float(scorer.score([c], [r])[0]) for c, r in zip(contexts, replies, strict=True)]
    assert len(calls) == 1
    np.testing.assert_allclose(found, alone, rtol=0, atol=1e-5)
    assert found.std() > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_gives_the_same_bytes(
    inputs: dict[str, InputEncoder], name: str, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    def kill(progress: TrainingProgress) -> None:
        if progress.step == 7:
            raise Killed

    training = dataclasses.replace(TRAINING, steps=12, validate_every=5)
    hard = ("dialogue", "words", "parrot")
    settings = dataclasses.replace(SETTINGS, training=training, loss="softmax", hard_negatives=hard)
    whole, result = fit_scorer(DATA, inputs[name], settings, tmp_path / "whole")
    with pytest.raises(Killed):
        fit_scorer(DATA, inputs[name], settings, tmp_path / "work", on_progress=kill)
    assert (tmp_path / "work" / STATE).exists()
    torch.manual_seed(99)
    resumed, again = fit_scorer(DATA, inputs[name], settings, tmp_path / "work")
    assert again.resumed_at == 6
    assert again.history == result.history
    assert saved(resumed, tmp_path / "a") == saved(whole, tmp_path / "b")


def test_another_seed_or_other_data_is_not_resumed(
    inputs: dict[str, InputEncoder], tmp_path: Path
) -> None:
    def fit(data: TrainingData = DATA, seed: int = 1, **more: Any) -> tuple[Scorer, TrainingResult]:
        training = dataclasses.replace(TRAINING, steps=4, seed=seed)
        settings = dataclasses.replace(SETTINGS, training=training)
        return fit_scorer(data, inputs["vectors"], settings, tmp_path / "work", **more)

    one, first = fit()
    assert first.resumed_at is None
    assert fit()[1].resumed_at == 4
    other, second = fit(seed=2)
    assert second.resumed_at is None
    assert saved(one, tmp_path / "a") != saved(other, tmp_path / "b")
    assert fit(make_data(90), seed=2)[1].resumed_at is None
    assert fit(make_data(90), seed=2, identity={"more": 1})[1].resumed_at is None


def test_a_diverging_run_stops_and_keeps_the_best_weights(
    inputs: dict[str, InputEncoder], tmp_path: Path
) -> None:
    training = TrainingSettings(
        steps=30, learning_rate=1e30, max_grad_norm=None, warmup_ratio=0.5, validate_every=1
    )
    settings = dataclasses.replace(SETTINGS, training=training, loss="softmax")
    with pytest.raises(Diverged, match=r"at step \d+ of 30 .*best weights so far, of step \d"):
        fit_scorer(DATA, inputs["vectors"], settings, tmp_path)
    assert list(tmp_path.glob("best-*.safetensors"))


def test_fewer_pairs_than_a_batch(inputs: dict[str, InputEncoder], tmp_path: Path) -> None:
    few = make_data(5, responses=1)
    training = dataclasses.replace(TRAINING, steps=3)
    settings = dataclasses.replace(SETTINGS, training=training, num_negatives=9, batch_size=1000)
    scorer, result = fit_scorer(few, inputs["gru"], settings, tmp_path)
    assert result.steps == 3
    assert len(scorer.score([["wa"]], ["wb"])) == 1


def test_equal_responses_are_a_data_error(inputs: dict[str, InputEncoder], tmp_path: Path) -> None:
    table = make_data(6).training.table
    split = ["train"] * (len(table) - 2) + ["validation"] * 2
    same = table.drop(["response"]).append_column("response", [["Yes."] * len(table)])
    same = same.append_column("split", [split])
    with pytest.raises(DataError, match="all responses are the same"):
        fit_scorer(TrainingData.from_table(same), inputs["gru"], SETTINGS, tmp_path)


def test_negatives_by_vector_need_vectors(inputs: dict[str, InputEncoder], tmp_path: Path) -> None:
    settings = dataclasses.replace(SETTINGS, hard_negatives=("vectors",))
    with pytest.raises(UsageError, match="need the input vectors, not gru"):
        fit_scorer(DATA, inputs["gru"], settings, tmp_path)
    short = dataclasses.replace(settings, training=dataclasses.replace(TRAINING, steps=2))
    fit_scorer(DATA, inputs["vectors"], short, tmp_path)


def test_candidates_are_the_true_reply_and_negatives(inputs: dict[str, InputEncoder]) -> None:
    settings = dataclasses.replace(
        SETTINGS, num_negatives=3, hard_negatives=("parrot",), hard_negative_share=1.0
    )
    source = ScorerBatches.of(DATA.training, inputs["vectors"], settings)
    rows = source.plan.shuffled(4, 2)[1]
    contexts, replies = source.batch(4, 2, 1)
    said = inputs["vectors"].encode_replies(DATA.training.responses)
    parrots = inputs["vectors"].encode_replies(DATA.training.utterances)
    asked = replies.reshape(len(rows), 4, -1)
    assert torch.equal(asked[:, 0], said.batch(rows))
    for k in (1, 2, 3):
        assert torch.equal(asked[:, k], parrots.batch(rows))
    again = inputs["vectors"].encode_contexts(DATA.training.contexts(2), 2)
    assert torch.equal(contexts, again.batch(rows))
    shares = dataclasses.replace(settings, hard_negative_share=0.25)
    some = ScorerBatches.of(DATA.training, inputs["vectors"], shares)
    wrong = torch.cat(
        [some.batch(0, 0, k)[1].reshape(-1, 4, 32)[:, 1:].flatten(0, 1) for k in range(4)]
    )
    own = torch.cat(
        [parrots.batch(r).repeat_interleave(3, 0) for r in some.plan.shuffled(0, 0)[:4]]
    )
    assert 0.15 < (wrong == own).all(dim=1).float().mean() < 0.35


class Fixed(nn.Module):
    """A network with given scores."""

    def __init__(self, scores: list[list[float]]) -> None:
        super().__init__()
        self.scores = torch.tensor(scores)

    def forward(self, contexts: Tensor, replies: Tensor) -> Tensor:
        return self.scores.reshape(-1)


def test_losses() -> None:
    """Two contexts with a true reply and two wrong ones; sigmoid(0) = .5, of ±log 3 .75 and .25.

    Margin .5: (.5 - .75 + .5) + 0 + (.5 - .25 + .75) + (.5 - .25 + .25) = .25 + 0 + 1 + .5
    Cross entropy: -log(3 / (3 + 1 + 1/3)) - log((1/3) / (1/3 + 3 + 1/3))
    Of each: -log .75 - (log .5 + log .75) / 2 - log .25 - (log .25 + log .75) / 2
    """
    log3 = float(np.log(3))
    model = Fixed([[log3, 0.0, -log3], [-log3, log3, -log3]])
    batch = (torch.zeros(2, 1), torch.zeros(6, 1))
    value, count = scorer_loss(SETTINGS)(model, batch)
    assert (value.item(), count) == (pytest.approx(1.75), 4)
    value, count = scorer_loss(dataclasses.replace(SETTINGS, loss="softmax"))(model, batch)
    assert value.item() == pytest.approx(float(np.log(13 / 9) + np.log(11)))
    assert count == 2
    value, count = scorer_loss(dataclasses.replace(SETTINGS, loss="logistic"))(model, batch)
    half, quarter, most = (float(np.log(share)) for share in (0.5, 0.25, 0.75))
    expected = -most - (half + most) / 2 - quarter - (quarter + most) / 2
    assert (value.item(), count) == (pytest.approx(expected), 2)


def test_calibrated_scores_are_probabilities(
    inputs: dict[str, InputEncoder], tmp_path: Path
) -> None:
    settings = dataclasses.replace(SETTINGS, loss="softmax")
    scorer, _ = fit_scorer(DATA, inputs["vectors"], settings, tmp_path)
    contexts, replies = DATA.validation.contexts(2), DATA.validation.responses
    good = scorer.score(contexts, replies)
    bad = scorer.score(contexts, [*replies[2:], *replies[:2]])
    assert good.mean() > 0.55 > 0.45 > bad.mean()
    assert abs((good.mean() + bad.mean()) / 2 - 0.5) < 0.1


def test_the_weighted_cosine_is_added_to_the_score(
    inputs: dict[str, InputEncoder], tmp_path: Path
) -> None:
    """The logit is linear in the score of the network plus c · cosine, whose deviations on held-out
    replies are 1 and ½. With cosine_weight=0, the same weights give the score alone."""
    encoder: Any = inputs["vectors"]
    settings = dataclasses.replace(SETTINGS, loss="softmax")
    close = dataclasses.replace(settings, cosine_weight=0.5)
    plain, _ = fit_scorer(DATA, encoder, settings, tmp_path / "plain")
    found, _ = fit_scorer(DATA, encoder, close, tmp_path / "close")
    contexts, replies = [["wa wb", "wc wd"], ["we"], ["wf"]], ["wc", "wa wb", "we we"]

    def before(scorer: Scorer) -> np.ndarray:
        scores = scorer.score(contexts, replies)
        return (np.log(scores / (1 - scores)) - scorer.options["intercept"]) / scorer.options[
            "slope"
        ]

    reply = encoder.sentence_vectors(replies)
    cosines = [
        (
            encoder.sentence_vectors([" ".join(context[-turns:]) for context in contexts]) * reply
        ).sum(1)
        for turns in (1, 2)
    ]
    weight = found.options["cosine_weight"]
    assert weight > 0
    expected = before(plain) + weight * np.max(cosines, axis=0)
    np.testing.assert_allclose(before(found), expected, atol=1e-4)
    found.save(tmp_path / "saved")
    again = Scorer.open(tmp_path / "saved").score(contexts, replies)
    np.testing.assert_array_equal(again, found.score(contexts, replies))


def test_an_ensemble_scores_with_the_mean(inputs: dict[str, InputEncoder], tmp_path: Path) -> None:
    """The cosine is added once to the mean, also after a reload."""
    settings = dataclasses.replace(SETTINGS, ensemble_size=3, cosine_weight=0.5)
    scorer, _ = fit_scorer(DATA, inputs["vectors"], settings, tmp_path / "work")
    assert recall(scorer, DATA.validation) > 0.8
    contexts, replies = DATA.validation.contexts(2), DATA.validation.responses
    asked, texts = (
        inputs["vectors"].encode_contexts(contexts, 2),
        inputs["vectors"].encode_replies(replies),
    )
    rows = np.arange(len(replies))
    members: list[Any] = members_of(scorer.model)
    with torch.inference_mode():
        batch = asked.batch(rows), texts.batch(rows)
        said = torch.stack([member(*batch) for member in members]).mean(dim=0)
        line = said + scorer.options["cosine_weight"] * members[0].max_cosine(*batch)
        line = scorer.options["slope"] * line + scorer.options["intercept"]
    scores = scorer.score(contexts, replies)
    np.testing.assert_allclose(scores, line.sigmoid().numpy(), atol=1e-6)
    scorer.save(tmp_path / "saved")
    again = Scorer.open(tmp_path / "saved").score(contexts, replies)
    np.testing.assert_array_equal(scores, again)


@pytest.mark.parametrize("setting", ["cosine_weight", "frequent_reply_discount"])
def test_settings_that_need_vectors(
    inputs: dict[str, InputEncoder], tmp_path: Path, setting: str
) -> None:
    settings = dataclasses.replace(SETTINGS, **{setting: 0.5})
    with pytest.raises(UsageError, match=f"{setting} needs the input vectors, not gru"):
        fit_scorer(DATA, inputs["gru"], settings, tmp_path)


def test_calibration_is_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = make_rng(3)
    good, bad = rng.normal(7.0, 2.0, 4000), rng.normal(3.0, 2.0, 9000)
    slope, intercept = calibrate(good, bad)
    # two normals with variance 4: log odds are ((x - 3)² - (x - 7)²) / 8 = x - 5
    assert slope == pytest.approx(1, abs=0.06)
    assert intercept == pytest.approx(-5, abs=0.3)
    peer = LogisticRegression(C=1e9, class_weight="balanced", tol=1e-8).fit(
        np.concatenate([good, bad])[:, None], np.repeat([1, 0], [4000, 9000])
    )
    assert slope == pytest.approx(peer.coef_[0, 0], rel=0.01)
    assert intercept == pytest.approx(peer.intercept_[0], rel=0.01)
    for few in ([5.0], [1.0, 1.0]):
        slope, _ = calibrate(np.array([5.0]), np.array(few))
        assert 0 < slope < 10, "also where scores are separable, or all the same"
    assert calibrate(np.array([0.0, 1.0]), np.array([4.0, 5.0]))[0] > 0, "the order stays"


def test_another_or_a_damaged_part_is_a_data_error(
    fitted: dict[str, tuple[Scorer, TrainingResult]], tmp_path: Path
) -> None:
    fitted["gru"][0].save(tmp_path)
    with pytest.raises(DataError, match="does not hold the part 'rater'"):
        Rater.open(tmp_path)
    (tmp_path / "subwords.model").write_bytes(b"no model")
    with pytest.raises(DataError, match=r"subwords\.model"):
        Scorer.open(tmp_path)
    with pytest.raises(DataError, match=r"model\.safetensors"):
        Scorer.open(tmp_path / "nowhere")


def test_wrong_settings_are_reported_together() -> None:
    with pytest.raises(UsageError) as error:
        ScorerSettings(
            training=TRAINING, context_turns=0, loss="hinge", hard_negatives=("near",), dropout=1.0,
            ensemble_size=0,
            frequent_reply_discount=-1,
        )  # fmt: skip
    assert len(error.value.messages) == 6
    assert "frequent_reply_discount must be 0 or more, and finite, not -1" in str(error.value)
    assert "ensemble_size must be from 1 to 100, not 0" in str(error.value)
    assert "unknown kind of negatives 'near'" in str(error.value)
    assert SETTINGS.to_dict()["training"]["seed"] == 1
    assert SETTINGS.to_dict()["hard_negatives"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": []}, "options of the network must be"),
        ({"options": {"context_turns": 2}}, "options of the network must be"),
        ({"context_turns": 10**12}, "context_turns is 1000000000000"),
        ({"context_turns": True}, "context_turns is True"),
        ({"slope": "1"}, "slope is '1'"),
        ({"part": "rater"}, "does not hold the part 'scorer'"),
        ({"kind": "rejoinder.learn.networks.raters:VectorRater"}, "invalid|do not fit"),
        ({"context_turns": 1}, "does not fit input.json: views is 2, expected 1"),
    ],
)
def test_tampered_metadata_is_a_data_error(
    fitted: dict[str, tuple[Scorer, TrainingResult]],
    tmp_path: Path,
    change: dict[str, Any],
    message: str,
) -> None:
    fitted["vectors"][0].save(tmp_path)
    path = tmp_path / MODEL
    tensors, metadata = read_checkpoint(path)
    options = metadata["options"]
    for name, value in change.items():
        if name in options:
            options[name] = value
        else:
            metadata[name] = value
    write_checkpoint(path, tensors, metadata)
    with pytest.raises(DataError, match=message):
        Scorer.open(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": 7}, {"encoder": "bm25"}, {"encoder": "encoder("}, {"extra_layer": 10**12},
        {"extra_layer": -1}, {"char_ngram_buckets": 64}, {"question_feature": "yes"},
        {"question_feature": True}, {"input": ["vectors"]}, {"format": "1"}, {"depends": None},
    ],
)  # fmt: skip
def test_a_tampered_input_file_is_a_data_error(
    fitted: dict[str, tuple[Scorer, TrainingResult]], tmp_path: Path, change: dict[str, Any]
) -> None:
    fitted["vectors"][0].save(tmp_path)
    path = tmp_path / "input.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
    with pytest.raises(DataError):
        Scorer.open(tmp_path)


@pytest.mark.parametrize("name", ["input.json", MODEL])
def test_a_link_out_of_the_folder_is_refused(
    fitted: dict[str, tuple[Scorer, TrainingResult]], tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "scorer"
    fitted["vectors"][0].save(folder)
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(DataError, match="leaves the folder"):
        Scorer.open(folder)


@pytest.mark.parametrize("content", ["", "[]", "null", "[" * 100_000, '{"input": "gru"}', "\xff"])
def test_an_input_file_that_is_no_record_is_a_data_error(
    fitted: dict[str, tuple[Scorer, TrainingResult]], tmp_path: Path, content: str
) -> None:
    fitted["gru"][0].save(tmp_path)
    (tmp_path / "input.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=r"input\.json"):
        Scorer.open(tmp_path)

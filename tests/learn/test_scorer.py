"""The unreferenced scorer from pairs to scores, in all forms."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from learn.small import make_material
from learn.tiny import make_bert
from rejoinder.errors import DataError, UsageError
from rejoinder.learn.batches import generator
from rejoinder.learn.calibration import calibrate
from rejoinder.learn.forms import make_form
from rejoinder.learn.forms.base import Form
from rejoinder.learn.material import Examples, Material
from rejoinder.learn.networks.panel import members_of
from rejoinder.learn.progress import Progress
from rejoinder.learn.rater import Rater
from rejoinder.learn.scorer import Candidates, Scorer, fit_scorer, loss_of
from rejoinder.learn.settings import ScorerSettings, Training
from rejoinder.learn.state import STATE
from rejoinder.learn.training import Diverged, Outcome

pytestmark = pytest.mark.usefixtures("one_thread")

MATERIAL = make_material(100)
TRAINING = Training(steps=90, rate=1e-2, validate_every=30, save_every=0.0, seed=1)
SETTINGS = ScorerSettings(training=TRAINING, wide=24, dropout=0.1, negatives=2, batch=32)
NAMES = ["gru", "vectors", "encoder"]


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Form]:
    work = tmp_path_factory.mktemp("forms")
    bert = str(make_bert(work / "tiny"))
    gru = {"pieces": 60, "embedding": 12, "hidden": 12}
    options: list[tuple[str, dict[str, Any]]] = [
        ("gru", gru), ("vectors", {"model": bert}), ("encoder", {"model": bert, "frozen": 1})
    ]  # fmt: skip
    return {name: make_form(name, some, MATERIAL, work) for name, some in options}


def saved(scorer: Scorer, folder: Path) -> dict[str, bytes]:
    scorer.save(folder)
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def recall(scorer: Scorer, examples: Examples) -> float:
    """How often the true reply beats one of another topic: five topics take turns."""
    contexts, replies = examples.contexts(2), examples.responses
    good = scorer.score(contexts, replies)
    bad = scorer.score(contexts, [*replies[2:], *replies[:2]])
    return float((good > bad).mean())


@pytest.fixture(scope="module")
def fitted(
    forms: dict[str, Form], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Scorer, Outcome]]:
    work = tmp_path_factory.mktemp("work")
    short = dataclasses.replace(SETTINGS, training=dataclasses.replace(TRAINING, steps=10))
    settings = {"gru": SETTINGS, "vectors": SETTINGS, "encoder": short}
    return {name: fit_scorer(MATERIAL, forms[name], settings[name], work / name) for name in NAMES}


@pytest.mark.parametrize("name", ["gru", "vectors"])
def test_it_learns_what_fits(fitted: dict[str, tuple[Scorer, Outcome]], name: str) -> None:
    """A tiny BERT with random weights would need much longer for words it has not seen."""
    scorer, outcome = fitted[name]
    assert outcome.best_loss is not None and outcome.first_loss is not None
    assert outcome.best_loss < 0.7 * outcome.first_loss
    assert recall(scorer, MATERIAL.validation) > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_reloaded_it_says_the_same(
    fitted: dict[str, tuple[Scorer, Outcome]], name: str, tmp_path: Path
) -> None:
    scorer, _ = fitted[name]
    scorer.save(tmp_path / "one")
    again = Scorer.open(tmp_path / "one")
    contexts, replies = MATERIAL.validation.contexts(3), MATERIAL.validation.responses
    found = scorer.score(contexts, replies)
    assert found.dtype == np.float64
    assert ((found > 0) & (found < 1)).all()
    np.testing.assert_array_equal(again.score(contexts, replies), found)


@pytest.mark.parametrize("name", NAMES)
def test_a_score_does_not_depend_on_its_neighbours(
    fitted: dict[str, tuple[Scorer, Outcome]], name: str
) -> None:
    scorer, _ = fitted[name]
    contexts, replies = MATERIAL.validation.contexts(2), MATERIAL.validation.responses
    together = scorer.score(contexts, replies)
    alone = [float(scorer.score([c], [r])[0]) for c, r in zip(contexts, replies, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        scorer.score(contexts[::-1], replies[::-1])[::-1], together, rtol=0, atol=1e-5
    )
    assert len(scorer.score([], [])) == 0


@pytest.mark.parametrize("name", NAMES)
def test_killed_and_resumed_it_is_the_same_to_the_last_byte(
    forms: dict[str, Form], name: str, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    def kill(progress: Progress) -> None:
        if progress.step == 7:
            raise Killed

    training = dataclasses.replace(TRAINING, steps=12, validate_every=5)
    hard = ("dialogue", "words", "parrot")
    settings = dataclasses.replace(SETTINGS, training=training, loss="softmax", hard=hard)
    whole, outcome = fit_scorer(MATERIAL, forms[name], settings, tmp_path / "whole")
    with pytest.raises(Killed):
        fit_scorer(MATERIAL, forms[name], settings, tmp_path / "work", on_progress=kill)
    assert (tmp_path / "work" / STATE).exists()
    torch.manual_seed(99)
    resumed, again = fit_scorer(MATERIAL, forms[name], settings, tmp_path / "work")
    assert again.resumed_at == 6
    assert again.history == outcome.history
    assert saved(resumed, tmp_path / "a") == saved(whole, tmp_path / "b")


def test_another_seed_or_other_material_is_another_run(
    forms: dict[str, Form], tmp_path: Path
) -> None:
    def fit(material: Material = MATERIAL, seed: int = 1, **more: Any) -> tuple[Scorer, Outcome]:
        training = dataclasses.replace(TRAINING, steps=4, seed=seed)
        settings = dataclasses.replace(SETTINGS, training=training)
        return fit_scorer(material, forms["vectors"], settings, tmp_path / "work", **more)

    one, first = fit()
    assert first.resumed_at is None
    assert fit()[1].resumed_at == 4
    other, second = fit(seed=2)
    assert second.resumed_at is None
    assert saved(one, tmp_path / "a") != saved(other, tmp_path / "b")
    assert fit(make_material(90), seed=2)[1].resumed_at is None
    assert fit(make_material(90), seed=2, identity={"more": 1})[1].resumed_at is None


def test_a_loss_that_is_no_number_stops_with_its_step(
    forms: dict[str, Form], tmp_path: Path
) -> None:
    training = Training(steps=30, rate=1e30, clip=None, warmup=0.5, validate_every=1)
    settings = dataclasses.replace(SETTINGS, training=training, loss="softmax")
    with pytest.raises(Diverged, match=r"at step \d+ of 30 .*best weights so far, of step \d"):
        fit_scorer(MATERIAL, forms["vectors"], settings, tmp_path)
    assert list(tmp_path.glob("best-*.safetensors"))


def test_fewer_pairs_than_a_batch(forms: dict[str, Form], tmp_path: Path) -> None:
    few = make_material(5, responses=1)
    training = dataclasses.replace(TRAINING, steps=3)
    settings = dataclasses.replace(SETTINGS, training=training, negatives=9, batch=1000)
    scorer, outcome = fit_scorer(few, forms["gru"], settings, tmp_path)
    assert outcome.steps == 3
    assert len(scorer.score([["wa"]], ["wb"])) == 1


def test_nothing_to_tell_apart(forms: dict[str, Form], tmp_path: Path) -> None:
    table = make_material(6).training.table
    split = ["train"] * (len(table) - 2) + ["validation"] * 2
    same = table.drop(["response"]).append_column("response", [["Yes."] * len(table)])
    same = same.append_column("split", [split])
    with pytest.raises(DataError, match="all responses say the same"):
        fit_scorer(Material.of(same), forms["gru"], SETTINGS, tmp_path)


def test_negatives_by_vector_need_vectors(forms: dict[str, Form], tmp_path: Path) -> None:
    settings = dataclasses.replace(SETTINGS, hard=("vectors",))
    with pytest.raises(UsageError, match="need the form vectors, not gru"):
        fit_scorer(MATERIAL, forms["gru"], settings, tmp_path)
    short = dataclasses.replace(settings, training=dataclasses.replace(TRAINING, steps=2))
    fit_scorer(MATERIAL, forms["vectors"], short, tmp_path)


def test_candidates_are_the_true_reply_and_wrong_ones(forms: dict[str, Form]) -> None:
    settings = dataclasses.replace(SETTINGS, negatives=3, hard=("parrot",), hard_share=1.0)
    source = Candidates.of(MATERIAL.training, forms["vectors"], settings)
    rows = source.plan.plan(4, 2)[1]
    contexts, replies = source.batch(4, 2, 1)
    said = forms["vectors"].replies(MATERIAL.training.responses)
    parrots = forms["vectors"].replies(MATERIAL.training.utterances)
    asked = replies.reshape(len(rows), 4, -1)
    assert torch.equal(asked[:, 0], said.batch(rows))
    for k in (1, 2, 3):
        assert torch.equal(asked[:, k], parrots.batch(rows))
    again = forms["vectors"].contexts(MATERIAL.training.contexts(2), 2)
    assert torch.equal(contexts, again.batch(rows))
    shares = dataclasses.replace(settings, hard_share=0.25)
    some = Candidates.of(MATERIAL.training, forms["vectors"], shares)
    wrong = torch.cat(
        [some.batch(0, 0, k)[1].reshape(-1, 4, 32)[:, 1:].flatten(0, 1) for k in range(4)]
    )
    own = torch.cat([parrots.batch(r).repeat_interleave(3, 0) for r in some.plan.plan(0, 0)[:4]])
    assert 0.15 < (wrong == own).all(dim=1).float().mean() < 0.35


class Fixed(nn.Module):
    """A network that says what it was told."""

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
    value, count = loss_of(SETTINGS)(model, batch)
    assert (value.item(), count) == (pytest.approx(1.75), 4)
    value, count = loss_of(dataclasses.replace(SETTINGS, loss="softmax"))(model, batch)
    assert value.item() == pytest.approx(float(np.log(13 / 9) + np.log(11)))
    assert count == 2
    value, count = loss_of(dataclasses.replace(SETTINGS, loss="logistic"))(model, batch)
    half, quarter, most = (float(np.log(share)) for share in (0.5, 0.25, 0.75))
    expected = -most - (half + most) / 2 - quarter - (quarter + most) / 2
    assert (value.item(), count) == (pytest.approx(expected), 2)


def test_calibrated_scores_are_probabilities(forms: dict[str, Form], tmp_path: Path) -> None:
    settings = dataclasses.replace(SETTINGS, loss="softmax")
    scorer, _ = fit_scorer(MATERIAL, forms["vectors"], settings, tmp_path)
    contexts, replies = MATERIAL.validation.contexts(2), MATERIAL.validation.responses
    good = scorer.score(contexts, replies)
    bad = scorer.score(contexts, [*replies[2:], *replies[:2]])
    assert good.mean() > 0.55 > 0.45 > bad.mean()
    assert abs((good.mean() + bad.mean()) / 2 - 0.5) < 0.1


def test_what_is_plainly_close_counts_beside_what_was_learnt(
    forms: dict[str, Form], tmp_path: Path
) -> None:
    """Before the sigmoid: a line through what was learnt + c · cosine, where both have a spread of
    1 and ½ on held-out replies. Without closeness, the same weights tell what was learnt."""
    form = forms["vectors"]
    settings = dataclasses.replace(SETTINGS, loss="softmax")
    close = dataclasses.replace(settings, closeness=0.5)
    plain, _ = fit_scorer(MATERIAL, form, settings, tmp_path / "plain")
    found, _ = fit_scorer(MATERIAL, form, close, tmp_path / "close")
    contexts, replies = [["wa wb", "wc wd"], ["we"], ["wf"]], ["wc", "wa wb", "we we"]

    def before(scorer: Scorer) -> np.ndarray:
        scores = scorer.score(contexts, replies)
        return (np.log(scores / (1 - scores)) - scorer.reading["height"]) / scorer.reading["slope"]

    reply = form.sentences(replies)
    cosines = [
        (form.sentences([" ".join(context[-turns:]) for context in contexts]) * reply).sum(1)
        for turns in (1, 2)
    ]
    weight = found.reading["closeness"]
    assert weight > 0
    expected = before(plain) + weight * np.max(cosines, axis=0)
    np.testing.assert_allclose(before(found), expected, atol=1e-4)
    found.save(tmp_path / "saved")
    again = Scorer.open(tmp_path / "saved").score(contexts, replies)
    np.testing.assert_array_equal(again, found.score(contexts, replies))


def test_several_networks(forms: dict[str, Form], tmp_path: Path) -> None:
    """Their mean counts, after a reload, too, and closeness beside it once."""
    settings = dataclasses.replace(SETTINGS, networks=3, closeness=0.5)
    scorer, _ = fit_scorer(MATERIAL, forms["vectors"], settings, tmp_path / "work")
    assert recall(scorer, MATERIAL.validation) > 0.8
    contexts, replies = MATERIAL.validation.contexts(2), MATERIAL.validation.responses
    asked, texts = forms["vectors"].contexts(contexts, 2), forms["vectors"].replies(replies)
    rows = np.arange(len(replies))
    members: list[Any] = members_of(scorer.model)
    with torch.inference_mode():
        batch = asked.batch(rows), texts.batch(rows)
        said = torch.stack([member(*batch) for member in members]).mean(dim=0)
        line = said + scorer.reading["closeness"] * members[0].closeness(*batch)
        line = scorer.reading["slope"] * line + scorer.reading["height"]
    scores = scorer.score(contexts, replies)
    np.testing.assert_allclose(scores, line.sigmoid().numpy(), atol=1e-6)
    scorer.save(tmp_path / "saved")
    again = Scorer.open(tmp_path / "saved").score(contexts, replies)
    np.testing.assert_array_equal(scores, again)


@pytest.mark.parametrize("setting", ["closeness", "spare"])
def test_what_needs_vectors(forms: dict[str, Form], tmp_path: Path, setting: str) -> None:
    settings = dataclasses.replace(SETTINGS, **{setting: 0.5})
    with pytest.raises(UsageError, match=f"{setting} needs the form vectors, not gru"):
        fit_scorer(MATERIAL, forms["gru"], settings, tmp_path)


def test_calibration_is_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    chance = generator(3)
    good, bad = chance.normal(7.0, 2.0, 4000), chance.normal(3.0, 2.0, 9000)
    slope, height = calibrate(good, bad)
    # two normals with variance 4: log odds are ((x - 3)² - (x - 7)²) / 8 = x - 5
    assert slope == pytest.approx(1, abs=0.06)
    assert height == pytest.approx(-5, abs=0.3)
    peer = LogisticRegression(C=1e9, class_weight="balanced", tol=1e-8).fit(
        np.concatenate([good, bad])[:, None], np.repeat([1, 0], [4000, 9000])
    )
    assert slope == pytest.approx(peer.coef_[0, 0], rel=0.01)
    assert height == pytest.approx(peer.intercept_[0], rel=0.01)
    for few in ([5.0], [1.0, 1.0]):
        slope, _ = calibrate(np.array([5.0]), np.array(few))
        assert 0 < slope < 10, "also where they are told apart, or not at all"
    assert calibrate(np.array([0.0, 1.0]), np.array([4.0, 5.0]))[0] > 0, "the order stays"


def test_a_foreign_part_is_named(fitted: dict[str, tuple[Scorer, Outcome]], tmp_path: Path) -> None:
    fitted["gru"][0].save(tmp_path)
    with pytest.raises(DataError, match="holds no rater"):
        Rater.open(tmp_path)
    (tmp_path / "pieces.model").write_bytes(b"no model")
    with pytest.raises(DataError, match=r"pieces\.model"):
        Scorer.open(tmp_path)
    with pytest.raises(DataError, match=r"model\.safetensors"):
        Scorer.open(tmp_path / "nowhere")


def test_settings_complain() -> None:
    with pytest.raises(UsageError) as error:
        ScorerSettings(
            training=TRAINING, turns=0, loss="hinge", hard=("near",), dropout=1.0, networks=0,
            spare=-1,
        )  # fmt: skip
    assert len(error.value.messages) == 6
    assert "spare must not be below 0, or without end, but is -1" in str(error.value)
    assert "networks is from 1 to 100, not 0" in str(error.value)
    assert "unknown kind of negatives 'near'" in str(error.value)
    assert SETTINGS.plain()["training"]["seed"] == 1
    assert SETTINGS.plain()["hard"] == []

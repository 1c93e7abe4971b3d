"""The NN-rater from pairs to ratings, in all forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from learn.small import TOPICS, make_material, make_table
from learn.tiny import make_bert
from rejoinder.errors import UsageError
from rejoinder.learn.forms import make_form
from rejoinder.learn.forms.base import Contexts, Form
from rejoinder.learn.forms.vectors import Dense
from rejoinder.learn.material import Material
from rejoinder.learn.progress import Progress
from rejoinder.learn.rater import Questions, Rater, fit_rater
from rejoinder.learn.settings import RaterSettings, Training
from rejoinder.learn.training import Outcome

pytestmark = pytest.mark.usefixtures("one_thread")

MATERIAL = make_material(100, responses=3)
TRAINING = Training(steps=120, rate=5e-3, validate_every=25, save_every=0.0, seed=1)
SETTINGS = RaterSettings(training=TRAINING, wide=32, layers=3, batch=64)
NAMES = ["gru", "vectors", "encoder"]
CAREFUL = 2e-4
"""The rate of a tiny encoder: with a higher one it learns nothing, and is no rater."""


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Form]:
    work = tmp_path_factory.mktemp("forms")
    bert = str(make_bert(work / "tiny"))
    gru = {"pieces": 60, "embedding": 12, "hidden": 12}
    options: list[tuple[str, dict[str, Any]]] = [
        ("gru", gru), ("vectors", {"model": bert}), ("encoder", {"model": bert})
    ]  # fmt: skip
    return {name: make_form(name, some, MATERIAL, work) for name, some in options}


def fit(*args: Any, **more: Any) -> tuple[Rater, Outcome]:
    rater, outcome = fit_rater(*args, **more)
    assert rater is not None and not isinstance(outcome, str)
    return rater, outcome


@pytest.fixture(scope="module")
def fitted(
    forms: dict[str, Form], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Rater, Outcome]]:
    work = tmp_path_factory.mktemp("work")
    careful = dataclasses.replace(TRAINING, steps=10, rate=CAREFUL, validate_every=5)
    short = dataclasses.replace(SETTINGS, training=careful)
    settings = {"gru": SETTINGS, "vectors": SETTINGS, "encoder": short}
    return {name: fit(MATERIAL, forms[name], settings[name], work / name) for name in NAMES}


def questions() -> tuple[Any, ...]:
    """Held-out pairs of pairs: of one utterance, and of other topics."""
    examples = MATERIAL.validation
    first = np.array([group[0] for group in examples.answered])
    right = np.array([group[1] for group in examples.answered])
    wrong = np.roll(right, 1)
    contexts, replies = examples.contexts(1), examples.responses

    def of(rows: Any) -> tuple[Any, Any]:
        return [contexts[row] for row in rows], [replies[row] for row in rows]

    assert (first // 3 % TOPICS != wrong // 3 % TOPICS).all()
    return of(first), of(right), of(wrong)


@pytest.mark.parametrize("name", ["gru", "vectors"])
def test_it_learns_what_answers(fitted: dict[str, tuple[Rater, Outcome]], name: str) -> None:
    rater, outcome = fitted[name]
    first, right, wrong = questions()
    good, bad = rater.rate(*first, *right), rater.rate(*first, *wrong)
    assert (good[:, None] > bad).mean() > 0.85
    assert good.mean() > 0 > bad.mean()
    assert outcome.best_loss is not None and outcome.best_loss < 0.6


@pytest.mark.parametrize("name", NAMES)
def test_ratings(fitted: dict[str, tuple[Rater, Outcome]], name: str, tmp_path: Path) -> None:
    rater, _ = fitted[name]
    first, _, wrong = questions()
    found = rater.rate(*first, *wrong)
    assert found.dtype == np.float64
    assert ((np.abs(found) >= 0.5) & (np.abs(found) <= 1)).all(), "the papers' range"
    np.testing.assert_allclose(rater.rate(*wrong, *first), found, atol=1e-6)
    rater.save(tmp_path)
    np.testing.assert_array_equal(Rater.open(tmp_path).rate(*first, *wrong), found)
    soft = Rater(rater.form, rater.model, turns=1, soft=True).rate(*first, *wrong)
    # p if p >= .5 else p - 1, against 2p - 1
    mean = np.where(found > 0, found, found + 1)
    np.testing.assert_allclose(soft, 2 * mean - 1, atol=1e-9)
    alone = [
        float(rater.rate(*([part[k]] for part in (*first, *wrong)))[0]) for k in range(len(found))
    ]
    np.testing.assert_allclose(found, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_response_that_was_said_to_nobody(
    fitted: dict[str, tuple[Rater, Outcome]], name: str
) -> None:
    """Only the first triplet is asked: what the second would say does not count."""
    rater, _ = fitted[name]
    soft = Rater(rater.form, rater.model, turns=1, soft=True)
    (contexts, replies), (_, others), _ = questions()
    found = soft.rate(contexts, replies, [[] for _ in contexts], others)
    with torch.inference_mode():
        first, _ = rater.model(
            *(
                part.batch(np.arange(len(replies)))
                for part in (
                    rater.form.contexts(contexts, 1), rater.form.replies(replies),
                    rater.form.contexts(contexts, 1), rater.form.replies(others),
                )
            )
        )  # fmt: skip
    expected = 2 * first.double().softmax(dim=1)[:, 1].numpy() - 1
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_killed_and_resumed_it_is_the_same_to_the_last_byte(
    forms: dict[str, Form], name: str, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    def kill(progress: Progress) -> None:
        if progress.step == 7:
            raise Killed

    rate = CAREFUL if name == "encoder" else TRAINING.rate
    training = dataclasses.replace(TRAINING, steps=12, validate_every=5, rate=rate)
    settings = dataclasses.replace(
        SETTINGS, training=training, dropout=0.1, negatives=("random", "words")
    )
    whole, outcome = fit(MATERIAL, forms[name], settings, tmp_path / "whole")
    with pytest.raises(Killed):
        fit(MATERIAL, forms[name], settings, tmp_path / "work", on_progress=kill)
    resumed, again = fit(MATERIAL, forms[name], settings, tmp_path / "work")
    assert again.resumed_at == 6
    assert again.history == outcome.history
    folders = tmp_path / "a", tmp_path / "b"
    for rater, folder in zip((whole, resumed), folders, strict=True):
        rater.save(folder)
    one, other = (
        {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    )
    assert one == other


class Numbered:
    """Texts as numbers, so that no two of them are the same."""

    def contexts(self, contexts: Contexts, turns: int = 1) -> Dense:
        found = self.replies([context[-1] for context in contexts])
        return Dense(found.vectors, found.rows[:, None])

    def replies(self, texts: Sequence[str]) -> Dense:
        _, rows = np.unique(np.array(texts), return_inverse=True)
        return Dense(torch.arange(len(texts)).unsqueeze(1), rows)


def test_examples_are_balanced_and_true() -> None:
    """Over an epoch, each row with others beside it once with one of them, once with none."""
    examples = MATERIAL.training
    form: Any = Numbered()
    source = Questions.of(examples, examples.answered, form, SETTINGS)
    contexts, replies = form.contexts(examples.contexts(1)), form.replies(examples.responses)
    everything = np.arange(len(examples))
    known = torch.cat([contexts.batch(everything)[:, 0], replies.batch(everything)], dim=1)
    assert len(known.unique(dim=0)) == len(known)
    seen = []
    for step in range(source.steps(0, 0)):
        u1, r1, u2, r2, truth = source.batch(0, 0, step)
        first, second = (
            (torch.cat([u[:, 0], r], dim=1)[:, None] == known).all(dim=2).int().argmax(dim=1)
            for u, r in ((u1, r1), (u2, r2))
        )
        assert ((first // 3 == second // 3) == (truth == 1)).all(), "three rows an utterance"
        assert (first != second).all()
        seen += list(zip(first.tolist(), truth.tolist(), strict=True))
    assert sorted(seen) == [(n, t) for n in range(len(examples)) for t in (0, 1)]


def test_too_few_utterances_with_several_responses(forms: dict[str, Form], tmp_path: Path) -> None:
    found = fit_rater(make_material(60, responses=1), forms["gru"], SETTINGS, tmp_path)
    assert found[0] is None
    assert isinstance(found[1], str)
    assert found[1].startswith("0 utterances have several different responses, 10 are needed")
    assert not list(tmp_path.iterdir())


def test_ten_groups_are_enough(forms: dict[str, Form], tmp_path: Path) -> None:
    """Also where all of them are among the pairs to learn from: then some of them are held out."""
    several = make_table(10, responses=2).drop(["split"])
    single = make_table(40, responses=1, seed=6).drop(["split"])
    split = ["train"] * 20 + ["train" if n % 2 else "validation" for n in range(40)]
    material = Material.of(pa.concat_tables([several, single]).append_column("split", [split]))
    assert (len(material.training.answered), len(material.validation.answered)) == (10, 0)
    settings = dataclasses.replace(SETTINGS, training=dataclasses.replace(TRAINING, steps=3))
    _, outcome = fit(material, forms["gru"], settings, tmp_path)
    assert outcome.best_loss is not None


def test_settings_complain() -> None:
    with pytest.raises(UsageError) as error:
        RaterSettings(training=TRAINING, layers=0, negatives=("parrot",), wide=0)
    assert len(error.value.messages) == 3
    with pytest.raises(UsageError, match="name a kind"):
        RaterSettings(training=TRAINING, negatives=())

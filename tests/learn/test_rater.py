"""The NN-rater from pairs to ratings, with all input encoders."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from learn.small import TOPICS, make_data, make_table
from learn.tiny import make_bert
from rejoinder.errors import UsageError
from rejoinder.learn.inputs import make_input
from rejoinder.learn.inputs.input_encoder import Contexts, InputEncoder
from rejoinder.learn.inputs.vectors import EncodedVectors
from rejoinder.learn.progress import TrainingProgress
from rejoinder.learn.rater import Rater, RaterBatches, fit_rater
from rejoinder.learn.settings import RaterSettings, TrainingSettings
from rejoinder.learn.training import TrainingResult
from rejoinder.learn.training_data import TrainingData

pytestmark = pytest.mark.usefixtures("one_thread")

DATA = make_data(100, responses=3)
TRAINING = TrainingSettings(
    steps=120, learning_rate=5e-3, validate_every=25, save_every_seconds=0.0, seed=1
)
SETTINGS = RaterSettings(training=TRAINING, hidden_size=32, num_layers=3, batch_size=64)
NAMES = ["gru", "vectors", "encoder"]
LOW_RATE = 2e-4
"""Learning rate of the tiny transformer, which does not learn with a higher one."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, InputEncoder]:
    work = tmp_path_factory.mktemp("inputs")
    bert = str(make_bert(work / "tiny"))
    gru = {"vocab_size": 60, "embedding_size": 12, "hidden_size": 12}
    options: list[tuple[str, dict[str, Any]]] = [
        ("gru", gru), ("vectors", {"model": bert}), ("encoder", {"model": bert})
    ]  # fmt: skip
    return {name: make_input(name, some, DATA, work) for name, some in options}


def fit(*args: Any, **more: Any) -> tuple[Rater, TrainingResult]:
    rater, result = fit_rater(*args, **more)
    assert rater is not None and not isinstance(result, str)
    return rater, result


@pytest.fixture(scope="module")
def fitted(
    inputs: dict[str, InputEncoder], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Rater, TrainingResult]]:
    work = tmp_path_factory.mktemp("work")
    careful = dataclasses.replace(TRAINING, steps=10, learning_rate=LOW_RATE, validate_every=5)
    short = dataclasses.replace(SETTINGS, training=careful)
    settings = {"gru": SETTINGS, "vectors": SETTINGS, "encoder": short}
    return {name: fit(DATA, inputs[name], settings[name], work / name) for name in NAMES}


def pairs_of_pairs() -> tuple[Any, ...]:
    """Return held-out pairs with a second pair of the same utterance, and of another topic."""
    pairs = DATA.validation
    first = np.array([group[0] for group in pairs.response_groups])
    right = np.array([group[1] for group in pairs.response_groups])
    wrong = np.roll(right, 1)
    contexts, replies = pairs.contexts(1), pairs.responses

    def of(rows: Any) -> tuple[Any, Any]:
        return [contexts[row] for row in rows], [replies[row] for row in rows]

    assert (first // 3 % TOPICS != wrong // 3 % TOPICS).all()
    return of(first), of(right), of(wrong)


@pytest.mark.parametrize("name", ["gru", "vectors"])
def test_the_rater_prefers_responses_to_the_same_utterance(
    fitted: dict[str, tuple[Rater, TrainingResult]], name: str
) -> None:
    rater, result = fitted[name]
    first, right, wrong = pairs_of_pairs()
    good, bad = rater.rate(*first, *right), rater.rate(*first, *wrong)
    assert (good[:, None] > bad).mean() > 0.85
    assert good.mean() > 0 > bad.mean()
    assert result.best_loss is not None and result.best_loss < 0.6


@pytest.mark.parametrize("name", NAMES)
def test_ratings_are_symmetric_and_in_range(
    fitted: dict[str, tuple[Rater, TrainingResult]], name: str, tmp_path: Path
) -> None:
    rater, _ = fitted[name]
    first, _, wrong = pairs_of_pairs()
    found = rater.rate(*first, *wrong)
    assert found.dtype == np.float64
    assert ((np.abs(found) >= 0.5) & (np.abs(found) <= 1)).all(), "the range of the papers"
    np.testing.assert_allclose(rater.rate(*wrong, *first), found, atol=1e-6)
    rater.save(tmp_path)
    np.testing.assert_array_equal(Rater.open(tmp_path).rate(*first, *wrong), found)
    soft = Rater(rater.inputs, rater.model, context_turns=1, soft_ratings=True).rate(*first, *wrong)
    # p if p >= .5 else p - 1, against 2p - 1
    mean = np.where(found > 0, found, found + 1)
    np.testing.assert_allclose(soft, 2 * mean - 1, atol=1e-9)
    alone = [
        float(rater.rate(*([part[k]] for part in (*first, *wrong)))[0]) for k in range(len(found))
    ]
    np.testing.assert_allclose(found, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_response_without_context_uses_the_first_triplet_only(
    fitted: dict[str, tuple[Rater, TrainingResult]], name: str
) -> None:
    rater, _ = fitted[name]
    soft = Rater(rater.inputs, rater.model, context_turns=1, soft_ratings=True)
    (contexts, replies), (_, others), _ = pairs_of_pairs()
    found = soft.rate(contexts, replies, [[] for _ in contexts], others)
    with torch.inference_mode():
        first, _ = rater.model(
            *(
                part.batch(np.arange(len(replies)))
                for part in (
                    rater.inputs.encode_contexts(contexts, 1), rater.inputs.encode_replies(replies),
                    rater.inputs.encode_contexts(contexts, 1), rater.inputs.encode_replies(others),
                )
            )
        )  # fmt: skip
    expected = 2 * first.double().softmax(dim=1)[:, 1].numpy() - 1
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_gives_the_same_bytes(
    inputs: dict[str, InputEncoder], name: str, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    def kill(progress: TrainingProgress) -> None:
        if progress.step == 7:
            raise Killed

    learning_rate = LOW_RATE if name == "encoder" else TRAINING.learning_rate
    training = dataclasses.replace(
        TRAINING, steps=12, validate_every=5, learning_rate=learning_rate
    )
    settings = dataclasses.replace(
        SETTINGS, training=training, dropout=0.1, negatives=("random", "words")
    )
    whole, result = fit(DATA, inputs[name], settings, tmp_path / "whole")
    with pytest.raises(Killed):
        fit(DATA, inputs[name], settings, tmp_path / "work", on_progress=kill)
    resumed, again = fit(DATA, inputs[name], settings, tmp_path / "work")
    assert again.resumed_at == 6
    assert again.history == result.history
    folders = tmp_path / "a", tmp_path / "b"
    for rater, folder in zip((whole, resumed), folders, strict=True):
        rater.save(folder)
    one, other = (
        {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    )
    assert one == other


class Numbered:
    """Encodes texts as numbers, so that different texts differ."""

    def encode_contexts(self, contexts: Contexts, turns: int = 1) -> EncodedVectors:
        found = self.encode_replies([context[-1] for context in contexts])
        return EncodedVectors(found.vectors, found.rows[:, None])

    def encode_replies(self, texts: Sequence[str]) -> EncodedVectors:
        _, rows = np.unique(np.array(texts), return_inverse=True)
        return EncodedVectors(torch.arange(len(texts)).unsqueeze(1), rows)


def test_batches_are_balanced() -> None:
    """In an epoch, each row occurs once as a positive and once as a negative example."""
    pairs = DATA.training
    inputs: Any = Numbered()
    source = RaterBatches.of(pairs, pairs.response_groups, inputs, SETTINGS)
    contexts, replies = (
        inputs.encode_contexts(pairs.contexts(1)),
        inputs.encode_replies(pairs.responses),
    )
    everything = np.arange(len(pairs))
    known = torch.cat([contexts.batch(everything)[:, 0], replies.batch(everything)], dim=1)
    assert len(known.unique(dim=0)) == len(known)
    seen = []
    for step in range(source.steps(0, 0)):
        u1, r1, u2, r2, truth = source.batch(0, 0, step)
        first, second = (
            (torch.cat([u[:, 0], r], dim=1)[:, None] == known).all(dim=2).int().argmax(dim=1)
            for u, r in ((u1, r1), (u2, r2))
        )
        assert ((first // 3 == second // 3) == (truth == 1)).all(), "three rows per utterance"
        assert (first != second).all()
        seen += list(zip(first.tolist(), truth.tolist(), strict=True))
    assert sorted(seen) == [(n, t) for n in range(len(pairs)) for t in (0, 1)]


def test_too_few_utterances_with_several_responses(
    inputs: dict[str, InputEncoder], tmp_path: Path
) -> None:
    found = fit_rater(make_data(60, responses=1), inputs["gru"], SETTINGS, tmp_path)
    assert found[0] is None
    assert isinstance(found[1], str)
    assert found[1].startswith("only 0 utterances have several different responses; a rater needs")
    assert not list(tmp_path.iterdir())


def test_ten_groups_are_enough(inputs: dict[str, InputEncoder], tmp_path: Path) -> None:
    """If all of them are among the training pairs, some are held out."""
    several = make_table(10, responses=2).drop(["split"])
    single = make_table(40, responses=1, seed=6).drop(["split"])
    split = ["train"] * 20 + ["train" if n % 2 else "validation" for n in range(40)]
    data = TrainingData.from_table(
        pa.concat_tables([several, single]).append_column("split", [split])
    )
    assert (len(data.training.response_groups), len(data.validation.response_groups)) == (10, 0)
    settings = dataclasses.replace(SETTINGS, training=dataclasses.replace(TRAINING, steps=3))
    _, result = fit(data, inputs["gru"], settings, tmp_path)
    assert result.best_loss is not None


def test_wrong_settings_are_reported_together() -> None:
    with pytest.raises(UsageError) as error:
        RaterSettings(training=TRAINING, num_layers=0, negatives=("parrot",), hidden_size=0)
    assert len(error.value.messages) == 3
    with pytest.raises(UsageError, match="name at least one kind"):
        RaterSettings(training=TRAINING, negatives=())

"""The networks against their formulas, and properties that all of them have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from learn.dialogue.small import GENERATIVE, LATENT, encoded_talk, network_of, whole_batch
from rejoinder.learn.checkpoint import load_model, save_model
from rejoinder.learn.dialogue.batches import DialogueBatch, collate
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.dialogues import Dialogues, Piece
from rejoinder.learn.dialogue.networks.dual_encoder import DualEncoder, ranking_loss
from rejoinder.learn.dialogue.networks.latent import BagOfWords, Gaussian
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork, training_loss
from rejoinder.learn.dialogue.settings import NETWORKS, DialogueDataSettings
from rejoinder.learn.dialogue.vocabulary import END, FIRST, PAD, START

DIALOGUES, VOCABULARY = encoded_talk()
SIZE = len(VOCABULARY)


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The latent variable is its mean."""
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)


def generative(name: str, **sizes: object) -> GenerativeNetwork:
    network = network_of(name, SIZE, **sizes)
    assert isinstance(network, GenerativeNetwork)
    return network


def loss_of(network: Any, batch: DialogueBatch) -> tuple[float, float]:
    loss = ranking_loss if isinstance(network, DualEncoder) else training_loss
    value, count = loss(network, batch)
    return value.item(), count


@pytest.mark.parametrize("name", GENERATIVE)
def test_padding_changes_no_loss(name: str, no_noise: None) -> None:
    """The loss of a batch is the sum of the losses of its dialogues, each without padding."""
    network = generative(name)
    with torch.no_grad():
        together, tokens = loss_of(network, whole_batch(DIALOGUES))
        alone = [
            loss_of(network, collate(DIALOGUES, np.array([row]))) for row in range(len(DIALOGUES))
        ]
    assert tokens == sum(count for _, count in alone)
    assert together == pytest.approx(sum(value for value, _ in alone), rel=1e-6)


@pytest.mark.parametrize("name", GENERATIVE)
def test_later_turns_are_not_read(name: str, no_noise: None) -> None:
    """The loss of the first reply does not depend on what comes after it."""
    network = generative(name)
    question, answer = "do you like tea ?", "yes , i like tea a lot ."
    first = Dialogues.of([Piece([question, answer], 1)], VOCABULARY, 30)
    with torch.no_grad():
        alone, _ = loss_of(network, whole_batch(first))
        losses = []
        for third in ("and what about rain ?", "i do not like cats , case 3 ."):
            turns = [question, answer, third]
            both, _ = loss_of(network, whole_batch(Dialogues.of([Piece(turns, 1)], VOCABULARY, 30)))
            rest, _ = loss_of(network, whole_batch(Dialogues.of([Piece(turns, 2)], VOCABULARY, 30)))
            losses.append(both - rest)
    assert losses == pytest.approx([alone, alone], rel=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_weight_gets_a_gradient(name: str) -> None:
    network = network_of(name, SIZE).train()
    loss = ranking_loss if isinstance(network, DualEncoder) else training_loss
    value, _ = loss(network, whole_batch(DIALOGUES))
    value.backward()
    without = [
        key for key, weight in network.named_parameters()
        if weight.grad is None or not weight.grad.abs().sum() > 0
    ]  # fmt: skip
    assert without == []


@pytest.mark.parametrize("name", GENERATIVE)
def test_steps_give_the_probabilities_of_training(name: str, no_noise: None) -> None:
    """Decoding one token after the other adds up to the negative log-likelihood of training."""
    network = generative(name)
    contexts = Contexts.of([["do you like tea ?", "yes ."]], VOCABULARY, DialogueDataSettings())
    whole = Dialogues.of([Piece(["do you like tea ?", "yes .", "and rain ?"], 2)], VOCABULARY, 30)
    reply = [*VOCABULARY.encode(["and rain ?"])[0], END]
    with torch.no_grad():
        batch = whole_batch(whole)
        losses = network.losses(batch)
        if name in LATENT:  # training reads the posterior's mean, decoding the prior's
            _replace_prior_by_posterior(network, batch)
        state = network.read(contexts.batch(np.array([0])))
        total, token = 0.0, START
        for word in reply:
            logits, state = network.step(torch.tensor([token]), state)
            total -= logits[0].log_softmax(-1)[word].item()
            token = word
    assert losses.nll.item() == pytest.approx(total, rel=1e-5)
    assert losses.tokens == len(reply)


def _replace_prior_by_posterior(network: Any, batch: DialogueBatch) -> None:
    utterances = network.utterance.encode(batch.turns)
    context, _, _ = network.context(utterances, batch)
    written = utterances[batch.places[batch.dialogues, batch.positions]]
    posterior = network.posterior(context, written)
    network.prior.forward = lambda *parts: posterior


def test_hred_by_hand() -> None:
    """The whole forward pass in numpy, from the formulas, for one dialogue."""
    network = generative("hred")
    turns = ["do you like tea ?", "yes , i like tea a lot .", "and what about rain ?"]
    batch = whole_batch(Dialogues.of([Piece(turns, 2)], VOCABULARY, 30))
    w = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}
    table = w["embedding.weight"]

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def lstm(inputs: Any, name: str, suffix: str, h: Any, c: Any) -> tuple[list[Any], Any]:
        states = []
        for x in inputs:
            gates = w[f"{name}.weight_ih_l0{suffix}"] @ x + w[f"{name}.bias_ih_l0{suffix}"]
            gates = gates + w[f"{name}.weight_hh_l0{suffix}"] @ h + w[f"{name}.bias_hh_l0{suffix}"]
            i, f, g, o = np.split(gates, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            states.append(h)
        return states, c

    def embed(ids: list[int]) -> list[Any]:
        return [table[i] * math.sqrt(table.shape[1]) for i in ids]

    ids = [[*row, END] for row in VOCABULARY.encode(turns)]
    vectors = []
    for row in ids[:2]:
        zero = np.zeros(24)
        forward, _ = lstm(embed(row), "utterance.lstm", "", zero, zero)
        backward, _ = lstm(embed(row)[::-1], "utterance.lstm", "_reverse", zero, zero)
        vectors.append(np.concatenate([forward[-1], backward[-1]]))
    contexts, _ = lstm(vectors, "context.lstm", "", np.zeros(32), np.zeros(32))
    start = np.tanh(w["initial.linear.weight"] @ contexts[-1] + w["initial.linear.bias"])
    states, _ = lstm(embed([START, *ids[2][:-1]]), "decoder.lstm", "", start[:32], start[32:])

    def linear(x: Any, name: str) -> Any:
        return w[f"decoder.{name}.weight"] @ x + w[f"decoder.{name}.bias"]

    keys = [linear(c, "attention.key") for c in contexts]
    values = [linear(c, "attention.value") for c in contexts]
    expected = 0.0
    for state, word in zip(states, ids[2], strict=True):
        query = linear(state, "attention.query")
        weights = np.exp([query @ key / math.sqrt(32) for key in keys])
        read = sum(a * v for a, v in zip(weights / weights.sum(), values, strict=True))
        hidden = np.tanh(linear(np.concatenate([state, read]), "projection"))
        logits = table @ hidden + w["decoder.bias"]
        expected -= logits[word] - np.log(np.exp(logits).sum())
    with torch.no_grad():
        assert network.losses(batch).nll.item() == pytest.approx(expected, rel=1e-5)


def test_the_dual_encoders_loss_by_hand() -> None:
    """Cross entropy over the replies of the batch; the two equal replies are not held against each
    other."""
    pieces = [Piece([text, reply], 1) for text, reply in (
        ("do you like tea ?", "yes ."), ("and rain ?", "a lot ."), ("what about cats ?", "yes ."),
    )]  # fmt: skip
    network = network_of("dual-encoder", SIZE)
    assert isinstance(network, DualEncoder)
    batch = whole_batch(Dialogues.of(pieces, VOCABULARY, 30))
    with torch.no_grad():
        c = network.encode_contexts(batch).double().numpy()
        r = network.encode_replies(batch.replies).double().numpy()
        value, count = ranking_loss(network, batch)
    s = np.exp(c @ r.T)
    expected = -(
        math.log(s[0, 0] / (s[0, 0] + s[0, 1]))
        + math.log(s[1, 1] / s[1].sum())
        + math.log(s[2, 2] / (s[2, 2] + s[2, 1]))
    )
    assert (value.item(), count) == (pytest.approx(expected, rel=1e-5), 3.0)


def test_the_kl_divergence_equals_its_monte_carlo_estimate() -> None:
    generator = torch.Generator().manual_seed(3)

    def gaussian() -> Gaussian:
        mean, log_variance = torch.randn((2, 1, 5), generator=generator, dtype=torch.float64)
        return Gaussian(mean, log_variance)

    def log_density(g: Gaussian, z: Tensor) -> Tensor:
        squares = (z - g.mean) ** 2 / g.log_variance.exp()
        return -0.5 * (squares + g.log_variance + math.log(2 * math.pi)).sum(-1)

    q, p = gaussian(), gaussian()
    noise = torch.randn((400_000, 5), generator=generator, dtype=torch.float64)
    z = q.at(noise)
    estimates = log_density(q, z) - log_density(p, z)
    error = estimates.std().item() / math.sqrt(len(estimates))
    assert q.kl(p).item() == pytest.approx(estimates.mean().item(), abs=4 * error)
    assert q.kl(q).item() == pytest.approx(0.0, abs=1e-12)


def test_the_bag_of_words_loss_by_hand() -> None:
    """Without weights, every word has probability 1/20: three words, END and padding are none."""
    bag = BagOfWords(4, 3, 20)
    torch.nn.init.zeros_(bag.output.weight)
    torch.nn.init.zeros_(bag.output.bias)
    replies = torch.tensor([[FIRST, FIRST + 1, END], [FIRST, END, PAD]])
    assert bag(replies, torch.ones(2, 4)).item() == pytest.approx(3 * math.log(20))


@pytest.mark.parametrize("name", LATENT)
def test_the_kl_divergence_is_weighted(name: str, no_noise: None) -> None:
    network = generative(name)
    with torch.no_grad():
        losses = network.losses(whole_batch(DIALOGUES))
        totals = [loss_of(network, whole_batch(DIALOGUES, kl_weight=w))[0] for w in (0.0, 0.5, 1.0)]
    assert losses.kl is not None
    nll, kl = losses.nll.item(), losses.kl.item()
    assert kl > 0
    assert totals == pytest.approx([nll, nll + kl / 2, nll + kl], rel=1e-6)


@pytest.mark.parametrize("name", LATENT)
def test_the_bag_of_words_is_for_training_only(name: str, no_noise: None) -> None:
    network = generative(name)
    with torch.no_grad():
        evaluated, _ = loss_of(network, whole_batch(DIALOGUES))
        bag = network.losses(whole_batch(DIALOGUES)).bag_of_words
        assert bag is not None
        trained, _ = loss_of(network.train(), whole_batch(DIALOGUES))
    assert trained == pytest.approx(evaluated + bag.item(), rel=1e-5)
    without = generative(name, bag_of_words=False)
    assert without.losses(whole_batch(DIALOGUES)).bag_of_words is None


@pytest.mark.parametrize("name", NETWORKS)
def test_reloading_gives_the_same_weights(name: str, tmp_path: Path) -> None:
    network = network_of(name, SIZE)
    save_model(tmp_path / "a.safetensors", network)
    again, _ = load_model(tmp_path / "a.safetensors")
    assert type(again) is type(network)
    save_model(tmp_path / "b.safetensors", again)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


@pytest.mark.parametrize("name", NETWORKS)
def test_64_pairs_are_learned_by_heart(name: str) -> None:
    """Perplexity by token below 1.3; the dual encoder puts every true reply first."""
    rng = np.random.default_rng(0)
    words = [word for word in VOCABULARY.decode(range(FIRST, SIZE)).split() if word.isalpha()]

    def say() -> str:
        return " ".join(rng.choice(words, 5))

    pieces = [Piece([say() for _ in range(5)], 1) for _ in range(16)]
    sizes = {"latent_size": 8, "bag_of_words": False} if name in LATENT else {}
    network = network_of(name, SIZE, **sizes).train()
    batch = whole_batch(Dialogues.of(pieces, VOCABULARY, 30), kl_weight=0.0)
    assert len(batch.dialogues) == 64
    loss = ranking_loss if isinstance(network, DualEncoder) else training_loss
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    torch.manual_seed(0)
    for _ in range(400):
        value, count = loss(network, batch)
        optimizer.zero_grad()
        (value / count).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if value.item() / count < math.log(1.2):
            break
    network.eval()
    with torch.no_grad():
        value, count = loss(network, batch)
    assert math.exp(value.item() / count) < 1.3

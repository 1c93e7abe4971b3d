"""Decoding: every method against its definition, whatever the batch."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from learn.dialogue.small import GENERATIVE, LATENT, encoded_talk, network_of
from rejoinder.errors import UsageError
from rejoinder.learn.dialogue import decoding as module
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.decoding import Decoding, decode
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork, State
from rejoinder.learn.dialogue.settings import DialogueDataSettings
from rejoinder.learn.dialogue.vocabulary import END, PAD, START, UNKNOWN

_, VOCABULARY = encoded_talk()
CONTEXTS = [
    ["do you like tea ?"],
    ["do you like rain ?", "yes , i like rain a lot ."],
    ["and what about cats ?", "i do not like cats , case 3 .", "yes .", "a lot ?"],
    ["tea"],
    ["what about soup , snow and dogs ?", "no"],
]
ENCODED = Contexts.of(CONTEXTS, VOCABULARY, DialogueDataSettings())
NEVER = VOCABULARY.never_generated


def generative(name: str, seed: int = 1) -> GenerativeNetwork:
    network = network_of(name, len(VOCABULARY), seed)
    assert isinstance(network, GenerativeNetwork)
    with torch.no_grad():  # clearer preferences than those of new weights
        for weight in network.parameters():
            weight *= 1.6
    return network


def rngs(count: int = len(CONTEXTS), seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, number]) for number in range(count)]


class Fixed(GenerativeNetwork):
    """A network with fixed probabilities of the next token after each token."""

    def __init__(self, table: Any) -> None:
        super().__init__()
        self.logs = torch.tensor(table, dtype=torch.float64).log()

    def losses(self, batch: Any) -> Any:
        raise AssertionError

    def read(self, batch: Any, noise: Tensor | None = None) -> State:
        return (torch.zeros(len(batch.dialogues), 1),)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        return self.logs[tokens].clone(), state


def table(**rows: list[float]) -> list[list[float]]:
    """Rows: after PAD, START, END, UNKNOWN, and the words 4, 5, 6."""
    return [rows.get(name, [0, 0, 1, 0, 0, 0, 0]) for name in ("p", "s", "e", "u", "a", "b", "c")]


# after START: 4 with .5, 5 with .4, 6 with .1; after 4: END .4, 5 .6; after 5: END .9, 4 .1
CHAIN = table(
    s=[0, 0, 0, 0, 0.5, 0.4, 0.1],
    a=[0, 0, 0.4, 0, 0, 0.6, 0],
    b=[0, 0, 0.9, 0, 0.1, 0, 0],
    c=[0, 0, 1.0, 0, 0, 0, 0],
)


def test_greedy_takes_the_most_probable_token() -> None:
    replies = decode(Fixed(CHAIN), ENCODED, 1, Decoding(), rngs())
    assert replies == [[[4, 5]]] * len(CONTEXTS)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0])
def test_beam_search_finds_the_best_replies(penalty: float) -> None:
    """All replies of at most four tokens are tried: log-probability / length ** penalty, where the
    end counts as a token."""
    scores = {}
    for length in range(1, 5):
        for words in itertools.product((4, 5, 6), repeat=length):
            path = (START, *words, END)
            shares = [CHAIN[a][b] for a, b in itertools.pairwise(path)]
            if all(shares):
                scores[words] = sum(map(math.log, shares)) / (length + 1) ** penalty
    best = sorted(scores, key=lambda words: -scores[words])[:3]
    how = Decoding(method="beam", beam_size=6, length_penalty=penalty, max_tokens=8)
    assert decode(Fixed(CHAIN), ENCODED, 3, how, rngs())[0] == [list(words) for words in best]


def test_sampling_follows_the_probabilities() -> None:
    """4,000 replies: the shares of the first tokens are within four standard errors."""
    how = Decoding(method="sampling", max_tokens=5)
    one = ENCODED.take([0])
    firsts = Counter(reply[0] for reply in decode(Fixed(CHAIN), one, 4000, how, rngs(1))[0])
    for word, share in ((4, 0.5), (5, 0.4), (6, 0.1)):
        error = math.sqrt(share * (1 - share) / 4000)
        assert firsts[word] / 4000 == pytest.approx(share, abs=4 * error)


def test_temperature_top_k_and_top_p() -> None:
    def firsts(**how: Any) -> dict[int, float]:
        chosen = Decoding(method="sampling", max_tokens=5, **how)
        replies = decode(Fixed(CHAIN), ENCODED.take([0]), 4000, chosen, rngs(1))[0]
        return {word: n / 4000 for word, n in Counter(reply[0] for reply in replies).items()}

    assert firsts(top_k=1) == {4: 1.0}
    assert firsts(top_p=0.4) == {4: 1.0}
    two = firsts(top_k=2)
    assert set(two) == {4, 5}
    assert two[4] == pytest.approx(5 / 9, abs=0.035)
    # .5 is below .8, so that the token which crosses it is kept: .5 + .4
    assert set(firsts(top_p=0.8)) == {4, 5}
    # squared shares: .25, .16, .01
    cold = firsts(temperature=0.5)
    assert cold[4] == pytest.approx(0.25 / 0.42, abs=0.035)


@pytest.mark.parametrize("name", GENERATIVE)
@pytest.mark.parametrize("method", ["greedy", "sampling", "beam"])
def test_replies_do_not_depend_on_the_batch(
    name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each context alone, all together, and in the reverse order: the same replies."""
    network = generative(name)
    how = Decoding(method=method, max_tokens=8, beam_size=3)
    together = decode(network, ENCODED, 2, how, rngs(), NEVER)
    assert len({str(replies) for replies in together}) > 1
    alone = [
        decode(network, ENCODED.take([i]), 2, how, [rng], NEVER)[0] for i, rng in enumerate(rngs())
    ]
    assert alone == together
    order = list(range(len(CONTEXTS)))[::-1]
    generators = rngs()
    turned = decode(network, ENCODED.take(order), 2, how, [generators[i] for i in order], NEVER)
    monkeypatch.setattr(module, "ROWS", 4)
    assert turned[::-1] == together == decode(network, ENCODED, 2, how, rngs(), NEVER)


@pytest.mark.parametrize("name", GENERATIVE)
def test_greedy_equals_reading_everything_again(name: str) -> None:
    """What was read is kept: the same tokens come out if the reply so far is read anew."""
    network = generative(name)
    replies = decode(network, ENCODED, 1, Decoding(method="greedy", max_tokens=6), rngs(), NEVER)
    noise = None
    with torch.inference_mode():
        for number, (reply,) in enumerate(replies):
            if network.latent_size:
                drawn = rngs()[number].standard_normal((1, network.latent_size))
                noise = torch.from_numpy(drawn).float()
            for length in range(len(reply)):
                state = network.read(ENCODED.batch(np.array([number])), noise)
                for token in [START, *reply[:length]]:
                    logits, state = network.step(torch.tensor([token]), state)
                excluded = [*NEVER, END] if length == 0 else list(NEVER)
                logits[:, excluded] = -torch.inf
                assert logits.argmax().item() == reply[length]


@pytest.mark.parametrize("name", GENERATIVE)
def test_the_seed_decides(name: str) -> None:
    network = generative(name)
    how = Decoding(method="sampling", max_tokens=8)
    first = decode(network, ENCODED, 3, how, rngs(seed=1), NEVER)
    assert first == decode(network, ENCODED, 3, how, rngs(seed=1), NEVER)
    assert first != decode(network, ENCODED, 3, how, rngs(seed=2), NEVER)


@pytest.mark.parametrize("name", GENERATIVE)
def test_special_tokens_are_never_generated(name: str) -> None:
    """Also with weights that prefer them; no reply is empty."""
    network = generative(name)
    how = Decoding(method="sampling", max_tokens=8, temperature=50.0)
    replies = [reply for some in decode(network, ENCODED, 20, how, rngs(), NEVER) for reply in some]
    assert all(reply for reply in replies)
    assert not {PAD, START, END, UNKNOWN} & {token for reply in replies for token in reply}
    assert max(map(len, replies)) <= 8


def test_auto_draws_the_latent_variable_or_the_words() -> None:
    how = Decoding()
    assert how.chosen_method(1, is_latent=False) == "greedy"
    assert how.chosen_method(5, is_latent=False) == "sampling"
    assert how.chosen_method(5, is_latent=True) == "greedy"
    for name in LATENT:
        replies = decode(generative(name), ENCODED, 5, Decoding(max_tokens=8), rngs(), NEVER)
        assert max(len({tuple(reply) for reply in some}) for some in replies) > 1


def test_wrong_settings() -> None:
    with pytest.raises(UsageError) as error:
        Decoding(method="best", temperature=0, top_p=2, top_k=-1, beam_size=0, max_tokens=0)
    assert len(error.value.messages) == 6
    with pytest.raises(UsageError, match="beam_size=9 or more"):
        decode(generative("hred"), ENCODED, 9, Decoding(method="beam"), rngs())

"""The networks compared with the formulas of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel
from transformers import __version__ as transformers_version

from rejoinder.learn.checkpoint import Model, load_model, save_model
from rejoinder.learn.networks import cross_encoder
from rejoinder.learn.networks.cross_encoder import NO_TOKEN, CrossRater, CrossScorer
from rejoinder.learn.networks.ensemble import Ensemble, make_ensemble, members_of, separate_losses
from rejoinder.learn.networks.folded_scorer import FoldedScorer
from rejoinder.learn.networks.raters import GruRater, VectorRater, rating
from rejoinder.learn.networks.scorers import Bilinear, GruScorer, VectorScorer, margin_loss

pytestmark = pytest.mark.usefixtures("one_thread")

VOCAB_SIZE, DIMENSIONS, VIEWS, ROWS = 40, 8, 2, 64


def subwords(seed: int, padding: int = 0, rows: int = ROWS, length: int = 7) -> Tensor:
    """Return ids in rows of different lengths."""
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCAB_SIZE, (rows, length), generator=rng)
    lengths = torch.randint(1, length + 1, (rows, 1), generator=rng)
    return ids.masked_fill(torch.arange(length) >= lengths, padding)


def vectors(seed: int, *shape: int) -> Tensor:
    found = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return found / found.norm(dim=-1, keepdim=True)


def bert(layers: int = 2) -> Any:
    config = BertConfig(
        vocab_size=VOCAB_SIZE, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.2,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertModel(config)


def make(name: str) -> tuple[Model, list[Tensor]]:
    torch.manual_seed(0)
    four = [subwords(seed) for seed in range(4)]
    tokens = [subwords(seed, NO_TOKEN) for seed in range(4)]
    u1, r1, u2, r2 = (vectors(k, ROWS, *shape) for k, shape in enumerate(2 * [(2, 8), (8,)]))
    cross = {"cls_token_id": 1, "sep_token_id": 2, "hidden_size": 32, "dropout": 0.0}
    sizes = {
        "vocab_size": VOCAB_SIZE, "embedding_size": 12, "hidden_size": 10, "mlp_size": 32,
    }  # fmt: skip
    if name == "gru rater":
        return GruRater(**sizes, num_layers=5), four
    if name == "vector rater":
        return VectorRater(DIMENSIONS, VIEWS, hidden_size=32, num_layers=5), [u1, r1, u2, r2]
    if name == "ngram rater":
        return VectorRater(
            DIMENSIONS - 3, VIEWS, hidden_size=32, num_layers=5, char_ngram_buckets=3
        ), [
            u1,
            r1,
            u2,
            r2,
        ]
    if name == "question rater":
        sizes = {
            "hidden_size": 32,
            "num_layers": 5,
            "char_ngram_buckets": 3,
            "question_feature": True,
        }
        return VectorRater(DIMENSIONS - 4, VIEWS, **sizes), [u1, r1, u2, r2]
    if name == "cross rater":
        return CrossRater(bert(), **cross), tokens
    if name == "gru scorer":
        return GruScorer(**sizes), four[:2]
    if name == "vector scorer":
        return VectorScorer(DIMENSIONS, VIEWS, hidden_size=32), [u1, r1]
    if name == "ngram scorer":
        return VectorScorer(DIMENSIONS - 3, VIEWS, hidden_size=32, char_ngram_buckets=3), [u1, r1]
    if name in ("question scorer", "ensemble of question scorers"):
        sizes = {"hidden_size": 32, "char_ngram_buckets": 3, "question_feature": True}
        size = 1 if name == "question scorer" else 3
        return make_ensemble(size, lambda: VectorScorer(DIMENSIONS - 4, VIEWS, **sizes)), [u1, r1]
    if name == "extra-layer scorer":
        return VectorScorer(DIMENSIONS, VIEWS, hidden_size=32, sentence_dimensions=5), [u1, r1]
    if name == "ensemble of raters":
        return Ensemble([VectorRater(8, VIEWS, hidden_size=32, num_layers=5) for _ in "ab"]), [
            u1,
            r1,
            u2,
            r2,
        ]
    if name == "ensemble of scorers":
        return Ensemble([VectorScorer(8, VIEWS, hidden_size=32) for _ in "ab"]), [u1, r1]
    return CrossScorer(bert(), **cross), tokens[:2]


RATERS = [
    "gru rater", "vector rater", "ngram rater", "question rater", "cross rater",
    "ensemble of raters",
]  # fmt: skip
SCORERS = [
    "gru scorer", "vector scorer", "ngram scorer", "question scorer", "cross scorer",
    "extra-layer scorer", "ensemble of scorers", "ensemble of question scorers",
]  # fmt: skip
VECTOR_SCORERS = [
    "vector scorer", "ngram scorer", "question scorer", "extra-layer scorer",
    "ensemble of scorers", "ensemble of question scorers",
]  # fmt: skip


def both(output: Tensor | tuple[Tensor, Tensor]) -> Tensor:
    return torch.cat(output, dim=1) if isinstance(output, tuple) else output


@pytest.mark.parametrize("name", RATERS + SCORERS)
def test_shapes(name: str) -> None:
    model, inputs = make(name)
    output = model(*inputs)
    if name in RATERS:
        assert [part.shape for part in output] == [(ROWS, 2), (ROWS, 2)]
    else:
        assert output.shape == (ROWS,)


@pytest.mark.parametrize("name", RATERS + SCORERS)
def test_the_gradient_reaches_every_parameter(name: str) -> None:
    model, inputs = make(name)
    both(model(*inputs)).square().sum().backward()
    missing = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()]
    assert missing == []


@pytest.mark.parametrize("name", RATERS + SCORERS)
def test_a_score_is_independent_of_its_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_encoder, "MAX_BATCH_TOKENS", 200)  # several chunks
    model, inputs = make(name)
    model.eval()
    together = both(model(*inputs))
    alone = torch.cat([both(model(*(x[i : i + 1] for x in inputs))) for i in range(ROWS)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", RATERS + SCORERS)
def test_a_reloaded_network_gives_the_same_scores(name: str, tmp_path: Path) -> None:
    model, inputs = make(name)
    save_model(tmp_path / "m.safetensors", model)
    before = torch.get_rng_state()
    again, _ = load_model(tmp_path / "m.safetensors")
    if "cross" in name:
        assert torch.equal(torch.get_rng_state(), before), "the random state is kept"
    assert type(again) is type(model)
    assert torch.equal(both(again(*inputs)), both(model.eval()(*inputs)))


def test_a_file_has_no_paths_and_versions(tmp_path: Path) -> None:
    """The same weights are the same bytes."""
    bert().save_pretrained(tmp_path / "secret-folder")
    network = BertModel.from_pretrained(tmp_path / "secret-folder")
    model = CrossScorer(network, cls_token_id=1, sep_token_id=2)
    save_model(tmp_path / "m.safetensors", model)
    again, _ = load_model(tmp_path / "m.safetensors")
    for config in (model.config, again.config):
        assert not {"_name_or_path", "transformers_version"} & config["network"].keys()
    content = (tmp_path / "m.safetensors").read_bytes()
    assert b"secret-folder" not in content
    assert transformers_version.encode() not in content
    save_model(tmp_path / "again.safetensors", again)
    assert (tmp_path / "again.safetensors").read_bytes() == content
    old = {**model.config["network"], "_name_or_path": "elsewhere", "transformers_version": "0.0"}
    assert CrossScorer.build({**model.config, "network": old}).config == model.config


@pytest.mark.parametrize("name", RATERS)
def test_a_rater_can_memorise_64_examples(name: str) -> None:
    model, inputs = make(name)
    labels = torch.arange(ROWS) % 2
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(150):
        adam.zero_grad()
        a, b = model(*inputs)
        (nn.functional.cross_entropy(a, labels) + nn.functional.cross_entropy(b, labels)).backward()
        adam.step()
    a, b = model(*inputs)
    rated = rating(a.softmax(1)[:, 1], b.softmax(1)[:, 1])
    assert torch.equal(rated > 0, labels == 1)


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_can_memorise_64_replies(name: str) -> None:
    model, (context, reply) = make(name)
    bad = reply.roll(1, 0)
    asked = torch.stack([reply, bad], dim=1).flatten(0, 1)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(600):  # how many it takes depends on the processor's rounding
        adam.zero_grad()
        good, wrong = model(context, asked).sigmoid().reshape(-1, 2).T
        if bool((good > wrong).all()):
            break
        margin_loss(good, wrong, 0.5).mean().backward()
        adam.step()
    assert float((model(context, reply) > model(context, bad)).float().mean()) > 0.95


@pytest.mark.parametrize("name", RATERS)
def test_both_triplets_are_treated_alike(name: str) -> None:
    """Swapping the pairs swaps the triplets, and does not change the rating."""
    model, (u1, r1, u2, r2) = make(name)
    model.eval()
    a, b = model(u1, r1, u2, r2)
    c, d = model(u2, r2, u1, r1)
    torch.testing.assert_close(a, d)
    torch.testing.assert_close(b, c)


@pytest.mark.parametrize("name", RATERS)
def test_a_triplet_is_independent_of_the_other_utterance(name: str) -> None:
    model, (u1, r1, u2, r2) = make(name)
    a, b = model.eval()(u1, r1, u2, r2)
    c, d = model(u1, r1, u2.roll(1, 0), r2)
    torch.testing.assert_close(a, c)
    assert not torch.allclose(b, d)


@pytest.mark.parametrize("name", SCORERS)
def test_several_replies_to_a_context_are_scored_as_one_by_one(name: str) -> None:
    model, (context, reply) = make(name)
    model.eval()
    other = reply.roll(3, 0)
    found = model(context, torch.stack([reply, other], dim=1).flatten(0, 1))
    torch.testing.assert_close(found[::2], model(context, reply))
    torch.testing.assert_close(found[1::2], model(context, other))


@pytest.mark.parametrize("name", VECTOR_SCORERS)
def test_a_folded_scorer_gives_the_scores_of_the_networks(name: str) -> None:
    """Five replies to each context, random weights, and signs for questions and answers."""
    model, (context, reply) = make(name)
    signs = torch.randn(2, ROWS, generator=torch.Generator().manual_seed(5)).sign()
    if "question" in name:
        context[:, :, 4], reply[:, 4] = signs[0, :, None], signs[1]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    replies = torch.stack([reply.roll(places, 0) for places in range(5)], dim=1).flatten(0, 1)
    folded = FoldedScorer.of(model)
    assert folded is not None
    with torch.inference_mode():
        expected = model.eval()(context, replies)
        torch.testing.assert_close(folded(context, replies), expected, rtol=0, atol=1e-5)
    assert expected.std() > 0.1


@pytest.mark.parametrize("name", sorted(set(SCORERS) - set(VECTOR_SCORERS)))
def test_only_vector_scorers_are_folded(name: str) -> None:
    assert FoldedScorer.of(make(name)[0]) is None


@pytest.mark.parametrize("name", RATERS)
def test_several_second_pairs_are_rated_as_one_by_one(name: str) -> None:
    model, (u1, r1, u2, r2) = make(name)
    model.eval()
    others = [u2.roll(3, 0), r2.roll(3, 0)]
    pairs = zip((u2, r2), others, strict=True)
    second = [torch.stack(texts, dim=1).flatten(0, 1) for texts in pairs]
    found = both(model(u1, r1, *second))
    torch.testing.assert_close(found[::2], both(model(u1, r1, u2, r2)))
    torch.testing.assert_close(found[1::2], both(model(u1, r1, *others)))


@pytest.mark.parametrize(("name", "padding"), [("gru scorer", 0), ("cross scorer", NO_TOKEN)])
def test_padding_does_not_change_a_score(name: str, padding: int) -> None:
    model, inputs = make(name)
    model.eval()
    wider = [nn.functional.pad(ids, (0, 4), value=padding) for ids in inputs]
    torch.testing.assert_close(model(*wider), model(*inputs))


@pytest.mark.parametrize("name", ["ensemble of raters", "ensemble of scorers"])
def test_an_ensemble_returns_the_mean(name: str) -> None:
    ensemble, inputs = make(name)
    first, second = (both(member(*inputs)) for member in members_of(ensemble))
    assert (first != second).any()  # different initial weights
    torch.testing.assert_close(both(ensemble(*inputs)), (first + second) / 2)


def test_members_of_an_ensemble_are_trained_separately() -> None:
    """The loss is the mean, and each member has half of its own gradient."""
    ensemble, (contexts, replies) = make("ensemble of scorers")

    def loss(model: nn.Module, truth: Tensor) -> tuple[Tensor, float]:
        return (model(contexts, replies) - truth).square().sum(), float(ROWS)

    truth = torch.arange(ROWS) % 2
    found, count = separate_losses(loss)(ensemble, truth)
    found.backward()
    together = [p.grad.clone() for p in ensemble.parameters() if p.grad is not None]
    ensemble.zero_grad()
    alone = [loss(member, truth)[0] for member in members_of(ensemble)]
    torch.testing.assert_close(found, sum(alone) / 2)
    assert count == ROWS
    for each in alone:
        each.backward()
    for mine, own in zip(together, ensemble.parameters(), strict=True):
        assert own.grad is not None
        torch.testing.assert_close(mine, own.grad / 2)


def test_an_ensemble_of_one_is_the_network_itself() -> None:
    model, _ = make("vector scorer")
    assert make_ensemble(1, lambda: model) is model
    assert members_of(model) == [model]


def test_the_bilinear_feature_is_the_formula() -> None:
    """q = (1, 2), r = (3, 1), M = [[1, 0], [2, 1]]: qᵀM = (5, 2), times r = 17."""
    bilinear = Bilinear(2)
    q, r = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 1.0]])
    assert bilinear(q, r).item() == pytest.approx(5 / 2**0.5), "it starts as q · r / √2"
    with torch.no_grad():
        bilinear.matrix.copy_(torch.tensor([[1.0, 0.0], [2.0, 1.0]]))
    assert bilinear(q, r).item() == pytest.approx(17)
    # r' = (1, 0) to the same q: 5; q' = (0, 1), so q'ᵀM = (2, 1), with the same r: 7
    more_replies, more_queries = torch.tensor([[3.0, 1.0], [1.0, 0.0]]), torch.eye(2)[1:]
    assert bilinear(q, more_replies).tolist() == [[17], [5]]
    assert bilinear(torch.cat([q, more_queries]), r).tolist() == [[17], [7]]


def test_the_features_of_vectors_have_unit_scale() -> None:
    """Views q and q', reply r: [r, q, q∘r, |q - r|, qᵀMr, and the same of q'], scaled by √d."""
    scorer = VectorScorer(2, views=2, hidden_size=3)
    context, reply = torch.tensor([[[0.6, 0.8], [1.0, 0.0]]]), torch.tensor([[0.0, 1.0]])
    root = 2**0.5
    expected = [0, root, 0.6 * root, 0.8 * root, 0, 1.6, 0.6 * root, 0.2 * root, 1.6 / root]
    expected += [root, 0, 0, 0, root, root, 0]
    found = torch.cat(scorer.mlp_inputs(scorer.extract_features(context, reply)), dim=1)[0]
    torch.testing.assert_close(found, torch.tensor(expected))
    large = VectorScorer(384, views=1, hidden_size=3)
    many = large.mlp_inputs(large.extract_features(vectors(1, 50, 1, 384), vectors(2, 50, 384)))
    assert 0.5 < torch.cat(many, dim=1).std() < 2


def test_the_hidden_layer_equals_that_of_concatenated_features() -> None:
    """Two replies to each context: w · tanh(W [r; q; q∘r; |q - r|; qᵀMr; …] + b) + c."""
    model, (context, reply) = make("vector scorer")
    assert isinstance(model, VectorScorer)
    asked = torch.stack([reply, reply.roll(1, 0)], dim=1).flatten(0, 1)
    compared = model.extract_features(context.repeat_interleave(2, dim=0), asked)
    features = torch.cat(model.mlp_inputs(compared), dim=1)
    hidden = torch.tanh(features @ model.mlp.hidden.weight.T + model.mlp.hidden.bias)
    expected = (hidden @ model.mlp.output.weight.T + model.mlp.output.bias).squeeze(1)
    torch.testing.assert_close(model(context, asked), expected)


def test_the_score_is_that_of_ruber() -> None:
    """s = w · tanh(W [q; qᵀMr; r] + b) + c, before the sigmoid."""
    scorer, (context, reply) = make("gru scorer")
    assert isinstance(scorer, GruScorer)
    q, r = scorer.sentence(context), scorer.sentence(reply)
    m, mlp = scorer.bilinear.matrix, scorer.mlp
    joint = torch.cat([q, torch.einsum("ni,ij,nj->n", q, m, r)[:, None], r], dim=1)
    hidden = torch.tanh(joint @ mlp.hidden.weight.T + mlp.hidden.bias)
    expected = (hidden @ mlp.output.weight.T + mlp.output.bias).squeeze(1)
    torch.testing.assert_close(scorer(context, reply), expected)


def test_margin_loss() -> None:
    """Δ = .5: .5 - .9 + .2 < 0; .5 - .9 + .7 = .3; .5 - .4 + .4 = .5; .5 - .4 + .05 = .15"""
    found = margin_loss(torch.tensor([[0.9], [0.4]]), torch.tensor([[0.2, 0.7], [0.4, 0.05]]), 0.5)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.3], [0.5, 0.15]]))


def test_ratings() -> None:
    """Mean of .9 and .3 is .6; of .1 and .2 is .15, so -.85; soft: 2p - 1."""
    one, two = torch.tensor([0.9, 0.1]), torch.tensor([0.3, 0.2])
    torch.testing.assert_close(rating(one, two), torch.tensor([0.6, -0.85]))
    torch.testing.assert_close(rating(one, two, soft=True), torch.tensor([0.2, -0.7]))


def test_the_papers_network_has_the_papers_sizes() -> None:
    """16,000 subwords of 512; Bi-GRU of 512 units; 3 · 1024 → 4 × 1024 → 2."""
    with torch.device("meta"):
        rater = GruRater(16_000, embedding_size=512, hidden_size=512, mlp_size=1024, num_layers=5)
    gru = 2 * (3 * 512 * 512 + 3 * 512 * 512 + 6 * 512)
    mlp = (3 * 1024 + 1) * 1024 + 3 * (1024 + 1) * 1024 + (1024 + 1) * 2
    assert sum(p.numel() for p in rater.parameters()) == 16_000 * 512 + gru + mlp


def test_texts_are_joined_with_special_tokens() -> None:
    """[CLS] known [SEP] known [SEP] candidate [SEP]; the candidate is the second segment."""
    reader = CrossScorer(bert(), cls_token_id=1, sep_token_id=2).reader
    known = [torch.tensor([[7, 8], [9, NO_TOKEN]]), torch.tensor([[NO_TOKEN, NO_TOKEN], [5, 6]])]
    ids, types = reader._join(known, torch.tensor([[11, NO_TOKEN], [12, 13]]))
    n = NO_TOKEN
    assert ids.tolist() == [[1, 7, 8, 2, 2, 11, 2, n, n, n], [1, 9, 2, 5, 6, 2, 12, 13, 2, n]]
    pairs = zip(types.tolist(), ids.tolist(), strict=True)
    there = [row[: sum(i != n for i in each)] for row, each in pairs]
    assert there == [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 1, 1, 1]]


def test_frozen_layers_are_not_trained() -> None:
    model = CrossScorer(bert(3), cls_token_id=1, sep_token_id=2, frozen_layers=2)
    free = {name for name, p in model.named_parameters() if p.requires_grad}
    assert not any("embeddings" in name or "layer.0" in name or "layer.1" in name for name in free)
    assert any("layer.2" in name for name in free)
    assert CrossScorer.build(model.config).config == model.config


def test_the_question_feature_changes_which_reply_fits() -> None:
    """Two turns with the same vector, one of them a question: only the sign tells them apart."""
    turn, first, second = vectors(1, DIMENSIONS), vectors(2, DIMENSIONS), vectors(3, DIMENSIONS)
    said, asked = torch.tensor([-1.0]), torch.tensor([1.0])
    contexts = torch.stack([torch.cat([turn, said]), torch.cat([turn, asked])]).unsqueeze(1)
    replies = torch.stack([torch.cat([reply, said]) for reply in (first, second, second, first)])
    torch.manual_seed(0)
    model = VectorScorer(DIMENSIONS, 1, hidden_size=8, question_feature=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    truth = torch.zeros(2, dtype=torch.long)
    for _ in range(200):
        loss = torch.nn.functional.cross_entropy(model(contexts, replies).reshape(2, 2), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1  # without the sign, both contexts are one: no better than ln 2
    blind = VectorScorer(DIMENSIONS, 1, hidden_size=8)
    scores = blind(contexts[..., :DIMENSIONS], replies[:, :DIMENSIONS]).reshape(2, 2)
    torch.testing.assert_close(scores[0], scores[1].flip(0))

"""BERTScore against the bert-score package: the same weights, layer 6, real replies.

The package multiplies padded similarities by 0 before it takes the maximum, so a token whose best
cosine is negative counts 0, unless the other text is the longest of its batch of 64 pairs. Ours
always counts 0 (1 of 2,000 pairs here is so different, by 0.005). For the comparison, each batch
gets a longer pair, so that the package, too, treats all alike.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import bert_score
import msgspec
import numpy as np
import pytest

from rejoinder.encode.transformer.find_model import find_model_folder
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.embedding.bertscore import BertScore
from rejoinder.metrics.embedding.calibrate import calibrate, read_corpus
from rejoinder.metrics.evaluate import score_batch
from rejoinder.metrics.metric import make_metric
from rejoinder.testsets import load

CLOSE = {"rtol": 0, "atol": 1e-4}
MINILM = find_model_folder("minilm")


def peer(
    replies: Sequence[str], references: Sequence[str], model: Path = MINILM, *, idf: bool = False
) -> np.ndarray:
    """[3, n] P, R and F of the package, for each reply with its reference."""
    pairs = list(zip(replies, references, strict=True))
    longest = max(len(text.split()) for text in chain(replies, references))
    longer = "so " * min(3 * longest // 2 + 5, 505)
    batches = [[(longer, longer), *pairs[i : i + 63]] for i in range(0, len(pairs), 63)]
    left, right = zip(*chain.from_iterable(batches), strict=True)
    weights: bool | dict[int, float] = idf and _idf(references)
    found = bert_score.score(
        list(left), list(right), model_type=str(model), num_layers=6, batch_size=64, idf=weights
    )
    return np.stack([np.delete(part.numpy(), np.s_[::64]) for part in found])


def _idf(references: Sequence[str]) -> dict[int, float]:
    tokenizer = bert_score.utils.get_tokenizer(str(MINILM))
    found: dict[int, float] = bert_score.utils.get_idf_dict(references, tokenizer, nthreads=0)
    return found


def ours(
    replies: Sequence[str],
    references: Sequence[str | Sequence[str]],
    options: str = "layer=6",
) -> np.ndarray:
    """The same of ours; of several references the best, for each of the three."""
    listed = [[texts] if isinstance(texts, str) else texts for texts in references]
    items = [
        Item(id=str(i), response=reply, references=[Reference(text) for text in texts])
        for i, (reply, texts) in enumerate(zip(replies, listed, strict=True))
    ]
    batch = Batch.of(items)
    metrics = [make_metric(f"bertscore({options},part={part})") for part in "prf"]
    return np.stack([score_batch(metric, batch).values for metric in metrics])


@pytest.fixture(scope="module")
def rated(data: Path) -> tuple[list[str], list[list[str]]]:
    """500 replies, each with its 4 references."""
    items = list(load("dailydialog-multiref", "multi"))
    return [i.response for i in items], [[r.text for r in i.references] for i in items]


def test_rated_replies(rated: tuple[list[str], list[list[str]]]) -> None:
    replies, references = rated
    assert len(replies) == 500
    assert {len(texts) for texts in references} == {4}
    pairs = [(reply, text) for reply, texts in zip(*rated, strict=True) for text in texts]
    each = peer(*zip(*pairs, strict=True)).reshape(3, 500, 4)
    np.testing.assert_allclose(ours(*rated), each.max(axis=2), **CLOSE)
    for number in range(4):
        alone = ours(replies, [texts[number] for texts in references])
        np.testing.assert_allclose(alone, each[:, :, number], **CLOSE)


def test_idf_of_the_references(rated: tuple[list[str], list[list[str]]], tmp_path: Path) -> None:
    replies, references = rated[0][:200], [texts[-1] for texts in rated[1][:200]]
    metric = make_metric("bertscore(layer=6)")
    assert isinstance(metric, BertScore)
    corpus = read_corpus(references, metric.encoder, max_sample=20, seed=1)
    file = tmp_path / "calibration.json"
    file.write_bytes(msgspec.json.encode(calibrate(corpus, metric, pairs=10, seed=1)))
    found = ours(replies, references, options=f'layer=6,idf=true,calibration="{file}"')
    np.testing.assert_allclose(found, peer(replies, references, idf=True), **CLOSE)
    assert np.abs(found - ours(replies, references)).max() > 0.01  # it does matter


def test_long_texts(rated: tuple[list[str], list[list[str]]]) -> None:
    """Around and beyond the 512 tokens that the model reads; the package cuts there too."""
    words = " ".join(rated[0]).split()
    bounds = ((0, 300), (40, 510), (9, 909))
    replies = [" ".join(words[begin:end]) for begin, end in bounds]
    references = [" ".join(words[5:400]), " ".join(words[:1500]), replies[0]]
    np.testing.assert_allclose(ours(replies, references), peer(replies, references), **CLOSE)
    assert any("truncated" in note for note in make_metric("bertscore").notes())


def test_odd_texts() -> None:
    """Characters that the tokenizer does not know, or drops; marks as words; other scripts."""
    replies = ["🐈 🐕", "[SEP] hello [CLS]", "[UNK]", "  naïve   CAFÉ ", "今日はいい天気", "a"]
    references = ["a 🐈", "hello", "what ?", "naive cafe", "いい天気 です", "z"]
    np.testing.assert_allclose(ours(replies, references), peer(replies, references), **CLOSE)


def test_blank_replies_survive() -> None:
    """What the package means to give, if it did not stop with an error."""
    with pytest.raises(AttributeError):
        peer([""], ["Hello."])
    found = ours(["", " \t\n", "Hello."], ["Hello.", ["Hello.", "Hi."], "Hello."])
    np.testing.assert_allclose(found, np.array([[0, 0, 1]] * 3), atol=1e-6)


def test_a_tokenizer_without_maximum_survives(tmp_path: Path) -> None:
    """The package trusts the tokenizer, and gives the network more than it has positions for."""
    for file in MINILM.iterdir():
        if file.name != "tokenizer_config.json":
            (tmp_path / file.name).symlink_to(file)
    settings = json.loads((MINILM / "tokenizer_config.json").read_text())
    del settings["model_max_length"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    reply, reference = "I would like to go there again . " * 80, "I would like that ."
    with pytest.raises((RuntimeError, IndexError, OverflowError)):
        peer([reply], [reference], model=tmp_path)
    found = ours([reply], [reference], options=f'layer=6,model="{tmp_path}"')
    np.testing.assert_allclose(found, ours([reply], [reference]), atol=1e-6)

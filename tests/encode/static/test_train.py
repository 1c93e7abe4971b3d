"""``rejoinder train vectors`` from pairs to a folder that opens, by each method."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from rejoinder.cli.main import run
from rejoinder.encode.static.train.corpus import Corpus, read_texts
from rejoinder.encode.static.train.gensim_models import train_gensim
from rejoinder.encode.static.vectors_folder import open_vectors_folder
from rejoinder.encode.static.word_vectors import WordVectors
from rejoinder.registry import TOKENIZERS
from support import COMMAND


class Done(NamedTuple):
    code: int
    out: str
    err: str


Train = Callable[..., Done]


@pytest.fixture
def train(capsys: pytest.CaptureFixture[str]) -> Train:
    """Run the command in this process, which saves the start of a new one."""

    def start(*arguments: str | Path) -> Done:
        code = run(["train", "vectors", *map(str, arguments)])
        return Done(code, *capsys.readouterr())

    return start


@pytest.fixture
def trained(train: Train) -> Callable[..., dict[str, Any]]:
    def start(*arguments: str | Path) -> dict[str, Any]:
        done = train(*arguments, "--json")
        assert done.code == 0, done.err
        summary: dict[str, Any] = json.loads(done.out)
        return summary

    return start


Trained = Callable[..., dict[str, Any]]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def neighbours(vectors: WordVectors, words: list[str], k: int = 10) -> list[set[int]]:
    rows, _ = vectors.find(list(vectors.words))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    numbers = {word: number for number, word in enumerate(vectors.words)}
    chosen = [numbers[word] for word in words]
    similar = rows[chosen] @ rows.T
    similar[np.arange(len(chosen)), chosen] = -2
    return [set(row) for row in np.argsort(-similar, axis=1)[:, :k].tolist()]


def test_glove_agrees_with_word2vec_far_above_chance(
    trained: Trained, real_pairs: Path, tmp_path: Path
) -> None:
    """Of the 10 nearest neighbours of the 500 most frequent words, chance would share 0.5 %."""
    options = ["--dimensions", "50", "--epochs", "15", "--min-count", "10"]
    account = trained(real_pairs, "-o", tmp_path / "glove", *options)
    trained(real_pairs, "-o", tmp_path / "word2vec", "--method", "word2vec", *options)
    glove, word2vec = (
        open_vectors_folder(tmp_path / "glove"),
        open_vectors_folder(tmp_path / "word2vec"),
    )
    assert list(glove.words) == list(word2vec.words)
    words = list(glove.words[:500])
    pairs = zip(neighbours(glove, words), neighbours(word2vec, words), strict=True)
    shared = np.mean([len(a & b) / 10 for a, b in pairs])
    chance = 10 / (len(glove.words) - 1)
    assert chance < 0.01
    assert shared > 20 * chance
    losses = account["losses"]
    assert len(losses) == 15 and losses[-1] < losses[0] / 2
    assert account["texts"] > 20_000 and account["tokens"] > 200_000


@pytest.mark.parametrize("method", ["glove", "word2vec", "fasttext"])
def test_one_seed_on_one_thread_gives_the_same_bytes(
    trained: Trained, small_pairs: Path, tmp_path: Path, method: str
) -> None:
    options = ["--method", method, "--dimensions", "8", "--min-count", "1", "--buckets", "500"]
    for name in ("a", "b"):
        trained(small_pairs, "-o", tmp_path / name, *options, "--threads", "1", "--seed", "3")
    trained(small_pairs, "-o", tmp_path / "c", *options, "--threads", "1", "--seed", "4")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a")["vectors.npy"] != contents(tmp_path / "c")["vectors.npy"]
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    settings = manifest["origin"]["training"]
    assert settings["method"] == method and settings["seed"] == 3 and settings["tok"] == "13a"
    assert settings["window"] == (10 if method == "glove" else 5)
    # 24 turns with an animal, 12 times "how nice !"
    assert manifest["origin"]["texts"] == 36


def test_glove_does_not_depend_on_the_number_of_threads(
    trained: Trained, small_pairs: Path, tmp_path: Path
) -> None:
    for threads in ("1", "4"):
        trained(small_pairs, "-o", tmp_path / threads, "--min-count", "1", "--threads", threads)
    assert contents(tmp_path / "1") == contents(tmp_path / "4")


def test_fasttext_composes_unknown_words_as_gensim_does(
    trained: Trained, small_pairs: Path, tmp_path: Path
) -> None:
    from gensim.models import FastText

    corpus = Corpus.of(read_texts([str(small_pairs)]), TOKENIZERS.make("13a"), True, 1)
    settings = {"vector_size": 8, "window": 5, "sg": 1, "min_count": 1, "seed": 3, "workers": 1}
    peer = FastText(**settings, bucket=500, min_n=3, max_n=6)
    frequencies = dict(zip(corpus.words, corpus.counts.tolist(), strict=True))
    peer.build_vocab_from_freq(frequencies, corpus_count=36)
    sentences = list(corpus.sentences())
    peer.train(sentences, total_examples=36, total_words=len(corpus.ids), epochs=5)
    options = ["--method", "fasttext", "--dimensions", "8", "--min-count", "1", "--buckets", "500"]
    trained(small_pairs, "-o", tmp_path / "f", *options, "--seed", "3", "--threads", "1")
    words = ["cat", "sofa", "cats", "sofas", "unheard-of"]
    found, known = open_vectors_folder(tmp_path / "f").find(words)
    assert known.all()
    np.testing.assert_allclose(found, [peer.wv[word] for word in words], atol=1e-6)


def test_word2vec_has_a_vector_for_each_word_in_our_order(small_pairs: Path) -> None:
    corpus = Corpus.of(read_texts([str(small_pairs)]), TOKENIZERS.make("13a"), True, 1)
    seen: list[tuple[int, int]] = []
    rows, buckets = train_gensim(
        corpus,
        dimensions=8,
        window=5,
        epochs=4,
        seed=0,
        threads=1,
        on_progress=lambda done, total: seen.append((done, total)),
    )
    assert rows.shape == (len(corpus.words), 8) and buckets is None
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_languages_and_plain_text(tmp_path: Path) -> None:
    text = "今日は良い天気ですね。散歩に行きましょう。\n明日は雨が降るそうです。\n" * 3
    options = ["-l", "ja", "--min-count", "1", "--json"]
    arguments = ["train", "vectors", "-", "-o", str(tmp_path / "v"), *options]
    done = subprocess.run([*COMMAND, *arguments], input=text.encode(), capture_output=True)
    account = json.loads(done.stdout)
    assert account["training"]["tok"].startswith("ja-mecab")
    assert "天気" in open_vectors_folder(tmp_path / "v").words
    assert account["texts"] == 6


def test_summary_of_the_training(train: Train, small_pairs: Path, tmp_path: Path) -> None:
    done = train(small_pairs, "-o", tmp_path / "v", "--min-count", "1", "--no-lower")
    assert done.code == 0 and not done.out
    assert "words of 100 dimensions, from 36 texts" in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["small.parquet", "-o", "v", "--method", "golve"], 2, "unknown method 'golve': choose"),
        (["small.parquet", "-o", "v", "--tok", "13b"], 2, "unknown tokenizer '13b'"),
        (["small.parquet", "-o", "v", "-l", "xx"], 2, "unknown language 'xx'"),
        (["small.parquet", "-o", "v", "--dimensions", "0"], 2, "--dimensions"),
        (["small.parquet", "-o", "small.parquet"], 2, "is a file; choose another name"),
        (["small.parquet", "-o", "photos"], 2, "is a folder with other things"),
        (["small.parquet", "-o", "no/where"], 2, "cannot be written"),
        (["nothing", "-o", "v"], 3, "nothing: cannot be read: no such file"),
        (["empty", "-o", "v"], 3, "empty: there is no text to learn from"),
        (["small.parquet", "-o", "v", "--min-count", "999"], 3, "occur 999 times"),
        (["japanese", "-o", "v"], 3, "can't split any of the 1 texts; give --language or --tok"),
        (["single", "-o", "v", "--min-count", "1"], 3, "no two words"),
    ],
)
def test_bad_arguments_and_bad_data(
    train: Train,
    small_pairs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    Path("photos/cat.jpg").write_bytes(b"meow")
    Path("empty").write_text("\n")
    Path("japanese").write_text("今日は良い天気ですね散歩に行きましょう")
    Path("single").write_text("one\ntwo\n")
    before = {path.name for path in tmp_path.iterdir()}
    done = train(*arguments)
    assert done.code == code, done.err
    assert complaint in done.err and done.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == before
    assert Path("photos/cat.jpg").read_bytes() == b"meow"


def test_without_gensim(small_pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "gensim.py").write_text("raise ImportError('not here')")
    arguments = [small_pairs, "-o", tmp_path / "v", "--method", "word2vec", "--min-count", "1"]
    done = subprocess.run(
        [*COMMAND, "train", "vectors", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 4
    assert b"pip install 'rejoinder[vectors]'" in done.stderr and done.stderr.count(b"\n") == 1

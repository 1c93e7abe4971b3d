"""From texts to a folder of vectors: what ``rejoinder train vectors`` does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.folder import Batch, check_target, new_folder
from rejoinder.encode.static.manifest import Subwords
from rejoinder.encode.static.train import gensim
from rejoinder.encode.static.train.corpus import Corpus, read_texts
from rejoinder.encode.static.train.glove import Glove
from rejoinder.errors import DataError, UsageError
from rejoinder.progress import Progress
from rejoinder.registry import TOKENIZERS
from rejoinder.text.tokenizers.base import Tokenizer

Floats = NDArray[np.float32]

METHODS = ("glove", "word2vec", "fasttext")
WINDOWS = {"glove": 10, "word2vec": 5, "fasttext": 5}
EPOCHS = {"glove": 25, "word2vec": 5, "fasttext": 5}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What decides the vectors; None stands for the method's own default."""

    method: str = "glove"
    dimensions: int = 100
    window: int | None = None
    min_count: int = 5
    epochs: int | None = None
    tok: str = "13a"
    lower: bool = True
    seed: int = 0
    x_max: float = 10.0
    """GloVe: counts from here on have full weight."""
    buckets: int = 200_000
    """fastText: how many places the n-grams share."""

    def completed(self) -> Settings:
        if self.method not in METHODS:
            raise UsageError(f"unknown method '{self.method}': choose {', '.join(METHODS)}")
        return replace(
            self,
            window=self.window or WINDOWS[self.method],
            epochs=self.epochs or EPOCHS[self.method],
        )

    def told(self) -> dict[str, Any]:
        """Without what another method would use."""
        foreign = {"glove": ("buckets",), "word2vec": ("buckets", "x_max"), "fasttext": ("x_max",)}
        return {k: v for k, v in asdict(self).items() if k not in foreign[self.method]}


def read_corpus(
    paths: Sequence[str], settings: Settings, on_progress: Progress | None = None
) -> Corpus:
    """Read and tokenize texts; complains if there is nothing to learn from them."""
    tokenizer: Tokenizer = TOKENIZERS.make(settings.tok)
    texts = read_texts(paths, on_progress)
    corpus = Corpus.of(texts, tokenizer, settings.lower, settings.min_count)
    _check(corpus, settings, ", ".join(paths))
    return corpus


def train_vectors(
    corpus: Corpus,
    output: Path,
    settings: Settings,
    *,
    inputs: Sequence[str],
    threads: int = 1,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Learn vectors from texts and write them as a folder; an account of it."""
    check_target(output)
    started = time.perf_counter()
    learnt = _learn(corpus, settings.completed(), threads, on_progress)
    seconds = time.perf_counter() - started
    tok = TOKENIZERS.make(settings.tok).signature()
    account = {
        "training": {**settings.completed().told(), "tok": tok, "inputs": list(inputs)},
        "texts": corpus.texts,
        "texts_not_split": corpus.unsplit,
        "tokens": corpus.tokens,
        "tokens_of_words": len(corpus.ids),
        **learnt.account,
    }
    with new_folder(output, ", ".join(inputs)) as writer:
        if learnt.buckets is not None:
            size = Subwords(gensim.SHORTEST, gensim.LONGEST, len(learnt.buckets))
            writer.add_subwords(size, iter([learnt.buckets]))
        encoded = [word.encode("utf-8", "surrogatepass") for word in corpus.words]
        writer.add(Batch(encoded, learnt.vectors))
        writer.add_counts(corpus.counts)
        manifest = writer.finish(account)
    return {
        "output": str(output),
        "digest": manifest.digest,
        "words": manifest.words,
        "dimensions": manifest.dimensions,
        **account,
        "threads": threads,
        "seconds": seconds,
    }


@dataclass(frozen=True)
class _Learnt:
    vectors: Floats
    buckets: Floats | None
    account: dict[str, Any]


def _learn(
    corpus: Corpus, settings: Settings, threads: int, on_progress: Progress | None
) -> _Learnt:
    assert settings.window is not None and settings.epochs is not None
    shared: dict[str, Any] = {
        "dimensions": settings.dimensions,
        "window": settings.window,
        "epochs": settings.epochs,
        "seed": settings.seed,
    }
    if settings.method == "glove":
        glove = Glove(**shared, x_max=settings.x_max)
        counts = glove.count(corpus.ids, corpus.starts, threads)
        result = glove.train(counts, len(corpus.words), threads, on_progress)
        entries = 2 * len(counts.rows) - int((counts.rows == counts.columns).sum())
        return _Learnt(result.vectors, None, {"entries": entries, "losses": result.losses})
    if settings.method == "word2vec":
        vectors = gensim.word2vec(corpus, **shared, threads=threads, on_progress=on_progress)
        return _Learnt(vectors, None, {})
    vectors, buckets = gensim.fasttext(
        corpus, **shared, threads=threads, buckets=settings.buckets, on_progress=on_progress
    )
    return _Learnt(vectors, buckets, {})


def _check(corpus: Corpus, settings: Settings, inputs: str) -> None:
    if not corpus.texts:
        raise DataError("there is no text to learn from", path=inputs)
    if corpus.unsplit == corpus.texts:
        raise DataError(
            f"the tokenizer {settings.tok} can't split any of the {corpus.texts} texts;"
            " give --language or --tok",
            path=inputs,
        )
    if len(corpus.words) < 2 or len(corpus.starts) - 1 == len(corpus.ids):
        raise DataError(
            f"no two words that stand at least {settings.min_count} times are neighbours;"
            " give more texts or a smaller --min-count",
            path=inputs,
        )

"""Train word vectors on texts and write them as a folder (``rejoinder train vectors``)."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.train.corpus import Corpus, read_texts
from rejoinder.encode.static.train.gensim_models import MAX_N, MIN_N, train_gensim
from rejoinder.encode.static.train.glove import Glove
from rejoinder.encode.static.vectors_folder import (
    Batch,
    check_vectors_target,
    new_vectors_folder,
)
from rejoinder.encode.static.vectors_manifest import Subwords
from rejoinder.errors import DataError, UsageError
from rejoinder.progress import Progress
from rejoinder.registry import TOKENIZERS
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.wording import option

Floats = NDArray[np.float32]

METHODS = ("glove", "word2vec", "fasttext")
WINDOWS = {"glove": 10, "word2vec": 5, "fasttext": 5}
EPOCHS = {"glove": 25, "word2vec": 5, "fasttext": 5}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings that determine the vectors; None stands for the default of the method."""

    method: str = "glove"
    dimensions: int = 100
    window: int | None = None
    min_count: int = 5
    epochs: int | None = None
    tok: str = "13a"
    lower: bool = True
    seed: int = 0
    x_max: float = 10.0
    """GloVe: co-occurrence counts from this on have full weight."""
    buckets: int = 200_000
    """fastText: number of buckets for character n-grams."""

    def completed(self) -> Settings:
        """Return the settings with the defaults of the method filled in."""
        if self.method not in METHODS:
            raise UsageError(f"unknown method '{self.method}': choose {', '.join(METHODS)}")
        return replace(
            self,
            window=self.window or WINDOWS[self.method],
            epochs=self.epochs or EPOCHS[self.method],
        )

    def used(self) -> dict[str, Any]:
        """Return the settings that the method uses."""
        unused = {"glove": ("buckets",), "word2vec": ("buckets", "x_max"), "fasttext": ("x_max",)}
        return {k: v for k, v in asdict(self).items() if k not in unused[self.method]}


def read_corpus(
    paths: Sequence[str], settings: Settings, on_progress: Progress | None = None
) -> Corpus:
    """Read and tokenize texts; DataError if nothing can be learnt from them."""
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
    languages: Collection[str] = (),
    threads: int = 1,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Train vectors on a corpus and write them as a folder; return a summary of the training.

    ``languages`` are the ISO 639-1 codes of the texts, if they are known.
    """
    check_vectors_target(output)
    started = time.perf_counter()
    trained = _train(corpus, settings.completed(), threads, on_progress)
    seconds = time.perf_counter() - started
    tok = TOKENIZERS.make(settings.tok).signature()
    summary = {
        "training": {**settings.completed().used(), "tok": tok, "inputs": list(inputs)},
        "texts": corpus.texts,
        "texts_not_split": corpus.unsplit,
        "tokens": corpus.tokens,
        "tokens_of_words": len(corpus.ids),
        **trained.summary,
    }
    with new_vectors_folder(output, ", ".join(inputs)) as writer:
        if trained.buckets is not None:
            size = Subwords(MIN_N, MAX_N, len(trained.buckets))
            writer.add_subwords(size, iter([trained.buckets]))
        encoded = [word.encode("utf-8", "surrogatepass") for word in corpus.words]
        writer.add(Batch(encoded, trained.vectors))
        writer.add_counts(corpus.counts)
        manifest = writer.finish(summary, languages)
    return {
        "output": str(output),
        "digest": manifest.digest,
        "words": manifest.words,
        "dimensions": manifest.dimensions,
        **summary,
        "threads": threads,
        "seconds": seconds,
    }


@dataclass(frozen=True)
class _Trained:
    vectors: Floats
    buckets: Floats | None
    summary: dict[str, Any]


def _train(
    corpus: Corpus, settings: Settings, threads: int, on_progress: Progress | None
) -> _Trained:
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
        return _Trained(result.vectors, None, {"entries": entries, "losses": result.losses})
    vectors, buckets = train_gensim(
        corpus,
        **shared,
        threads=threads,
        buckets=settings.buckets if settings.method == "fasttext" else None,
        on_progress=on_progress,
    )
    return _Trained(vectors, buckets, {})


def _check(corpus: Corpus, settings: Settings, inputs: str) -> None:
    if not corpus.texts:
        raise DataError("there is no text to learn from", path=inputs)
    if corpus.unsplit == corpus.texts:
        raise DataError(
            f"the tokenizer {settings.tok} can't split any of the {corpus.texts} texts;"
            f" give {option('language')} or {option('tok')}",
            path=inputs,
        )
    if len(corpus.words) < 2 or len(corpus.starts) - 1 == len(corpus.ids):
        raise DataError(
            f"no two words that occur {settings.min_count} times or more are neighbours;"
            f" give more texts or a smaller {option('min_count')}",
            path=inputs,
        )

"""word2vec and fastText, trained by gensim.

With one thread, the same seed gives the same vectors. With several, the threads of gensim update
the same vectors without locks, so two runs differ a little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.static.train.corpus import Corpus
from rejoinder.errors import missing_extra
from rejoinder.progress import Progress

MIN_N, MAX_N = 3, 6
"""Lengths of character n-grams, as in the paper of fastText."""


def word2vec(
    corpus: Corpus,
    *,
    dimensions: int,
    window: int,
    epochs: int,
    seed: int,
    threads: int,
    on_progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Train skip-grams with negative sampling; return a vector for each word of the corpus."""
    model = _train("Word2Vec", corpus, dimensions, window, epochs, seed, threads, on_progress)
    return _in_corpus_order(model.wv, corpus)


def fasttext(
    corpus: Corpus,
    *,
    dimensions: int,
    window: int,
    epochs: int,
    seed: int,
    threads: int,
    buckets: int,
    on_progress: Progress | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Train with character n-grams; return vectors of the words and of the buckets of n-grams."""
    model = _train(
        "FastText",
        corpus,
        dimensions,
        window,
        epochs,
        seed,
        threads,
        on_progress,
        bucket=buckets,
        min_n=MIN_N,
        max_n=MAX_N,
    )
    return _in_corpus_order(model.wv, corpus), model.wv.vectors_ngrams


class _Sentences:
    """The texts, which gensim reads once per epoch; reports the number of epochs."""

    def __init__(self, corpus: Corpus, epochs: int, on_progress: Progress | None) -> None:
        self._corpus, self._epochs, self._on_progress = corpus, epochs, on_progress
        self._done = 0

    def __iter__(self) -> Iterator[list[str]]:
        yield from self._corpus.sentences()
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, self._epochs)


def _train(
    kind: str,
    corpus: Corpus,
    dimensions: int,
    window: int,
    epochs: int,
    seed: int,
    threads: int,
    on_progress: Progress | None,
    **more: Any,
) -> Any:
    try:
        from gensim import models
    except ImportError:
        raise missing_extra(
            "vectors", "gensim", task="training word2vec or fastText (but not GloVe)"
        ) from None
    model = getattr(models, kind)(
        vector_size=dimensions, window=window, sg=1, min_count=1, seed=seed, workers=threads, **more
    )
    frequencies = dict(zip(corpus.words, corpus.counts.tolist(), strict=True))
    model.build_vocab_from_freq(frequencies, corpus_count=len(corpus.starts) - 1)
    sentences = _Sentences(corpus, epochs, on_progress)
    model.train(
        sentences,
        total_examples=len(corpus.starts) - 1,
        total_words=len(corpus.ids),
        epochs=epochs,
    )
    return model


def _in_corpus_order(vectors: Any, corpus: Corpus) -> NDArray[np.float32]:
    """Return the vectors in the order of our words: gensim orders ties of frequency otherwise."""
    rows = [vectors.key_to_index[word] for word in corpus.words]
    return np.asarray(vectors.vectors[rows], np.float32)

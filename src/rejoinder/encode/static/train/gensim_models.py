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


def train_gensim(
    corpus: Corpus,
    *,
    dimensions: int,
    window: int,
    epochs: int,
    seed: int,
    threads: int,
    buckets: int | None = None,
    on_progress: Progress | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Train skip-grams with negative sampling: word2vec, or with ``buckets`` fastText.

    Return the vectors of the words of the corpus, and those of the buckets of character n-grams.
    """
    try:
        from gensim import models
    except ImportError:
        raise missing_extra(
            "vectors", "gensim", task="training word2vec or fastText (but not GloVe)"
        ) from None
    options: dict[str, Any] = {
        "vector_size": dimensions, "window": window, "sg": 1, "min_count": 1, "seed": seed,
        "workers": threads,
    }  # fmt: skip
    if buckets is None:
        model = models.Word2Vec(**options)
    else:
        model = models.FastText(**options, bucket=buckets, min_n=MIN_N, max_n=MAX_N)
    frequencies = dict(zip(corpus.words, corpus.counts.tolist(), strict=True))
    model.build_vocab_from_freq(frequencies, corpus_count=len(corpus.starts) - 1)
    model.train(
        _Sentences(corpus, epochs, on_progress),
        total_examples=len(corpus.starts) - 1,
        total_words=len(corpus.ids),
        epochs=epochs,
    )
    vectors = _in_corpus_order(model.wv, corpus)
    return vectors, None if buckets is None else model.wv.vectors_ngrams


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


def _in_corpus_order(vectors: Any, corpus: Corpus) -> NDArray[np.float32]:
    """Return the vectors in the order of our words: gensim orders ties of frequency otherwise."""
    rows = [vectors.key_to_index[word] for word in corpus.words]
    return np.asarray(vectors.vectors[rows], np.float32)

"""Refuse to compare texts in a language that the retriever's encoder was not trained on.

An English encoder turns Japanese into vectors as well, and their cosines look like similarities:
English MiniLM gives two unrelated Japanese sentences .58.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.errors import DataError
from rejoinder.text.identify import MAX_EXAMINED, find_other_language
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool
    from rejoinder.retrieve.retriever import Retriever

OnWarning = Callable[[str], None]


def check_language(
    retriever: Retriever,
    texts: Sequence[str],
    path: str,
    any_language: bool = False,
    on_warning: OnWarning | None = None,
) -> None:
    """Raise DataError if the texts are in a language that the retriever does not know.

    With ``any_language`` they are accepted, and ``on_warning`` receives the message.
    """
    other = find_other_language(texts, retriever.languages)
    if other is None:
        return
    message = other.describe(f"the encoder of '{retriever}'")
    if not any_language:
        raise DataError(
            f"{message}; use an encoder for this language, or bm25, or"
            f" {option('any_language', True)}",
            path=path,
        )
    if on_warning:
        on_warning(f"{path}: {message}; its similarities mean little")


def check_pool_language(
    pool: Pool,
    retriever: Retriever,
    any_language: bool = False,
    on_warning: OnWarning | None = None,
) -> None:
    """Check a sample of the utterances of a pool."""
    if retriever.languages is not None:
        step = -(-pool.size // MAX_EXAMINED)
        texts = pool.utterances(np.arange(0, pool.size, step))
        check_language(retriever, texts, pool.path, any_language, on_warning)

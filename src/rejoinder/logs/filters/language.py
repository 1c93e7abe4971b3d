"""Find posts in another language, by the platform's label and by a classifier.

The classifier is CLD2; see :mod:`rejoinder.text.identify` for what it removes and misses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.logs.filters.rewrite import EMAIL_MASK, PHONE_MASK
from rejoinder.text.identify import in_other_language, language_code


def labelled_otherwise(labels: pa.Array, language: str) -> NDArray[np.bool_]:
    """Return where the label names another language; a missing or unknown label does not."""
    if labels.null_count == len(labels):
        return np.zeros(len(labels), np.bool_)
    names = labels.dictionary_encode()
    own = ("", language_code(language))
    other = pa.array([language_code(name) not in own for name in names.dictionary.to_pylist()])
    is_other = pc.fill_null(other.take(names.indices), False)
    return is_other.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def classified_otherwise(texts: Sequence[str], language: str) -> list[bool]:
    """Return which texts the classifier is sure to be in another language."""
    return in_other_language(
        (text.replace(EMAIL_MASK, " ").replace(PHONE_MASK, " ") for text in texts), language
    )

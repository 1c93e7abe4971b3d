"""``contexts``: draw a test set from held-out pairs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from rejoinder.errors import missing_extra
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.files.paths import check_output
from rejoinder.verbs.arguments import SEED
from rejoinder.verbs.results import Result


@dataclass(frozen=True)
class ContextsResult(Result):
    """The contexts that were drawn: items, or contexts with the human reply as reference."""

    records: list[Any]
    drawn: int
    available: int
    """Contexts of the split that meet the conditions."""

    def to_dict(self) -> dict[str, Any]:
        return {"contexts": self.drawn, "available": self.available}


def contexts(
    pairs: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    split: str = "test",
    count: int = 200,
    min_words: int = 0,
    as_references: bool = False,
    seed: int = SEED,
) -> ContextsResult:
    """Draw contexts from held-out pairs, with the replies that people gave.

    They are items of the system "human" without references; or, with ``as_references``, contexts
    for :func:`reply`, each with the human reply as its only reference. The same seed draws the same
    contexts in both cases. ``output`` is the file to write ("-": stdout).
    """
    try:
        from rejoinder.logs.held_out import draw_pairs
    except ImportError as error:
        raise missing_extra("logs", str(error.name), task="reading pairs") from None
    check_output(output, [pairs])
    drawn = draw_pairs(os.fspath(pairs), split=split, count=count, min_words=min_words, seed=seed)
    records: list[Any] = list(drawn.contexts() if as_references else drawn.items())
    write_jsonl_file(output, records)
    return ContextsResult(records, len(drawn.rows), drawn.num_candidates)

"""``index``: prepare pairs for ``expand`` and ``reply``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import Result, to_plain

if TYPE_CHECKING:
    from rejoinder.retrieve.index_folder import Manifest


@dataclass(frozen=True)
class IndexResult(Result):
    """Where the index is, and its manifest."""

    folder: Path
    retriever: str
    manifest: Manifest

    @property
    def megabytes(self) -> float:
        return sum(self.manifest.files.values()) / 2**20

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(self.manifest)
        return plain


@keep_notes
def index(
    pairs: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    by: str | None = None,
    split: str | None = None,
    language: str | None = None,
    any_language: bool = False,
    monitor: Monitor = SILENT,
) -> IndexResult:
    """Build an index of the pairs in a Parquet file, for the retriever ``by``."""
    from rejoinder.files.paths import check_new_folder
    from rejoinder.retrieve.expand_items import DEFAULT_RETRIEVER
    from rejoinder.retrieve.index_folder import build_index
    from rejoinder.retrieve.retriever import make_retriever

    retriever = make_retriever(by or DEFAULT_RETRIEVER, language)
    target = Path(os.fspath(output).rstrip("/") or "/")
    check_new_folder(target, may_replace=lambda folder: True)  # an index may be replaced
    with monitor.pieces("indexing") as advance:
        manifest = build_index(
            os.fspath(pairs),
            retriever,
            target,
            split=split,
            any_language=any_language,
            on_warning=monitor.warn,
            on_progress=advance,
        )
    return IndexResult(target, str(retriever), manifest)

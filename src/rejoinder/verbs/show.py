"""``show``: an item with its references, and the words that they share with the reply."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, UsageError
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.files.jsonl import read_scores
from rejoinder.items import Item, Score
from rejoinder.registry import TOKENIZERS
from rejoinder.spec import did_you_mean
from rejoinder.text.languages import language as find_language
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import Result, to_plain
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.reporting.item_view import View


@dataclass(frozen=True)
class ShowResult(Result):
    """One item with the words that match."""

    view: View

    def to_dict(self) -> dict[str, Any]:
        item = to_plain(self.view.item)
        item["references"] = [
            {**to_plain(reference), "matched": list(matches.words)}
            for reference, matches in zip(
                self.view.item.references, self.view.references, strict=True
            )
        ]
        return {
            "item": item,
            "matched": list(self.view.reply.words),
            "scores": to_plain(list(self.view.scores)),
        }


@dataclass(frozen=True)
class ListResult(Result):
    """The items of a file by id and system."""

    items: list[Item]
    more: int = 0
    """Items of the file that are not listed."""
    scores: list[Score] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {"items": [{"id": item.id, "system": item.system} for item in self.items]}


@keep_notes
def show(
    items: str | os.PathLike[str],
    id: str | None = None,
    *,
    scores: str | os.PathLike[str] | None = None,
    columns: Columns | None = None,
    language: str | None = None,
    max_items: int | None = None,
    monitor: Monitor = SILENT,
) -> ShowResult | ListResult:
    """Return one item with its references and scores, or, without ``id``, the items of a file."""
    source = ItemFile(os.fspath(items), columns, monitor.note)
    if id is None:
        if scores is not None:
            raise UsageError(f"{option('scores')} shows the scores of one item: give its id")
        return _list(source, max_items)
    from rejoinder.reporting.item_view import View

    tokenizer = TOKENIZERS.make(find_language(language or "en").tokenizer)
    item = _find(source, id)
    own = [] if scores is None else _scores(os.fspath(scores), id)
    return ShowResult(View.of(item, tokenizer, own))


def _list(source: ItemFile, max_items: int | None) -> ListResult:
    shown: list[Item] = []
    more = 0
    for item in read_items(source):
        if max_items is None or len(shown) < max_items:
            shown.append(item)
        else:
            more += 1
    return ListResult(shown, more)


def _find(source: ItemFile, wanted: str) -> Item:
    ids = []
    for item in read_items(source):
        if item.id == wanted:
            return item
        ids.append(item.id)
    advice = did_you_mean(wanted, ids)
    if not advice.startswith("did"):
        advice = f"'rejoinder show {source.path}' lists its {len(ids):,} items"
    raise DataError(f"there is no item '{wanted}': {advice}", path=source.name)


def _scores(path: str, wanted: str) -> list[Score]:
    own = [score for _, score in read_scores(path) if score.level == "item" and score.id == wanted]
    if not own:
        raise DataError(f"there is no score of the item '{wanted}'", path=path)
    return own

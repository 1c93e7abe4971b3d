"""``rejoinder show``: an item with its references, and which words of the reply match."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import JsonOption, LanguageOption, print_json
from rejoinder.cli.common import show as print_table
from rejoinder.errors import DataError, UsageError

if TYPE_CHECKING:
    from rejoinder.items import Item, Score
    from rejoinder.reporting.show import View


def show(
    items: Annotated[str, typer.Argument(metavar="ITEMS", help="JSONL, .gz, .zst, or - .")],
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Which item; without it, a list.")
    ] = None,
    scores: Annotated[
        str | None, typer.Option("--scores", metavar="FILE", help="Show its scores too.")
    ] = None,
    language: LanguageOption = None,
    json: JsonOption = False,
) -> None:
    """Show an item: context, reply, and references with similarity and weight.

    Words that the reply and a reference share are underlined; outside a
    terminal they stand in brackets.
    """
    from rejoinder.registry import TOKENIZERS
    from rejoinder.reporting.show import View
    from rejoinder.text.languages import language as known_language

    if id is None:
        if scores is not None:
            raise UsageError("--scores shows the scores of one item: name its id")
        _list(items, json)
        return
    tokenizer = TOKENIZERS.make(known_language(language or "en").tokenizer)
    item = _find(items, id)
    _print(View.of(item, tokenizer, _scores(scores, id) if scores else []), json)


def _find(items: str, wanted: str) -> Item:
    from rejoinder.io import read_items
    from rejoinder.spec import did_you_mean

    ids = []
    for item in read_items(items):
        if item.id == wanted:
            return item
        ids.append(item.id)
    advice = did_you_mean(wanted, ids)
    if not advice.startswith("did"):
        advice = f"'rejoinder show {items}' lists its {len(ids):,} items"
    raise DataError(f"there is no item '{wanted}': {advice}", path=items)


def _scores(path: str, wanted: str) -> list[Score]:
    from rejoinder.io import read_scores

    found = [score for _, score in read_scores(path) if score.level == "item"]
    own = [score for score in found if score.id == wanted]
    if not own:
        raise DataError(f"there is no score of the item '{wanted}'", path=path)
    return own


def _list(items: str, json: bool) -> None:
    from rejoinder.io import read_items
    from rejoinder.reporting.show import MOST, items_table

    shown: list[Item] = []
    more = 0
    for item in read_items(items):
        if json or len(shown) < MOST:
            shown.append(item)
        else:
            more += 1
    if json:
        print_json({"items": [{"id": item.id, "system": item.system} for item in shown]})
    else:
        print_table(items_table(shown, more))


def _print(view: View, json: bool) -> None:
    if json:
        print_json(_plain(view))
        return
    from rejoinder.reporting.show import dialogue_table, references_table, scores_table

    plain = (
        not sys.stdout.isatty()
        or bool(os.environ.get("NO_COLOR"))
        or os.environ.get("TERM") == "dumb"
    )
    print_table(dialogue_table(view, plain=plain))
    if view.references:
        print_table(references_table(view, plain=plain))
    if view.scores:
        print_table(scores_table(view))


def _plain(view: View) -> dict[str, Any]:
    import msgspec

    item = msgspec.to_builtins(view.item)
    item["references"] = [
        {**msgspec.to_builtins(reference), "matched": list(matches.words)}
        for reference, matches in zip(view.item.references, view.references, strict=True)
    ]
    return {
        "item": item,
        "matched": list(view.reply.words),
        "scores": [msgspec.to_builtins(score) for score in view.scores],
    }

"""Lines of a scores file: put together from bytes, they are those of the records."""

from __future__ import annotations

import msgspec
import pytest

from rejoinder.item_table import ItemTable
from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.records import item_score_lines, item_scores

ITEMS = [
    Item('a,"b"\n\u2028', "the cat sat", references=[Reference("the cat sat on the mat")]),
    Item("ä", "no", references=[Reference("yes")]),
    Item("c", "a cat", references=[Reference("a cat")]),
]


@pytest.mark.parametrize("specs", [["bleu(n=2)"], ["rouge-l", "delta-bleu(n=2)", "wer"]])
@pytest.mark.parametrize("unscored", [False, True])
@pytest.mark.parametrize("parts", [False, True])
def test_lines_are_those_of_the_records(specs: list[str], unscored: bool, parts: bool) -> None:
    metric_set = make_metrics(specs)
    items = ItemTable.of(ITEMS + ([Item("d", "x")] if unscored else []))
    ((batch, results),) = evaluate(items, metric_set.item_metrics)
    records = item_scores(metric_set.labels, batch, results, parts=parts)
    lines = item_score_lines(metric_set.labels, batch, results, parts=parts)
    assert lines == msgspec.json.Encoder().encode_lines(records)
    assert len(lines.splitlines()) == len(items) * len(specs)

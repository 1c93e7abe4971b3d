"""Replies and scores for tests of the page, among them texts that mean harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rejoinder.items import Item, Reference, Score
from rejoinder.meta_evaluation.evaluation import MetaSettings
from rejoinder.registry import TOKENIZERS
from rejoinder.reporting.page.analysis import Analysis, analyse
from rejoinder.reporting.page.build import Provenance
from rejoinder.reporting.page.render import render
from rejoinder.reporting.page.report_data import ReportData, load_report_data

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "\u2028\u2029<!-- <script> &amp; ${hacked} {{ 7 * 7 }}",
    "שלום, מה שלומך היום?",
    "今日はいい天気ですね",
    "😀 smile 😀 and smile",
]
SYSTEMS = ["good", "<b>bad</b>", "עברית", "日本"]


def scored(metric: str, items: Iterable[Item], values: Iterable[float | str]) -> list[Score]:
    """Scores in the order of the items; a text is the reason why there is none."""
    return [
        Score(item.id, metric, None, f"{metric}|v:1", unscored=value)
        if isinstance(value, str)
        else Score(item.id, metric, float(value), f"{metric}|v:1")
        for item, value in zip(items, values, strict=True)
    ]


def replies(
    contexts: int = 30, *, rated: bool = True, systems: Sequence[str] = SYSTEMS
) -> list[Item]:
    """Every system answers every context; each is a bit worse than the one before it."""
    rng = np.random.default_rng(5)
    items = []
    for context in range(contexts):
        for number, system in enumerate(systems):
            quality = 4 - 0.8 * number + rng.normal(0, 0.5)
            items.append(
                Item(
                    id=f"{context}:{number}",
                    context_id=str(context),
                    context=["hello", HOSTILE[context % len(HOSTILE)]],
                    response=f"reply {context} {HOSTILE[(context + number) % len(HOSTILE)]}",
                    system=system,
                    references=[
                        Reference(f"reply to {HOSTILE[context % len(HOSTILE)]}"),
                        Reference(f"found {context}", 0.5, "retrieved", 0.75),
                        Reference("bad smile", -0.25, "retrieved", 0.5),
                    ],
                    ratings={"ann": round(quality), "bob": round(quality + 0.4)} if rated else None,
                )
            )
    return items


def scores(items: Sequence[Item]) -> list[Score]:
    """Two metrics, the second of which could not score some."""
    rng = np.random.default_rng(6)
    places = {name: n for n, name in enumerate(dict.fromkeys(item.system for item in items))}
    level = np.array([1 - 0.2 * places[item.system] for item in items])
    first = level + rng.normal(0, 0.1, len(items))
    second: list[float | str] = list(rng.random(len(items)))
    second[::17] = [HOSTILE[0]] * len(second[::17])
    return [*scored("ruber", items, first), *scored("bleu(n=2)", items, second)]


def report_data(
    items: Sequence[Item], found: Iterable[Score], metric: str | None = None
) -> ReportData:
    numbered = ((line, score) for line, score in enumerate(found, 1))
    return load_report_data(
        items, numbered, metric=metric, items_name="items", scores_name="scores"
    )


def analysis(items: Sequence[Item], found: Iterable[Score], **options: Any) -> Analysis:
    metric = options.pop("metric", None)
    settings = MetaSettings(options.pop("resamples", 200), 1)
    return analyse(report_data(items, found, metric), settings, **options)


def page(items: Sequence[Item], found: Iterable[Score], most: int = 2000, **options: Any) -> bytes:
    made = Provenance("A <i>title</i>", "rejoinder report 'a b' c", [("items", "sha256 0")])
    tokenizer = TOKENIZERS.make("13a")
    return render(analysis(items, found, **options), made, tokenizer, max_items=most)

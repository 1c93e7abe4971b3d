"""Ji et al. 2022: people chatted with systems and rated the whole dialogue on 0-100 scales.

The rating of a dialogue is the mean of its seven qualities, under the name of the worker; single
replies have none. ``robotic`` and ``repetitive`` are released reversed, so that higher is better on
all scales (the quality controls, whose replies are random words, have the lowest ``robotic`` and,
because nothing comes twice, the highest ``repetitive``).

Each worker was also given one dialogue with a system of degraded replies, ``QualityControl``. It is
no system and left out. Of the 439 workers, 435 rated it below the mean of their other dialogues;
nobody is left out. In five tasks one system occurs twice, so ids contain the place in the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.testsets.source import Row

QUALITIES = ("robotic", "interesting", "fun", "consistent", "fluent", "repetitive", "topic")
CONTROL = "QualityControl"


class _Round(msgspec.Struct):
    round: int
    user: str
    bot: str


class _Dialogue(msgspec.Struct):
    model: str
    dialogue: list[_Round]
    scores: dict[str, Annotated[float, msgspec.Meta(ge=0, le=100)]] = msgspec.field(
        name="raw scores"
    )


class _Task(msgspec.Struct):
    worker: str
    data: list[_Dialogue]


def read(tasks: Path) -> Iterator[Row]:
    """Yield each reply of the systems, with all turns before it as context."""

    def convert(record: object) -> _Task:
        task = msgspec.convert(record, _Task)
        for dialogue in task.data:
            if set(dialogue.scores) != set(QUALITIES):
                raise msgspec.ValidationError(f"Expected the qualities {', '.join(QUALITIES)}")
        return task

    for number, (_, task) in enumerate(JsonLines(tasks).decode(convert), 1):
        for place, dialogue in enumerate(task.data, 1):
            if dialogue.model == CONTROL:
                continue
            name = f"{number}-{place}"
            rating = sum(dialogue.scores.values()) / len(QUALITIES)
            turns: list[str] = []
            for each in dialogue.dialogue:
                turns.append(each.user)
                item = Item(
                    id=f"{name}:{each.round}",
                    response=each.bot,
                    context=list(turns),
                    system=dialogue.model,
                    context_id=f"{name}:{each.round}",
                    dialogue_id=name,
                    turn=each.round,
                    dialogue_ratings={task.worker: rating},
                )
                yield Row(item, [], [])
                turns.append(each.bot)

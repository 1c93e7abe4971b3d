"""``datasets``: test sets that people have rated, as items."""

from __future__ import annotations

import builtins
import os
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.spec import did_you_mean
from rejoinder.testsets import CATALOGUE
from rejoinder.testsets import load as load_testset
from rejoinder.verbs.arguments import SEED, as_names
from rejoinder.verbs.items import Items
from rejoinder.verbs.results import FrameColumns, TableResult, records_to_columns
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.testsets.catalogue import Dataset


@dataclass(frozen=True)
class DatasetsResult(TableResult):
    """The test sets that can be exported. The frame has a row per set."""

    datasets: builtins.list[Dataset]

    def columns(self) -> FrameColumns:
        return records_to_columns([asdict(dataset) for dataset in self.datasets])

    def to_dict(self) -> dict[str, Any]:
        return {"datasets": [asdict(dataset) for dataset in self.datasets]}


@dataclass(frozen=True)
class ExportResult(TableResult):
    """The items of a test set. The frame has a row per item."""

    name: str
    items: Items

    @property
    def references(self) -> int:
        return sum(len(item.references) for item in self.items)

    def columns(self) -> FrameColumns:
        return self.items.columns()

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "items": len(self.items), "references": self.references}


def list() -> DatasetsResult:
    """List the test sets that can be exported, with source and licence."""
    return DatasetsResult(builtins.list(CATALOGUE.values()))


def export(
    name: str,
    *,
    references: str | None = None,
    systems: str | Sequence[str] = (),
    contexts: int | None = None,
    seed: int = SEED,
    output: str | os.PathLike[str] | None = None,
) -> ExportResult:
    """Return a test set as items, of all ``systems`` or of some.

    Its files are in the folder that the environment variable REJOINDER_DATA names. ``references``
    is single, multi, scored or none. Of the ``contexts``, so many are drawn at random, all replies
    to each. ``output`` is the file to write ("-": stdout).
    """
    if contexts is not None and contexts < 1:
        raise UsageError(f"{option('contexts')} must be at least 1, got {contexts}")
    items = builtins.list(load_testset(name, references))
    if wanted := as_names(systems):
        there = {item.system for item in items}
        if unknown := [name for name in wanted if name not in there]:
            raise UsageError(
                *(f"{option('systems', s)}: {did_you_mean(s, there)}" for s in unknown)
            )
        items = [item for item in items if item.system in wanted]
    if contexts is not None:
        groups = builtins.list(dict.fromkeys(item.group for item in items))
        drawn = set(random.Random(seed).sample(groups, min(contexts, len(groups))))
        items = [item for item in items if item.group in drawn]
    write_jsonl_file(output, items)
    return ExportResult(name, Items(items))

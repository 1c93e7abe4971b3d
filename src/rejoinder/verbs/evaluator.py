"""An evaluator in memory, for repeated use: in a notebook or inside a training loop."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, UsageError
from rejoinder.evaluator.contamination import TestSet
from rejoinder.evaluator.evaluator import Evaluator as EvaluatorFolder
from rejoinder.evaluator.evaluator import open_evaluator
from rejoinder.evaluator.manifest import Manifest
from rejoinder.inputs.items import as_items
from rejoinder.inputs.texts import from_texts
from rejoinder.items import Item
from rejoinder.metrics.metric_set import MetricSet, make_metrics
from rejoinder.verbs.arguments import as_metrics
from rejoinder.verbs.items import Items
from rejoinder.verbs.monitor import SILENT
from rejoinder.verbs.results import Result, html_table, to_plain
from rejoinder.verbs.score import ScoreResult, run_metrics
from rejoinder.verbs.source import MemoryReading

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.retrieve.leaks import LeakIndex
    from rejoinder.retrieve.retriever import Mask
    from rejoinder.verbs.arguments import Metrics


class Evaluator(Result):
    """An evaluator that :func:`fit` made.

    Its pool and its networks are loaded when they are first needed, and stay in memory.
    """

    def __init__(self, folder: EvaluatorFolder | str | os.PathLike[str]) -> None:
        if not isinstance(folder, EvaluatorFolder):
            if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
                raise UsageError(f"Evaluator({folder!r}): expected the folder of an evaluator")
            folder = open_evaluator(os.fspath(folder))
        self._folder = folder
        self._metrics: dict[tuple[tuple[Any, ...], str | None], MetricSet] = {}
        self.notes = list(folder.manifest.notes)
        """What is missing or did not work out, such as a network that did not improve."""
        self.replaced: str | None = None
        """Name and digest of the evaluator that :func:`fit` replaced by this one."""

    @classmethod
    def load(cls, folder: str | Path) -> Evaluator:
        """Open the folder that :func:`rejoinder.fit` or 'rejoinder fit' wrote."""
        return cls(folder)

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def manifest(self) -> Manifest:
        """Its data, settings, parts and validation results."""
        return self._folder.manifest

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest, as ``rejoinder fit --json`` prints it."""
        plain: dict[str, Any] = to_plain(self.manifest)
        return plain if self.replaced is None else plain | {"replaced": self.replaced}

    def __str__(self) -> str:
        return str(self._folder)

    def __repr__(self) -> str:
        return repr(self._folder)

    def _repr_html_(self) -> str:
        manifest = self.manifest
        facts = {
            "evaluator": str(self.path),
            "language": manifest.language,
            "preset": manifest.preset,
            "rejoinder": manifest.rejoinder,
            "validation": str(dict(manifest.validation)),
        }
        return html_table({name: [value] for name, value in facts.items()})

    def score(
        self,
        contexts: Sequence[str | Sequence[str]],
        replies: Sequence[str],
        references: Sequence[Any] | None = None,
        metrics: Metrics = ("rejoinder",),
        *,
        language: str | None = None,
    ) -> ScoreResult:
        """Score replies to contexts: ``evaluator.score(contexts, replies)["rejoinder"].values``.

        A context is a list of turns, oldest first, or one text, a turn per line. ``references`` has
        known good replies for each reply, or None. Pairs of the pool with the same contexts are not
        used as references, so contexts of the logs may be scored, too. Nothing is resampled.
        """
        items = from_texts(replies, references=references, contexts=contexts)
        if not items:
            raise DataError("there are no replies")
        return run_metrics(
            MemoryReading(items),
            self._make_metrics(tuple(as_metrics(metrics)), language),
            test_set=_CallTestSet.of_call(self, items),
        )

    def expand(
        self, items: ItemsLike, k: int | None = None, *, columns: Columns | None = None
    ) -> Items:
        """Return the items with references from the pool, each with a weight from -1 to 1.

        There are ``k`` of them, by default as many as the evaluator was fitted for. ``columns``
        maps fields to the columns that hold them.
        """
        read, kind = as_items(items, columns, SILENT.note)
        item_list = list(read)
        expansion = self._folder.expansion(item_list, k, self._leaks(item_list))
        return Items(expansion.items, kind)

    def _make_metrics(self, metrics: tuple[Any, ...], language: str | None) -> MetricSet:
        if (metrics, language) not in self._metrics:
            made = make_metrics(metrics, language, str(self.path))
            if made.set_metrics:
                label = made.labels[made.set_metrics[0]]
                raise UsageError(f"{label} scores sets of replies; use rejoinder.diversity")
            self._metrics[metrics, language] = made
        return self._metrics[metrics, language]

    @cached_property
    def _leak_index(self) -> LeakIndex:
        from rejoinder.retrieve.leaks import LeakIndex

        return LeakIndex(self._folder.pool)

    def _leaks(self, items: Sequence[Item]) -> Mask:
        return self._leak_index.find({item.context[-1] for item in items if item.context})


class _CallTestSet(TestSet):
    """The contexts of one call; the pool rows that have them are looked up in an index."""

    _evaluator: Evaluator
    _mask: Mask

    @classmethod
    def of_call(cls, evaluator: Evaluator, items: Sequence[Item]) -> TestSet:
        made = cls()
        made._evaluator, made._mask = evaluator, evaluator._leaks(items)
        made.turns = {item.context[-1]: 1 for item in items if item.context}
        return made

    def leaks(self, evaluator: EvaluatorFolder) -> Mask:
        # a spec may name another evaluator
        same = evaluator is self._evaluator._folder
        return self._mask if same else super().leaks(evaluator)

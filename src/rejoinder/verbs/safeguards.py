"""Checks of a test set against the evaluators that score it: contamination and coverage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, UsageError
from rejoinder.verbs.monitor import Monitor
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.evaluator import Evaluator
    from rejoinder.evaluator.contamination import ContaminationReport, TestSet
    from rejoinder.evaluator.coverage import CoverageSummary, CoverageTally
    from rejoinder.evaluator.expansion import Expansion
    from rejoinder.item_table import ItemTable
    from rejoinder.items import Item
    from rejoinder.metrics.batch_scores import BatchScores
    from rejoinder.metrics.metric_set import MetricSet

TRAINING_DATA = "in its training or validation data"


def check_strict(strict: bool, has_evaluator: bool) -> None:
    """Refuse ``strict`` without an evaluator: nothing would be checked."""
    if strict and not has_evaluator:
        raise UsageError(
            f"{option('strict', True)} checks the items against an evaluator's training data: add"
            f" {option('evaluator', 'DIR')}, or leave it out"
        )


def evaluators_of(metrics: MetricSet, folder: str | None, *, strict: bool) -> list[Evaluator]:
    """Return the evaluators of the metrics and the one in ``folder``, each once."""
    evaluators = metrics.evaluators()
    if folder is not None:
        from rejoinder.evaluator import open_evaluator

        evaluators.append(open_evaluator(folder))
    check_strict(strict, bool(evaluators))
    return list(dict.fromkeys(evaluators))


@dataclass
class Safeguards:
    """Contamination of the test set, and its coverage, by each evaluator."""

    contamination: dict[str, ContaminationReport] = field(default_factory=dict)
    """Contexts and replies that an evaluator has in its training data, by evaluator."""
    tallies: dict[str, CoverageTally] = field(default_factory=dict)
    test_set: TestSet | None = None

    @property
    def coverage(self) -> dict[str, CoverageSummary]:
        """How well each evaluator's pool covers the contexts."""
        return {name: tally.summary() for name, tally in self.tallies.items()}

    def watch(
        self, batches: Iterable[tuple[ItemTable, list[BatchScores]]]
    ) -> Iterator[tuple[ItemTable, list[BatchScores]]]:
        """Pass scored batches through and add up how well each evaluator covers them."""
        from rejoinder.evaluator.coverage import CoverageTally

        for items, results in batches:
            expansions: dict[str, Expansion] = {}
            for result in results:
                if result.expansion is not None:
                    expansions.setdefault(str(result.expansion.evaluator), result.expansion)
            for name, expansion in expansions.items():
                usual = expansion.evaluator.manifest.coverage
                self.tallies.setdefault(name, CoverageTally(usual)).add(expansion.coverage)
            yield items, results

    def to_dict(self) -> dict[str, Any]:
        return {
            "coverage": [{"evaluator": n, **asdict(c)} for n, c in self.coverage.items()],
            "contamination": [
                {"evaluator": n, **asdict(report)} for n, report in self.contamination.items()
            ],
        }


def check_contamination(
    items: Iterable[Item], evaluators: Sequence[Evaluator], *, strict: bool, monitor: Monitor
) -> Safeguards:
    """Look for the test set in the training data of each evaluator.

    Contexts that are in it are a warning, or, if ``strict``, a DataError.
    """
    if not evaluators:
        return Safeguards()
    from rejoinder.evaluator.contamination import TestSet

    test_set = TestSet.of(items)
    reports = {str(evaluator): test_set.report(evaluator) for evaluator in evaluators}
    for name, each in reports.items():
        if each.seen and strict:
            raise DataError(
                f"{each} by {name} {TRAINING_DATA}; remove them from the items, or fit an evaluator"
                f" with {option('exclude', 'ITEMS')}, or leave out {option('strict')}"
            )
        if each.seen:
            monitor.warn(f"{each} by {name} {TRAINING_DATA}")
        elif each.contexts:
            monitor.message(f"{each} by {name} {TRAINING_DATA}")
        if copied := each.describe_replies():
            monitor.warn(f"{name}: {copied}")
    return Safeguards(reports, test_set=test_set)


def report_notes(notes: Sequence[str], safeguards: Safeguards, monitor: Monitor) -> None:
    """Report the notes of a result, and how well evaluators cover the items."""
    for note in notes:
        monitor.message(note)
    for name, summary in safeguards.coverage.items():
        for line, is_warning in coverage_lines(name, summary):
            (monitor.warn if is_warning else monitor.message)(line)


def coverage_lines(name: str, covered: CoverageSummary) -> Iterator[tuple[str, bool]]:
    """Yield lines about an evaluator's coverage of the test set, and whether each is a warning."""
    if covered.nearest is None:
        yield f"{name} covers none of the contexts", False
        return
    parts = [f"nearest {covered.nearest:.3f}"]
    if covered.agreement is not None:
        parts.append(f"agreement {covered.agreement:.3f}")
    usual = "" if covered.usual is None else f"; usual in its own logs: {covered.usual:.3f}"
    yield f"coverage by {name}: {', '.join(parts)} (medians{usual})", False
    if covered.outside:
        yield (
            f"these items are outside the domain of {name}: half of their contexts are farther from"
            f" its logs than 90 % of its own held-out contexts ({covered.bound:.3f}); trust its"
            " scores less",
            True,
        )

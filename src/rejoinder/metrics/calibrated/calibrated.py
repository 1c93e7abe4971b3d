"""``calibrated``: scores of other metrics brought to the scale on which people rate.

    score = f(metric 1, …, metric m)         f: an isotonic curve, an ordinal regression or a blend

``model`` is a folder that ``rejoinder calibrate`` has made from ratings; it names the metrics that
are scored, and the signatures that their scores must have. Each score has an interval
(``interval`` in the scores file) that was made to cover the ratings of, by default, 90 % of single
replies; the card of the folder says how many it covered in a test. The parts (``--parts``) are the
scores of the metrics.

An item that one of the metrics can't score is unscored, with the reason. The corpus value is the
mean over items. docs/calibrate.md explains the methods, and how many ratings they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.errors import DataError, UsageError
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.batch_scores import BatchScores, batch_scores
from rejoinder.metrics.calibrated.folder import Calibration, open_calibration
from rejoinder.metrics.evaluator.evaluator_metric import EvaluatorMetric
from rejoinder.metrics.metric import ItemMetric, WholeItemMetric, make_metric
from rejoinder.metrics.reasons import Reasons
from rejoinder.metrics.scoring_context import ScoringContext
from rejoinder.wording import choose

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator


@dataclass(frozen=True, kw_only=True)
class Calibrated(WholeItemMetric, EvaluatorMetric):
    name: ClassVar[str] = "calibrated"
    summary: ClassVar[str] = "other metrics on the scale of people, with an interval"
    needs: ClassVar[frozenset[str]] = frozenset()
    tolerance: ClassVar[float] = 1e-3

    model: str | None = None

    @cached_property
    def calibration(self) -> Calibration:
        """The opened calibration; UsageError if the spec names none."""
        if self.model is None:
            raise UsageError(f"calibrated {self.missing_requirement()}")
        return open_calibration(self.model)

    @cached_property
    def components(self) -> list[ItemMetric]:
        """The metrics that are calibrated; DataError if their scores would not be those that the
        calibration was made from."""
        components = []
        for each in self.calibration.manifest.metrics:
            metric = make_metric(each.metric, evaluator=self.evaluator_or_none)
            assert isinstance(metric, ItemMetric)
            if (missing := metric.missing_requirement()) is not None:
                raise UsageError(f"{self.calibration.name}: {metric} {missing}")
            if _plain(metric.signature()) != _plain(each.signature):
                raise DataError(
                    f"was made from scores of {each.metric} with the signature"
                    f" '{each.signature}', but now it is '{metric.signature()}'; use the same"
                    " settings, language and evaluator, or calibrate these scores",
                    path=self.model,
                )
            components.append(metric)
        return components

    @property
    def needs_whole_set(self) -> bool:
        return self.model is not None and any(each.needs_whole_set for each in self.components)

    def missing_requirement(self) -> str | None:
        if self.model is None:
            command = choose(
                command_line="rejoinder calibrate ITEMS SCORES -o calibration/",
                python="rejoinder.calibrate(ITEMS, SCORES, output='calibration/')",
            )
            return f"needs a model: make one with {command}, then write calibrated(model=…)"
        _ = self.components  # problems are reported now, not in the midst of scoring
        return None

    def evaluators(self) -> list[Evaluator]:
        if self.model is None:
            return []
        nested = [e for metric in self.components for e in metric.evaluators()]
        return list(dict.fromkeys(nested))

    def languages(self) -> dict[str, frozenset[str]]:
        languages: dict[str, frozenset[str]] = {}
        for metric in self.components if self.model is not None else ():
            languages |= metric.languages()
        return languages

    def notes(self) -> list[str]:
        return [note for metric in self.components for note in metric.notes()]

    def _signed(self, key: str) -> str:
        if key == "model" and self.model is not None:
            return f"{self.calibration.name}:{self.calibration.digest}"
        return super()._signed(key)

    def score(self, scoring: ScoringContext) -> BatchScores:
        scores = [scoring.score(metric) for metric in self.components]
        reasons: Reasons = np.full(len(scoring.batch), None, object)
        for of_component in reversed(scores):
            unscored = ~of_component.scored
            reasons[unscored] = of_component.reasons[unscored]
        keep = np.flatnonzero([reason is None for reason in reasons])
        values = np.array([each.values[keep] for each in scores])
        if keep.size:
            rows = [self.calibration.predict(values), *self.calibration.intervals(values), *values]
        else:
            rows = [np.zeros(0)] * (3 + len(scores))
        columns = np.column_stack([*rows, np.ones(len(keep))])
        expansion = next((each.expansion for each in scores if each.expansion is not None), None)
        return batch_scores(self, scoring.batch, columns, keep, reasons, expansion)

    def stats(self, batch: Batch) -> Floats:
        """The calibrated score, the ends of its interval, the scores of the metrics, and 1."""
        return self.score(ScoringContext(batch)).rows

    def parts(self, rows: Floats) -> dict[str, Floats]:
        names = [each.metric for each in self.calibration.manifest.metrics]
        return {name: rows[..., 3 + n] / rows[..., -1] for n, name in enumerate(names)}

    def intervals(self, rows: Floats) -> tuple[Floats, Floats]:
        return rows[..., 1], rows[..., 2]


def _plain(signature: str) -> str:
    """Return a signature without the version of this package."""
    return signature.rpartition("|version:")[0]

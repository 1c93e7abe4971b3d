"""``judge``: a language model rates the reply by a rubric.

    score = sum of s p(s) / sum of p(s),   s from the lowest to the highest number of the scale

where p(s) is the probability that the model gives to the number s as its answer (Liu et al. 2023,
G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment, § 2.3); without probabilities, the
number that it writes. The score is the mean over ``n`` answers, and over the dimensions of the
rubric (Lin and Chen 2023, LLM-Eval: Unified Multi-Dimensional Automatic Evaluation for Open-Domain
Conversations with Large Language Models), or that of one ``dimension``.

The model is behind an OpenAI-compatible endpoint (``url`` and ``model``), which is sent contexts,
replies and references, or in a folder (``model`` alone), which is run in this process.
``rubric`` is the name of a rubric of this package (appropriateness, coherence, engagingness,
groundedness, llm-eval) or a file; its ``language`` is en, ja or zh. docs/judges.md shows how to
write rubrics, and how to find out whether a judge can be trusted.

Choices: answers are cached, so nothing is asked twice. An answer that cannot be read is asked for
once more; then the item is unscored, with the text of the answer. A reply without the context that
the rubric shows is unscored. The best five references with a weight above 0 are shown. The corpus
value is the mean over items. The part ``mass`` is the share of the probability that the numbers of
the scale had: where it is small, the model hardly answers on the scale.

>>> from rejoinder.metrics.judging.judge import Judge
>>> str(Judge(url="http://localhost:8000/v1", model="qwen3", rubric="coherence"))
'judge(rubric=coherence,url=http://localhost:8000/v1,model=qwen3)'
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rejoinder.errors import DataError
from rejoinder.judges.asking import JudgeSettings
from rejoinder.judges.rating import Rater, Verdict, usable_references
from rejoinder.judges.rubric import Rubric, load_rubric
from rejoinder.judges.signing import signature_of
from rejoinder.llm.asking import Telling
from rejoinder.llm.folder.loading import open_folder
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.batch_scores import BatchScores, batch_scores
from rejoinder.metrics.metric import WholeItemMetric, has_context
from rejoinder.metrics.reasons import NO_CONTEXT, NO_REFERENCES, Reason, Reasons
from rejoinder.metrics.scoring_context import ScoringContext


@dataclass(frozen=True, kw_only=True)
class Judge(JudgeSettings, WholeItemMetric):
    name: ClassVar[str] = "judge"
    summary: ClassVar[str] = "a language model rates the reply by a rubric"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "language model"})
    asks_model: ClassVar[bool] = True

    rubric: str = "appropriateness"
    """Name of a rubric, or a file."""
    dimension: str | None = None
    """The one of the rubric's dimensions that is the score; None: their mean."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_judge(str(self))
        rubric = self.opened_rubric
        if self.references is True and not rubric.takes_references:
            raise ValueError(f"references=true, but the rubric '{self.rubric}' shows none")
        if self.dimension is not None and self.dimension not in rubric.dimensions:
            known = ", ".join(rubric.dimensions) or "no dimensions"
            raise ValueError(f"dimension={self.dimension}: the rubric '{self.rubric}' has {known}")

    @cached_property
    def opened_rubric(self) -> Rubric:
        return load_rubric(self.rubric, self.language)

    @cached_property
    def rater(self) -> Rater:
        return Rater(self, self.opened_rubric)

    def missing_requirement(self) -> str | None:
        return self.missing_model(self.name)

    def languages(self) -> dict[str, frozenset[str]]:
        if self.url is not None or self.model is None:
            return super().languages()
        known = open_folder(self.model).languages
        return {} if known is None else {f"the model {self.model}": known}

    def notes(self) -> list[str]:
        return [f"judge: {note}" for note in self.rater.notes()]

    def score(self, scoring: ScoringContext) -> BatchScores:
        batch = scoring.batch
        telling = Telling(scoring.on_message, scoring.on_note, scoring.on_part)
        reasons = self.reasons(batch)
        asked = np.flatnonzero([reason is None for reason in reasons])
        verdicts = self.rater.rate([batch.items[i] for i in asked.tolist()], telling)
        judging: list[dict[str, float] | None] = [None] * len(batch)
        for i, verdict in zip(asked.tolist(), verdicts, strict=True):
            judging[i] = _judging(verdict)
            if verdict.reason:
                reasons[i] = Reason(verdict.reason, verdict.kind)
        scored = np.array([not verdict.reason for verdict in verdicts], bool)
        rows = self._rows([verdict for verdict in verdicts if not verdict.reason])
        scores = batch_scores(self, batch, rows, asked[scored], reasons)
        return BatchScores(scores.metric, scores.values, scores.rows, reasons, judging=judging)

    def stats(self, batch: Batch) -> Floats:
        """The score, the dimensions, the mass (0 without probabilities), whether there is one,
        and 1."""
        verdicts = self.rater.rate(batch.items, Telling())
        for verdict, item in zip(verdicts, batch.items, strict=True):
            if verdict.reason:
                raise DataError(f"{self}: the item '{item.id}' has no score: {verdict.reason}")
        return self._rows(verdicts)

    def _rows(self, verdicts: list[Verdict]) -> Floats:
        names = self.opened_rubric.dimensions
        rows = [
            [
                verdict.value if self.dimension is None else verdict.values[self.dimension],
                *(verdict.values[name] for name in names),
                verdict.mass or 0.0,
                float(verdict.mass is not None),
                1.0,
            ]
            for verdict in verdicts
        ]
        return np.array(rows, np.float64).reshape(-1, len(names) + 4)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        """The dimensions, if the rubric has several, and the mass."""
        names = self.opened_rubric.dimensions
        values = {name: rows[..., 1 + n] / rows[..., -1] for n, name in enumerate(names)}
        told = rows[..., -2]
        mass = np.divide(rows[..., -3], told, out=np.full(told.shape, np.nan), where=told > 0)
        return {**values, "mass": mass}

    def reasons(self, batch: Batch) -> Reasons:
        reasons: Reasons = np.full(len(batch), None, object)
        for number, item in enumerate(batch.items):
            if self.opened_rubric.needs_context and not has_context(item):
                reasons[number] = NO_CONTEXT
            elif self.references is True and not usable_references(item):
                reasons[number] = NO_REFERENCES
        return reasons

    def signature(self) -> str:
        """Return all that decides the number: also what the server says of its model, and the
        dates of its answers."""
        return signature_of(
            self,
            self.opened_rubric,
            self.rater.server,
            scale=str(self.opened_rubric.scale),
            dimension=self.dimension or "all",
        )


def _judging(verdict: Verdict) -> dict[str, float]:
    """Return how a reply was judged, for the line of its score."""
    return {
        "answers": verdict.answers,
        "spread": verdict.spread,
        **verdict.cost.to_dict(),
    }

"""What a judge asks its model, and the parameters that all judges share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rejoinder.llm.asking import Asking
from rejoinder.llm.questions import schema_form

MAX_SAMPLES = 100
TOP = 20
"""Probable tokens that are asked for at each place, the most that OpenAI's servers give."""


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(Asking):
    """Which model a judge asks, and how."""

    name: ClassVar[str]

    references: bool | str = "auto"
    """Whether references are shown: ``auto`` where an item has some."""
    n: int = 1
    """Answers to each question."""
    logprobs: bool = True
    """Whether the server is asked for probabilities."""

    def check_judge(self, spec: str) -> None:
        """Raise UsageError with all problems of parameters that cannot be."""
        problems = []
        if self.references not in (True, False, "auto"):
            problems.append(f"references={self.references} is not one of auto, true, false")
        if not 1 <= self.n <= MAX_SAMPLES:
            problems.append(f"n={self.n} is not from 1 to {MAX_SAMPLES}")
        if self.n > 1 and self.temperature == 0:
            problems.append(f"n={self.n} answers at temperature=0 would all be the same")
        self.check_asking(self.name, spec, problems)

    @property
    def effective_temperature(self) -> float:
        """None: 0 for one answer, 1 for several."""
        if self.temperature is not None:
            return self.temperature
        return 0.0 if self.n == 1 else 1.0

    def forms(self, schema: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the ways in which a model may be asked, the best first; one in a folder writes by
        no schema."""
        asked: dict[str, Any] = {"logprobs": True, "top_logprobs": TOP}
        probabilities = asked if self.logprobs else {}
        if not self.structured or self.url is None:
            return [probabilities, {}] if probabilities else [{}]
        form = schema_form("rating", schema)
        forms = [{**probabilities, **form}, probabilities, form, {}]
        return [each for n, each in enumerate(forms) if each not in forms[:n]]

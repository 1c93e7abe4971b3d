"""``judge-pairs``: a language model says which of two replies is better, asked in both orders.

>>> str(PairJudge(url="http://localhost:8000/v1", model="qwen3", concurrency=8))
'judge-pairs(url=http://localhost:8000/v1,model=qwen3)'
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

from rejoinder.judges.asking import JudgeSettings
from rejoinder.judges.comparing import Comparer
from rejoinder.judges.rubric import COMPARING, Rubric, load_rubric
from rejoinder.judges.signing import signature_of
from rejoinder.spec import Spec, check_types, spec_of


@dataclass(frozen=True, kw_only=True)
class PairJudge(JudgeSettings):
    """A judge of pairs; its name is the annotator of its answers."""

    name: ClassVar[str] = "judge-pairs"
    summary: ClassVar[str] = "a language model says which of two replies is better, in both orders"
    kind: ClassVar[str] = "judge of pairs"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "language model"})

    rubric: str = "better"
    """Name of a rubric for comparisons, or a file."""

    def __post_init__(self) -> None:
        check_types(self, self.name)
        self.check_judge(str(self))
        if self.references is True and not self.opened_rubric.takes_references:
            raise ValueError(f"references=true, but the rubric '{self.rubric}' shows none")

    def __str__(self) -> str:
        """Return the spec without what changes no answer: it stands in every answer."""
        spec = spec_of(self, self.name)
        decides = {each.name for each in fields(self) if each.compare}
        return str(Spec(spec.name, tuple(p for p in spec.params if p[0] in decides)))

    @cached_property
    def opened_rubric(self) -> Rubric:
        return load_rubric(self.rubric, self.language, COMPARING)

    @cached_property
    def comparer(self) -> Comparer:
        return Comparer(self, self.opened_rubric)

    def signature(self) -> str:
        """Return all that decides the answers, what the server says of its model, and the dates."""
        return signature_of(self, self.opened_rubric, self.comparer.server)

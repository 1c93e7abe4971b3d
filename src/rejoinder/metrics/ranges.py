"""The range of a metric's values that an evaluator knows from its held-out dialogues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.errors import UsageError
from rejoinder.metrics.base import Metric, make_metric
from rejoinder.spec import Spec, parse
from rejoinder.text.languages import language

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator

USUAL = (Spec("vcosine"), Spec("vbleu"))


def range_of(evaluator: Evaluator, metric: Metric) -> tuple[float, float]:
    """The lowest and the highest usual value; UsageError where the evaluator knows none."""
    code = evaluator.manifest.language
    wanted = plain_spec(metric, code)
    for text, (low, high) in evaluator.manifest.ranges.items():
        if plain_spec(make_metric(text), code) == wanted:
            return low, high
    known = ", ".join(evaluator.manifest.ranges) or "none"
    raise UsageError(
        f"{evaluator.name} knows no range of {wanted}, which norm=fixed needs: take norm=set, or"
        f" one that it knows: {known}"
    )


def usual_reference(evaluator: Evaluator | None) -> Spec:
    """The referenced metric that is blended if none is given: the best that the evaluator knows the
    range of, with the tokenizer of its language."""
    from rejoinder.metrics.request import with_evaluator, with_language

    if evaluator is None:
        return USUAL[0]
    manifest = evaluator.manifest
    known = {plain_spec(make_metric(text), manifest.language) for text in manifest.ranges}
    chosen = next((spec for spec in USUAL if spec in known), USUAL[0])
    if manifest.language is not None:
        chosen = with_language(chosen, language(manifest.language))
    return with_evaluator(chosen, str(evaluator.path))


def plain_spec(metric: Metric, language_code: str | None) -> Spec:
    """What a person would write for a metric, with an evaluator of this language at hand: neither
    the evaluator itself, nor the tokenizer that the language has anyway."""
    return _plain(metric.spec(), language_code)


def _plain(spec: Spec, language_code: str | None) -> Spec:
    usual = {}
    if language_code is not None:
        spoken = language(language_code)
        usual = {"tok": parse(spoken.tokenizer), "stem": spoken.stemmer}
    kept = []
    for key, value in spec.params:
        if key == "evaluator" or (key in usual and usual[key] == value):
            continue
        kept.append((key, _plain(value, language_code) if isinstance(value, Spec) else value))
    # a nested metric without parameters of its own is the same as its name
    return make_metric(Spec(spec.name, tuple(kept))).spec() if _is_metric(spec) else spec


def _is_metric(spec: Spec) -> bool:
    from rejoinder.registry import METRICS

    return spec.name in METRICS.names()

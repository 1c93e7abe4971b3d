"""``meta --references``: how well an evaluator's weights of references agree with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    AnnotatorLimits,
    FilteredRatings,
    HumanAgreement,
    Resampling,
)
from rejoinder.meta_evaluation.evaluation import MetaSettings, MetricResult
from rejoinder.meta_evaluation.ratings import annotator_names
from rejoinder.meta_evaluation.reference_ratings import (
    RatedContexts,
    WeightedReferences,
    are_copies,
    correlate_weights,
)
from rejoinder.verbs.annotators import check_annotators, check_distractor, limit_problems
from rejoinder.verbs.arguments import (
    MAX_DISTRACTOR,
    MIN_KAPPA,
    RESAMPLES,
    SEED,
    as_names,
    check_resampling,
)
from rejoinder.verbs.meta_records import annotators_to_dict, result_to_dict, spread
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, TableResult, records_to_columns, to_plain
from rejoinder.verbs.source import naming, open_items, path_of

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike


@dataclass(frozen=True)
class MetaReferencesResult(TableResult):
    """Correlations of the weights of references with people's ratings of them.

    The frame has one row: the number of references; Spearman's, Pearson's and Kendall's
    correlation, each with its p-value and 95 % interval.
    """

    result: MetricResult
    """Correlation with the mean rating, and the highest, lowest and mean with one annotator."""
    humans: HumanAgreement | None
    """Agreement between the annotators, over the same references."""
    contexts: int
    unmatched: int
    """Rated references that the weighted items do not have."""
    unweighted: int
    """Rated references that have no weight there."""
    unrated: int
    """References with a weight that nobody rated."""
    annotators: FilteredRatings | None = None
    """The annotators, and who was dropped."""
    before: MetricResult | None = None
    """The result before annotators were dropped."""
    frame_kind: str | None = field(default=None, compare=False)

    def columns(self) -> FrameColumns:
        correlations = self.result.correlations
        return records_to_columns([{"n": correlations.n, **spread(correlations)}])

    def to_dict(self) -> dict[str, Any]:
        return {
            "contexts": self.contexts,
            "unmatched": self.unmatched,
            "unweighted": self.unweighted,
            "unrated": self.unrated,
            "result": result_to_dict(self.result),
            "undefined": self.result.undefined,
            "humans": to_plain(self.humans),
            "annotators": annotators_to_dict(
                self.annotators, None if self.before is None else [self.before]
            ),
        }


@keep_notes
def meta_references(
    rated: ItemsLike,
    weighted: ItemsLike | None = None,
    *,
    drop_annotators: str | Sequence[str] = (),
    drop_unreliable: bool = False,
    min_kappa: float = MIN_KAPPA,
    max_distractor: float = MAX_DISTRACTOR,
    distractor: str = DISTRACTOR,
    columns: Columns | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> MetaReferencesResult:
    """Correlate the weights of references with people's ratings of the same references.

    ``rated`` are items whose references have ratings, ``weighted`` are items with the weights, such
    as :func:`expand` writes with an evaluator; without them, the rated references have weights
    themselves. References are matched by the id or the context of their item, and by their text.
    Annotators are reviewed and dropped as by :func:`meta`; a reference whose source is
    ``distractor`` is a planted distractor. ``columns`` are those of ``rated``.
    """
    names = as_names(drop_annotators)
    all_problems = [*problems, *limit_problems(min_kappa, max_distractor)]
    if path_of(rated) == path_of(weighted) == "-":
        all_problems.append("only one of the two files can be stdin")
    if all_problems:
        raise UsageError(*all_problems)
    check_resampling(resamples, seed)
    with open_items(rated, columns=columns, monitor=monitor) as source:
        items = list(source.read())
        contexts = RatedContexts.of(items)
        kind = source.frame_kind
    name = path_of(rated) if weighted is None else None
    weighted = items if weighted is None else weighted
    with open_items(weighted, monitor=monitor) as source, naming(name):
        found = WeightedReferences.of(contexts, source.read())
    check_distractor(distractor, (item.system for item in found.items))
    if names:
        check_annotators(names, annotator_names(found.items))
    settings = MetaSettings(resamples, seed)
    with naming(path_of(rated)):
        annotators = FilteredRatings.of(
            found.items,
            AnnotatorLimits(min_kappa, max_distractor),
            names,
            drop_unreliable=drop_unreliable,
            distractor=distractor,
            resampling=Resampling(resamples, seed),
        )
    before = None
    if annotators.dropped:
        before = correlate_weights(found.items, found.weights, settings)
    result = correlate_weights(annotators.items, found.weights, settings)
    if are_copies(result):
        monitor.warn(
            "the weights are people's mean ratings on another scale, so that they correlate"
            " perfectly; give the items that an evaluator expanded"
        )
    return MetaReferencesResult(
        result,
        HumanAgreement.of(annotators.items, Resampling(resamples, seed)),
        found.contexts,
        found.unmatched,
        found.unweighted,
        found.unrated,
        annotators,
        before,
        kind,
    )

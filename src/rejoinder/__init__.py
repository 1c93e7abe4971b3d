"""Rejoinder evaluates chatbot replies where many different answers would be right.

items = rejoinder.load("items.jsonl")
result = rejoinder.score(items, ["bleu(n=2)", "rouge-l"])
result["bleu(n=2)"].values          # a number for each item, NaN where unscored
result["bleu(n=2)"].corpus          # the value of all replies together, by system
result.frame()                      # a row for each item, a column for each metric
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rejoinder.version import __version__

if TYPE_CHECKING:
    from rejoinder.files.item_file import read_items
    from rejoinder.items import Item, Reference
    from rejoinder.metrics.calibrated.calibrated import Calibrated
    from rejoinder.metrics.dialogue.repetition import Repetition
    from rejoinder.metrics.dialogue.self_similarity import SelfSimilarity
    from rejoinder.metrics.diversity.distinct import Distinct
    from rejoinder.metrics.diversity.entropy import Entropy
    from rejoinder.metrics.diversity.recall import Recall
    from rejoinder.metrics.diversity.self_bleu import SelfBleu
    from rejoinder.metrics.embedding.average import EmbeddingAverage
    from rejoinder.metrics.embedding.bertscore import BertScore
    from rejoinder.metrics.embedding.extrema import VectorExtrema
    from rejoinder.metrics.embedding.greedy import GreedyMatching
    from rejoinder.metrics.embedding.pool import VectorPool
    from rejoinder.metrics.embedding.sentence import SentenceCosine
    from rejoinder.metrics.ensemble.mean import Mean
    from rejoinder.metrics.evaluator.expanded import Expanded
    from rejoinder.metrics.evaluator.rating import Rating
    from rejoinder.metrics.evaluator.rejoinder import Rejoinder
    from rejoinder.metrics.evaluator.ruber import Ruber
    from rejoinder.metrics.evaluator.unreferenced import Unreferenced
    from rejoinder.metrics.evaluator.vbertscore import VBertScore
    from rejoinder.metrics.evaluator.vbleu import VBleu
    from rejoinder.metrics.evaluator.vcosine import VCosine
    from rejoinder.metrics.judging.judge import Judge
    from rejoinder.metrics.llm.likelihood import Likelihood
    from rejoinder.metrics.overlap.bleu import Bleu
    from rejoinder.metrics.overlap.chrf import Chrf
    from rejoinder.metrics.overlap.delta_bleu import DeltaBleu
    from rejoinder.metrics.overlap.meteor import Meteor
    from rejoinder.metrics.overlap.ribes import Ribes
    from rejoinder.metrics.overlap.rouge_l import RougeL
    from rejoinder.metrics.overlap.wer import Wer
    from rejoinder.metrics.regression.am import Am
    from rejoinder.metrics.regression.svr import Svr
    from rejoinder.metrics.regression.ws import Ws
    from rejoinder.verbs import annotate as studies
    from rejoinder.verbs import datasets, pairs, train
    from rejoinder.verbs.calibrate import CalibrateResult, calibrate
    from rejoinder.verbs.compare import CompareResult, compare
    from rejoinder.verbs.contexts import contexts
    from rejoinder.verbs.corpus import CorpusResult, corpus
    from rejoinder.verbs.demo import demo
    from rejoinder.verbs.diversity import DiversityResult, diversity
    from rejoinder.verbs.estimate import EstimateResult, estimate
    from rejoinder.verbs.evaluator import Evaluator
    from rejoinder.verbs.expand import ExpandResult, expand
    from rejoinder.verbs.explain import explain
    from rejoinder.verbs.fit import fit
    from rejoinder.verbs.index import index
    from rejoinder.verbs.items import Items, load
    from rejoinder.verbs.join import join
    from rejoinder.verbs.leaderboard import LeaderboardResult, leaderboard
    from rejoinder.verbs.ls import ls
    from rejoinder.verbs.meta import MetaResult, meta
    from rejoinder.verbs.meta_attack import MetaAttackResult, meta_attack
    from rejoinder.verbs.meta_references import MetaReferencesResult, meta_references
    from rejoinder.verbs.monitor import RejoinderWarning
    from rejoinder.verbs.plan import PlanResult, plan
    from rejoinder.verbs.reply import ReplyResult, reply
    from rejoinder.verbs.report import ReportResult, report
    from rejoinder.verbs.run import run
    from rejoinder.verbs.sample import sample
    from rejoinder.verbs.score import MetricScores, ScoreResult, score, score_one
    from rejoinder.verbs.show import show

__all__ = [
    "Am",
    "BertScore",
    "Bleu",
    "CalibrateResult",
    "Calibrated",
    "Chrf",
    "CompareResult",
    "CorpusResult",
    "DeltaBleu",
    "Distinct",
    "DiversityResult",
    "EmbeddingAverage",
    "Entropy",
    "EstimateResult",
    "Evaluator",
    "ExpandResult",
    "Expanded",
    "GreedyMatching",
    "Item",
    "Items",
    "Judge",
    "LeaderboardResult",
    "Likelihood",
    "Mean",
    "MetaAttackResult",
    "MetaReferencesResult",
    "MetaResult",
    "Meteor",
    "MetricScores",
    "PlanResult",
    "Rating",
    "Recall",
    "Reference",
    "Rejoinder",
    "RejoinderWarning",
    "Repetition",
    "ReplyResult",
    "ReportResult",
    "Ribes",
    "RougeL",
    "Ruber",
    "ScoreResult",
    "SelfBleu",
    "SelfSimilarity",
    "SentenceCosine",
    "Svr",
    "Unreferenced",
    "VBertScore",
    "VBleu",
    "VCosine",
    "VectorExtrema",
    "VectorPool",
    "Wer",
    "Ws",
    "__version__",
    "calibrate",
    "compare",
    "contexts",
    "corpus",
    "datasets",
    "demo",
    "diversity",
    "estimate",
    "expand",
    "explain",
    "fit",
    "index",
    "join",
    "leaderboard",
    "load",
    "ls",
    "meta",
    "meta_attack",
    "meta_references",
    "pairs",
    "plan",
    "read_items",
    "reply",
    "report",
    "run",
    "sample",
    "score",
    "score_one",
    "show",
    "studies",
    "train",
]

_HOMES = {
    "files.item_file": ("read_items",),
    "items": ("Item", "Reference"),
    "metrics.calibrated.calibrated": ("Calibrated",),
    "metrics.dialogue.repetition": ("Repetition",),
    "metrics.dialogue.self_similarity": ("SelfSimilarity",),
    "metrics.diversity.distinct": ("Distinct",),
    "metrics.diversity.entropy": ("Entropy",),
    "metrics.diversity.recall": ("Recall",),
    "metrics.diversity.self_bleu": ("SelfBleu",),
    "metrics.embedding.average": ("EmbeddingAverage",),
    "metrics.embedding.bertscore": ("BertScore",),
    "metrics.embedding.extrema": ("VectorExtrema",),
    "metrics.embedding.greedy": ("GreedyMatching",),
    "metrics.embedding.pool": ("VectorPool",),
    "metrics.embedding.sentence": ("SentenceCosine",),
    "metrics.ensemble.mean": ("Mean",),
    "metrics.evaluator.expanded": ("Expanded",),
    "metrics.evaluator.rating": ("Rating",),
    "metrics.evaluator.rejoinder": ("Rejoinder",),
    "metrics.evaluator.ruber": ("Ruber",),
    "metrics.evaluator.unreferenced": ("Unreferenced",),
    "metrics.evaluator.vbertscore": ("VBertScore",),
    "metrics.evaluator.vbleu": ("VBleu",),
    "metrics.evaluator.vcosine": ("VCosine",),
    "metrics.judging.judge": ("Judge",),
    "metrics.llm.likelihood": ("Likelihood",),
    "metrics.overlap.bleu": ("Bleu",),
    "metrics.overlap.chrf": ("Chrf",),
    "metrics.overlap.delta_bleu": ("DeltaBleu",),
    "metrics.overlap.meteor": ("Meteor",),
    "metrics.overlap.ribes": ("Ribes",),
    "metrics.overlap.rouge_l": ("RougeL",),
    "metrics.overlap.wer": ("Wer",),
    "metrics.regression.am": ("Am",),
    "metrics.regression.svr": ("Svr",),
    "metrics.regression.ws": ("Ws",),
    "verbs.calibrate": ("CalibrateResult", "calibrate"),
    "verbs.compare": ("CompareResult", "compare"),
    "verbs.contexts": ("contexts",),
    "verbs.corpus": ("CorpusResult", "corpus"),
    "verbs.demo": ("demo",),
    "verbs.estimate": ("EstimateResult", "estimate"),
    "verbs.evaluator": ("Evaluator",),
    "verbs.expand": ("ExpandResult", "expand"),
    "verbs.explain": ("explain",),
    "verbs.fit": ("fit",),
    "verbs.index": ("index",),
    "verbs.diversity": ("DiversityResult", "diversity"),
    "verbs.items": ("Items", "load"),
    "verbs.join": ("join",),
    "verbs.leaderboard": ("LeaderboardResult", "leaderboard"),
    "verbs.ls": ("ls",),
    "verbs.meta": ("MetaResult", "meta"),
    "verbs.meta_attack": ("MetaAttackResult", "meta_attack"),
    "verbs.meta_references": ("MetaReferencesResult", "meta_references"),
    "verbs.plan": ("PlanResult", "plan"),
    "verbs.monitor": ("RejoinderWarning",),
    "verbs.reply": ("ReplyResult", "reply"),
    "verbs.report": ("ReportResult", "report"),
    "verbs.run": ("run",),
    "verbs.sample": ("sample",),
    "verbs.score": ("MetricScores", "ScoreResult", "score", "score_one"),
    "verbs.show": ("show",),
}
"""Module → names of the package that it defines."""
_NAMESPACES = {
    "datasets": "datasets",
    "pairs": "pairs",
    "studies": "annotate",  # rejoinder.annotate is the package behind them
    "train": "train",
}
"""Groups of verbs, and the modules that define them."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that ``rejoinder --help`` imports none of them."""
    import importlib

    if name in _NAMESPACES:
        return importlib.import_module(f"rejoinder.verbs.{_NAMESPACES[name]}")
    if name not in _MODULES:
        raise AttributeError(f"module 'rejoinder' has no attribute '{name}'")
    return getattr(importlib.import_module(f"rejoinder.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__

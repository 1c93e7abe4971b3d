"""The Python side of the command line: the same verbs as functions.

items = rejoinder.load("items.jsonl")
result = rejoinder.score(items, ["bleu(n=2)", "rouge-l"])
result["bleu(n=2)"].values          # a number for each item, NaN where unscored
result["bleu(n=2)"].corpus          # the value of all together, with its interval
result.frame()                      # a row for each item, a column for each metric
"""

from rejoinder.verbs.evaluator import Evaluator
from rejoinder.verbs.fit import fit
from rejoinder.verbs.results import Agreement, Items, Rankings, Results, Scores, SetResults
from rejoinder.verbs.verbs import compare, diversity, load, meta, score, score_one

__all__ = [
    "Agreement",
    "Evaluator",
    "Items",
    "Rankings",
    "Results",
    "Scores",
    "SetResults",
    "compare",
    "diversity",
    "fit",
    "load",
    "meta",
    "score",
    "score_one",
]

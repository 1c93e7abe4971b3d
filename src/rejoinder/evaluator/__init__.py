"""What an evaluator learned from logs, in one folder: a pool, a rater, an unreferenced scorer."""

from rejoinder.evaluator.folder import Evaluator, open_evaluator
from rejoinder.evaluator.manifest import Manifest, Retrieval, write_manifest

__all__ = ["Evaluator", "Manifest", "Retrieval", "open_evaluator", "write_manifest"]

"""Evaluators: networks and retrieval pools that were fitted to dialogue logs, in one folder.

A folder holds a pool of pairs, a rater, an unreferenced scorer, and a manifest.
"""

from rejoinder.evaluator.evaluator import Evaluator, open_evaluator
from rejoinder.evaluator.manifest import Manifest, Retrieval, write_manifest

__all__ = ["Evaluator", "Manifest", "Retrieval", "open_evaluator", "write_manifest"]

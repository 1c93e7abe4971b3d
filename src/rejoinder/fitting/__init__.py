"""From logs to an evaluator: the stages of ``rejoinder.fit``."""

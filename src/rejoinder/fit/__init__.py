"""``rejoinder fit``: from logs to an evaluator."""

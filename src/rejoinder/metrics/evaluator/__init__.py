"""Metrics that use an evaluator fitted to dialogue logs."""

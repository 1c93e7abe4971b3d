"""Metrics that were learned from logs."""

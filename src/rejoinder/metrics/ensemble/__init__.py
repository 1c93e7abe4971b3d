"""Metrics that are made of any other metrics."""

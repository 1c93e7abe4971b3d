"""Metrics made of other metrics."""

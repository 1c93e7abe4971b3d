"""Metrics that ask language models."""

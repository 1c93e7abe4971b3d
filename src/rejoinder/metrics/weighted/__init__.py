"""Metrics that read the weights of references."""

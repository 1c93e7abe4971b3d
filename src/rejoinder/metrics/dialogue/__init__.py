"""Metrics that compare a reply with earlier turns of the same speaker."""

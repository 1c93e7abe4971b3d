"""Metrics, one small file each, and the one loop that scores."""

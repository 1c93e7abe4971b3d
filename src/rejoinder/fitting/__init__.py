"""Fit an evaluator to dialogue logs: the stages behind ``rejoinder.fit``."""

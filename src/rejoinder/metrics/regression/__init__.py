"""Estimators: what a reply is worth, from many references that people scored."""

"""Rendering of results: tables, plots, HTML for notebooks, and the report."""

"""Replies written for the project, with made-up ratings: for the demo and the docs only."""

"""Leaderboards: how metrics compare on every judged set."""

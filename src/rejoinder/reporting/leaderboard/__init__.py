"""The leaderboard as tables and as a page."""

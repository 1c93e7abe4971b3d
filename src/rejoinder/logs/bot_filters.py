"""Filters that compare posts with each other: repeated ids, bots, duplicates of one day.

They are SQL, the same text for DuckDB and Spark. Each filter sees the posts that the filters before
it kept. They apply to archives of posts only: the turns of a dialogue belong together, and a
greeting that is repeated every morning is not a duplicate there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.engine.engine import Engine
from rejoinder.logs.schema import CLEANED

POST_KEY = "CASE WHEN kind = 'dialogue' THEN source || '#' || {column} ELSE {column} END"
"""Ids of posts are unique in an archive, ids of dialogues only in their file."""


@dataclass(frozen=True)
class BotFilters:
    """Limits beyond which an author is taken for a bot."""

    max_posts_per_day: int = 200
    """If an author has more posts than this on one (UTC) day, all posts of that day are removed."""
    min_posts: int = 10
    max_repeated_share: float = 0.5
    """If more than this share of an author's ``min_posts`` or more posts is one text, all posts of
    the author are removed."""
    off: tuple[str, ...] = ()
    """Filters that are not applied."""

    names: ClassVar = ("repeated-id", "bot-rate", "bot-repeat", "duplicate")

    def apply(self, engine: Engine, cleaned: str, result: str) -> None:
        """Create the table ``result``: the cleaned posts, with ``removed`` set by these filters.

        Retweets are neither utterances nor responses, so they are not counted.
        """
        engine.create(
            "candidates",
            f"""
            SELECT source, line, id, kind, author, time, text
            FROM {cleaned}
            WHERE reject IS NULL AND removed IS NULL AND NOT retweet
            """,
        )
        previous, views = "candidates", []
        for name in self.names:
            if name in self.off:
                continue
            view = f"matched_{name.replace('-', '_')}"
            engine.create(view, getattr(self, f"_{name.replace('-', '_')}")(previous))
            views.append((name, view))
            kept = f"kept_{name.replace('-', '_')}"
            engine.view(
                kept,
                f"""
                SELECT p.* FROM {previous} p
                LEFT JOIN {view} f ON p.source = f.source AND p.line = f.line AND p.id = f.id
                WHERE f.line IS NULL
                """,
            )
            previous = kept
        union = " UNION ALL ".join(
            f"SELECT source, line, id, '{name}' AS filter FROM {view}" for name, view in views
        )
        columns = ", ".join(f"c.{name}" for name in CLEANED.names if name != "removed")
        if not union:
            engine.view(result, f"SELECT {columns}, c.removed FROM {cleaned} c")
            return
        engine.create(
            result,
            f"""
            SELECT {columns}, COALESCE(c.removed, f.filter) AS removed
            FROM {cleaned} c
            LEFT JOIN ({union}) f ON c.source = f.source AND c.line = f.line AND c.id = f.id
            """,
        )

    def _repeated_id(self, posts: str) -> str:
        """Keep the first post by file and line."""
        return f"""
            SELECT source, line, id FROM (
                SELECT source, line, id,
                       ROW_NUMBER() OVER (PARTITION BY id ORDER BY source, line) AS place
                FROM {posts} WHERE kind = 'posts'
            ) t WHERE place > 1
        """

    def _bot_rate(self, posts: str) -> str:
        return f"""
            SELECT p.source, p.line, p.id FROM {posts} p
            JOIN (
                SELECT author, CAST(time AS DATE) AS day FROM {posts}
                WHERE kind = 'posts' AND author IS NOT NULL AND time IS NOT NULL
                GROUP BY author, CAST(time AS DATE) HAVING COUNT(*) > {self.max_posts_per_day}
            ) b ON p.author = b.author AND CAST(p.time AS DATE) = b.day
            WHERE p.kind = 'posts'
        """

    def _bot_repeat(self, posts: str) -> str:
        return f"""
            SELECT p.source, p.line, p.id FROM {posts} p
            JOIN (
                SELECT author FROM (
                    SELECT author, COUNT(*) AS same FROM {posts}
                    WHERE kind = 'posts' AND author IS NOT NULL GROUP BY author, text
                ) t GROUP BY author
                HAVING SUM(same) >= {self.min_posts}
                       AND MAX(same) > {self.max_repeated_share} * SUM(same)
            ) b ON p.author = b.author
            WHERE p.kind = 'posts'
        """

    def _duplicate(self, posts: str) -> str:
        return f"""
            SELECT source, line, id FROM (
                SELECT source, line, id, ROW_NUMBER() OVER (
                    PARTITION BY author, CAST(time AS DATE), text
                    ORDER BY time, id, source, line
                ) AS place
                FROM {posts}
                WHERE kind = 'posts' AND author IS NOT NULL AND time IS NOT NULL
            ) t WHERE place > 1
        """

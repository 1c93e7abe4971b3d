"""Filters that look at more than one post: repeated ids, bots, duplicates of one day.

They are SQL, the same text for DuckDB and Spark. Each sees the posts that the filters before
it left. Only archives of posts are sifted: the turns of a dialogue belong together, and a
greeting said every morning is no duplicate there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.engine.base import Engine
from rejoinder.logs.schema import CLEANED

KEY = "CASE WHEN kind = 'dialogue' THEN source || '#' || {column} ELSE {column} END"
"""Ids of posts are unique in an archive, those of dialogues only in their file."""


@dataclass(frozen=True)
class Sifting:
    """Limits beyond which an author is no person."""

    rate: int = 200
    """More posts than this of one author on one (UTC) day, and all of that day go."""
    fewest: int = 10
    share: float = 0.5
    """Of an author with at least ``fewest`` posts more than this share is one and the same
    text: all of them go."""
    off: tuple[str, ...] = ()

    names: ClassVar = ("repeated-id", "bot-rate", "bot-repeat", "duplicate")

    def apply(self, engine: Engine, cleaned: str, result: str) -> None:
        """From cleaned posts to the table ``result``: the same rows, ``removed`` completed.

        Retweets are nobody's utterance and nobody's response, so they are not counted here.
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
            view = f"found_{name.replace('-', '_')}"
            engine.create(view, getattr(self, f"_{name.replace('-', '_')}")(previous))
            views.append((name, view))
            left = f"left_{name.replace('-', '_')}"
            engine.view(
                left,
                f"""
                SELECT p.* FROM {previous} p
                LEFT JOIN {view} f ON p.source = f.source AND p.line = f.line AND p.id = f.id
                WHERE f.line IS NULL
                """,
            )
            previous = left
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
        """The first by file and line stays."""
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
                GROUP BY author, CAST(time AS DATE) HAVING COUNT(*) > {self.rate}
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
                HAVING SUM(same) >= {self.fewest} AND MAX(same) > {self.share} * SUM(same)
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

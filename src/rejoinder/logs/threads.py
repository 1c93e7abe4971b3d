"""Who answers whom: from posts to pairs of utterance and response, with their context.

In an archive of posts, one that is neither a retweet nor a mention nor a reply is an
utterance, and posts that answer it are its responses, however many. From there replies are
followed as long as the same two people take turns (Ritter et al. 2010): each step is one
join, from all posts reached so far to those that answer them. What is not reached that way,
circular threads among it, makes no pair.

In a dialogue every turn answers the one before it. Where cleaning removed a turn, the turns
around it are no neighbours: context never reaches across a gap.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.engine.base import Engine
from rejoinder.logs.sift import KEY

DEEPEST = 200
"""Replies are followed this far; real threads end long before, and a query is a round trip."""

COLUMNS = (
    "source, root, turn, context, utterance, response, utterance_key, response_key,"
    " utterance_author, response_author, time"
)


@dataclass(frozen=True)
class Threads:
    """``turns``: how many turns of context before the utterance are kept."""

    turns: int = 4

    def pair(self, engine: Engine, posts: str, result: str) -> None:
        """From sifted posts to the table ``result`` of raw pairs."""
        parts = [self._dialogues(engine, posts), *self._posts(engine, posts)]
        engine.create(result, " UNION ALL ".join(f"SELECT {COLUMNS} FROM {p}" for p in parts))

    # --- dialogues

    def _dialogues(self, engine: Engine, posts: str) -> str:
        self._merge_messages(engine, posts)
        engine.view(
            "turns",
            f"""
            SELECT source, thread, turn, author, time, text FROM {posts}
            WHERE kind = 'dialogue' AND turn IS NOT NULL AND reject IS NULL AND removed IS NULL
            UNION ALL SELECT source, thread, turn, author, time, text FROM merged_messages
            """,
        )
        over = "OVER (PARTITION BY source, thread ORDER BY turn)"
        before = range(1, self.turns + 2)
        lags = ", ".join(
            f"LAG(text, {k}) {over} AS text_{k}, LAG(turn, {k}) {over} AS turn_{k}" for k in before
        )
        cases = "".join(
            f" WHEN turn_{k} = turn - {k} THEN "
            + engine.array(*(f"text_{j}" for j in range(k, 1, -1)))
            for k in range(self.turns + 1, 1, -1)
        )
        context = f"CASE {cases} ELSE {engine.array()} END" if cases else engine.array()
        engine.create(
            "pairs_of_dialogues",
            f"""
            SELECT source, source || '#' || thread AS root, turn,
                   {context} AS context,
                   text_1 AS utterance, text AS response,
                   source || '#' || thread || '#' || CAST(turn_1 AS STRING) AS utterance_key,
                   source || '#' || thread || '#' || CAST(turn AS STRING) AS response_key,
                   author_1 AS utterance_author, author AS response_author, time
            FROM (
                SELECT source, thread, turn, author, time, text, {lags},
                       LAG(author, 1) {over} AS author_1
                FROM turns
            ) t
            WHERE turn_1 = turn - 1
            """,
        )
        return "pairs_of_dialogues"

    def _merge_messages(self, engine: Engine, posts: str) -> None:
        """Messages come without turns: what one person says in a row is one turn.

        Removed messages still part what stands around them, so turns are numbered over all
        messages, and a turn of which nothing is left is a gap.
        """
        order = "PARTITION BY source, thread ORDER BY time NULLS LAST, line"
        turn = (
            "OVER (PARTITION BY source, thread, block ORDER BY place"
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        )
        engine.create(
            "merged_messages",
            f"""
            SELECT source, thread, CAST(block - 1 AS INT) AS turn, author,
                   MIN(time) {turn} AS time, array_join(array_agg(text) {turn}, ' ') AS text
            FROM (
                SELECT *, SUM(CASE WHEN place > 1 AND author = before THEN 0 ELSE 1 END)
                          OVER (PARTITION BY source, thread ORDER BY place) AS block
                FROM (
                    SELECT source, thread, author, time, text, removed,
                           ROW_NUMBER() OVER ({order}) AS place,
                           LAG(author) OVER ({order}) AS before
                    FROM {posts}
                    WHERE kind = 'dialogue' AND turn IS NULL AND thread IS NOT NULL
                          AND reject IS NULL
                ) numbered
            ) blocks
            WHERE removed IS NULL
            QUALIFY ROW_NUMBER() OVER (PARTITION BY source, thread, block ORDER BY place) = 1
            """,
        )

    # --- posts

    def _posts(self, engine: Engine, posts: str) -> list[str]:
        key, parent = KEY.format(column="id"), KEY.format(column="parent")
        engine.create(
            "nodes",
            f"""
            SELECT source, {key} AS key, {parent} AS parent, author, time, text, mention
            FROM {posts}
            WHERE kind = 'posts' AND reject IS NULL AND removed IS NULL AND NOT retweet
            """,
        )
        nobody = "CAST(NULL AS STRING)"
        engine.create(
            "reached_0",
            f"""
            SELECT source, key AS root, 0 AS turn, {engine.array()} AS context,
                   {nobody} AS utterance, text AS response, {nobody} AS utterance_key,
                   key AS response_key, {nobody} AS utterance_author, author AS response_author,
                   time
            FROM nodes WHERE parent IS NULL AND NOT mention
            """,
        )
        levels: list[str] = []
        for depth in range(DEEPEST):
            level = f"reached_{depth + 1}"
            engine.create(level, self._answers(engine, f"reached_{depth}", depth))
            if not engine.scalar(f"SELECT COUNT(*) FROM {level}"):
                break
            levels.append(level)
        return levels

    def _answers(self, engine: Engine, reached: str, depth: int) -> str:
        """The posts that answer those reached last; beyond the first step only the two people
        who began are listened to."""
        taking_turns = "AND c.author = f.utterance_author" if depth else ""
        context = engine.array()
        if depth and self.turns:
            turns = f"(f.context || {engine.array('f.utterance')})"
            context = f"slice({turns}, greatest(size{turns} - {self.turns - 1}, 1), {self.turns})"
        return f"""
            SELECT c.source, f.root, f.turn + 1 AS turn, {context} AS context,
                   f.response AS utterance, c.text AS response,
                   f.response_key AS utterance_key, c.key AS response_key,
                   f.response_author AS utterance_author, c.author AS response_author, c.time
            FROM {reached} f JOIN nodes c ON c.parent = f.response_key
            WHERE c.author <> f.response_author {taking_turns}
        """

"""Build pairs of utterance and response, with their context, from posts.

In an archive of posts, a post that is neither a retweet nor a mention nor a reply is an utterance,
and all posts that answer it are its responses. From there, replies are followed as long as the same
two people take turns (Ritter et al. 2010): each step is one join, from the posts reached last to
those that answer them. Posts that are not reached, such as circular threads, are in no pair.

In a dialogue every turn answers the one before. Where cleaning removed a turn, the turns around it
are not neighbours: a context never spans a gap. Turns that are not to be learnt from (``learn``
is false) are utterance and context, but never a response.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.engine.engine import Engine
from rejoinder.logs.bot_filters import POST_KEY

MAX_DEPTH = 200
"""Replies are followed this far; real threads are much shorter, and each step is a query."""

COLUMNS = (
    "source, root, turn, context, utterance, response, utterance_key, response_key,"
    " utterance_author, response_author, time"
)


@dataclass(frozen=True)
class Threads:
    """``turns`` is the number of turns that are kept as context before the utterance."""

    turns: int = 4

    def pair(self, engine: Engine, posts: str, result: str) -> None:
        """Create the table ``result`` of raw pairs from filtered posts."""
        parts = [self._dialogues(engine, posts), *self._posts(engine, posts)]
        engine.create(result, " UNION ALL ".join(f"SELECT {COLUMNS} FROM {p}" for p in parts))

    # --- dialogues

    def _dialogues(self, engine: Engine, posts: str) -> str:
        self._merge_messages(engine, posts)
        engine.view(
            "turns",
            f"""
            SELECT source, thread, turn, author, time, text, learn FROM {posts}
            WHERE kind = 'dialogue' AND turn IS NOT NULL AND reject IS NULL AND removed IS NULL
            UNION ALL SELECT source, thread, turn, author, time, text, learn FROM merged_messages
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
            "all_pairs_of_dialogues",
            f"""
            SELECT source, source || '#' || thread AS root, turn,
                   {context} AS context,
                   text_1 AS utterance, text AS response,
                   source || '#' || thread || '#' || CAST(turn_1 AS STRING) AS utterance_key,
                   source || '#' || thread || '#' || CAST(turn AS STRING) AS response_key,
                   author_1 AS utterance_author, author AS response_author, time, learn
            FROM (
                SELECT source, thread, turn, author, time, text, learn, {lags},
                       LAG(author, 1) {over} AS author_1
                FROM turns
            ) t
            WHERE turn_1 = turn - 1
            """,
        )
        engine.view("pairs_of_dialogues", "SELECT * FROM all_pairs_of_dialogues WHERE learn")
        return "pairs_of_dialogues"

    def _merge_messages(self, engine: Engine, posts: str) -> None:
        """Merge consecutive messages of one person into turns.

        Turns are numbered over all messages, removed ones included, so that a turn of which nothing
        is left is a gap.
        """
        order = "PARTITION BY source, thread ORDER BY time NULLS LAST, line"
        turn = (
            "OVER (PARTITION BY source, thread, block ORDER BY place"
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        )
        engine.create(
            "merged_messages",
            f"""
            SELECT source, thread, CAST(block - 1 AS INT) AS turn, author, learn,
                   MIN(time) {turn} AS time, array_join(array_agg(text) {turn}, ' ') AS text
            FROM (
                SELECT *, SUM(CASE WHEN place > 1 AND author = before THEN 0 ELSE 1 END)
                          OVER (PARTITION BY source, thread ORDER BY place) AS block
                FROM (
                    SELECT source, thread, author, time, text, removed, learn,
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
        key, parent = POST_KEY.format(column="id"), POST_KEY.format(column="parent")
        engine.create(
            "nodes",
            f"""
            SELECT source, {key} AS key, {parent} AS parent, author, time, text, mention
            FROM {posts}
            WHERE kind = 'posts' AND reject IS NULL AND removed IS NULL AND NOT retweet
            """,
        )
        no_text = "CAST(NULL AS STRING)"
        engine.create(
            "reached_0",
            f"""
            SELECT source, key AS root, 0 AS turn, {engine.array()} AS context,
                   {no_text} AS utterance, text AS response, {no_text} AS utterance_key,
                   key AS response_key, {no_text} AS utterance_author, author AS response_author,
                   time
            FROM nodes WHERE parent IS NULL AND NOT mention
            """,
        )
        levels: list[str] = []
        for depth in range(MAX_DEPTH):
            level = f"reached_{depth + 1}"
            engine.create(level, self._replies(engine, f"reached_{depth}", depth))
            if not engine.scalar(f"SELECT COUNT(*) FROM {level}"):
                break
            levels.append(level)
        return levels

    def _replies(self, engine: Engine, reached: str, depth: int) -> str:
        """Return the query for the posts that answer those reached last; after the first step,
        only those by the two people who began."""
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

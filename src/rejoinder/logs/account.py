"""What became of every post: counts for the table and the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rejoinder.engine import Engine


@dataclass(frozen=True)
class Account:
    """Posts in, pairs out, and what was lost on the way, where."""

    records: int
    """All that was read, bad records included."""
    rejects: dict[str, int]
    """Bad records by reason (its first words: numbers and names differ)."""
    changed: dict[str, int]
    """By each filter that rewrites: posts that it changed."""
    removed: dict[str, int]
    """By each filter that removes: posts that it removed."""
    retweets: int
    posts: int
    """What is left: neither bad, nor removed, nor a retweet."""
    utterances: int
    """With at least one response."""
    several: int
    """Of these, with more than one: what a rater learns from."""
    dialogues: int
    """With at least three posts."""
    pairs: int
    leaks: dict[str, int]
    """Pairs left out because a test set has their utterance, exactly or nearly."""
    splits: dict[str, int]
    labels: dict[str, int]
    """Language labels of the platform, the ten most frequent."""
    first: str | None
    last: str | None

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def take_stock(engine: Engine, filters: Sequence[str], excluded: bool) -> Account:
    """Count what the tables of a finished run hold."""
    good = "reject IS NULL AND removed IS NULL AND NOT retweet"
    one = engine.fetch(
        f"""
        SELECT COUNT(*) AS records,
               COUNT(*) FILTER (WHERE {good}) AS posts,
               COUNT(*) FILTER (WHERE reject IS NULL AND removed IS NULL AND retweet) AS retweets,
               MIN(time) FILTER (WHERE {good}) AS first, MAX(time) FILTER (WHERE {good}) AS last
        FROM sifted
        """
    ).to_pylist()[0]
    out = engine.fetch(
        """
        SELECT COUNT(*) AS pairs, COUNT(DISTINCT utterance_id) AS utterances,
               COUNT(DISTINCT CASE WHEN responses > 1 THEN utterance_id END) AS several,
               COUNT(DISTINCT CASE WHEN turn > 1 THEN dialogue_id END) AS dialogues
        FROM pairs
        """
    ).to_pylist()[0]
    return Account(
        records=one["records"],
        rejects=_rejects(engine),
        changed=_changed(engine, filters),
        removed=_counts(engine, "removed", "sifted WHERE removed IS NOT NULL"),
        retweets=one["retweets"],
        posts=one["posts"],
        leaks=_counts(engine, "leak", "marked WHERE leak IS NOT NULL") if excluded else {},
        splits=_counts(engine, "split", "pairs"),
        labels=_counts(engine, "label", f"sifted WHERE {good} AND label IS NOT NULL", most=10),
        first=one["first"].isoformat() if one["first"] else None,
        last=one["last"].isoformat() if one["last"] else None,
        **out,
    )


def _counts(engine: Engine, column: str, source: str, most: int = 1000) -> dict[str, int]:
    rows = engine.fetch(
        f"""
        SELECT {column} AS name, COUNT(*) AS n FROM {source}
        GROUP BY {column} ORDER BY n DESC, name NULLS LAST LIMIT {most}
        """
    ).to_pylist()
    return {row["name"]: row["n"] for row in rows}


def _changed(engine: Engine, filters: Sequence[str]) -> dict[str, int]:
    bits = ", ".join(
        f"COUNT(*) FILTER (WHERE (changed & {1 << bit}) <> 0) AS bit_{bit}"
        for bit in range(len(filters))
    )
    query = f"SELECT {bits} FROM sifted WHERE reject IS NULL AND NOT retweet"
    row = engine.fetch(query).to_pylist()[0]
    return {name: row[f"bit_{bit}"] for bit, name in enumerate(filters) if row[f"bit_{bit}"]}


def _rejects(engine: Engine) -> dict[str, int]:
    """By kind: what stands before the first number, quotation mark or bracket."""
    kind = r"regexp_extract(reject, '^([^0-9\"(;]*)', 1)"
    rows = engine.fetch(
        f"""
        SELECT trim({kind}) AS name, COUNT(*) AS n FROM sifted WHERE reject IS NOT NULL
        GROUP BY trim({kind}) ORDER BY n DESC, name
        """
    ).to_pylist()
    return {row["name"]: row["n"] for row in rows}

"""Count the records of a log by outcome (pair, removed, rejected), for report and manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rejoinder.engine import Engine


@dataclass(frozen=True)
class CorpusReport:
    """Counts of records read, pairs written, and posts left out at each step."""

    records: int
    """All records, bad ones included."""
    rejects: dict[str, int]
    """Bad records by reason (its first words, without numbers and names)."""
    changed: dict[str, int]
    """For each rewriting filter, the number of posts that it changed."""
    removed: dict[str, int]
    """For each removing filter, the number of posts that it removed."""
    retweets: int
    posts: int
    """Posts that are neither bad, nor removed, nor retweets."""
    utterances: int
    """Posts with at least one response."""
    several: int
    """Posts with more than one response, which raters are trained on."""
    dialogues: int
    """Dialogues of at least three posts."""
    pairs: int
    not_learned: int
    """Pairs left out because of the role of the response; see ``learn_from`` of the chat format."""
    leaks: dict[str, int]
    """Pairs left out because their utterance is in a test set: "exact" or "near"."""
    splits: dict[str, int]
    labels: dict[str, int]
    """The ten most frequent language labels of the platform."""
    first: str | None
    """Time of the first post."""
    last: str | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarize_corpus(engine: Engine, filters: Sequence[str], has_test_sets: bool) -> CorpusReport:
    """Count the rows of the tables of a finished run."""
    good = "reject IS NULL AND removed IS NULL AND NOT retweet"
    posts = engine.fetch(
        f"""
        SELECT COUNT(*) AS records,
               COUNT(*) FILTER (WHERE {good}) AS posts,
               COUNT(*) FILTER (WHERE reject IS NULL AND removed IS NULL AND retweet) AS retweets,
               MIN(time) FILTER (WHERE {good}) AS first, MAX(time) FILTER (WHERE {good}) AS last
        FROM filtered
        """
    ).to_pylist()[0]
    pairs = engine.fetch(
        """
        SELECT COUNT(*) AS pairs, COUNT(DISTINCT utterance_id) AS utterances,
               COUNT(DISTINCT CASE WHEN responses > 1 THEN utterance_id END) AS several,
               COUNT(DISTINCT CASE WHEN turn > 1 THEN dialogue_id END) AS dialogues
        FROM pairs
        """
    ).to_pylist()[0]
    return CorpusReport(
        records=posts["records"],
        rejects=_rejects(engine),
        changed=_changed(engine, filters),
        removed=_counts(engine, "removed", "filtered WHERE removed IS NOT NULL"),
        retweets=posts["retweets"],
        posts=posts["posts"],
        not_learned=engine.scalar("SELECT COUNT(*) FROM all_pairs_of_dialogues WHERE NOT learn"),
        leaks=_counts(engine, "leak", "marked WHERE leak IS NOT NULL") if has_test_sets else {},
        splits=_counts(engine, "split", "pairs"),
        labels=_counts(engine, "label", f"filtered WHERE {good} AND label IS NOT NULL", limit=10),
        first=posts["first"].isoformat() if posts["first"] else None,
        last=posts["last"].isoformat() if posts["last"] else None,
        **pairs,
    )


def _counts(engine: Engine, column: str, source: str, limit: int = 1000) -> dict[str, int]:
    rows = engine.fetch(
        f"""
        SELECT {column} AS name, COUNT(*) AS n FROM {source}
        GROUP BY {column} ORDER BY n DESC, name NULLS LAST LIMIT {limit}
        """
    ).to_pylist()
    return {row["name"]: row["n"] for row in rows}


def _changed(engine: Engine, filters: Sequence[str]) -> dict[str, int]:
    bits = ", ".join(
        f"COUNT(*) FILTER (WHERE (changed & {1 << bit}) <> 0) AS bit_{bit}"
        for bit in range(len(filters))
    )
    query = f"SELECT {bits} FROM filtered WHERE reject IS NULL AND NOT retweet"
    row = engine.fetch(query).to_pylist()[0]
    return {name: row[f"bit_{bit}"] for bit, name in enumerate(filters) if row[f"bit_{bit}"]}


def _rejects(engine: Engine) -> dict[str, int]:
    """Count rejects by the part of the reason before a number, quotation mark or bracket."""
    kind = r"regexp_extract(reject, '^([^0-9\"(;]*)', 1)"
    rows = engine.fetch(
        f"""
        SELECT trim({kind}) AS name, COUNT(*) AS n FROM filtered WHERE reject IS NOT NULL
        GROUP BY trim({kind}) ORDER BY n DESC, name
        """
    ).to_pylist()
    return {row["name"]: row["n"] for row in rows}

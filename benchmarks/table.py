"""Print the rows of a benchmark within 80 columns, and save them for all.py.

A row has ``name`` (what, and against what), ``ours_seconds``, ``peer_seconds``, ``ratio`` and
``required`` (the lowest acceptable ratio, or None), and ``enough`` if it has another condition.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

RECORDS = "BENCH_JSON"
"""The environment variable that names a file: each row is added to it as a line of JSON."""


def show(rows: Iterable[dict[str, Any]]) -> None:
    """Print and save the rows; exit with 1 if one misses its limit."""
    missed = False
    print(f"{'what, and against what':44} {'ours':>8} {'peer':>8} {'ratio':>7} {'limit':>6}")
    for row in rows:
        first, *rest = textwrap.wrap(row["name"], 44)
        limit = "" if row["required"] is None else f"≥ {row['required']:.3g}"
        print(
            f"{first:44} {row['ours_seconds']:8.2f} {row['peer_seconds']:8.2f}"
            f" {row['ratio']:7.2f} {limit:>6}"
        )
        for line in rest:
            print(f"  {line}")
        sys.stdout.flush()
        keep(row)
        missed |= met(row) is False
    if missed:
        sys.exit("a ratio is below its limit")


def met(row: dict[str, Any]) -> bool | None:
    """Return whether a row meets its limit; None if it has none."""
    enough = bool(row.get("enough", True))
    if row["required"] is None:
        return None if enough else False
    return enough and bool(row["ratio"] >= row["required"])


def keep(row: dict[str, Any]) -> None:
    if path := os.environ.get(RECORDS):
        record = {
            "what": row["name"],
            "ours": float(row["ours_seconds"]),
            "peer": float(row["peer_seconds"]),
            "ratio": float(row["ratio"]),
            "limit": row["required"],
            "met": met(row),
        }
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")

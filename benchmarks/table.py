"""How every benchmark prints its rows: within 80 columns, the ratio last."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from typing import Any


def show(rows: Iterable[dict[str, Any]]) -> None:
    """Print the rows; exit with 1 if one misses its limit."""
    missed = False
    print(f"{'what, and against what':44} {'ours':>8} {'peer':>8} {'ratio':>7} {'limit':>6}")
    for row in rows:
        first, *rest = textwrap.wrap(row["name"], 44)
        limit = "" if row["required"] is None else f"≥ {row['required']:g}"
        print(
            f"{first:44} {row['ours_seconds']:8.2f} {row['peer_seconds']:8.2f}"
            f" {row['ratio']:7.2f} {limit:>6}"
        )
        for line in rest:
            print(f"  {line}")
        missed |= row["required"] is not None and row["ratio"] < row["required"]
    if missed:
        sys.exit("a ratio is below its limit")

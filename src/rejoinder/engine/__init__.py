"""Engines that run the SQL and the Arrow functions of the log pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rejoinder.engine.engine import Engine
from rejoinder.errors import UsageError

__all__ = ["Engine", "open_engine"]


def open_engine(spec: str, work: Path, **options: Any) -> Engine:
    """Open ``duckdb``, ``local[2]`` (Spark in this process) or ``spark://host:port`` (a cluster).

    The options ``memory``, ``threads`` and ``processes`` apply to DuckDB only.
    """
    if spec == "duckdb":
        from rejoinder.engine.duckdb import DuckDB

        return DuckDB(work, **options)
    if spec == "local" or spec.startswith(("local[", "spark://")):
        from rejoinder.engine.spark import Spark

        return Spark(work, spec)
    raise UsageError(f"unknown engine {spec!r}; expected duckdb, local[N] or spark://host:port")

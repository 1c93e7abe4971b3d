"""Engines: where the SQL and the Arrow functions of the log pipeline run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rejoinder.engine.engine import Engine
from rejoinder.errors import UsageError

__all__ = ["Engine", "open_engine"]


def open_engine(spec: str, work: Path, **options: Any) -> Engine:
    """``duckdb``, ``local[2]`` (Spark in this process) or ``spark://host:port`` (a cluster).

    Options (``memory``, ``threads``, ``processes``) are for DuckDB: Spark has its own settings.
    """
    if spec == "duckdb":
        from rejoinder.engine.duckdb import DuckDB

        return DuckDB(work, **options)
    if spec == "local" or spec.startswith(("local[", "spark://")):
        from rejoinder.engine.spark import Spark

        return Spark(work, spec)
    raise UsageError(f"unknown engine {spec!r}; expected duckdb, local[N] or spark://host:port")

"""Measure the memory of a process and its descendants."""

from __future__ import annotations

from pathlib import Path


def resident(pid: int) -> float:
    """Return the GB that a process and its descendants hold together.

    A page that several processes share is counted once: each process reports its share (PSS).
    """
    total = 0.0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        try:
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += int(rollup.split("Pss:")[1].split()[0]) / 2**20
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, IndexError):
            continue
    return total

"""Memory of ``rejoinder score`` for long files, which must not grow with the file.

The row compares peak memory in MB: 100,000 items over 1,000,000. A ratio of 1 would be
perfect; the difference is 16 bytes per item for the detection of duplicate ids.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from table import show


def peak_memory(items: int, folder: Path) -> tuple[float, float]:
    """Return seconds and peak MB of ``rejoinder score``."""
    path = folder / f"{items}.jsonl"
    with path.open("w") as stream:
        for i in range(items):
            words = f"reply number {i} of many , word{i % 997} word{i % 89} ."
            stream.write(
                json.dumps({"id": str(i), "response": words, "references": [words[3:], "word1 ."]})
                + "\n"
            )
    code = (
        "import resource, sys\nfrom rejoinder.cli.main import run\n"
        f"run(['score', {str(path)!r}, '-m', 'bleu(n=2)', '-o', '/dev/null'])\n"
        "sys.stderr.write(f'PEAK {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}')"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - began
    path.unlink()
    return seconds, int(done.stderr.rpartition("PEAK ")[2]) / 1024


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        _, small = peak_memory(100_000, Path(folder))
        seconds, large = peak_memory(1_000_000, Path(folder))
    return [
        {
            "name": f"MB at the peak: 100,000 items over 1,000,000 ({seconds:.0f} s)",
            "ours_seconds": large,
            "peer_seconds": small,
            "ratio": small / large,
            "required": 0.75,
        }
    ]


if __name__ == "__main__":
    show(run())

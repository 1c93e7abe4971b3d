"""The log pipeline: against a plain Python pass, over growing archives, and within 4 GB.

Rows: (1) cleaning one million posts, ours in as many processes as there are cores, against the
same rules row by row in one (``tests/logs/plain_cleaning.py``; timed on a sample and scaled);
(2) time per post of the whole command at 500,000 posts over that at 5,000,000: 1 would be
perfectly linear, the limit is 1 / 1.3; (3) 4 GB over the peak memory of all processes at
10,000,000 posts. ``--small`` divides the archives of rows 2 and 3 by ten.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "logs"))

from archive import make_archive

import cleaning as cleaning_benchmark
from memory import resident
from table import show

COMMAND = "from rejoinder.cli.main import main; main()"


def whole_command(posts: int, folder: Path) -> tuple[float, float]:
    """Seconds, and peak memory in GB of the largest process plus its workers."""
    archive = folder / f"{posts}.jsonl"
    make_archive(archive, posts, seed=1, simple=True)
    arguments = ["corpus", str(archive), "-f", "twitter", "-o", str(folder / "pairs.parquet")]
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments], stdout=subprocess.DEVNULL
    )
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.25)
    assert process.returncode == 0
    seconds = time.perf_counter() - began
    archive.unlink()
    return seconds, peak


def run() -> list[dict[str, Any]]:
    scale = 10 if "--small" in sys.argv else 1
    rows = cleaning_benchmark.run()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, many, most = 500_000 // scale, 5_000_000 // scale, 10_000_000 // scale
        small, _ = whole_command(few, folder)
        large, _ = whole_command(many, folder)
        _, peak = whole_command(most, folder)
    rows.append(
        {
            "name": f"µs a post: {few:,} posts over {many:,}",
            "ours_seconds": large / many * 1e6,
            "peer_seconds": small / few * 1e6,
            "ratio": (small / few) / (large / many),
            "required": 1 / 1.3,
        }
    )
    rows.append(
        {
            "name": f"GB: 4 over the peak at {most:,} posts",
            "ours_seconds": peak,
            "peer_seconds": 4.0,
            "ratio": 4 / peak,
            "required": 1.0,
        }
    )
    return rows


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    show(run())

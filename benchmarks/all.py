"""Run all benchmarks in order and write a table to stdout and to docs/benchmarks.md.

    python benchmarks/all.py [NAME …]        all benchmarks, or those named

Each benchmark is a separate process; its output goes to stderr. One that fails or misses a limit
does not stop the others, but the exit code is 1. After each benchmark its rows, with date,
machine and versions, replace its earlier ones in results.json and on the page, so that an
interrupted run loses nothing, and a single benchmark can be repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
import time
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from rejoinder.files.output import open_output
from rejoinder.machine import cores
from table import RECORDS

HERE = Path(__file__).resolve().parent
RESULTS = "results.json"
BEGIN, END = "<!-- make bench: begin -->", "<!-- make bench: end -->"
NO_BENCHMARKS = {
    "all",
    "annotate_http",
    "annotate_load",
    "annotate_peers",
    "memory",
    "private_postgres",
    "rehearse",
    "significance",
    "table",
}
PACKAGES = (
    "rejoinder",
    *("numpy", "scipy", "numba", "torch", "transformers", "duckdb", "pyarrow", "faiss-cpu"),
    *("sacrebleu", "nltk", "rouge-score", "rapidfuzz", "scikit-learn", "sentence-transformers"),
    *("bert-score", "gensim", "python-aiml"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="overlap, learn, …")
    parser.add_argument("--folder", type=Path, default=HERE, help="where the benchmarks are")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    known = benchmarks(arguments.folder)
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    names = arguments.names or known
    results = {}
    for number, name in enumerate(names, 1):
        say(f"[{number}/{len(names)}] {name}")
        results[name] = run(arguments.folder / f"{name}.py")
        outcome = "done" if results[name]["exit"] == 0 else f"exit code {results[name]['exit']}"
        say(f"[{number}/{len(names)}] {name}: {outcome}, {results[name]['seconds']:,} s")
        save(results, arguments.folder / RESULTS, arguments.page)
    print(table(results))
    if bad := [name for name, result in results.items() if result["exit"] != 0]:
        sys.exit(f"failed, or below a limit: {', '.join(bad)}")


def benchmarks(folder: Path) -> list[str]:
    return sorted({path.stem for path in folder.glob("*.py")} - NO_BENCHMARKS)


def run(script: Path) -> dict[str, Any]:
    """Run a benchmark and return its rows, also those of a run that failed."""
    with tempfile.TemporaryDirectory() as work:
        records = Path(work) / "records.jsonl"
        records.touch()
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, script],
            stdout=sys.stderr,
            env={**os.environ, RECORDS: str(records)},
            check=False,
        )
        return {
            "exit": done.returncode,
            "seconds": round(time.perf_counter() - began),
            "date": date.today().isoformat(),
            "machine": machine(),
            "versions": versions(),
            "rows": [json.loads(line) for line in records.read_text("utf-8").splitlines()],
        }


def machine() -> str:
    """Cores, model and memory."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        lines = cpus.read_text().splitlines()
        model = next((x.partition(":")[2].strip() for x in lines if "model name" in x), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cores()} cores, {model}, {memory:.1f} GB of memory, {platform.system()}"


def versions() -> str:
    installed = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            installed.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(installed)


def table(results: dict[str, dict[str, Any]]) -> str:
    """For a terminal of 80 columns."""
    lines = [f"{'benchmark':13} {'what, and against what':42} {'ratio':>7} {'limit':>7} met"]
    for name, result in results.items():
        for row in rows_of(result):
            first, *rest = textwrap.wrap(row["what"], 42)
            lines.append(f"{name:13} {first:42} {_ratio(row):>7} {_limit(row):>7} {_met(row)}")
            lines += [f"{'':13} {'  ' + line:42}".rstrip() for line in rest]
    return "\n".join(lines)


def rows_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows, and one more if the program failed."""
    rows = list(result["rows"])
    if result["exit"] and all(row["met"] is not False for row in rows):
        what = f"ended with exit code {result['exit']}"
        rows.append({"what": what, "ratio": None, "limit": None, "met": False})
    return rows


def save(results: dict[str, dict[str, Any]], results_file: Path, page: Path) -> None:
    """Replace earlier results of the same benchmarks."""
    before = json.loads(results_file.read_text("utf-8")) if results_file.exists() else {}
    merged = dict(sorted({**before, **results}.items()))
    with open_output(results_file) as stream:
        stream.write((json.dumps(merged, ensure_ascii=False, indent=1) + "\n").encode())
    text = page.read_text("utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{page}: expected one '{BEGIN}' and one '{END}'")
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    with open_output(page) as stream:
        stream.write(f"{head}{BEGIN}\n\n{markdown(merged)}\n\n{END}{tail}".encode())


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """One table for each machine, set of versions and date."""
    runs: dict[tuple[str, str, str], list[str]] = {}
    for name, result in results.items():
        rows_of_run = runs.setdefault((result["date"], result["machine"], result["versions"]), [])
        rows_of_run += [
            f"| `{name}` | {_cell(row['what'])} | {_ratio(row)} | {_limit(row)} | {_met(row)} |"
            for row in rows_of(result)
        ]
    head = ["| benchmark | what, and against what | ratio | limit | met |", "|---|---|---|---|---|"]
    return "\n\n".join(
        f"{day}; {where}; {what}.\n\n" + "\n".join([*head, *rows])
        for (day, where, what), rows in runs.items()
    )


def _cell(text: str) -> str:
    return text.replace("|", "&#124;")


def _ratio(row: dict[str, Any]) -> str:
    return "–" if row["ratio"] is None else f"{row['ratio']:,.2f}"


def _limit(row: dict[str, Any]) -> str:
    return "" if row["limit"] is None else f"≥ {row['limit']:.3g}"


def _met(row: dict[str, Any]) -> str:
    return {True: "yes", False: "NO", None: ""}[row["met"]]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

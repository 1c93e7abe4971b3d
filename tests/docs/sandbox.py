"""A folder with the small files that the examples of the documentation speak of."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archive import make_archive

from docs.blocks import ROOT
from rejoinder.cli.main import run

EXAMPLES = ROOT / "src" / "rejoinder" / "examples"
CHATS = ROOT / "docs" / "examples" / "chats.jsonl"
ENDS = ("", " Really.", " You know.", " I think so.")
MORE = (" Indeed.", " Well.")
QUICK = ("rater.training.epochs=1", "unreferenced.training.epochs=1", "figures.most=20")


def fill(folder: Path) -> None:
    """Everything that needs no other step of an example."""
    items = _lines(EXAMPLES / "replies-en.jsonl")
    for item in items:  # the pages call a bot so
        item["system"] = item["system"].replace("careful", "hal")
    for name in ("items", "test-items", "contexts", "tests"):
        _write(folder / f"{name}.jsonl", items)
    _write(folder / "candidates.jsonl", list(_candidates(items)))
    (folder / "replies-ja.jsonl").write_bytes((EXAMPLES / "replies-ja.jsonl").read_bytes())
    _write(folder / "chats.jsonl", list(_chats(ENDS)))
    _write(folder / "more.jsonl", list(_chats(MORE)))
    _write(folder / "chats-ja.jsonl", _japanese_chats())
    make_archive(folder / "tweets-1.jsonl.zst", posts=300, seed=1, language="ja")
    with gzip.open(folder / "tweets.txt.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(f"{message['text']}\n" for message in _japanese_chats() * 3)
    (folder / "recipes").symlink_to(ROOT / "recipes")


def learn(folder: Path) -> None:
    """Pairs, an index and an evaluator of the chats.

    Files are named as seen from their folder: which dialogues are held out depends on the names.
    """
    chats = ["chats.jsonl", "--format", "messages"]
    quick = [part for change in QUICK for part in ("--set", change)]
    with contextlib.chdir(folder):
        for arguments in (
            ["corpus", *chats, "-o", "pairs.parquet"],
            ["corpus", "more.jsonl", "--format", "messages", "-o", "more.parquet"],
            ["index", "pairs.parquet", "--by", "encoder", "-o", "pool"],
            ["fit", *chats, *quick, "-o", "evaluator"],
        ):
            assert run(arguments) == 0, arguments
    (folder / "index").symlink_to(folder / "pool")


def answer(plan: Path) -> None:
    """People answer the questions of a plan."""
    rows = _lines(plan)
    for number, row in enumerate(rows):
        row.setdefault("winner", "a" if number % 3 else "b")
        row.setdefault("annotator", f"person-{number % 2}")
    _write(plan, rows)


def _chats(ends: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The chats of the tour, several times over in other words: enough to hold some out."""
    for number, end in enumerate(ends):
        for message in _lines(CHATS):
            name = f"{message['dialogue_id']}-{number}"
            yield message | {"dialogue_id": name, "text": message["text"] + end}


def _candidates(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Twelve replies to each of three contexts."""
    for item in items[:9:3]:
        for number, other in enumerate(items[:12]):
            name = f"{item['context_id']}:{number}"
            yield item | {"id": name, "response": other["response"], "system": "any"}


def _japanese_chats() -> list[dict[str, Any]]:
    """Two turns of every Japanese item: what was said, and what a careful bot replied."""
    messages = []
    for number, item in enumerate(_lines(EXAMPLES / "replies-ja.jsonl")):
        turns = [*item["context"], item["response"]]
        messages += [
            {"dialogue_id": f"d{number}", "speaker": "ab"[k % 2], "text": turn}
            for k, turn in enumerate(turns)
        ]
    return messages


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")

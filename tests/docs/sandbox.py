"""Create the small files that the examples of the documentation use."""

from __future__ import annotations

import contextlib
import csv
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
QUICK = ("rater.training.epochs=1", "unreferenced.training.epochs=1", "validation.max_contexts=20")


def fill(folder: Path) -> None:
    """Write all files that do not depend on a command."""
    items = _lines(EXAMPLES / "replies-en.jsonl")
    for item in items:  # the name of the bot on the pages
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
    names = {"hal": "candidate", "off-topic": "production"}
    nightly = [
        item | {"system": names[item["system"]]} for item in items if item["system"] in names
    ]
    _write(folder / "nightly.jsonl", nightly)
    _write_csv(folder / "replies.csv", items)
    _write(folder / "sampled.jsonl", list(_sampled(items)))
    sets = {(item["context_id"], item["system"]): item for item in _sampled(items)}
    _write(
        folder / "diversity.jsonl",
        [
            {"context_id": context, "system": system, "ratings": {"ann": n % 5, "bob": n % 4}}
            for n, (context, system) in enumerate(sets)
        ],
    )
    for name in ("people", "judge"):
        _write(folder / f"{name}.jsonl", list(_preferences(items, name)))
    for name, judged in (("rated", "ratings"), ("expanded", "weight")):
        _write(folder / f"{name}.jsonl", list(_judged_references(items, judged)))


def learn(folder: Path) -> None:
    """Make pairs, an index and an evaluator from the chats.

    Paths are relative, because the names of files decide which dialogues are held out.
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
    """Add answers to the questions of a plan."""
    rows = _lines(plan)
    for number, row in enumerate(rows):
        row.setdefault("winner", "a" if number % 3 else "b")
        row.setdefault("annotator", f"person-{number % 2}")
    _write(plan, rows)


def _preferences(items: list[dict[str, Any]], annotator: str) -> Iterator[dict[str, Any]]:
    """Yield which reply to a context is better: mostly the one of the first system."""
    by_context: dict[str, list[str]] = {}
    for item in items:
        by_context.setdefault(item["context_id"], []).append(item["id"])
    for number, (first, second, *others) in enumerate(by_context.values()):
        for a, b in ((first, second), *((second, other) for other in others)):
            winner = "b" if number % 4 == len(annotator) % 4 else "a"
            yield {"a": a, "b": b, "winner": winner, "annotator": annotator}


def _chats(ends: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the chats of the tour in several variants: enough to hold some out."""
    for number, end in enumerate(ends):
        for message in _lines(CHATS):
            name = f"{message['dialogue_id']}-{number}"
            yield message | {"dialogue_id": name, "text": message["text"] + end}


def _candidates(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield twelve replies to each of three contexts."""
    for item in items[:9:3]:
        for number, other in enumerate(items[:12]):
            name = f"{item['context_id']}:{number}"
            yield item | {"id": name, "response": other["response"], "system": "any"}


def _sampled(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield five replies of two systems to each of six contexts."""
    for place, item in enumerate(items[:18:3]):
        for system in ("hal", "eliza"):
            for number in range(5):
                other = items[(place + number * len(system)) % len(items)]
                name = f"{item['context_id']}:{system}:{number}"
                yield item | {"id": name, "response": other["response"], "system": system}


def _judged_references(items: list[dict[str, Any]], judged: str) -> Iterator[dict[str, Any]]:
    """Yield items whose references have ratings, or weights."""
    for place, item in enumerate(items):
        rating = {"ann": place % 5 + 1, "bob": place % 4 + 1}
        value = rating if judged == "ratings" else place % 7 / 7
        text = f"reference {place}"
        yield item | {"references": [{"text": text, judged: value}], "context_id": item["id"]}


def _japanese_chats() -> list[dict[str, Any]]:
    """Return a dialogue for each Japanese item: its context and its response."""
    messages = []
    for number, item in enumerate(_lines(EXAMPLES / "replies-ja.jsonl")):
        turns = [*item["context"], item["response"]]
        messages += [
            {"dialogue_id": f"d{number}", "speaker": "ab"[k % 2], "text": turn}
            for k, turn in enumerate(turns)
        ]
    return messages


def _write_csv(path: Path, items: list[dict[str, Any]]) -> None:
    """Write items as a table with a row for each rating."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["id", "question", "bot_answer", "bot", "gold_1", "rater", "rating"])
        for item in items:
            reference = item["references"][0]
            text = reference if isinstance(reference, str) else reference["text"]
            row = [item["id"], item["context"][-1], item["response"], item["system"], text]
            for annotator, rating in item["ratings"].items():
                table.writerow([*row, annotator, rating])


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")

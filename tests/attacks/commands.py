"""Every verb as a command line whose paths can be replaced by bad ones.

``@items`` is an input file, ``>out.jsonl`` an output file and ``>>folder`` an output folder; a path
inside a spec is marked as well: ``bertscore(model=@model)``.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from fitting.toy import dialogues, write

COMMANDS: tuple[str, ...] = (
    "meta @attacks @attacked --attack --json",
    "score @items -m bleu -o >scores.jsonl",
    "score @items -m distinct",
    "score @items -m vbleu --evaluator @evaluator -o >scores.jsonl",
    "score @items -m rejoinder --evaluator @evaluator --json",
    "score @items -m sentence-cosine(model=@model)",
    "score @items -m bertscore(model=@model)",
    "score @items -m embedding-average(vectors=@vectors)",
    "score @items -m bleu(tok=sentencepiece(model=@pieces))",
    "score @items -m bertscore(rescale=true,calibration=@calibration)",
    "score @items -m calibrated(model=@calibrated)",
    "score @items -m bleu --plugin @plugin",
    "score @items -m judge(url=http://127.0.0.1:9/v1,model=m,rubric=@rubric) -o >scores.jsonl",
    "compare @items -m rouge-l --json",
    "compare @items -m rouge-l --curve --draws 2 --svg >curve.svg",
    "compare @items @scores",
    "compare @items --by people",
    "compare @items -m vbleu --evaluator @evaluator",
    "meta @items @scores --json",
    "meta @items @scores --curve --svg >curve.svg",
    "meta @items @scores --evaluator @evaluator",
    "meta @items @scores --as-judges --again @scores --costs @costs --answers @judged",
    "score @items -m bleu -o >scores.jsonl --costs >costs.json",
    "calibrate @items @scores --folds 2 --draws 1 -o >>calibrated",
    "calibrate @items @scores --folds 2 --draws 1 --svg >curve.svg",
    "estimate @items @scores --json",
    "estimate @items @scores --svg >estimates.svg",
    "plan @items @scores --budget 6 --ratings-per-reply 9 -o >next.jsonl --all >all.jsonl",
    "plan @items @scores --width 1 --svg >curve.svg --json",
    "report @items @scores -o >report.html",
    "report @items @scores --evaluator @evaluator -o >report.html",
    "report @items @scores --curve @curve -o >report.html",
    "datasets export judge-attacks-en --contexts 2 -o >attacks.jsonl",
    "leaderboard @board -o >leaderboard.html",
    "leaderboard @board --evaluator @evaluator --json",
    "show @items",
    "show @items 1x --scores @scores",
    "join @items -o >joined.jsonl",
    "join @items --ratings @items -o >joined.jsonl",
    "fit @pairs --preset tiny -o >>evaluator",
    "fit @log --format tsv --preset tiny -o >>evaluator",
    "fit @pairs --preset @preset -o >>evaluator",
    "fit @pairs --preset tiny --exclude @items -o >>evaluator",
    "corpus @log --format tsv -o >pairs.parquet",
    "corpus @log --format tsv --exclude @items -o >pairs.parquet",
    "sample @pairs -n 5 -o >some.parquet",
    "sample @pairs --split train -o >some.parquet",
    "contexts @pairs -n 5 -o >contexts.jsonl",
    "index @pairs --by bm25 -o >>index",
    "index @pairs --by vectors(vectors=@vectors) -o >>index",
    "expand @items --pool @pairs --by bm25 -o >expanded.jsonl",
    "expand @items --pool @index -o >expanded.jsonl",
    "expand @items --evaluator @evaluator -o >expanded.jsonl",
    "expand @items --by llm(url=http://127.0.0.1:9/v1,model=m) -o >expanded.jsonl",
    "expand @items --by llm(url=http://127.0.0.1:9/v1,model=m) --evaluator @evaluator"
    " -o >expanded.jsonl",
    "reply @items --system random --pool @pairs -o >replies.jsonl",
    "reply @items --system c-bm25 --pool @index -o >replies.jsonl",
    "reply @items --system parrot --as-references -o >replies.jsonl",
    "train vectors @texts --dimensions 2 --min-count 1 --epochs 1 -o >>vectors",
    "train dapt @pairs --steps 1 -o >>encoder",
    "train dapt @pairs --steps 1 --model @model -o >>encoder",
    "train calibration @texts --pairs 2 -o >calibration.json",
    "train calibration @items --pairs 2 -o >calibration.json",
    "train calibration @texts --pairs 2 --model @model -o >calibration.json",
    "pairs plan @items @answers -n 2 -o >plan.jsonl",
    "pairs fit @items @answers -o >rated.jsonl",
    "pairs fit @items @answers --into @items -o >rated.jsonl",
    "pairs judge @items @answers -m judge-pairs(url=http://127.0.0.1:9/v1,model=m,rubric=@better)"
    " -n 2 -o >answers.jsonl",
    "pairs judge @items -m judge-pairs(url=http://127.0.0.1:9/v1,model=m) --questions @answers",
    "pairs rank @items @answers --resamples 100",
    "pairs curve @items @answers --draws 2 --svg >curve.svg",
    "pairs simulate --contexts 1 --references 3 --tests 1 -o >>simulated",
    "run @recipe --work >>work",
    "datasets export grade-convai2 -o >items.jsonl",
    "ls --plugin @plugin",
    "explain bleu --plugin @plugin",
    "demo --logs @log --format tsv -o >>demo",
)

_SLOT = re.compile(r"(@|>>|>)([\w.]+)")


@dataclass(frozen=True)
class Slot:
    """One path of a command line."""

    command: str
    name: str
    kind: str
    """``input``, ``output`` or ``folder`` (of output)."""

    def __str__(self) -> str:
        return f"{self.command.partition(' -o ')[0]}: {self.name}"

    def arguments(self, bad: str, output: Path) -> list[str]:
        """The command line with a bad path in this slot, good inputs and new outputs elsewhere."""

        def replace(match: re.Match[str]) -> str:
            name = match[2]
            if name == self.name == "preset" and not os.path.exists(bad):
                return f"{bad}.toml"  # what has no ending is the name of a preset
            if name == self.name:
                return bad if "(" not in word else f'"{bad}"'
            return str(inputs()[name] if match[1] == "@" else output / name)

        arguments = []
        for word in self.command.split():
            arguments.append(_SLOT.sub(replace, word))
        return arguments


def slots() -> list[Slot]:
    """Each path argument of each verb once, and each path inside a spec."""
    kinds = {"@": "input", ">": "output", ">>": "folder"}
    found: dict[str, Slot] = {}
    for command in COMMANDS:
        verb = " ".join(word for word in command.split()[:2] if word.isalpha())
        for word in command.split():
            for match in _SLOT.finditer(word):
                key = word if "(" in word else f"{verb} {match[2]}"
                found.setdefault(key, Slot(command, match[2], kinds[match[1]]))
    return list(found.values())


@cache
def inputs() -> dict[str, Path]:
    """Good input files, by the name of their slot."""
    _FOLDERS.append(TemporaryDirectory(prefix="rejoinder-attacks-"))
    folder = Path(_FOLDERS[-1].name)
    folder.chmod(0o755)  # also for a user without rights
    items = [
        {
            "id": f"{context}{system}",
            "context": [f"do you like the cat on a mat and {word}"],
            "context_id": f"c{context}",
            "response": f"{system} likes the {word}",
            "system": system,
            "references": [f"i like {word}", "no"],
            "ratings": {"ann": context % 3 + (system == "x"), "bob": context % 2},
        }
        for context, word in enumerate(("cheese", "music", "rain", "soup"))
        for system in ("x", "y", "z")
    ]
    scores = [{"id": i["id"], "metric": "m", "value": n / 7} for n, i in enumerate(items)]
    answers = [
        {"a": f"{context}{a}", "b": f"{context}{b}", "winner": "a", "annotator": "ann"}
        for context in range(4)
        for a, b in ("xy", "yz")
    ]
    attacks = [
        {**item, "system": {"x": "plain", "y": "order", "z": "harmless"}[str(item["system"])]}
        for item in items
    ]
    write(folder / "pairs.parquet", dialogues(12))
    texts = {
        "items.jsonl": "".join(json.dumps(item) + "\n" for item in items),
        "scores.jsonl": "".join(json.dumps(score) + "\n" for score in scores),
        "attacks.jsonl": "".join(json.dumps(item) + "\n" for item in attacks),
        "attacked.jsonl": "".join(json.dumps(score) + "\n" for score in scores),
        "answers.jsonl": "".join(json.dumps(answer) + "\n" for answer in answers),
        "log.tsv": "how are you?\tfine\ndo you like rain?\tno, not at all\n" * 3,
        "texts.txt": "do you like rain\ni like soup\n" * 5,
        "vectors.txt": "do 1 0\nyou 0 1\nlike 1 1\ni 0.5 0\n",
        "preset.toml": "",
        "rubric.md": "---\nscale: 1-5\n---\n# Question\n{context} {reply} {scale}\n",
        "better.md": "---\nkind: comparing\n---\n# Question\n{reply_1} {reply_2}\n",
        "plugin.py": "",
        "curve.json": '{"results": [], "curves": []}',
        "recipe.toml": '[[steps]]\nname = "a"\nrun = ["ls"]\nstdout = "${work}/a.txt"\n',
        "calibration.json": "{}",
        "board.toml": '[[sets]]\nname = "a"\nitems = "items.jsonl"\nscores = ["scores.jsonl"]\n',
        "costs.json": '{"costs": {"m": {"replies": 12, "seconds": 0.5}}}',
        "judged.jsonl": '{"a": "0x", "b": "0y", "winner": "a", "orders": ["a", "a"]}\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    found = {path.name.partition(".")[0]: path for path in folder.iterdir()}
    # attacked alone: no other slot of their commands comes first
    return found | dict.fromkeys(
        ("evaluator", "index", "model", "pieces", "calibrated"), folder / "none"
    )


def integer_pairs(path: Path) -> Path:
    """Pairs whose texts are numbers."""
    pq.write_table(pa.table({"utterance": [1, 2], "response": [3, 4]}), path)
    return path


_FOLDERS: list[TemporaryDirectory[str]] = []
"""Deleted when the process ends."""

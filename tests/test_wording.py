"""Messages name parameters as their reader writes them: flags or keyword arguments."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import rejoinder
import rejoinder.verbs as verbs
from evaluators import write_pairs
from rejoinder.cli.main import app, run
from rejoinder.errors import RejoinderError
from rejoinder.wording import for_command_line, option

SOURCE = Path(rejoinder.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z]")

COMMANDS_IN_FILES = {
    "verbs/report.py",
    "estimation/calibration_card.py",
    "fitting/card.py",
    "learn/dialogue/card.py",
    "recipe/file.py",
    "wording.py",
}
"""Files with command lines that are written to a page, or are what the file is about."""

NAMES = {
    "context_only.csv": "question,bot,extra\nhi,x,1\n",
    "guessed.csv": "question,answer,model,colour,score\nhi,hello,x,red,3\nbye,no,y,blue,4\n",
    "two.csv": "answer,output\nhello,hi\n",
    "repeated.csv": "context,response\nhi,hello\nhi,hello\n",
    "lookalike.jsonl": '{"id": 1, "answer": "hello"}\n',
    "ignored.jsonl": '{"id": 1, "response": "hello", "refs": ["hi"]}\n',
    "items.jsonl": "".join(
        json.dumps(
            {
                "id": f"{c}{s}",
                "context": [f"how is number {c}"],
                "system": s,
                "response": f"number {c} is well says {s}",
                "references": ["very well"],
                "ratings": {"ann": c + len(s), "bob": c},
            }
        )
        + "\n"
        for c in range(4)
        for s in ("x", "yy")
    ),
    "unnamed.jsonl": '{"id": 1, "context": ["a"], "response": "hello", "references": ["hi"]}\n',
    "japanese.jsonl": "".join(
        json.dumps({"id": n, "context": ["こんにちは、元気ですか"], "response": "はい、元気です。"})
        + "\n"
        for n in range(20)
    ),
    "answers.jsonl": '{"a": "0x", "b": "0yy", "winner": "a", "annotator": "ann"}\n',
    "chat.jsonl": '{"messages": [{"role": "user", "content": "hi"},'
    ' {"role": "assistant", "content": "hello"}]}\n',
    "curve.json": "{}",
    "recipe.toml": '[variables]\nk = "3"\n[[steps]]\nname = "a"\nrun = ["ls"]\n',
}

Call = tuple[str, Callable[[], Any]]


def wrong_calls() -> Iterator[Call]:
    """Calls whose message names a parameter, with the parameter."""
    r, items = rejoinder, "items.jsonl"
    pairs: Any = r.pairs
    yield "columns", lambda: r.load("context_only.csv")
    yield "columns", lambda: r.load("two.csv")
    yield "columns", lambda: r.load("lookalike.jsonl")
    yield "columns", lambda: r.score("ignored.jsonl", ["distinct"])
    yield "columns", lambda: r.score("guessed.csv", ["distinct"])
    yield "columns", lambda: r.score("repeated.csv", ["distinct"])
    yield "columns", lambda: r.score([{"id": 1, "response": "a", "refs": ["b"]}], ["distinct"])
    yield "columns", lambda: r.compare("unnamed.jsonl", ["rouge-l"])
    yield "evaluator", lambda: r.score(items, ["rejoinder"])
    yield "evaluator", lambda: r.score(items, ["rating", "vbleu", "ruber"])
    yield "strict", lambda: r.score(items, ["rouge-l"], strict=True)
    yield "any_language", lambda: r.score("japanese.jsonl", ["sentence-cosine(refs=max)"])
    yield "resamples", lambda: r.compare(items, "rouge-l", baseline="x", margin=1, resamples=9)
    yield "level", lambda: _refusals(r.meta(items, ["distinct(n=1)", "rouge-l"]))
    yield "level", lambda: _refusals(r.meta(items, ["rouge-l"], level="system"))
    yield "drop_annotators", lambda: r.meta(items, ["rouge-l"], drop_annotators="bib")
    yield "min_kappa", lambda: r.meta(items, ["rouge-l"], min_kappa=3)
    yield "max_distractor", lambda: r.meta(items, ["rouge-l"], max_distractor=3)
    yield "distractor", lambda: r.meta(items, ["rouge-l"], distractor="nobody")
    yield "metric", lambda: r.report(items, _scores(), metric="bleu")
    yield "curve", lambda: r.report(items, _scores(), curve="curve.json")
    yield "pool", lambda: r.expand(items, output="o.jsonl")
    yield "output", lambda: r.expand(items, pool="pairs.parquet", output="-")
    yield "pool", lambda: r.reply(items, ["ir-status", "random"])
    yield "scores", lambda: r.show(items, scores="scores.jsonl")
    yield "count", lambda: pairs.plan(items, "answers.jsonl", share=3, shared=3, again=True)
    yield "share", lambda: pairs.plan(items, "answers.jsonl", annotators=["a", "a"])
    yield "by", lambda: pairs.fit(items, "answers.jsonl", by="bradly")
    yield "into", lambda: pairs.fit(items, "answers.jsonl", into=items, per_annotator=True)
    yield "learn_from", lambda: r.corpus("log.tsv", format="tsv", learn_from="user", output="p.pq")
    yield "format", lambda: r.corpus("chat.jsonl", format="reddit", output="p.parquet")
    yield "split", lambda: r.corpus("log.tsv", format="tsv", split=(2, 3, 4), output="p.parquet")
    yield "format", lambda: r.fit("log.tsv", output="e")
    yield "format", lambda: r.fit("pairs.parquet", format="tsv", output="e")
    yield "overrides", lambda: r.fit("pairs.parquet", output="e", overrides={"seed": 3})
    yield "epochs", lambda: r.train.dapt("pairs.parquet", output="d", steps=1, epochs=1)
    yield "min_count", lambda: r.train.vectors("pairs.parquet", output="v", min_count=99)
    yield "variables", lambda: r.run("recipe.toml", variables={"j": "1"})


def _scores() -> str:
    rejoinder.score("items.jsonl", ["rouge-l"], output="scores.jsonl")
    return "scores.jsonl"


def _refusals(result: Any) -> None:
    """Show the reasons for which a metric is not in the table."""
    warnings.warn("; ".join(result.refused.values()), stacklevel=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all inputs, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name, content in NAMES.items():
        Path(name).write_text(content)
    Path("log.tsv").write_text("how are you\tfine\n")
    write_pairs(Path("pairs.parquet"), [([], "do you like tea", "yes"), ([], "and milk", "no")])
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("number", range(len(list(wrong_calls()))))
def test_messages_of_python_calls_name_parameters(number: int) -> None:
    name, call = list(wrong_calls())[number]
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except RejoinderError as error:
            messages = [str(error)]
    messages += [str(each.message) for each in caught]
    assert any(f"{name}=" in message for message in messages), messages
    assert not any(FLAG.search(message) for message in messages), messages


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("score context_only.csv -m distinct", "--columns response=NAME"),
        ("score guessed.csv -m distinct", "(--columns FIELD=NAME changes it)"),
        ("score items.jsonl -m rejoinder", "--evaluator evaluator/"),
        ("score items.jsonl -m rouge-l --strict", "add --evaluator DIR, or leave it out"),
        ("expand items.jsonl -o o.jsonl", "Give --evaluator DIR or --pool PAIRS"),
        ("pairs plan items.jsonl answers.jsonl", "Give either -n or --share"),
        ("pairs plan items.jsonl --annotator a --annotator a", "--annotator a: given twice"),
        ("fit pairs.parquet -o e --set seed=3", "--set seed=3: expected section.key=value"),
        ("fit pairs.parquet -o e --set seed", "--set seed: expected section.key=value"),
        ("run recipe.toml --set j=1", "--set j=1: recipe.toml has no such variable"),
        ("meta items.jsonl no.jsonl --min-kappa 3", "--min-kappa must be from -1 to 1"),
    ],
)
def test_messages_of_command_lines_name_flags(
    arguments: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(arguments.split())
    message = capsys.readouterr().err
    assert expected in message
    assert not re.search(r"\w=['\"{\]]|=True", message)


def test_a_value_with_blanks_is_quoted_for_the_shell() -> None:
    with for_command_line():
        assert option("columns", {"system": "bot name"}) == "--columns 'system=bot name'"
        assert option("resamples", 500) == "--resamples 500"
    assert option("columns", {"system": "bot name"}) == "columns={'system': 'bot name'}"
    assert option("resamples", 500) == "resamples=500"


def _parameters() -> tuple[set[str], set[str]]:
    """The parameters of all functions of the verbs, and the flags of all commands."""
    names: set[str] = set()
    for module in pkgutil.iter_modules(verbs.__path__, "rejoinder.verbs."):
        for each in vars(importlib.import_module(module.name)).values():
            if inspect.isfunction(each) and not each.__name__.startswith("_"):
                names |= inspect.signature(each).parameters.keys()
    flags: set[str] = set()
    commands: list[Any] = [typer.main.get_command(app)]
    while commands:
        command = commands.pop()
        commands += getattr(command, "commands", {}).values()
        flags |= {flag for parameter in command.params for flag in parameter.opts}
    return names, flags


def test_options_in_messages_exist() -> None:
    names, flags = _parameters()
    used = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option":
                (name, *_) = node.args
                if isinstance(name, ast.Constant):
                    used.add(str(name.value))
    assert len(used) > 25
    assert used <= names
    with for_command_line():
        assert {option(name) for name in used} <= flags


def test_no_other_text_outside_the_command_line_names_flags() -> None:
    """Commands for other programs, or the text of ``choose`` for the command line, may."""
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith("cli/") or name in COMMANDS_IN_FILES:
            continue
        tree = ast.parse(path.read_text())
        allowed: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):  # docstrings
                allowed.add(node.value)
            if isinstance(node, ast.keyword) and node.arg == "command_line":
                allowed |= set(ast.walk(node.value))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = FLAG.search(node.value) and "pip install" not in node.value
                assert not named or node in allowed, f"{name}: {node.value}"

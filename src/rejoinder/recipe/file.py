"""Read a recipe: fill in its variables, unroll its lists, report all mistakes at once.

    [variables]
    k = 15
    data = { environment = "REJOINDER_DATA", about = "the folder of corpora" }

    [[lists.rows]]
    row = "bm25"
    retriever = "bm25(on=utterance)"

    [[steps]]
    name = "expand-${row}"
    each = "rows"
    run = ["expand", "${work}/test.jsonl", "--by", "${retriever}", "--k", "${k}",
           "-o", "${work}/${row}.jsonl"]
    outputs = ["${work}/${row}.jsonl"]

A step is one command line. ``${work}`` is the folder of this run, ``${recipe}`` the folder of the
recipe. ``each`` repeats a step for every entry of a list, of several (``["a", "b"]``), or for all
combinations of their entries (``"a * b"``); the fields of entries are variables of the step. A step
with ``when = "${data}"`` is left out if the variable is empty.

Why not a workflow tool: Snakemake, DVC and doit were considered. They bring a second language for
steps, dozens of packages or a database, and none of them checks a whole file before it starts;
the 500 lines here run our own command lines only and need nothing but the standard library.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.files.checked import read_toml
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

Value = str | int | float | bool
BUILT_IN = ("work", "recipe")
"""Variables that every recipe has."""

MAX_STEPS = 1_000
MAX_CHARACTERS = 100_000
"""Of one filled-in text: systems take command lines of about this length."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[\w.-]{1,100}")


class _Environment(msgspec.Struct, forbid_unknown_fields=True):
    """A variable whose value is an environment variable."""

    environment: str
    about: str = ""
    default: Value | None = None


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    run: list[Value]
    outputs: list[str] = []
    inputs: list[str] = []
    stdout: str | None = None
    each: str | list[str] | None = None
    when: str | None = None


class _Table(msgspec.Struct, forbid_unknown_fields=True, rename={"source": "from"}):
    row: str
    source: str
    output: str
    title: str = ""
    each: str | list[str] | None = None


class _Recipe(msgspec.Struct, forbid_unknown_fields=True):
    steps: list[_Step]
    title: str = ""
    variables: dict[str, Value | _Environment] = {}
    lists: dict[str, list[dict[str, Value]]] = {}
    table: _Table | None = None


@dataclass(frozen=True)
class Step:
    """One command line with its inputs and outputs."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    """Files and folders whose content decides the result: those that the recipe names, and the
    outputs of earlier steps that occur in the command line."""
    stdout: str | None = None
    """The output that the command's stdout is written to, if any."""


@dataclass(frozen=True)
class Table:
    """The final table of a recipe: label and file of each row."""

    title: str
    rows: tuple[tuple[str, str], ...]
    output: str


@dataclass(frozen=True)
class Recipe:
    """A recipe that is ready to run."""

    path: str
    title: str
    steps: tuple[Step, ...]
    table: Table | None


def read_recipe(path: str, work: Path, changes: Mapping[str, str] | None = None) -> Recipe:
    """Read a recipe for a run in the folder ``work``; ``changes`` replace its variables."""
    return _Builder(path, read_toml(path, _Recipe), work, changes or {}).recipe()


class _Builder:
    """Fills in the variables of a recipe and collects what is wrong with it."""

    def __init__(self, path: str, text: _Recipe, work: Path, changes: Mapping[str, str]) -> None:
        self.path, self.text = path, text
        self.problems: list[str] = []
        self.values = {"work": str(work), "recipe": str(Path(path).parent)}
        self.values |= self._variables(changes)
        self.lists = {
            name: [
                {key: self.fill(value, {}, f"list '{name}'") for key, value in entry.items()}
                for entry in entries
            ]
            for name, entries in text.lists.items()
        }

    def _variables(self, changes: Mapping[str, str]) -> dict[str, str]:
        declared = self.text.variables
        unknown = [name for name in changes if name not in declared]
        if unknown:
            raise UsageError(
                *(f"{option('variables', {n: changes[n]})}: {self.path} has no such variable:"
                  f" {did_you_mean(n, declared)}"
                  for n in unknown)
            )  # fmt: skip
        values = {}
        for name, value in declared.items():
            if name in BUILT_IN:
                self.problems.append(f"variable '{name}' is set by Rejoinder; choose another name")
            if name in changes:
                values[name] = changes[name]
            elif isinstance(value, _Environment):
                values[name] = self._from_environment(name, value)
            else:
                values[name] = _plain(value)
        return values

    def _from_environment(self, name: str, variable: _Environment) -> str:
        value = os.environ.get(variable.environment)
        if value:
            return value
        if variable.default is not None:
            return _plain(variable.default)
        about = f" ({variable.about})" if variable.about else ""
        raise MissingExtra(
            f"{self.path}: {variable.environment}{about} is not set;"
            f" set it, or add {option('variables', {name: 'VALUE'})}"
        )

    def fill(self, value: Value, here: Mapping[str, str], where: str) -> str:
        """Return a text with its variables replaced."""
        variables = {**self.values, **here}
        text = _plain(value)

        def replace(match: re.Match[str]) -> str:
            if match[1] not in variables:
                advice = did_you_mean(match[1], variables)
                self.problems.append(f"{where}: unknown variable {match[0]}: {advice}")
            return variables.get(match[1], "")

        size = sum(len(variables.get(match[1], "")) for match in _VARIABLE.finditer(text))
        if len(text) + size > MAX_CHARACTERS:
            self.problems.append(f"{where}: a text is longer than {MAX_CHARACTERS:,} characters")
            return ""
        filled = _VARIABLE.sub(replace, text)
        if "\0" in filled:
            self.problems.append(f"{where}: a text contains a NUL byte")
        return filled

    def each(self, names: str | list[str] | None, where: str) -> Iterator[Mapping[str, str]]:
        """Yield the variables of every repetition.

        Several lists follow one another; ``"a * b"`` are all combinations of their entries.
        """
        if names is None:
            yield {}
            return
        for combined in [names] if isinstance(names, str) else names:
            factors = [self._entries(name.strip(), where) for name in combined.split("*")]
            fields = Counter(field for entries in factors for field in set().union(*entries))
            if shared := sorted(field for field, count in fields.items() if count > 1):
                self.problems.append(
                    f"{where}: the lists of '{combined}' share {', '.join(shared)}"
                )
            for entries in product(*factors):
                yield {name: value for entry in entries for name, value in entry.items()}

    def _entries(self, name: str, where: str) -> Sequence[Mapping[str, str]]:
        if name not in self.lists:
            self.problems.append(f"{where}: no list '{name}': {did_you_mean(name, self.lists)}")
        return self.lists.get(name, [])

    def recipe(self) -> Recipe:
        """Build the recipe, or raise one error with all problems."""
        steps: list[Step] = []
        maker: dict[str, str] = {}
        for text in self.text.steps:
            for here in self.each(text.each, where := f"step '{text.name}'"):
                if text.when is not None and not self.fill(text.when, here, where).strip():
                    continue
                if len(steps) == MAX_STEPS:
                    raise DataError(f"there are more than {MAX_STEPS:,} steps", path=self.path)
                step = self._step(text, here, maker)
                steps.append(step)
                for path in step.outputs:
                    if path in maker:
                        self.problems.append(
                            f"step '{step.name}': {path} is already an output of '{maker[path]}'"
                        )
                    maker.setdefault(path, step.name)
        names = Counter(step.name for step in steps)
        repeated = sorted(name for name, count in names.items() if count > 1)
        self.problems += [f"two steps are called '{name}'" for name in repeated]
        if not steps:
            self.problems.append("there is no step")
        table = self._table()
        if self.problems:
            raise DataError("; ".join(dict.fromkeys(self.problems)), path=self.path)
        return Recipe(self.path, self.text.title, tuple(steps), table)

    def _step(self, text: _Step, here: Mapping[str, str], maker: Mapping[str, str]) -> Step:
        where = f"step '{text.name}'"
        name = self.fill(text.name, here, where)
        if not _NAME.fullmatch(name):
            self.problems.append(
                f"{where}: a name has up to 100 letters, digits, '.', '_' and '-', nothing else"
            )
        command = [self.fill(part, here, where) for part in text.run]
        if not command:
            self.problems.append(f"{where}: 'run' is empty; expected a command line")
        if command[:1] == ["run"] and any(_same_file(part, self.path) for part in command[1:]):
            self.problems.append(f"{where}: the recipe runs itself, which would never end")
        stdout = None if text.stdout is None else self.fill(text.stdout, here, where)
        outputs = [self.fill(path, here, where) for path in text.outputs]
        outputs += [] if stdout is None else [stdout]
        if stdout is not None and stdout.endswith((".gz", ".zst")):
            self.problems.append(
                f"{where}: stdout is not compressed; choose another name than {stdout}"
            )
        if not outputs:
            self.problems.append(f"{where}: name its output files ('outputs' or 'stdout')")
        # an input may be a variable that is empty
        inputs = [path for each in text.inputs if (path := self.fill(each, here, where))]
        inputs += [path for path in maker if any(mentions(part, path) for part in command)]
        return Step(name, tuple(command), tuple(outputs), tuple(dict.fromkeys(inputs)), stdout)

    def _table(self) -> Table | None:
        text = self.text.table
        if text is None:
            return None
        rows = [
            (self.fill(text.row, here, "table"), self.fill(text.source, here, "table"))
            for here in self.each(text.each, "table")
        ]
        title = self.fill(text.title, {}, "table")
        return Table(title, tuple(rows), self.fill(text.output, {}, "table"))


def mentions(argument: str, path: str) -> bool:
    """Return whether an argument contains a path, alone or inside a spec, not as part of a name."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", argument) is not None


def _plain(value: Any) -> str:
    """Return a value as it is written on a command line; booleans as in specs."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _same_file(argument: str, path: str) -> bool:
    try:
        return os.path.samefile(argument, path)
    except (OSError, ValueError):
        return False

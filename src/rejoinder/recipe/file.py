"""From a TOML file to steps: variables filled in, lists unrolled, all mistakes named at once.

    [variables]
    k = 15
    data = { environment = "REJOINDER_DATA", about = "the folder of corpora" }

    [[lists.rows]]
    row = "bm25"
    retriever = "bm25(on=utterance)"

    [[steps]]
    name = "expand-${row}"
    each = "rows"
    run = ["expand", "${work}/test.jsonl", "--retriever", "${retriever}", "--k", "${k}",
           "-o", "${work}/${row}.jsonl"]
    makes = ["${work}/${row}.jsonl"]

A step is one command line. ``${work}`` is the folder of this run, ``${recipe}`` the folder of the
recipe. ``each`` repeats a step for every entry of a list (or of several), whose fields are
variables there. A step with ``when = "${data}"`` is there only if the variable is not empty.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.io import explain
from rejoinder.spec import did_you_mean

Value = str | int | float | bool
GIVEN = ("work", "recipe")
"""Variables that are always there."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[\w.-]{1,100}")


class _Environment(msgspec.Struct, forbid_unknown_fields=True):
    """A variable whose value comes from the environment."""

    environment: str
    about: str = ""
    default: Value | None = None


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    run: list[Value]
    makes: list[str] = []
    reads: list[str] = []
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
    """One command line, what it makes, and what it is made of."""

    name: str
    arguments: tuple[str, ...]
    makes: tuple[str, ...]
    reads: tuple[str, ...]
    """Files and folders whose content decides the outcome: those that the recipe names, and all
    that earlier steps make and the command line mentions."""
    stdout: str | None = None
    """Where the command's stdout goes, as one of the files it makes."""


@dataclass(frozen=True)
class Table:
    """Which results stand together in the end: the label and the file of each row."""

    title: str
    rows: tuple[tuple[str, str], ...]
    output: str


@dataclass(frozen=True)
class Recipe:
    path: str
    title: str
    steps: tuple[Step, ...]
    table: Table | None


def read_recipe(path: str, work: Path, changes: Mapping[str, str] | None = None) -> Recipe:
    """The recipe in a file, for a run in the folder ``work``, with some variables changed."""
    text = _decode(path)
    return _Reading(path, text, work, changes or {}).recipe()


def _decode(path: str) -> _Recipe:
    try:
        with open(path, "rb") as stream:
            return msgspec.convert(tomllib.load(stream), _Recipe)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", path=path) from None
    except UnicodeDecodeError:
        raise DataError("the file is not UTF-8", path=path) from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"broken TOML: {error}", path=path) from None
    except msgspec.ValidationError as error:
        raise DataError(explain(str(error)), path=path) from None


class _Reading:
    """Fills in one recipe, and collects what is wrong with it."""

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
                *(f"--set {n}: {self.path} has no such variable: {did_you_mean(n, declared)}"
                  for n in unknown)
            )  # fmt: skip
        values = {}
        for name, value in declared.items():
            if name in GIVEN:
                self.problems.append(f"variable '{name}' is given by Rejoinder; choose another")
            if name in changes:
                values[name] = changes[name]
            elif isinstance(value, _Environment):
                values[name] = self._from_environment(name, value)
            else:
                values[name] = _plain(value)
        return values

    def _from_environment(self, name: str, variable: _Environment) -> str:
        found = os.environ.get(variable.environment)
        if found:
            return found
        if variable.default is not None:
            return _plain(variable.default)
        about = f" ({variable.about})" if variable.about else ""
        raise MissingExtra(
            f"{self.path}: {variable.environment}{about} is not set;"
            f" set it, or add --set {name}=VALUE"
        )

    def fill(self, value: Value, here: Mapping[str, str], where: str) -> str:
        """A text with its variables replaced."""
        known = {**self.values, **here}

        def replace(match: re.Match[str]) -> str:
            if match[1] not in known:
                advice = did_you_mean(match[1], known)
                self.problems.append(f"{where}: unknown variable {match[0]}: {advice}")
            return known.get(match[1], "")

        return _VARIABLE.sub(replace, _plain(value))

    def each(self, names: str | list[str] | None, where: str) -> Iterator[Mapping[str, str]]:
        """The variables of every repetition; several lists follow one another."""
        if names is None:
            yield {}
            return
        for name in [names] if isinstance(names, str) else names:
            if name not in self.lists:
                advice = did_you_mean(name, self.lists)
                self.problems.append(f"{where}: no list '{name}': {advice}")
            yield from self.lists.get(name, [])

    def recipe(self) -> Recipe:
        steps: list[Step] = []
        made: dict[str, str] = {}
        for text in self.text.steps:
            for here in self.each(text.each, where := f"step '{text.name}'"):
                if text.when is not None and not self.fill(text.when, here, where).strip():
                    continue
                step = self._step(text, here, made)
                steps.append(step)
                for path in step.makes:
                    if path in made:
                        self.problems.append(
                            f"step '{step.name}': makes {path}, as '{made[path]}' does already"
                        )
                    made.setdefault(path, step.name)
        names = [step.name for step in steps]
        repeated = {name for name in names if names.count(name) > 1}
        self.problems += [f"two steps are called '{name}'" for name in sorted(repeated)]
        if not steps:
            self.problems.append("there is no step")
        table = self._table()
        if self.problems:
            raise DataError("; ".join(dict.fromkeys(self.problems)), path=self.path)
        return Recipe(self.path, self.text.title, tuple(steps), table)

    def _step(self, text: _Step, here: Mapping[str, str], made: Mapping[str, str]) -> Step:
        where = f"step '{text.name}'"
        name = self.fill(text.name, here, where)
        if not _NAME.fullmatch(name):
            self.problems.append(f"{where}: a name has letters, digits, '.', '_' and '-' only")
        arguments = [self.fill(part, here, where) for part in text.run]
        if not arguments:
            self.problems.append(f"{where}: 'run' is empty; expected a command line")
        stdout = None if text.stdout is None else self.fill(text.stdout, here, where)
        makes = [self.fill(path, here, where) for path in text.makes]
        makes += [] if stdout is None else [stdout]
        if stdout is not None and stdout.endswith((".gz", ".zst")):
            self.problems.append(f"{where}: stdout is written as it comes; not to {stdout}")
        if not makes:
            self.problems.append(f"{where}: name the files that it makes ('makes' or 'stdout')")
        # a variable may stand for a file that is not always there
        reads = [path for each in text.reads if (path := self.fill(each, here, where))]
        reads += [path for path in made if any(mentions(part, path) for part in arguments)]
        return Step(name, tuple(arguments), tuple(makes), tuple(dict.fromkeys(reads)), stdout)

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
    """Whether a path stands in an argument, alone or inside a spec, and not as part of a name."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", argument) is not None


def _plain(value: Any) -> str:
    """As it stands on a command line; booleans as specs have them."""
    return str(value).lower() if isinstance(value, bool) else str(value)

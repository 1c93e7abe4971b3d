"""Preset files: tables of settings in TOML, changed by overrides and made into dataclasses."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from rejoinder.errors import DataError, UsageError
from rejoinder.files.checked import read_toml
from rejoinder.files.jsonl import explain
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

NONE = "none"
"""Stands for None, which TOML does not have."""

T = TypeVar("T")
Table = dict[str, Any]


def read_shipped_preset(package: str, name: str) -> tuple[str, Table]:
    """Return the name and the tables of a preset that is part of a package."""
    text = (resources.files(package) / "presets" / f"{name}.toml").read_text("utf-8")
    return name, tomllib.loads(text)


def read_preset_file(name: str, presets: Iterable[str]) -> tuple[str, Table]:
    """Return the name and the tables of a preset in a TOML file."""
    path = Path(name)
    if path.suffix != ".toml":
        raise UsageError(
            f"unknown preset '{name}': {did_you_mean(name, presets)} (or the name of a .toml file)"
        )
    try:
        return path.stem, read_toml(path, dict[str, Any])
    except DataError as error:
        raise UsageError(str(error)) from None


def merge(tables: Table, overlay: Mapping[str, Any]) -> None:
    """Merge tables into tables; an empty table removes a section."""
    for key, value in overlay.items():
        if isinstance(value, Mapping) and value and isinstance(tables.get(key, {}), dict):
            merge(tables.setdefault(key, {}), value)
        elif value == {}:
            tables.pop(key, None)
        else:
            tables[key] = value


def apply_override(tables: Table, override: str) -> None:
    """Apply ``section.key=value``; a value that is not TOML is text."""
    key, equals, value = override.partition("=")
    *sections, last = key.strip().split(".")
    if not equals or not sections or not all([*sections, last]):
        raise UsageError(f"{_shown(override)}: expected section.key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()
    table = tables
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise UsageError(f"{_shown(override)}: {section} is not a section")
    table.pop(last, None)  # the last of steps and epochs counts: see last_length
    table[last] = parsed


def _shown(override: str) -> str:
    key, equals, value = override.partition("=")
    return option("overrides", {key: value} if equals else override)


def last_length(training: Table) -> Table:
    """Keep only the last of ``steps`` and ``epochs``: an override replaces the preset's."""
    lengths = [key for key in training if key in ("steps", "epochs")]
    return {key: value for key, value in training.items() if key not in lengths[:-1]}


def make_settings(cls: type[T], table: Mapping[str, Any]) -> T:
    """Convert a table to a frozen dataclass; raise UsageError for unknown names and wrong types."""
    names = [each.name for each in fields(cls)]  # type: ignore[arg-type]
    problems = [f"'{key}': {did_you_mean(key, names)}" for key in table if key not in names]
    hints = get_type_hints(cls)
    values = {}
    for name in names:
        if name not in table:
            continue
        value = None if table[name] == NONE else table[name]
        try:
            converted = is_dataclass(value)
            values[name] = value if converted else msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            problems.append(f"{name}: {explain(str(error))}")
    if problems:
        raise UsageError(*problems)
    try:
        return cls(**values)
    except TypeError:
        missing = [name for name in names if name not in values]
        raise UsageError(f"a setting is missing, one of {', '.join(missing)}") from None

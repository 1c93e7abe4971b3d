"""Load a rule set: the AIML files of a folder, with its sets, maps and properties.

A folder is read with all folders inside: ``*.aiml`` files; AIML 2.0's sets (``sets/NAME.txt`` or
``NAME.set``, a member a line) and maps (``maps/NAME.txt`` or ``NAME.map``, ``key:value`` lines);
and the bot's properties (``properties.txt`` or ``*.properties``, ``name:value`` or ``name=value``
lines). ``alice`` and ``standard`` are the rule sets that the package python-aiml brings.
"""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rejoinder.errors import DataError, missing_extra
from rejoinder.files.paths import exists, is_folder, open_regular, reason
from rejoinder.systems.aiml.graph import Graph, WordSets
from rejoinder.systems.aiml.normalise import words_of
from rejoinder.systems.aiml.parsing import Rule, read_rules

PACKAGED = {"alice": "*.aiml", "standard": "std-*.aiml"}
"""Rule sets of python-aiml, and the files that their startup.xml loads."""
NAME = "Rejoinder"
"""Name of a bot whose rule set has no properties."""


@dataclass(frozen=True)
class RuleSet:
    """The rules of a bot, with what they refer to."""

    rules: list[Rule]
    """In the order of the files; of rules with the same path the last one."""
    sets: dict[str, set[tuple[str, ...]]]
    maps: dict[str, dict[str, str]]
    properties: dict[str, str]

    @cached_property
    def graph(self) -> Graph:
        """The graph of all patterns."""
        graph = Graph(WordSets(self.sets))
        with _without_garbage_collection():
            for rule in self.rules:
                graph.add(rule)
        return graph


def locate(rules: str) -> Path:
    """Return the folder, or file, that ``rules`` names; MissingExtra without python-aiml."""
    if rules not in PACKAGED:
        return Path(rules).expanduser()
    spec = importlib.util.find_spec("aiml")
    if spec is not None:
        for place in spec.submodule_search_locations or ():
            folder = Path(place) / "botdata" / rules
            if is_folder(folder):
                return folder
    raise missing_extra("aiml", "python-aiml", task=f"aiml(rules={rules})")


def load(
    rules: str, *, skip_broken: bool = False, on_note: Callable[[str], None] = lambda text: None
) -> RuleSet:
    """Load a rule set; a file that is not XML is refused, or skipped and noted."""
    place = locate(rules)
    if not exists(place):
        raise DataError("cannot be read: no such file or folder", path=str(place))
    files = sorted(place.rglob(PACKAGED.get(rules, "*.aiml"))) if is_folder(place) else [place]
    files = [path for path in files if not is_folder(path)]
    if not files:
        raise DataError("no AIML files; expected files whose names end with .aiml", path=str(place))
    others = _Others(place if is_folder(place) else place.parent, read=rules not in PACKAGED)
    found: dict[tuple[str, ...], Rule] = {}
    skipped: list[str] = []
    broken: list[str] = []
    with _without_garbage_collection():
        for path in files:
            try:
                file = read_rules(path, others.properties)
            except DataError as error:
                if not skip_broken:
                    raise
                broken.append(str(error))
                continue
            found.update((rule.path, rule) for rule in file.rules)
            skipped += [f"{path}:{line}: {why}" for line, why in file.skipped]
    for what, where in (("files are broken", broken), ("categories are not rules", skipped)):
        if where:
            on_note(f"{len(where):,} {what} and were left out; the first: {where[0]}")
    if not found:
        raise DataError("there is no rule in these AIML files", path=str(place))
    return RuleSet(list(found.values()), others.sets, others.maps, others.properties)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the search for garbage, which visits all rules again whenever some were added."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Others:
    """The files of a rule set that are not AIML."""

    def __init__(self, folder: Path, *, read: bool) -> None:
        self.sets: dict[str, set[tuple[str, ...]]] = {}
        self.maps: dict[str, dict[str, str]] = {}
        self.properties: dict[str, str] = {"name": NAME}
        for path in sorted(folder.rglob("*")) if read else ():
            name, ending, parent = path.stem.lower(), path.suffix.lower(), path.parent.name.lower()
            if ending == ".set" or (ending == ".txt" and parent == "sets"):
                members = (tuple(words_of(line).words) for line in _lines(path))
                self.sets[name] = {member for member in members if member}
            elif ending == ".map" or (ending == ".txt" and parent == "maps"):
                self.maps[name] = {key.upper(): value for key, value in _pairs(path)}
            elif ending == ".properties" or path.name.lower() == "properties.txt":
                self.properties |= {key.lower(): value for key, value in _pairs(path)}


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file that are neither blank nor a comment."""
    try:
        with open_regular(path) as stream:
            text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8 text", path=str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {reason(error)}", path=str(path)) from None
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values, with a colon or an equals sign between them."""
    for number, line in enumerate(_lines(path), 1):
        ends = [place for mark in ":=" if (place := line.find(mark)) > 0]
        if not ends:
            raise DataError(f"'{line[:40]}' is not name:value", path=str(path), line=number)
        yield line[: min(ends)].strip(), line[min(ends) + 1 :].strip()

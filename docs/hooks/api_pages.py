"""Generate the API reference, as Markdown, from signatures and docstrings of the package.

Every public name of ``rejoinder`` has an entry: verbs, results, metric classes (a table, with
links to the pages of the metrics), and errors.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import rejoinder
from rejoinder import errors
from rejoinder.metrics.metric import Metric

TITLES = {
    "index": "API reference",
    "functions": "Functions",
    "classes": "Classes and results",
    "errors": "Errors",
}


def pages() -> dict[str, str]:
    """Return file name (without suffix) → Markdown."""
    members = {name: getattr(rejoinder, name) for name in rejoinder.__all__ if name[0] != "_"}
    functions = {k: v for k, v in members.items() if inspect.isfunction(v)}
    modules = {k: v for k, v in members.items() if isinstance(v, ModuleType)}
    classes = {k: v for k, v in members.items() if inspect.isclass(v)}
    metrics = {k: v for k, v in classes.items() if issubclass(v, Metric)}
    results = {k: v for k, v in classes.items() if k not in metrics}
    return {
        "index": _index(functions, modules, results, metrics),
        "functions": "\n\n".join(["# Functions", *_functions(functions, modules)]),
        "classes": "\n\n".join(
            ["# Classes and results", *(part for k, v in results.items() for part in _class(k, v))]
        ),
        "errors": "\n\n".join(["# Errors", *_errors()]),
    }


def _index(
    functions: dict[str, Any],
    modules: dict[str, ModuleType],
    results: dict[str, Any],
    metrics: dict[str, type[Metric]],
) -> str:
    rows = ["| name | |", "|---|---|"]
    for name, function in functions.items():
        rows.append(f"| [`{name}`](functions.md#{_anchor(name)}) | {_first(function)} |")
    for name, module in modules.items():
        for inner, function in _public(module).items():
            full = f"{name}.{inner}"
            rows.append(f"| [`{full}`](functions.md#{_anchor(full)}) | {_first(function)} |")
    for name, cls in results.items():
        rows.append(f"| [`{name}`](classes.md#{_anchor(name)}) | {_first(cls)} |")
    classes = ["| class | spec | |", "|---|---|---|"]
    for name, metric in metrics.items():
        classes.append(
            f"| `{name}` | [`{metric.name}`](../metrics/{metric.name}.md) | {metric.summary} |"
        )
    return "\n".join(
        [
            "# API reference",
            "",
            "Generated from the docstrings of the package. An introduction with examples is on"
            " [the Python page](../python.md).",
            "",
            *rows,
            "",
            "## Metric classes",
            "",
            "Accepted wherever a spec is: `rejoinder.score(items, [rejoinder.Bleu(n=2)])`.",
            "",
            *classes,
            "",
        ]
    )


def _functions(functions: dict[str, Any], modules: dict[str, ModuleType]) -> Iterator[str]:
    for name, function in functions.items():
        yield from _function(name, function)
    for name, module in modules.items():
        for inner, function in _public(module).items():
            yield from _function(f"{name}.{inner}", function)


def _function(name: str, function: Callable[..., Any], level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} `{name}` {{#{_anchor(name)}}}"
    yield f"```python\n{_signature(name, function)}\n```"
    yield from _docstring(function)


def _class(name: str, cls: type) -> Iterator[str]:
    yield f"## `{name}` {{#{_anchor(name)}}}"
    yield from _docstring(cls)
    if dataclasses.is_dataclass(cls):
        rows = ["| field | type |", "|---|---|"]
        for each in dataclasses.fields(cls):
            union = _type(each.type).replace("|", "\\|")
            rows.append(f"| `{each.name}` | `{union}` |")
        yield "\n".join(rows)
    for key, member in inspect.getmembers(cls):
        if key[0] == "_" or not _own(member):
            continue
        if isinstance(member, property):
            yield f"### `{name}.{key}` {{#{_anchor(name, key)}}}"
            yield from _docstring(member)
        elif inspect.isfunction(member) or inspect.ismethod(member):
            yield from _function(f"{name}.{key}", member, level=3)


def _errors() -> Iterator[str]:
    for name, cls in vars(errors).items():
        if (
            inspect.isclass(cls)
            and issubclass(cls, Exception)
            and cls.__module__ == errors.__name__
        ):
            yield f"## `rejoinder.errors.{name}` {{#{_anchor(name)}}}"
            yield from _docstring(cls)


def _own(member: Any) -> bool:
    """Whether a member is defined in this package (not inherited from the standard library)."""
    function = member.fget if isinstance(member, property) else member
    return getattr(function, "__module__", "").startswith("rejoinder")


def _public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]
    found = {name: getattr(module, name) for name in names}
    return {
        name: value
        for name, value in found.items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    shown = [
        str(p.replace(annotation=_annotation(p.annotation), default=_default(p.default)))
        for p in parameters
    ]
    starred = next((i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), None)
    if starred is not None and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        shown.insert(starred, "*")
    result = ""
    if signature.return_annotation is not signature.empty:
        result = f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){result}"
    if len(line) <= 96:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){result}"


class _Text:
    """A value that prints as this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _annotation(value: Any) -> Any:
    return value if value is inspect.Parameter.empty else _Text(_type(value))


def _default(value: Any) -> Any:
    """Return a default that prints as Python code; objects without such a form print as …"""
    return _Text("…") if " object at 0x" in repr(value) else value


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)


def _first(member: Any) -> str:
    text = inspect.getdoc(member) or ""
    return _markdown(" ".join(text.partition("\n\n")[0].split()))


def _docstring(member: Any) -> Iterator[str]:
    text = inspect.getdoc(member)
    if text:
        for block in text.split("\n\n"):
            if block.lstrip().startswith(">>>") or block.startswith("    "):
                yield f"```python\n{textwrap.dedent(block).rstrip()}\n```"
            else:
                yield _markdown(block)


def _markdown(text: str) -> str:
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    text = re.sub(r"\bdocs/([\w-]+)\.md", r"[\1](../\1.md)", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _anchor(*names: str) -> str:
    return "-".join(names).replace(".", "-").lower()

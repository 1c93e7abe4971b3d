"""Specs: the syntax in which metrics, tokenizers and other parts are named.

    bleu                               every parameter at its default
    bleu(n=2,smooth=none)              numbers, words, true/false
    recall(d=rouge-l(beta=1))          a value may itself be a spec
    sentence-cosine(model=~/bert)      paths: /data/bert, ./bert, ../bert, ~/bert, C:\\bert
    openai(url=http://localhost/v1)    addresses, up to the next comma or parenthesis
    sentencepiece(model="a b.model")   other text in double quotes
    mean(bleu,likelihood(of=reply))    several unnamed specs, where a name takes them

A spec is only structure. The frozen dataclass that is registered under its name decides which
parameters it takes: :func:`build` creates the object, :func:`spec_of` prints it, and
``build(parse(str(spec_of(x)))) == x``.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from numbers import Number
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from rejoinder.errors import UsageError

Value = Union[bool, int, float, str, "Spec", tuple["Spec", ...]]
T = TypeVar("T")

MAX_DEPTH = 20
MAX_DIGITS = 18

_TOKEN = re.compile(
    r"""\s*(?:(?P<path>(?:~|\.{0,2}/|[A-Za-z]:[\\/]|https?://)[^\s,()="]*|\.{1,2}(?=[\s,)]|$))
          |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w./:-])
          |(?P<word>\w[\w./:-]*(?:\+[\w~./][\w./:-]*)*)
          |(?P<quoted>"(?:[^"\\]|\\.)*")
          |(?P<mark>[(),=]))""",
    re.VERBOSE,
)


SHORT = {"top": "k", "soft": "b"}
"""Parameters whose name may be left out: top(3) is top(k=3)."""
LISTS = {"mean": "metrics"}
"""Parameters that are written as specs without a name, before all others: mean(bleu,meteor)."""


@dataclass(frozen=True)
class Spec:
    """A name with named parameters; ``str()`` gives the text that parses back to it."""

    name: str
    params: tuple[tuple[str, Value], ...] = field(default=())

    def __str__(self) -> str:
        if not self.params:
            return self.name
        inside = ",".join(
            print_value(value) if LISTS.get(self.name) == key else f"{key}={print_value(value)}"
            for key, value in self.params
        )
        if len(self.params) == 1 and SHORT.get(self.name) == self.params[0][0]:
            (_, value), *_ = self.params
            if type(value) in (int, float):
                inside = print_value(value)
        return f"{self.name}({inside})"


def print_value(value: Value) -> str:
    """Return a value as it is written in a spec."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, str):
        match = _TOKEN.fullmatch(value)
        plain = match is not None and value in (match["word"], match["path"])
        if plain and value not in ("true", "false"):
            return value
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value) if isinstance(value, float) else str(value)


def parse(text: str) -> Spec:
    """Parse a spec; UsageError says where it is wrong."""
    return _Parser(text).whole()


class _Parser:
    """Recursive descent over the five kinds of token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def whole(self) -> Spec:
        name = self.take("word")
        if name is None:
            raise self.wrong("a name")
        spec = self.rest_of_spec(name)
        if self.text[self.at :].strip():
            raise self.wrong("the end")
        return spec

    def rest_of_spec(self, name: str) -> Spec:
        if self.take("mark", "(") is None:
            return Spec(name)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UsageError(f"'{self.text[:40]}…' is too deeply nested")
        params: dict[str, Value] = {}
        if name in LISTS and (unnamed := self.unnamed()):
            params[LISTS[name]] = unnamed
        key, start = None, self.at
        while self.take("mark", ")") is None:
            if params and self.take("mark", ",") is None:
                raise self.wrong("',' or ')'", self.quoted_hint(key, start))
            key = self.take("word")
            if key is None:
                # one unnamed number, and nothing else
                at = self.at
                number = self.take("number") if name in SHORT and not params else None
                if number is None or self.take("mark", ")") is None:
                    self.at = at
                    raise self.wrong("name=value")
                params[SHORT[name]] = self.number(number)
                break
            if key in params:
                raise UsageError(f"'{self.text}': parameter '{key}' is given twice")
            if self.take("mark", "=") is None:
                raise self.wrong(f"'=' after '{key}'")
            start = self.at
            params[key] = self.value()
        self.depth -= 1
        return Spec(name, tuple(params.items()))

    def unnamed(self) -> tuple[Spec, ...]:
        """Return the specs before the first parameter with a name."""
        specs: list[Spec] = []
        while True:
            at = self.at
            if specs and self.take("mark", ",") is None:
                break
            word = self.take("word")
            if word is None or self.take("mark", "=") is not None:
                self.at = at
                break
            specs.append(self.rest_of_spec(word))
        return tuple(specs)

    def number(self, text: str) -> int | float:
        mantissa = re.split("[eE]", text)[0].lstrip("+-0.")
        if sum(c.isdigit() for c in mantissa) > MAX_DIGITS:
            raise UsageError(f"{text[:20]}… has more than {MAX_DIGITS} digits")
        number = float(text) if any(c in text for c in ".eE") else int(text)
        if math.isinf(number):
            raise UsageError(f"'{self.text}': {text} is too large")
        return number

    def value(self) -> Value:
        if (number := self.take("number")) is not None:
            return self.number(number)
        if (quoted := self.take("quoted")) is not None:
            return re.sub(r"\\(.)", r"\1", quoted[1:-1])
        if (path := self.take("path")) is not None:
            return path
        if (word := self.take("word")) is not None:
            if word in ("true", "false"):
                return word == "true"
            spec = self.rest_of_spec(word)
            return spec if spec.params else word
        raise self.wrong("a value")

    def take(self, kind: str, wanted: str | None = None) -> str | None:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match.lastgroup != kind:
            return None
        token = match.group(kind)
        if wanted is not None and token != wanted:
            return None
        self.at = match.end()
        return token

    def quoted_hint(self, key: str | None, start: int) -> str:
        """Return advice if the value that begins at ``start`` seems to go on after a blank."""
        if not self.text[self.at : self.at + 1].isspace():
            return ""
        value = self.text[start:].partition(",")[0].rstrip().removesuffix(")")
        return f'; quote values with blanks, commas or parentheses: {key}="{value}"'

    def wrong(self, expected: str, hint: str = "") -> UsageError:
        rest = self.text[self.at :].strip()
        found = f"'{rest[:20]}'" if rest else "the end"
        return UsageError(f"'{self.text}': expected {expected}, found {found}{hint}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the most similar names, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(f"'{name}'" for name in near) + "?"
    return "known: " + ", ".join(names) if names else "it takes none"


def parameters(cls: type) -> dict[str, Field[Any]]:
    """Return the parameters that a spec may set: the class's own first, then inherited ones."""
    init = {f.name: f for f in fields(cls) if f.init}
    order = dict.fromkeys(
        name for base in cls.__mro__ for name in vars(base).get("__annotations__", ())
    )
    return {name: init[name] for name in order if name in init}


def build(cls: type[T], name: str, params: Mapping[str, Any]) -> T:
    """Create an object of a registered class; all wrong parameters are reported at once.

    Besides values of specs, ``params`` may hold objects that print as specs, such as metrics.
    """
    allowed, hints = parameters(cls), get_type_hints(cls)
    values = converted(Spec(name, tuple(params.items())), {key: hints[key] for key in allowed})
    try:
        return cls(**values)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    except TypeError:
        missing = [
            key
            for key, f in allowed.items()
            if key not in values and f.default is MISSING and f.default_factory is MISSING
        ]
        if not missing:
            raise
        raise UsageError(f"{name} needs {', '.join(f'{m}=…' for m in missing)}") from None


def converted(spec: Spec, hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters converted to the types in ``hints``; UsageError if that fails."""
    problems: list[str] = []
    values: dict[str, Any] = {}
    for key, value in spec.params:
        if key not in hints:
            problems.append(f"{spec.name} has no parameter '{key}': {did_you_mean(key, hints)}")
            continue
        try:
            values[key] = _convert(value, hints[key])
        except (TypeError, ValueError):
            problems.append(
                f"{spec.name}: {key}={print_value(value)} is not {_describe(hints[key])}"
            )
    if problems:
        raise UsageError(*problems)
    return values


def check_types(value: Any, name: str) -> None:
    """Convert the parameters of an object to the types of its fields, in place; UsageError names
    those for which that fails. Numbers of NumPy and paths become plain numbers and texts."""
    hints = _parameter_hints(value.__class__)
    params = {key: _builtin(getattr(value, key)) for key in hints}
    # None is the default of parameters that may be left out
    left_out = {key for key in params if params[key] is None and type(None) in get_args(hints[key])}
    chosen = tuple((key, each) for key, each in params.items() if key not in left_out)
    for key, each in converted(Spec(name, chosen), hints).items():
        object.__setattr__(value, key, each)


@cache
def _parameter_hints(cls: type) -> dict[str, Any]:
    """Return the types of the parameters; a metric of another package may have types that cannot
    be written in a spec, which are left out."""
    hints = get_type_hints(cls)
    return {key: hints[key] for key in parameters(cls) if _is_specifiable(hints[key])}


def _is_specifiable(hint: Any) -> bool:
    if get_origin(hint) is tuple:
        return _prints_as_spec(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return all(map(_is_specifiable, get_args(hint)))
    return hint in (bool, int, float, str, Spec, type(None)) or _prints_as_spec(hint)


def _builtin(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    # a number of NumPy, which need not be imported
    is_number = not isinstance(value, bool | int | float) and isinstance(value, Number)
    return value.item() if is_number and hasattr(value, "item") else value


def _convert(value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        each, _ = get_args(hint)
        if not isinstance(value, tuple | list):
            raise TypeError
        return tuple(_convert(one, each) for one in value)
    if get_origin(hint) is not None:
        options = get_args(hint)
        for option in options:
            try:
                return _convert(value, option)
            except (TypeError, ValueError):
                continue
        raise TypeError
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is bool or hint is int or hint is float or hint is str:
        if type(value) is not hint:
            raise TypeError
        return value
    if hint is Spec or _prints_as_spec(hint):
        if isinstance(value, str):
            return parse(value) if "(" in value else Spec(value)
        if isinstance(value, Spec) or (hint is not Spec and _prints_as_spec(type(value))):
            return value
    raise TypeError


def _prints_as_spec(cls: Any) -> bool:
    """Return whether objects of a class are written as specs inside other specs."""
    return callable(getattr(cls, "spec", None))


def _describe(hint: Any) -> str:
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a word",
        Spec: "a spec",
        type(None): "left out",
    }
    if get_origin(hint) is tuple:
        return "several specs"
    if get_origin(hint) is not None:
        return " or ".join(_describe(option) for option in get_args(hint))
    return names.get(hint, "a spec")


def explicit_parameters(value: Any) -> dict[str, Any]:
    """Return the parameters of an object that differ from their defaults."""
    explicit = {}
    for key, f in parameters(type(value)).items():
        current = getattr(value, key)
        if current is not None and (f.default is MISSING or _plain(current) != f.default):
            explicit[key] = current
    return explicit


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.spec() if _prints_as_spec(type(value)) else value


def spec_of(value: Any, name: str) -> Spec:
    """Return the shortest spec that builds ``value`` again, without parameters at their default."""
    params = explicit_parameters(value).items()
    return Spec(name, tuple((key, _plain(current)) for key, current in params))

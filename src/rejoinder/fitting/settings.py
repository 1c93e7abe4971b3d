"""What ``fit`` is told: a preset, its changes for a language, and what the user changes of it.

A preset is a TOML file with comments (``presets/``); so is a file of one's own. What stands under
``[languages.xx]`` replaces what stands above it, for that language only. A file that names a preset
as its ``base`` says only what is different.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

from rejoinder.errors import UsageError
from rejoinder.io import explain
from rejoinder.learn.settings import RaterSettings, ScorerSettings, Training, complain
from rejoinder.spec import Spec, did_you_mean, parse
from rejoinder.text.languages import language as known_language

PRESETS = ("tiny", "small", "medium", "paper")
BASE, LANGUAGES = "base", "languages"
FORMS = ("gru", "vectors", "encoder")

NOTHING = "none"
"""What TOML has no word for."""

T = TypeVar("T")
S = TypeVar("S", RaterSettings, ScorerSettings)
Table = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which pairs are learnt from."""

    most: int | None = None
    """Pairs; of more, whole dialogues are drawn."""
    held_out: float = 0.05
    """Share of the dialogues, where pairs do not say themselves which are for validation."""
    most_held_out: int = 1000
    """Pairs for figures and ranges."""
    context: int = 4
    """Turns before the utterance that are taken from logs."""

    def __post_init__(self) -> None:
        complain(
            (self.most is not None and self.most < 1, "most must be above 0"),
            (not 0 < self.held_out < 1, "held_out is a share between 0 and 1"),
            (self.most_held_out < 1, "most_held_out must be above 0"),
            (not 0 <= self.context <= 50, "context is from 0 to 50"),
        )


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """How references are found."""

    by: str
    """Spec of a retriever; ``vectors`` without ``vectors=`` takes those of this evaluator."""
    k: int = 15
    parrot: bool = True

    def __post_init__(self) -> None:
        complain((not 1 <= self.k <= 1000, "k is from 1 to 1000"))
        parse(self.by)


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """Static vectors that are trained on the pairs, where a retriever or a form reads them."""

    method: str = "fasttext"
    dimensions: int = 100
    window: int | None = None
    min_count: int = 5
    epochs: int | None = None
    buckets: int = 200_000

    def __post_init__(self) -> None:
        from rejoinder.encode.static.train.run import METHODS

        complain(
            (self.method not in METHODS, f"method is one of {', '.join(METHODS)}"),
            (not 1 <= self.dimensions <= 4096, "dimensions are from 1 to 4096"),
            (min(self.min_count, self.window or 1, self.epochs or 1, self.buckets) < 1,
             "min_count, window, epochs and buckets must be above 0"),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What is measured on the pairs held out."""

    ranges: tuple[str, ...] = ()
    """Metrics whose range is written down, for ``ruber(norm=fixed)``."""
    most: int = 500
    """Contexts that ranges are measured on."""


@dataclass(frozen=True, kw_only=True)
class Learnt(Generic[S]):
    """A network: how it reads texts, and how it is trained."""

    form: Spec
    """gru, vectors or encoder, with the options that ``learn.forms.make_form`` takes."""
    settings: S

    def plain(self) -> dict[str, Any]:
        return {"form": str(self.form), **self.settings.plain()}


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """All that decides an evaluator besides its data."""

    preset: str
    language: str
    seed: int
    data: Data
    retrieval: Retrieval
    vectors: WordVectors | None
    rater: Learnt[RaterSettings]
    unreferenced: Learnt[ScorerSettings]
    figures: Figures

    @property
    def needs_vectors(self) -> bool:
        """Whether anybody reads word vectors of the evaluator's own."""
        specs = (parse(self.retrieval.by), self.rater.form, self.unreferenced.form)
        return any(map(reads_own_vectors, specs))

    def plain(self) -> dict[str, Any]:
        """For the manifest and the card."""
        whole = asdict(self)
        for name, part in (("rater", self.rater), ("unreferenced", self.unreferenced)):
            whole[name] = part.plain()
        return {key: value for key, value in whole.items() if value is not None}


def reads_own_vectors(spec: Spec) -> bool:
    """A retriever or a form over word vectors that names none reads those of the evaluator."""
    return spec.name == "vectors" and not {"vectors", "model"} & dict(spec.params).keys()


def read_settings(
    preset: str, language: str, *, seed: int = 0, changes: Iterable[str] = ()
) -> Fitting:
    """A preset by name, or a TOML file; everything that is wrong with it is said at once."""
    spoken = known_language(language).code
    name, tables = _preset(preset, spoken)
    problems: list[str] = []
    for change in changes:
        try:
            _change(tables, change)
        except UsageError as error:
            problems += error.messages
    reading = _Reading(tables, problems)
    made = {
        "data": reading.section("data", Data),
        "retrieval": reading.section("retrieval", Retrieval),
        "vectors": reading.section("vectors", WordVectors) if "vectors" in tables else None,
        "rater": reading.learnt("rater", RaterSettings, seed),
        "unreferenced": reading.learnt("unreferenced", ScorerSettings, seed),
        "figures": reading.section("figures", Figures),
    }
    known = list(made)
    problems += [f"[{key}]: {did_you_mean(key, known)}" for key in tables if key not in made]
    if problems:
        raise UsageError(*(f"{preset}: {problem}" for problem in problems))
    found = Fitting(preset=name, language=spoken, seed=seed, **made)  # type: ignore[arg-type]
    if found.needs_vectors and found.vectors is None:
        raise UsageError(
            f"{preset}: a retriever or a form reads word vectors, but there is no section [vectors]"
            " that says how to train them; add --set vectors.method=glove (word2vec, fasttext), or"
            " name some, as in vectors(vectors=FILE)"
        )
    return found


def _preset(name: str, spoken: str) -> tuple[str, Table]:
    """The name of a preset or file, and its tables: over those of its base, what it says of all
    languages, and over that, what it says of one."""
    name, tables = _named(name) if name in PRESETS else _file(name)
    base = tables.pop(BASE, None)
    overlay = tables.pop(LANGUAGES, {}).get(spoken, {})
    if base is not None:
        if base not in PRESETS:
            raise UsageError(f"{name}: base '{base}': {did_you_mean(str(base), PRESETS)}")
        _, below = _preset(base, spoken)
        _lay_over(below, tables)
        tables = below
    _lay_over(tables, overlay)
    return name, tables


def _named(name: str) -> tuple[str, Table]:
    text = (resources.files("rejoinder.fitting") / "presets" / f"{name}.toml").read_text("utf-8")
    return name, tomllib.loads(text)


def _file(name: str) -> tuple[str, Table]:
    path = Path(name)
    if path.suffix != ".toml":
        raise UsageError(
            f"unknown preset '{name}': {did_you_mean(name, PRESETS)} (or a .toml file of your own)"
        )
    try:
        return path.stem, tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{name}: cannot be read: {reason}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: no TOML: {error}") from None


def _lay_over(below: Table, above: Mapping[str, Any]) -> None:
    """Put tables over tables; an empty one takes a section away."""
    for key, value in above.items():
        if isinstance(value, Mapping) and value:
            _lay_over(below.setdefault(key, {}), value)
        elif value == {}:
            below.pop(key, None)
        else:
            below[key] = value


def _change(tables: Table, change: str) -> None:
    """``section.key=value``, the value as in TOML; what is none is text."""
    key, equals, value = change.partition("=")
    *sections, last = key.strip().split(".")
    if not equals or not sections or not all([*sections, last]):
        raise UsageError(f"--set {change}: expected section.key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    table = tables
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise UsageError(f"--set {change}: {section} is no section")
    table.pop(last, None)  # what is changed stands last: see _ending
    table[last] = parsed


@dataclass
class _Reading:
    """Turns tables into settings and collects what is wrong with them."""

    tables: Table
    problems: list[str]

    def section(self, name: str, cls: type[T]) -> T | None:
        table = self.tables.get(name, {})
        if not isinstance(table, dict):
            self.problems.append(f"{name} is a value; expected the section [{name}]")
            return None
        return self.build(name, cls, table)

    def build(self, name: str, cls: type[T], table: Table) -> T | None:
        try:
            return make(cls, table)
        except UsageError as error:
            self.problems += [f"[{name}] {message}" for message in error.messages]
            return None

    def learnt(self, name: str, cls: type[S], seed: int) -> Learnt[S] | None:
        table = self.tables.get(name)
        if not isinstance(table, dict):
            self.problems.append(f"the section [{name}] is missing")
            return None
        form = self._form(name, table)
        how = table.get("training", {})
        training = None
        if isinstance(how, dict):
            how = {**_ending(how), "seed": seed}
            training = self.build(f"{name}.training", Training, how)
        else:
            self.problems.append(f"[{name}] training is a value; expected [{name}.training]")
        rest = {key: value for key, value in table.items() if key not in ("form", "training")}
        settings = self.build(name, cls, {**rest, "training": training or Training(steps=1)})
        if training is None or form is None or settings is None:
            return None
        return Learnt(form=form, settings=settings)

    def _form(self, name: str, table: Table) -> Spec | None:
        try:
            form = parse(str(table.get("form", "")))
        except UsageError as error:
            self.problems += [f"[{name}] form: {message}" for message in error.messages]
            return None
        if form.name not in FORMS:
            advice = did_you_mean(form.name, FORMS)
            self.problems.append(f"[{name}] unknown form '{form.name}': {advice}")
        return form


def _ending(training: Table) -> Table:
    """Of steps and epochs, the one that was written last says when training ends."""
    given = [key for key in training if key in ("steps", "epochs")]
    return {key: value for key, value in training.items() if key not in given[:-1]}


def make(cls: type[T], table: Mapping[str, Any]) -> T:
    """A frozen dataclass from a table: unknown names and wrong types are complained about."""
    names = [each.name for each in fields(cls)]  # type: ignore[arg-type]
    problems = [f"'{key}': {did_you_mean(key, names)}" for key in table if key not in names]
    hints = get_type_hints(cls)
    given = {}
    for name in names:
        if name not in table:
            continue
        value = None if table[name] == NOTHING else table[name]
        try:
            known = is_dataclass(value)
            given[name] = value if known else msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            problems.append(f"{name}: {explain(str(error))}")
    if problems:
        raise UsageError(*problems)
    try:
        return cls(**given)
    except TypeError:
        missing = [name for name in names if name not in given]
        raise UsageError(f"a setting is missing, one of {', '.join(missing)}") from None

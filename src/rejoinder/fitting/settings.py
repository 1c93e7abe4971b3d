"""Settings of ``fit``: a preset, its changes for a language, and the user's overrides.

A preset is a commented TOML file (``presets/``, or a file of your own). Tables below
``[languages.xx]`` replace the settings above for that language. A file that names a preset as its
``base`` contains only what differs from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

from rejoinder.encode.text_encoders import JOINED, OWN_VECTORS, split_names
from rejoinder.errors import UsageError
from rejoinder.learn.preset_file import (
    NONE,
    Table,
    apply_override,
    last_length,
    make_settings,
    merge,
    read_preset_file,
    read_shipped_preset,
)
from rejoinder.learn.settings import (
    RaterSettings,
    ScorerSettings,
    TrainingSettings,
    check_settings,
)
from rejoinder.spec import Spec, did_you_mean, parse
from rejoinder.text.languages import language as known_language
from rejoinder.wording import option

PRESETS = ("tiny", "small", "medium", "paper")
BASE, LANGUAGES = "base", "languages"
PACKAGE = "rejoinder.fitting"
INPUTS = ("gru", "vectors", "encoder")

T = TypeVar("T")
S = TypeVar("S", RaterSettings, ScorerSettings)


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which pairs are used for training and validation."""

    max_pairs: int | None = None
    """Maximum number of training pairs; of more, whole dialogues are drawn."""
    validation_share: float = 0.05
    """Share of the dialogues that is held out, unless the column ``split`` of the pairs decides."""
    max_validation_pairs: int = 1000
    context_turns: int = 4
    """Turns before the utterance that are taken from logs."""

    def __post_init__(self) -> None:
        check_settings(
            (self.max_pairs is not None and self.max_pairs < 1, "max_pairs must be above 0"),
            (not 0 < self.validation_share < 1, "validation_share must be between 0 and 1"),
            (self.max_validation_pairs < 1, "max_validation_pairs must be above 0"),
            (not 0 <= self.context_turns <= 50, "context_turns must be from 0 to 50"),
        )


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings:
    """How references are retrieved."""

    by: str
    """Spec of a retriever; ``vectors`` without ``vectors=`` uses those of this evaluator."""
    k: int = 15
    """References per item."""
    parrot: bool = True
    """Whether the utterance itself is a reference, too."""

    def __post_init__(self) -> None:
        check_settings((not 1 <= self.k <= 1000, "k must be from 1 to 1000"))
        parse(self.by)


@dataclass(frozen=True, kw_only=True)
class WordVectorSettings:
    """Word vectors that are trained on the pairs, if a retriever or a network uses them."""

    method: str = "fasttext"
    dimensions: int = 100
    window: int | None = None
    min_count: int = 5
    epochs: int | None = None
    buckets: int = 200_000
    packaged: str | None = None
    """Packaged vectors that are read together with them: ``chive``, ``synonyms-zh``."""

    def __post_init__(self) -> None:
        from rejoinder.encode.static.packaged import PACKAGED_VECTORS
        from rejoinder.encode.static.train.train_vectors import METHODS

        check_settings(
            (self.method not in METHODS, f"method must be one of {', '.join(METHODS)}"),
            (not 1 <= self.dimensions <= 4096, "dimensions must be from 1 to 4096"),
            (
                min(self.min_count, self.window or 1, self.epochs or 1, self.buckets) < 1,
                "min_count, window, epochs and buckets must be above 0",
            ),
            (
                self.packaged is not None and self.packaged not in PACKAGED_VECTORS,
                f"packaged must be {', '.join(PACKAGED_VECTORS)} or none",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class ValidationSettings:
    """Measurements on held-out pairs."""

    ranges: tuple[str, ...] = ()
    """Metrics whose range is measured, for ``rejoinder`` and ``ruber(norm=fixed)``."""
    max_contexts: int = 500
    """Contexts on which ranges are measured."""

    def __post_init__(self) -> None:
        check_settings((self.max_contexts < 1, "max_contexts must be above 0"))


@dataclass(frozen=True, kw_only=True)
class NetworkSettings(Generic[S]):
    """A network: how it reads texts, and how it is trained."""

    input: Spec
    """gru, vectors or encoder, with the options of ``learn.inputs.make_input``."""
    settings: S

    def to_dict(self) -> dict[str, Any]:
        return {"input": str(self.input), **self.settings.to_dict()}


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Everything but the data that determines an evaluator."""

    preset: str
    language: str
    seed: int
    data: DataSettings
    retrieval: RetrievalSettings
    vectors: WordVectorSettings | None
    rater: NetworkSettings[RaterSettings]
    unreferenced: NetworkSettings[ScorerSettings]
    validation: ValidationSettings
    notes: tuple[str, ...] = ()
    """What a user should know about the vectors that are used; no setting."""

    @property
    def needs_vectors(self) -> bool:
        """Whether the evaluator needs word vectors of its own."""
        specs = (parse(self.retrieval.by), self.rater.input, self.unreferenced.input)
        return any(map(uses_own_vectors, specs))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for the manifest and the card."""
        whole = asdict(self)
        del whole["notes"]
        for name, network in (("rater", self.rater), ("unreferenced", self.unreferenced)):
            whole[name] = network.to_dict()
        return {key: value for key, value in whole.items() if value is not None}


def uses_own_vectors(spec: Spec) -> bool:
    """Return whether a retriever or an input uses the word vectors that are trained on the pairs:
    those that it does not name, or ``evaluator``."""
    params = dict(spec.params)
    if spec.name != "vectors" or "model" in params:
        return False
    return OWN_VECTORS in split_names(str(params.get("vectors", OWN_VECTORS)))


def read_settings(
    preset: str, language: str, *, seed: int = 0, overrides: Iterable[str] = ()
) -> FitSettings:
    """Return the settings of a preset, by its name or TOML file, changed by ``overrides`` of the
    form ``section.key=value``; everything that is wrong with them is reported at once."""
    code = known_language(language).code
    overrides = list(overrides)
    name, tables = _read_preset(preset, code)
    problems: list[str] = []
    for override in overrides:
        try:
            apply_override(tables, override)
        except UsageError as error:
            problems += error.messages
    reader = _SettingsReader(tables, problems)
    sections = {
        "data": reader.section("data", DataSettings),
        "retrieval": reader.section("retrieval", RetrievalSettings),
        "vectors": reader.section("vectors", WordVectorSettings) if "vectors" in tables else None,
        "rater": reader.network("rater", RaterSettings, seed),
        "unreferenced": reader.network("unreferenced", ScorerSettings, seed),
        "validation": reader.section("validation", ValidationSettings),
    }
    names = list(sections)
    problems += [f"[{key}]: {did_you_mean(key, names)}" for key in tables if key not in sections]
    if problems:
        raise UsageError(*(f"{preset}: {problem}" for problem in problems))
    settings = FitSettings(preset=name, language=code, seed=seed, **sections)  # type: ignore[arg-type]
    if settings.needs_vectors and settings.vectors is None:
        raise UsageError(
            f"{preset}: a retriever or an input uses word vectors, but there is no section"
            " [vectors] that says how to train them; add"
            f" {option('overrides', {'vectors.method': 'glove'})} (or word2vec,"
            " fasttext), or name vectors, as in vectors(vectors=FILE)"
        )
    return with_packaged_vectors(settings, required=any(map(_names_packaged, overrides)))


def with_packaged_vectors(settings: FitSettings, *, required: bool) -> FitSettings:
    """Let the retriever and the networks read packaged vectors, too, where they read those that are
    trained on the pairs.

    Where the package is not installed, the trained ones are used alone, with a note; if it is
    ``required``, MissingExtra is raised.
    """
    from rejoinder.encode.static.packaged import PACKAGED_VECTORS

    if settings.vectors is None or not settings.needs_vectors:
        return settings
    language, name = known_language(settings.language).name, settings.vectors.packaged
    if name is None:
        note = (
            f"word vectors for {language} are learned from the logs alone; an encoder of yours is"
            f" used with {option('overrides', {'unreferenced.input': 'vectors(model=FOLDER)'})}"
        )
        return replace(settings, notes=(note,))
    packaged = PACKAGED_VECTORS[name]
    if not packaged.is_installed:
        if required:
            raise packaged.missing(name)
        note = f"{packaged.missing(name)}. Word vectors are learned from the logs alone"
        return replace(settings, vectors=replace(settings.vectors, packaged=None), notes=(note,))

    def joined(spec: Spec) -> Spec:
        if not uses_own_vectors(spec) or "vectors" in dict(spec.params):
            return spec
        return Spec(spec.name, (*spec.params, ("vectors", f"{OWN_VECTORS}{JOINED}{name}")))

    return replace(
        settings,
        retrieval=replace(settings.retrieval, by=str(joined(parse(settings.retrieval.by)))),
        rater=replace(settings.rater, input=joined(settings.rater.input)),
        unreferenced=replace(settings.unreferenced, input=joined(settings.unreferenced.input)),
    )


def _names_packaged(override: str) -> bool:
    key, _, value = override.partition("=")
    return key.strip() == "vectors.packaged" and value.strip().strip("'\"") != NONE


def _read_preset(name: str, language: str) -> tuple[str, Table]:
    """Return the name of a preset and its tables: those of its base, overlaid with its own, and
    with its own for the language."""
    name, tables = read_shipped_preset(PACKAGE, name) if name in PRESETS else _preset_file(name)
    base = tables.pop(BASE, None)
    overlay = tables.pop(LANGUAGES, {}).get(language, {})
    if base is not None:
        if base not in PRESETS:
            raise UsageError(f"{name}: base '{base}': {did_you_mean(str(base), PRESETS)}")
        _, merged = _read_preset(base, language)
        merge(merged, tables)
        tables = merged
    merge(tables, overlay)
    return name, tables


def _preset_file(name: str) -> tuple[str, Table]:
    title, tables = read_preset_file(name, PRESETS)
    languages = tables.get(LANGUAGES, {})
    if not isinstance(languages, dict) or not all(isinstance(v, dict) for v in languages.values()):
        raise UsageError(f"{name}: [{LANGUAGES}.xx] must be tables of settings")
    return title, tables


@dataclass
class _SettingsReader:
    """Converts tables to settings and collects all problems."""

    tables: Table
    problems: list[str]

    def section(self, name: str, cls: type[T]) -> T | None:
        table = self.tables.get(name, {})
        if not isinstance(table, dict):
            self.problems.append(f"{name} is a value; expected the section [{name}]")
            return None
        return self.convert(name, cls, table)

    def convert(self, name: str, cls: type[T], table: Table) -> T | None:
        try:
            return make_settings(cls, table)
        except UsageError as error:
            self.problems += [f"[{name}] {message}" for message in error.messages]
            return None

    def network(self, name: str, cls: type[S], seed: int) -> NetworkSettings[S] | None:
        table = self.tables.get(name)
        if not isinstance(table, dict):
            self.problems.append(f"the section [{name}] is missing")
            return None
        spec = self._input(name, table)
        section = table.get("training", {})
        training = None
        if isinstance(section, dict):
            section = {**last_length(section), "seed": seed}
            training = self.convert(f"{name}.training", TrainingSettings, section)
        else:
            self.problems.append(f"[{name}] training is a value; expected [{name}.training]")
        rest = {key: value for key, value in table.items() if key not in ("input", "training")}
        rest["training"] = training or TrainingSettings(steps=1)
        settings = self.convert(name, cls, rest)
        if training is None or spec is None or settings is None:
            return None
        return NetworkSettings(input=spec, settings=settings)

    def _input(self, name: str, table: Table) -> Spec | None:
        try:
            spec = parse(str(table.get("input", "")))
        except UsageError as error:
            self.problems += [f"[{name}] input: {message}" for message in error.messages]
            return None
        if spec.name not in INPUTS:
            advice = did_you_mean(spec.name, INPUTS)
            self.problems.append(f"[{name}] unknown input '{spec.name}': {advice}")
        return spec

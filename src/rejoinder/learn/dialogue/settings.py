"""Settings of trained dialogue systems, read from a preset; this module does not need torch.

A preset is a commented TOML file (``presets/``, or a file of your own) with the sections ``data``,
``vocabulary`` and ``training``, and one section for each network. ``[hred.training]`` replaces
settings of ``[training]`` for that network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from rejoinder.errors import UsageError
from rejoinder.learn.preset_file import (
    Table,
    apply_override,
    last_length,
    make_settings,
    merge,
    read_preset_file,
    read_shipped_preset,
)
from rejoinder.learn.settings import Check, TrainingSettings, check_settings
from rejoinder.spec import did_you_mean
from rejoinder.text.languages import language as known_language

PRESETS = ("tiny", "small", "paper")
PACKAGE = "rejoinder.learn.dialogue"
VOCABULARIES = ("subwords", "words")
MAX_SIZE = 10**6


def _positive(settings: Any, *names: str) -> list[Check]:
    values = ((name, getattr(settings, name)) for name in names)
    return [
        (not 1 <= value <= MAX_SIZE, f"{name} must be from 1 to {MAX_SIZE:,}, not {value}")
        for name, value in values
    ]


def _shares(settings: Any, *names: str) -> list[Check]:
    values = ((name, getattr(settings, name)) for name in names)
    return [(not 0 <= v < 1, f"{name} must be from 0 to below 1, not {v}") for name, v in values]


@dataclass(frozen=True, kw_only=True)
class DialogueDataSettings:
    """Which pairs are used, and how much of a dialogue a network reads."""

    max_pairs: int | None = None
    """Maximum number of training pairs; of more, whole dialogues are drawn."""
    validation_share: float = 0.05
    """Share of the dialogues that is held out, unless the column ``split`` decides."""
    max_validation_pairs: int = 2000
    context_turns: int = 6
    """Number of last turns of a context that are read."""
    max_turn_tokens: int = 50
    """Tokens of a turn; longer turns are cut at their end, the longest reply has as many."""
    batch_size: int = 16
    """Number of dialogues per batch."""

    def __post_init__(self) -> None:
        check_settings(
            *_positive(
                self, "max_validation_pairs", "context_turns", "max_turn_tokens", "batch_size"
            ),
            (self.max_pairs is not None and self.max_pairs < 1, "max_pairs must be above 0"),
            (not 0 < self.validation_share < 1, "validation_share must be between 0 and 1"),
        )


@dataclass(frozen=True, kw_only=True)
class VocabularySettings:
    """How texts become tokens."""

    kind: str = "subwords"
    """``subwords`` (SentencePiece) or ``words``."""
    size: int = 8000
    lower: bool = True
    """Whether texts are converted to lower case."""
    min_count: int = 1
    """Words that are rarer are unknown (``words`` only)."""
    tok: str | None = None
    """Tokenizer of words; by default that of the language."""
    language: str = "en"

    def __post_init__(self) -> None:
        check_settings(
            *_positive(self, "size", "min_count"),
            (
                self.kind not in VOCABULARIES,
                f"unknown kind '{self.kind}'; choose from {', '.join(VOCABULARIES)}",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class DualEncoderSettings:
    """Settings of the dual encoder."""

    embedding_size: int = 128
    hidden_size: int = 256
    dropout: float = 0.2
    max_context_tokens: int = 80
    """Last tokens of the joined turns that are read."""

    def __post_init__(self) -> None:
        check_settings(
            *_positive(self, "embedding_size", "hidden_size", "max_context_tokens"),
            *_shares(self, "dropout"),
        )


@dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings:
    """Settings of the sequence-to-sequence network with attention."""

    embedding_size: int = 128
    encoder_size: int = 256
    """Of each direction of the bidirectional encoder."""
    decoder_size: int = 256
    dropout: float = 0.2
    word_dropout: float = 0.0
    """Share of the words that the decoder reads as unknown while it is trained."""
    max_context_tokens: int = 80
    """Last tokens of the joined turns that are read."""

    def __post_init__(self) -> None:
        sizes = ("embedding_size", "encoder_size", "decoder_size", "max_context_tokens")
        check_settings(*_positive(self, *sizes), *_shares(self, "dropout", "word_dropout"))


@dataclass(frozen=True, kw_only=True)
class HredSettings:
    """Settings of the hierarchical recurrent encoder-decoder."""

    embedding_size: int = 128
    utterance_size: int = 256
    """Of each direction of the bidirectional utterance encoder."""
    context_size: int = 256
    decoder_size: int = 256
    dropout: float = 0.2
    word_dropout: float = 0.0
    """Share of the words that the decoder reads as unknown while it is trained."""

    def __post_init__(self) -> None:
        sizes = ("embedding_size", "utterance_size", "context_size", "decoder_size")
        check_settings(*_positive(self, *sizes), *_shares(self, "dropout", "word_dropout"))


@dataclass(frozen=True, kw_only=True)
class LatentSettings(HredSettings):
    """Settings of networks with a latent variable, ``vhred`` and ``cvae``."""

    latent_size: int = 64
    bag_of_words: bool = True
    """Whether the latent variable must also predict the words of the reply in any order."""
    kl_annealing_epochs: float = 5.0
    """Epochs during which the weight of the KL divergence rises from 0 to 1; 0: it is always 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        epochs = self.kl_annealing_epochs
        check_settings(
            *_positive(self, "latent_size"),
            (not 0 <= epochs < 1e6, f"kl_annealing_epochs must be 0 or more, not {epochs}"),
        )


@dataclass(frozen=True, kw_only=True)
class TransformerSettings:
    """Settings of the transformer decoder."""

    hidden_size: int = 256
    num_layers: int = 4
    num_heads: int = 4
    feedforward_size: int = 512
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_settings(
            *_positive(self, "hidden_size", "num_layers", "num_heads", "feedforward_size"),
            *_shares(self, "dropout"),
            (self.num_layers > 100, f"num_layers must be at most 100, not {self.num_layers}"),
            (
                self.num_heads > 0 and self.hidden_size % (2 * self.num_heads) != 0,
                f"hidden_size must be a multiple of twice num_heads: {self.hidden_size} is not one"
                f" of 2 · {self.num_heads}",
            ),
        )


NETWORKS: dict[str, type[Any]] = {
    "dual-encoder": DualEncoderSettings,
    "seq2seq": Seq2SeqSettings,
    "hred": HredSettings,
    "vhred": LatentSettings,
    "cvae": LatentSettings,
    "transformer": TransformerSettings,
}
"""The networks by name, with their settings."""


@dataclass(frozen=True, kw_only=True)
class SystemSettings:
    """Everything but the data that determines a trained dialogue system."""

    sections: ClassVar[tuple[str, ...]] = ("data", "vocabulary", "training")

    name: str
    """Name of the network."""
    preset: str
    data: DialogueDataSettings
    vocabulary: VocabularySettings
    network: Any
    """The settings of the network: one of ``NETWORKS``."""
    training: TrainingSettings

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for the manifest and the card, as JSON."""
        return {
            "data": asdict(self.data),
            "vocabulary": asdict(self.vocabulary),
            "network": asdict(self.network),
            "training": self.training.to_dict(),
        }


def read_system_settings(
    name: str,
    preset: str,
    *,
    language: str = "en",
    seed: int = 0,
    overrides: Iterable[str] = (),
) -> SystemSettings:
    """Return the settings of a network in a preset, by its name or TOML file, changed by
    ``overrides`` of the form ``section.key=value``; all problems are reported at once."""
    if name not in NETWORKS:
        raise UsageError(f"unknown network '{name}': {did_you_mean(name, NETWORKS)}")
    code = known_language(language).code
    title, tables = (
        read_shipped_preset(PACKAGE, preset)
        if preset in PRESETS
        else read_preset_file(preset, PRESETS)
    )
    problems: list[str] = []
    for override in overrides:
        try:
            apply_override(tables, override)
        except UsageError as error:
            problems += error.messages
    own = tables.get(name, {})
    if not isinstance(own, dict):
        raise UsageError(f"{preset}: {name} is a value; expected the section [{name}]")
    known = [*SystemSettings.sections, *NETWORKS]
    problems += [f"[{key}]: {did_you_mean(key, known)}" for key in tables if key not in known]
    for section in SystemSettings.sections:
        overlay = own.get(section)
        if isinstance(overlay, dict):
            merge(tables.setdefault(section, {}), overlay)
    sizes = {key: value for key, value in own.items() if key not in SystemSettings.sections}
    training = {**last_length(_table(tables, "training", problems)), "seed": seed}
    vocabulary = {**_table(tables, "vocabulary", problems), "language": code}
    made = {
        "data": _make("data", DialogueDataSettings, _table(tables, "data", problems), problems),
        "vocabulary": _make("vocabulary", VocabularySettings, vocabulary, problems),
        "network": _make(name, NETWORKS[name], sizes, problems),
        "training": _make("training", TrainingSettings, training, problems),
    }
    if problems:
        raise UsageError(*(f"{preset}: {problem}" for problem in problems))
    return SystemSettings(name=name, preset=title, **made)


def _table(tables: Table, section: str, problems: list[str]) -> Table:
    table = tables.get(section, {})
    if isinstance(table, dict):
        return table
    problems.append(f"{section} is a value; expected the section [{section}]")
    return {}


def _make(section: str, cls: type[Any], table: Table, problems: list[str]) -> Any:
    try:
        return make_settings(cls, table)
    except UsageError as error:
        problems += [f"[{section}] {message}" for message in error.messages]
        return None

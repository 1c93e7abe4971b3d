"""``train``: dialogue systems, word vectors, an adapted encoder, a calibration of BERTScore."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.errors import UsageError, missing_extra
from rejoinder.files.checked import inside
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_output, make_parent
from rejoinder.learn.dialogue.system_folder import CURVES
from rejoinder.learn.processes import NotMainProcess
from rejoinder.machine import cores
from rejoinder.verbs.arguments import SEED, as_overrides, as_paths
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import Result
from rejoinder.verbs.source import naming
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.files.paths import AnyPath
    from rejoinder.learn.dapt import AdaptResult
    from rejoinder.learn.dialogue.system_folder import SystemManifest
    from rejoinder.metrics.embedding.calibration import Calibration


@dataclass(frozen=True)
class VectorsResult(Result):
    """Where the word vectors are, and a summary of their training data."""

    folder: Path
    report: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.report


@dataclass(frozen=True)
class DaptResult(Result):
    """Where the adapted encoder is, and its perplexity before and after."""

    folder: Path
    adapted: AdaptResult

    def to_dict(self) -> dict[str, Any]:
        return {**self.adapted.manifest, "seconds": self.adapted.training.seconds}


@dataclass(frozen=True)
class SystemResult(Result):
    """Where the trained dialogue system is, and its manifest."""

    folder: Path
    manifest: SystemManifest
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return dict(msgspec.to_builtins(self.manifest))

    def plot(self) -> str:
        """Return the loss during training as the text of an SVG file."""
        return inside(self.folder, CURVES).read_text(encoding="utf-8")


@dataclass(frozen=True)
class CalibrationResult(Result):
    """Token frequencies and the similarity of random texts."""

    file: Path
    calibration: Calibration

    def to_dict(self) -> dict[str, Any]:
        calibration = self.calibration
        return {
            "texts": calibration.texts,
            "tokens": len(calibration.counts),
            "pairs": calibration.pairs,
            "random_pairs": list(calibration.random_pairs),
        }


@keep_notes
def system(
    name: str,
    pairs: AnyPath,
    *,
    output: AnyPath,
    preset: str = "small",
    language: str = "en",
    overrides: Mapping[str, Any] | Sequence[str] | None = None,
    seed: int = 0,
    monitor: Monitor = SILENT,
) -> SystemResult:
    """Train a dialogue system on pairs (Parquet): the folder ``output`` can reply to contexts.

    ``name`` is dual-encoder, seq2seq, hred, vhred, cvae or transformer. ``preset`` is tiny, small,
    paper or a TOML file; ``overrides`` change its settings, as in ``{"training.epochs": 3}``. A
    trained system in ``output`` is replaced. An interrupted run continues where it stopped.
    """
    from rejoinder.learn.dialogue.settings import read_system_settings

    settings = read_system_settings(
        name, preset, language=language, seed=seed, overrides=as_overrides(overrides)
    )
    _check_packages("training a dialogue system", "torch", "safetensors", "pyarrow")
    from rejoinder.learn.dialogue.train_system import prepare_training, train_system
    from rejoinder.reporting.plots.training_curves import training_curves_svg

    target = Path(output)
    make_parent(target)
    with monitor.steps() as on_step:
        prepared = prepare_training(Path(pairs), target, settings, on_step)
    with monitor.training(name) as on_progress:
        trained = train_system(
            prepared, on_progress, lambda result: training_curves_svg(name, result.history)
        )
    if trained is None:
        raise NotMainProcess("to train with several processes, use 'torchrun … rejoinder train'")
    return SystemResult(target, trained.manifest, trained.training.seconds)


def _check_packages(task: str, *packages: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise missing_extra("fit", *missing, task=task)


@keep_notes
def vectors(
    pairs: AnyPath | Sequence[AnyPath],
    *,
    output: AnyPath,
    method: str = "glove",
    dimensions: int = 100,
    window: int | None = None,
    min_count: int = 5,
    epochs: int | None = None,
    tok: str | None = None,
    lower: bool = True,
    language: str | None = None,
    x_max: float = 10.0,
    buckets: int = 200_000,
    seed: int = 0,
    threads: int | None = None,
    monitor: Monitor = SILENT,
) -> VectorsResult:
    """Learn word vectors from pairs (Parquet) or plain text (a text per line).

    ``method`` is glove, word2vec or fasttext. GloVe gives the same vectors for the same seed,
    whatever the number of threads; word2vec and fastText only with one thread.
    """
    from rejoinder.encode.static.train.train_vectors import Settings, read_corpus, train_vectors
    from rejoinder.encode.static.vectors_folder import check_vectors_target
    from rejoinder.text.languages import language as find_language

    settings = Settings(
        method=method,
        dimensions=dimensions,
        window=window,
        min_count=min_count,
        epochs=epochs,
        tok=tok or find_language(language or "en").tokenizer,
        lower=lower,
        seed=seed,
        x_max=x_max,
        buckets=buckets,
    ).completed()
    names = as_paths(pairs)
    target = Path(output)
    check_vectors_target(target)
    with monitor.pieces("reading") as advance:
        read = read_corpus(names, settings, advance)
    with monitor.pieces(method) as advance:
        report = train_vectors(
            read,
            target,
            settings,
            inputs=names,
            threads=threads or cores(),
            languages=() if language is None else [language],
            on_progress=advance,
        )
    return VectorsResult(target, report)


@keep_notes
def dapt(
    pairs: AnyPath,
    *,
    output: AnyPath,
    model: str = "minilm",
    steps: int | None = None,
    epochs: float | None = None,
    batch_tokens: int = 2048,
    gradient_accumulation_steps: int = 1,
    learning_rate: float = 1e-4,
    mask_probability: float = 0.15,
    whole_word_mask: bool = False,
    max_tokens: int = 128,
    max_pairs: int | None = None,
    validate_every: int | None = None,
    patience: int | None = None,
    seed: int = 0,
    monitor: Monitor = SILENT,
) -> DaptResult:
    """Adapt an encoder to the domain of dialogues by masked language modelling.

    Domain-adaptive pre-training (Gururangan et al. 2020). Give the number of ``steps`` or of
    ``epochs`` (1 by default). An interrupted run continues where it stopped.
    """
    _check_packages("training an encoder", "safetensors", "torch", "transformers")
    from rejoinder.learn.dapt import DaptSettings, adapt
    from rejoinder.learn.settings import TrainingSettings

    if steps is not None and epochs is not None:
        raise UsageError(f"give either {option('steps')} or {option('epochs')}")
    settings = DaptSettings(
        model=model,
        mask_probability=mask_probability,
        whole_word_mask=whole_word_mask,
        batch_tokens=batch_tokens,
        max_tokens=max_tokens,
        max_pairs=max_pairs,
        training=TrainingSettings(
            steps=steps,
            epochs=1.0 if steps is None and epochs is None else epochs,
            learning_rate=learning_rate,
            gradient_accumulation_steps=gradient_accumulation_steps,
            validate_every=validate_every,
            patience=patience,
            seed=seed,
        ),
    )
    with monitor.training("adapting") as on_progress:
        adapted = adapt(Path(pairs), Path(output), settings, on_progress)
    return DaptResult(Path(output), adapted)


@keep_notes
def calibration(
    texts: AnyPath,
    *,
    output: AnyPath,
    model: str = "minilm",
    layer: int = 6,
    pairs: int = 5000,
    columns: Columns | None = None,
    seed: int = SEED,
    monitor: Monitor = SILENT,
) -> CalibrationResult:
    """Measure token frequencies and the similarity of random texts, for ``bertscore``.

    ``texts`` are items (.jsonl, .csv, .tsv: their references), pairs (.parquet: their responses) or
    plain text, a text per line. ``columns`` says which columns of the items hold which field. Use
    the file as ``bertscore(idf=true,rescale=true,calibration=FILE)``.
    """
    from rejoinder.metrics.embedding.bertscore import BertScore
    from rejoinder.metrics.embedding.calibrate import calibrate, read_corpus
    from rejoinder.metrics.metric import make_metric
    from rejoinder.spec import Spec

    # reports a wrong model or layer before anything is read
    metric = make_metric(Spec("bertscore", (("model", model), ("layer", layer))))
    assert isinstance(metric, BertScore)
    check_output(output, [texts])
    source = ItemFile(os.fspath(texts), columns, monitor.note)
    with naming(source.name):
        with monitor.stream("counting tokens", lambda: source.fraction) as advance:
            read = read_corpus(
                _texts(source), metric.encoder, max_sample=2 * pairs, seed=seed, on_read=advance
            )
        with monitor.pieces("comparing pairs") as on_progress:
            made = calibrate(read, metric, pairs=pairs, seed=seed, on_progress=on_progress)
    with open_output(output) as stream:
        stream.write(msgspec.json.encode(made) + b"\n")
    return CalibrationResult(Path(output), made)


def _texts(source: ItemFile) -> Iterator[str]:
    """Yield the texts of a file; the ending of its name says of which kind it is."""
    plain = source.path.removesuffix(".gz").removesuffix(".zst")
    if source.format == "parquet":
        yield from _responses(source.path)
    elif source.format != "jsonl" or plain.endswith(".jsonl"):
        for item in read_items(source):
            yield from (reference.text for reference in item.references)
    else:
        for number, line in source:
            try:
                yield line.decode()
            except UnicodeDecodeError:
                raise source.wrong(number, "the line is not UTF-8") from None


def _responses(path: str) -> Iterator[str]:
    from rejoinder.logs.pairs_file import open_pairs

    with open_pairs(path, ["response"]) as file:
        for batch in file.iter_batches(columns=["response"]):
            yield from (text for text in batch.column("response").to_pylist() if text)

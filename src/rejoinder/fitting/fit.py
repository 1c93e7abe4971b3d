"""Fit an evaluator to dialogue logs.

The stages are pairs → word vectors (if the settings need them) → rater → unreferenced scorer →
pool → validation → evaluator. Each has a folder in a hidden folder beside the output; a run that
was killed at any point continues there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.encode.text_encoders import (
    JOINED,
    OWN_VECTORS,
    VECTORS_FOLDER,
    SentenceEncoder,
    WordVectorEncoder,
    split_names,
)
from rejoinder.errors import DataError, UsageError
from rejoinder.evaluator.manifest import KIND, MANIFEST, POOL, RATER, SCORER, Manifest
from rejoinder.files.checked import read_json
from rejoinder.files.output import only_run
from rejoinder.files.paths import check_new_folder, work_folder
from rejoinder.fitting.assemble import Parts, assemble, batches_per_step, make_manifest
from rejoinder.fitting.pairs import PAIRS, check_inputs, collect_pairs, input_digest
from rejoinder.fitting.settings import FitSettings, NetworkSettings, uses_own_vectors
from rejoinder.fitting.stages import DONE, RESULT, Stage, run_stage, write_json
from rejoinder.learn.processes import is_main_process
from rejoinder.learn.settings import VECTOR_NEGATIVES
from rejoinder.progress import Progress
from rejoinder.retrieve.index_folder import MANIFEST as INDEX_MANIFEST
from rejoinder.retrieve.index_folder import build_index, read_manifest
from rejoinder.retrieve.retriever import Retriever, make_retriever
from rejoinder.spec import Spec, parse
from rejoinder.text.languages import language as known_language
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.learn.inputs.input_encoder import InputEncoder
    from rejoinder.learn.progress import TrainingProgress
    from rejoinder.learn.training import TrainingResult
    from rejoinder.learn.training_data import TrainingData

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class FitProgress:
    """How a fit reports its progress: each opens a display for the name of a stage."""

    stage: Callable[[str], AbstractContextManager[Progress | None]] = lambda name: nullcontext()
    """Yields the callback for the work done and the total."""
    training: Callable[[str], AbstractContextManager[Callable[[TrainingProgress], None] | None]] = (
        lambda name: nullcontext()
    )
    """Yields the callback for training steps."""


@dataclass(frozen=True)
class FitResult:
    """The folder of the evaluator and its manifest."""

    folder: Path
    manifest: Manifest


@dataclass(frozen=True)
class FitJob:
    """Inputs and settings of a fit, and the folder of its stages."""

    inputs: list[str]
    exclude: list[str]
    format: str | None
    learn_from: str | None
    any_language: bool
    settings: FitSettings
    work: Path
    rejects: Path
    """Where the records are written if none of them can be read."""
    progress: FitProgress

    @property
    def tokenizer(self) -> str:
        return known_language(self.settings.language).tokenizer

    @property
    def input_names(self) -> list[str]:
        """Names without folders: an evaluator should not reveal the paths of its maker."""
        return [Path(path).name for path in self.inputs]


def fit(
    inputs: Sequence[str],
    output: Path,
    settings: FitSettings,
    *,
    format: str | None = None,
    learn_from: str | None = None,
    exclude: Sequence[str] = (),
    any_language: bool = False,
    progress: FitProgress | None = None,
) -> FitResult | None:
    """Write the evaluator ``output``, whole or not at all.

    With ``torchrun``, every process calls this function; the main process gets the result, the
    others None. ``learn_from`` says whose turns are learnt as replies, in logs with roles.
    """
    check_new_folder(output, may_replace=is_evaluator)
    check_inputs(inputs, exclude, format)
    target = output.absolute()
    job = FitJob(
        inputs=list(inputs),
        exclude=list(exclude),
        format=format,
        learn_from=learn_from,
        any_language=any_language,
        settings=settings,
        work=work_folder(target),
        rejects=target.with_name(f"{target.name}.rejects.jsonl"),
        progress=progress or FitProgress(),
    )
    check_job(job)
    try:
        with only_run(job.work) if is_main_process() else nullcontext():
            manifest = run_stages(job, target)
    except (DataError, UsageError):
        if is_main_process() and not any(job.work.glob(f"*/{DONE}")):
            shutil.rmtree(job.work, ignore_errors=True)  # nothing to continue from
        raise
    if manifest is None:
        return None
    shutil.rmtree(job.work, ignore_errors=True)
    return FitResult(output, manifest)


def run_stages(job: FitJob, target: Path) -> Manifest | None:
    """Run all stages in order; processes other than the main one only help to train."""
    pairs = pairs_stage(job)
    data = load_data(pairs)
    vectors = vectors_stage(job, pairs, data)
    with _process_group():
        rater = rater_stage(job, pairs, vectors, data)
        scorer = scorer_stage(job, pairs, vectors, data)
    if not is_main_process():
        return None
    # last, because networks may read more of a text than the retriever: nothing is encoded twice
    pool = pool_stage(job, pairs, vectors)
    parts = Parts(pairs, vectors, pool, rater, scorer)
    validation = validation_stage(job, parts, data)
    manifest = make_manifest(parts, job.settings, make_own_retriever(job), validation.result)
    return assemble(parts, manifest, validation.result, target)


# --- checks before the first stage


def check_job(job: FitJob) -> None:
    """Raise UsageError for all problems that can be detected before the first stage."""
    from rejoinder.fitting.ranges import check_range_metrics
    from rejoinder.learn.inputs import check_input_options

    settings = job.settings
    make_own_retriever(job)
    check_range_metrics(settings.validation.ranges, settings.language)
    if job.format is not None:
        from rejoinder.logs.readers.reader import make_reader

        make_reader(job.format, job.learn_from)
    elif job.learn_from is not None:
        raise UsageError(
            f"{option('learn_from')} is for logs with roles; pairs (.parquet) have none"
        )
    rater, scorer = settings.rater, settings.unreferenced
    for name, network, kinds in (
        (f"{RATER}.negatives", rater, rater.settings.negatives),
        (f"{SCORER}.hard_negatives", scorer, scorer.settings.hard_negatives),
    ):
        own = {"vectors": OWN_VECTORS} if uses_own_vectors(network.input) else {}
        check_input_options(network.input.name, {**own, **dict(network.input.params)})
        if network.input.name != "vectors" and (by := sorted(VECTOR_NEGATIVES & set(kinds))):
            raise UsageError(
                f"{name}: {', '.join(by)}: negatives by vector need the input vectors, not"
                f" {network.input.name}"
            )
    for name in ("cosine_weight", "frequent_reply_discount"):
        if getattr(scorer.settings, name) and scorer.input.name != "vectors":
            raise UsageError(f"{SCORER}.{name} needs the input vectors, not {scorer.input.name}")


def is_evaluator(folder: Path) -> bool:
    """Return whether this is an evaluator, which another one may replace."""
    try:
        record = read_json(folder / MANIFEST, dict[str, Any])
    except DataError:
        return False
    return bool(record.get("kind") == KIND)


# --- pairs


def pairs_stage(job: FitJob) -> Stage:
    """Collect pairs from all inputs and split them into training and validation pairs."""
    settings = job.settings
    depends = {
        "inputs": [(path, input_digest(path)) for path in job.inputs],
        "exclude": [input_digest(path) for path in job.exclude],
        "format": job.format,
        "learn_from": job.learn_from,
        "data": asdict(settings.data),
        "language": settings.language,
        "seed": settings.seed,
    }

    def make(folder: Path) -> None:
        with job.progress.stage("reading") as on_progress:
            collected = collect_pairs(
                job.inputs,
                folder / PAIRS,
                settings.data,
                language=settings.language,
                format=job.format,
                learn_from=job.learn_from,
                rejects=job.rejects,
                exclude=job.exclude,
                seed=settings.seed,
                on_progress=on_progress,
            )
        check_language(job, folder / PAIRS)
        write_json(folder / RESULT, asdict(collected))

    return run_stage(job.work, "pairs", depends, make)


def check_language(job: FitJob, pairs: Path) -> None:
    """Raise DataError if the pairs are in a language that an encoder does not know: before the
    networks are trained, not after it."""
    if job.any_language:
        return
    import pyarrow.parquet as pq

    from rejoinder.text.identify import find_other_language

    specs = [parse(job.settings.retrieval.by)]
    specs += [network.input for network in (job.settings.rater, job.settings.unreferenced)]
    for model in dict.fromkeys(_model_of(spec) for spec in specs):
        if model is None:
            continue
        texts = pq.read_table(pairs, columns=["response"]).column(0).to_pylist()
        other_language = find_other_language(texts, SentenceEncoder(model=model).languages)
        if other_language is not None:
            raise DataError(
                f"{other_language.describe(f'the encoder {model}')};"
                f" choose the language of the logs ({option('language')}), or another model",
                path=", ".join(job.inputs),
            )


def load_data(pairs: Stage) -> TrainingData:
    """Read the training and validation pairs of the pairs stage."""
    from rejoinder.learn.training_data import OPTIONAL, REQUIRED, TrainingData, read_pairs

    table = read_pairs(pairs.folder / PAIRS, REQUIRED, OPTIONAL)
    # the pairs stage has decided the split and drawn the pairs
    return TrainingData.from_table(table, max_validation_pairs=None)


# --- word vectors


def vectors_stage(job: FitJob, pairs: Stage, data: TrainingData) -> Stage | None:
    """Train word vectors on the training pairs, if a retriever or a network uses them."""
    wanted = job.settings.vectors
    if wanted is None or not job.settings.needs_vectors:
        return None
    import pyarrow.parquet as pq

    from rejoinder.encode.static.train.train_vectors import Settings, read_corpus, train_vectors

    trained = {key: value for key, value in asdict(wanted).items() if key != "packaged"}
    settings = Settings(
        **trained, tok=job.tokenizer, lower=True, seed=job.settings.seed
    ).completed()

    def make(folder: Path) -> None:
        # without held-out dialogues, whose words must be as new as those of a test set
        training_pairs = folder / PAIRS
        pq.write_table(data.training.table, training_pairs)
        with job.progress.stage("reading words") as on_progress:
            corpus = read_corpus([str(training_pairs)], settings, on_progress)
        training_pairs.unlink()
        with job.progress.stage(f"{settings.method} vectors") as on_progress:
            train_vectors(
                corpus,
                folder / VECTORS_FOLDER,
                settings,
                inputs=job.input_names,
                languages=[job.settings.language],
                threads=1,  # with more, fastText gives different vectors in each run
                on_progress=on_progress,
            )

    return run_stage(job.work, "vectors", [pairs.key, asdict(settings)], make)


# --- networks


def rater_stage(job: FitJob, pairs: Stage, vectors: Stage | None, data: TrainingData) -> Stage:
    """Train the rater; its folder gets the network, or the reason why there is none."""
    from rejoinder.learn.rater import fit_rater, missing_rater_data

    network = job.settings.rater
    return _network_stage(
        job, RATER, network, pairs, vectors, data, missing=missing_rater_data, train=fit_rater
    )


def scorer_stage(job: FitJob, pairs: Stage, vectors: Stage | None, data: TrainingData) -> Stage:
    """Train the unreferenced scorer."""
    from rejoinder.learn.scorer import check_scorer_data, fit_scorer

    network = job.settings.unreferenced
    return _network_stage(
        job, SCORER, network, pairs, vectors, data, missing=check_scorer_data, train=fit_scorer
    )


def _network_stage(
    job: FitJob,
    name: str,
    network: NetworkSettings[Any],
    pairs: Stage,
    vectors: Stage | None,
    data: TrainingData,
    *,
    missing: Callable[[TrainingData], str | None],
    train: Callable[..., tuple[Any, TrainingResult | str]],
) -> Stage:
    """Train a network with ``train``, unless ``missing`` returns a reason why there is none."""

    def make(folder: Path) -> None:
        reason = missing(data)
        if reason is not None:  # decided before anything is encoded for it
            _save_network(folder, name, None, reason)
            return
        inputs = make_network_input(job, name, network, pairs, vectors, data)
        with job.progress.training(name) as on_progress:
            trained = train(data, inputs, network.settings, folder / CHECKPOINTS, on_progress)
            _save_network(folder, name, *trained)

    depends = network_depends(network, pairs, vectors)
    return run_stage(job.work, name, depends, make, all_processes=True)


def network_depends(
    network: NetworkSettings[Any], pairs: Stage, vectors: Stage | None
) -> list[Any]:
    """Return everything that determines the weights of a network."""
    own = vectors if uses_own_vectors(network.input) else None
    return [
        pairs.key, own and own.key, str(network.input), _input_digests(network.input),
        network.settings.to_dict(), batches_per_step(network),
    ]  # fmt: skip


def make_network_input(
    job: FitJob,
    name: str,
    network: NetworkSettings[Any],
    pairs: Stage,
    vectors: Stage | None,
    data: TrainingData,
) -> InputEncoder:
    """Return the input encoder of a network."""
    from rejoinder.learn.inputs import make_input

    options: dict[str, Any] = dict(network.input.params)
    if uses_own_vectors(network.input):
        assert vectors is not None
        # the place of the network relative to the vectors, as in the evaluator
        options = {"vectors": OWN_VECTORS, **options, "home": vectors.folder / POOL}
    if network.input.name == "vectors" and "vectors" in options:
        options.setdefault("tokenizer", job.tokenizer)
    # subwords are kept with the pairs that they were trained on: both networks use them
    inputs = make_input(network.input.name, options, data, pairs.folder)
    if is_main_process():
        inputs.open_progress = lambda: job.progress.stage(f"{name}: encoding")
    return inputs


def _save_network(folder: Path, name: str, network: Any, result: TrainingResult | str) -> None:
    if not is_main_process():
        return
    shutil.rmtree(folder / name, ignore_errors=True)
    if isinstance(result, str):
        write_json(folder / RESULT, {"missing": result})
        return
    network.save(folder / name)
    summary = {
        "steps": result.steps,
        "best_step": result.best_step,
        "loss": result.best_loss,
        "first_loss": result.first_loss,
        "history": result.history,
    }
    write_json(folder / RESULT, summary)  # without times: the same run writes the same bytes


def _process_group() -> AbstractContextManager[Any]:
    """Open the group once for both networks."""
    from rejoinder.learn.distributed import open_process_group

    return open_process_group()


def _input_digests(spec: Spec) -> dict[str, str]:
    """Return digests of the model or vectors that an input names: files may change between runs."""
    params = dict(spec.params)
    if (model := _model_of(spec)) is not None:
        return SentenceEncoder(model=model).depends
    if "vectors" in params:
        names = [name for name in split_names(str(params["vectors"])) if name != OWN_VECTORS]
        return WordVectorEncoder(vectors=JOINED.join(names)).depends if names else {}
    return {}


def _model_of(spec: Spec) -> str | None:
    """Return the transformer that a retriever or an input reads with."""
    params = dict(spec.params)
    if "model" in params:
        return str(params["model"])
    return SentenceEncoder().model if spec.name == SentenceEncoder.name else None


# --- pool


def make_own_retriever(job: FitJob) -> Retriever:
    """Return the retriever; ``vectors`` without a name are those of this evaluator."""
    spec = parse(job.settings.retrieval.by)
    if uses_own_vectors(spec) and "vectors" not in dict(spec.params):
        spec = Spec(spec.name, (*spec.params, ("vectors", OWN_VECTORS)))
    return make_retriever(str(spec), job.settings.language)


def pool_stage(job: FitJob, pairs: Stage, vectors: Stage | None) -> Stage:
    """Index the training pairs, from which references are retrieved."""
    retriever = make_own_retriever(job)
    if vectors is not None:
        retriever = retriever.at(vectors.folder / POOL)

    def make(folder: Path) -> None:
        with job.progress.stage("indexing") as on_progress:
            build_index(
                str(pairs.folder / PAIRS),
                retriever,
                folder / POOL,
                split="train",
                any_language=True,  # the pairs stage has checked it
                on_progress=on_progress,
            )
        # the path of the work folder does not belong in the evaluator
        manifest = read_manifest(folder / POOL)
        renamed = msgspec.structs.replace(manifest, pairs=", ".join(job.input_names))
        text = msgspec.json.format(msgspec.json.encode(renamed), indent=2)
        (folder / POOL / INDEX_MANIFEST).write_bytes(text + b"\n")

    return run_stage(job.work, "pool", [pairs.key, str(retriever), retriever.depends], make)


# --- validation


def validation_stage(job: FitJob, parts: Parts, data: TrainingData) -> Stage:
    """Measure the evaluator on held-out dialogues."""
    from rejoinder.evaluator.manifest import write_manifest
    from rejoinder.fitting.validation import validate

    settings = job.settings

    def make(folder: Path) -> None:
        draft = folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        parts.link_into(draft)
        write_manifest(draft, make_manifest(parts, settings, make_own_retriever(job), {}))
        with job.progress.stage("measuring") as on_progress:
            measured = validate(
                draft,
                data.validation,
                settings.validation,
                settings.language,
                seed=settings.seed,
                on_progress=on_progress,
            )
        write_json(folder / RESULT, measured)
        shutil.rmtree(draft)

    depends = [parts.keys, asdict(settings.retrieval), asdict(settings.validation)]
    return run_stage(job.work, "validation", depends, make)

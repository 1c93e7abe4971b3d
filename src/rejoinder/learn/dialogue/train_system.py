"""Train a dialogue system from pairs, and write its folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rejoinder.errors import DataError
from rejoinder.files.output import open_output, whole_folder
from rejoinder.files.paths import check_new_folder, file_digest, work_folder
from rejoinder.learn.checkpoint import Model, save_model
from rejoinder.learn.dialogue.batches import DialogueBatches
from rejoinder.learn.dialogue.card import make_card
from rejoinder.learn.dialogue.dialogues import Dialogues, Piece, check_turns, pieces_of
from rejoinder.learn.dialogue.make_network import make_network
from rejoinder.learn.dialogue.measure import (
    measure_likelihood,
    measure_ranking,
    measure_replies,
    sample_contexts,
)
from rejoinder.learn.dialogue.networks.dual_encoder import DualEncoder, ranking_loss
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork, training_loss
from rejoinder.learn.dialogue.responses import write_responses
from rejoinder.learn.dialogue.settings import SystemSettings
from rejoinder.learn.dialogue.system_folder import (
    CARD,
    CURVES,
    MODEL,
    SystemManifest,
    is_system_folder,
    write_contexts,
    write_manifest,
)
from rejoinder.learn.dialogue.vocabulary import KINDS, Vocabulary, train_vocabulary
from rejoinder.learn.distributed import open_process_group
from rejoinder.learn.inference import initialised
from rejoinder.learn.inputs.subwords import sample_texts
from rejoinder.learn.progress import TrainingProgress
from rejoinder.learn.training import TrainingResult, train
from rejoinder.learn.training_data import TrainingData, read_training_data
from rejoinder.version import __version__

HIERARCHICAL = ("hred", "vhred", "cvae")


@dataclass(frozen=True)
class TrainedSystem:
    """The manifest of a new system's folder, and the result of its training."""

    manifest: SystemManifest
    training: TrainingResult


@dataclass(frozen=True)
class PreparedTraining:
    """Everything that is read and made before a network is trained."""

    settings: SystemSettings
    pairs: Path
    output: Path
    data: TrainingData
    vocabulary: Vocabulary
    training: Dialogues
    validation: DialogueBatches
    held_out: list[Piece]


def prepare_training(
    pairs: Path, output: Path, settings: SystemSettings, on_step: Callable[[str], None]
) -> PreparedTraining:
    """Read the pairs, join them to dialogues, and learn the vocabulary."""
    check_new_folder(output, may_replace=is_system_folder)
    on_step("reading the pairs")
    data = read_training_data(
        pairs,
        max_pairs=settings.data.max_pairs,
        validation_share=settings.data.validation_share,
        max_validation_pairs=settings.data.max_validation_pairs,
        seed=settings.training.seed,
    )
    turns = settings.data.context_turns
    pieces, held_out = pieces_of(data.training, turns), pieces_of(data.validation, turns)
    if settings.name in HIERARCHICAL:
        check_turns(pieces, settings.name)
    on_step("learning the vocabulary")
    vocabulary = _vocabulary(data, settings, work_folder(output))
    on_step("splitting texts into tokens")
    longest = settings.data.max_turn_tokens
    validation = _batches(Dialogues.of(held_out, vocabulary, longest), settings, fixed=True)
    training = Dialogues.of(pieces, vocabulary, longest)
    return PreparedTraining(
        settings, pairs, output, data, vocabulary, training, validation, held_out
    )


def train_system(
    prepared: PreparedTraining,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    draw: Callable[[TrainingResult], str] | None = None,
) -> TrainedSystem | None:
    """Train a system and write its folder, whole or not at all.

    An interrupted run resumes when it is repeated: its checkpoints are in a hidden folder beside
    the output until that is complete. ``draw`` returns the curves of the training as SVG. Returns
    None in processes that only help to train.
    """
    settings, vocabulary = prepared.settings, prepared.vocabulary
    network = initialised(settings.training.seed, lambda: make_network(settings, len(vocabulary)))
    loss = ranking_loss if isinstance(network, DualEncoder) else training_loss
    digest = file_digest(prepared.pairs).hex()
    work = work_folder(prepared.output)
    with open_process_group() as group:
        result = train(
            network,
            loss,
            _batches(prepared.training, settings),
            settings.training,
            work,
            validation=prepared.validation,
            identity={
                "rejoinder": __version__,
                "pairs": digest,
                "vocabulary": vocabulary.digest,
                "network": settings.name,
                "settings": settings.to_dict(),
            },
            on_progress=on_progress,
            group=group,
        )
        manifest = None
        if group.is_main_process:
            manifest = SystemManifest(
                network=settings.name,
                preset=settings.preset,
                seed=settings.training.seed,
                vocabulary=vocabulary.digest,
                settings=settings.to_dict(),
                data=_describe_data(prepared, digest),
                result={**_measure(network, prepared), **_training_summary(result, network)},
            )
            with whole_folder(prepared.output) as folder:
                if draw is not None:
                    (folder / CURVES).write_text(draw(result), encoding="utf-8")
                manifest = _write(folder, manifest, network, prepared)
            shutil.rmtree(work, ignore_errors=True)
        group.barrier()
    return None if manifest is None else TrainedSystem(manifest, result)


def _describe_data(prepared: PreparedTraining, digest: str) -> dict[str, Any]:
    data, training = prepared.data, prepared.training
    return {
        "file": prepared.pairs.name,
        "digest": digest,
        "split_by": data.split_by,
        **data.counts,
        "dialogues": len(training),
        "replies": training.replies,
        "tokens": len(training.turns.ids),
        "turns_cut": training.cut,
        "vocabulary_size": len(prepared.vocabulary),
    }


def _vocabulary(data: TrainingData, settings: SystemSettings, work: Path) -> Vocabulary:
    """Learn the vocabulary, or read it again if this run was interrupted."""
    kind = KINDS[settings.vocabulary.kind]
    name = f"{data.digest[:12]}-{settings.vocabulary.size}-{kind.file}"
    path = work / name
    if not path.exists():
        vocabulary = train_vocabulary(sample_texts(data.training), settings.vocabulary)
        work.mkdir(parents=True, exist_ok=True)
        with open_output(path) as stream:
            stream.write(vocabulary.content)
        return vocabulary
    try:
        return kind(path.read_bytes(), settings.vocabulary)
    except DataError:
        path.unlink()
        return _vocabulary(data, settings, work)


def _batches(
    dialogues: Dialogues, settings: SystemSettings, *, fixed: bool = False
) -> DialogueBatches:
    return DialogueBatches.of(
        dialogues,
        settings.data.batch_size,
        fixed=fixed,
        kl_annealing_epochs=getattr(settings.network, "kl_annealing_epochs", 0.0),
    )


def _measure(network: Model, prepared: PreparedTraining) -> dict[str, Any]:
    if isinstance(network, DualEncoder):
        return measure_ranking(network, prepared.validation)
    assert isinstance(network, GenerativeNetwork)
    vocabulary, pieces = prepared.vocabulary, prepared.held_out
    replies = [text for piece in pieces for text in piece.turns[piece.first_reply :]]
    words = sum(map(len, vocabulary.split(replies)))
    return {
        **measure_likelihood(network, prepared.validation, words),
        **measure_replies(network, sample_contexts(pieces), vocabulary, prepared.settings.data),
    }


def _training_summary(result: TrainingResult, network: torch.nn.Module) -> dict[str, Any]:
    return {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "steps": result.steps,
        "best_step": result.best_step,
        "best_loss": result.best_loss,
        "stopped_early": result.stopped_early,
        "history": result.history,
    }


def _write(
    folder: Path, manifest: SystemManifest, network: Model, prepared: PreparedTraining
) -> SystemManifest:
    vocabulary, pairs = prepared.vocabulary, prepared.data.training
    save_model(folder / MODEL, network, network=manifest.network)
    (folder / vocabulary.file).write_bytes(vocabulary.content)
    write_contexts(folder, pairs.contexts(2))
    if isinstance(network, DualEncoder):
        write_responses(folder, network, pairs.responses, vocabulary, prepared.settings.data)
    (folder / CARD).write_text(make_card(manifest), encoding="utf-8")
    return write_manifest(folder, manifest)

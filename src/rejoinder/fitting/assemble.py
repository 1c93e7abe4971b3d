"""Put the parts of an evaluator together: one folder with a manifest and a model card."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rejoinder.encode.text_encoders import VECTORS_FOLDER
from rejoinder.evaluator.manifest import (
    CARD,
    HELD_OUT,
    POOL,
    RATER,
    SCORER,
    Manifest,
    Retrieval,
    write_manifest,
)
from rejoinder.files.output import whole_folder
from rejoinder.fitting.card import make_card
from rejoinder.fitting.settings import FitSettings, NetworkSettings
from rejoinder.fitting.stages import Stage
from rejoinder.learn.processes import world_size
from rejoinder.retrieve.retriever import Retriever


@dataclass(frozen=True)
class Parts:
    """The stages whose folders make an evaluator."""

    pairs: Stage
    vectors: Stage | None
    pool: Stage
    rater: Stage
    scorer: Stage

    @property
    def keys(self) -> list[str]:
        """Digests of everything that determines the parts."""
        stages = (self.pairs, self.vectors, self.pool, self.rater, self.scorer)
        return [stage.key for stage in stages if stage is not None]

    def link_into(self, target: Path, *, with_rater: bool = True) -> None:
        """Put the files of all parts into a folder, as links where possible."""
        for name, stage in (
            (VECTORS_FOLDER, self.vectors),
            (POOL, self.pool),
            (RATER, self.rater if with_rater else None),
            (SCORER, self.scorer),
        ):
            if stage is not None and (stage.folder / name).is_dir():
                shutil.copytree(stage.folder / name, target / name, copy_function=_link)
        _link(str(self.pairs.folder / HELD_OUT), str(target / HELD_OUT))


def make_manifest(
    parts: Parts, settings: FitSettings, retriever: Retriever, measured: Mapping[str, Any]
) -> Manifest:
    """Return the manifest; ``measured`` is the result of the validation stage, empty before it."""
    data = parts.pairs.result
    notes = [*data.pop("notes")]
    results = {RATER: parts.rater.result, SCORER: parts.scorer.result}
    figures = measured.get("validation", {})
    if reason := results[RATER].get("missing") or measured.get("no_rater"):
        del results[RATER]
        notes.append(
            f"there is no rater ({reason}): retrieved references are weighted by the unreferenced"
            " scorer"
        )
    if results[SCORER].get("best_step") == 0:
        notes.append(
            f"the unreferenced scorer did not improve on held-out dialogues in"
            f" {results[SCORER]['steps']:,} training steps: its scores are those of an untrained"
            " network; use more pairs"
        )
    retrieval = settings.retrieval
    return Manifest(
        language=settings.language,
        preset=settings.preset,
        seed=settings.seed,
        retrieval=Retrieval(by=str(retriever), k=retrieval.k, parrot=retrieval.parrot),
        settings=_settings(settings),
        data=data,
        ranges={name: tuple(pair) for name, pair in measured.get("ranges", {}).items()},
        coverage=measured.get("coverage", {}),
        validation={name: {**r, **figures.get(name, {})} for name, r in results.items()},
        notes=notes + measured.get("notes", []),
    )


def batches_per_step(network: NetworkSettings[Any]) -> int:
    """Return the batches per step over all processes: only their product affects the weights."""
    return int(network.settings.training.gradient_accumulation_steps * world_size())


def _settings(settings: FitSettings) -> dict[str, Any]:
    plain = settings.to_dict()
    for name, network in ((RATER, settings.rater), (SCORER, settings.unreferenced)):
        plain[name]["training"]["batches_per_step"] = batches_per_step(network)
    return plain


def assemble(
    parts: Parts, manifest: Manifest, measured: Mapping[str, Any], output: Path
) -> Manifest:
    """Write the evaluator. The work folder is locked, so that no other run does so."""
    unfinished = re.compile(rf"\.{re.escape(output.name[:40])}\.\d+\.part")
    with whole_folder(output) as filling:
        for leftover in output.parent.iterdir():  # of runs that were killed here
            if unfinished.fullmatch(leftover.name) and leftover.name != filling.name:
                shutil.rmtree(leftover, ignore_errors=True)
        parts.link_into(filling, with_rater=not measured.get("no_rater"))
        (filling / CARD).write_text(make_card(manifest), encoding="utf-8")
        return write_manifest(filling, manifest)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)
    return target

"""The parts of an evaluator, put together: one folder with a manifest and a model card."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from rejoinder.fitting.card import card
from rejoinder.fitting.settings import Fitting, Learnt
from rejoinder.fitting.stages import Stage
from rejoinder.learn.folder import whole_folder
from rejoinder.learn.processes import team_size
from rejoinder.retrieve.base import Retriever
from rejoinder.retrieve.dense import OWN_FOLDER

RESULT = "result"
"""What a stage has to tell: a JSON file in its folder."""


@dataclass(frozen=True)
class Parts:
    """The stages whose folders make an evaluator."""

    pairs: Stage
    vectors: Stage | None
    pool: Stage
    rater: Stage
    unreferenced: Stage

    @property
    def keys(self) -> list[str]:
        """What decides all parts."""
        stages = (self.pairs, self.vectors, self.pool, self.rater, self.unreferenced)
        return [stage.key for stage in stages if stage is not None]

    def put(self, target: Path, figures: Mapping[str, Any]) -> None:
        """As they will stand in the evaluator, without copying what can be linked."""
        for name, stage in (
            (OWN_FOLDER, self.vectors),
            (POOL, self.pool),
            (RATER, None if figures.get("no_rater") else self.rater),
            (SCORER, self.unreferenced),
        ):
            if stage is not None and (stage.folder / name).is_dir():
                shutil.copytree(stage.folder / name, target / name, copy_function=_link)
        _link(str(self.pairs.folder / HELD_OUT), str(target / HELD_OUT))

    def manifest(
        self, settings: Fitting, retriever: Retriever, figures: Mapping[str, Any]
    ) -> Manifest:
        """What they are; ``figures`` are empty as long as nothing was measured."""
        gathered = self.pairs.read(RESULT)
        notes = [*gathered.pop("notes")]
        results = {RATER: self.rater.read(RESULT), SCORER: self.unreferenced.read(RESULT)}
        measured = figures.get("validation", {})
        if reason := results[RATER].get("missing") or figures.get("no_rater"):
            del results[RATER]
            notes.append(
                f"there is no rater ({reason}): retrieved references are rated by the unreferenced"
                " scorer"
            )
        planned = settings.retrieval
        return Manifest(
            language=settings.language,
            preset=settings.preset,
            seed=settings.seed,
            retrieval=Retrieval(by=str(retriever), k=planned.k, parrot=planned.parrot),
            settings=_settings(settings),
            data=gathered,
            ranges={name: tuple(pair) for name, pair in figures.get("ranges", {}).items()},
            coverage=figures.get("coverage", {}),
            validation={name: {**r, **measured.get(name, {})} for name, r in results.items()},
            notes=notes + figures.get("notes", []),
        )


def batches_a_step(part: Learnt[Any]) -> int:
    """All that processes take together: it decides the weights, whoever takes them."""
    return int(part.settings.training.accumulate * team_size())


def _settings(settings: Fitting) -> dict[str, Any]:
    plain = settings.plain()
    for name, part in ((RATER, settings.rater), (SCORER, settings.unreferenced)):
        plain[name]["training"]["batches_a_step"] = batches_a_step(part)
    return plain


def assemble(
    parts: Parts, manifest: Manifest, figures: Mapping[str, Any], output: Path
) -> Manifest:
    """Write the evaluator; one run at a time comes here."""
    half = re.compile(rf"\.{re.escape(output.name[:40])}\.\d+\.part")
    with whole_folder(output) as filling:
        # what was half assembled when somebody killed it
        for rest in output.parent.iterdir():
            if half.fullmatch(rest.name) and rest.name != filling.name:
                shutil.rmtree(rest, ignore_errors=True)
        parts.put(filling, figures)
        (filling / CARD).write_text(card(manifest), encoding="utf-8")
        return write_manifest(filling, manifest)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)
    return target

"""The stages of a fit, each made when it is first asked for.

pairs → word vectors (if the settings ask for them) → rater, unreferenced scorer → pool → figures
on dialogues held out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.errors import UsageError
from rejoinder.evaluator.manifest import POOL, RATER, SCORER, write_manifest
from rejoinder.fitting.assemble import RESULT, Parts, batches_a_step
from rejoinder.fitting.pairs import digest, gather
from rejoinder.fitting.settings import Fitting, Learnt, reads_own_vectors
from rejoinder.fitting.stages import Stage, run_stage, write_json
from rejoinder.learn.processes import is_first
from rejoinder.learn.settings import BY_VECTOR
from rejoinder.learn.team import open_team
from rejoinder.progress import Progress
from rejoinder.retrieve.base import Retriever, make_retriever
from rejoinder.retrieve.dense import OWN, OWN_FOLDER, SentenceVectors, StaticVectors
from rejoinder.retrieve.folder import MANIFEST as INDEX_MANIFEST
from rejoinder.retrieve.folder import build_index, read_manifest
from rejoinder.spec import Spec, parse
from rejoinder.text.languages import language as known_language

if TYPE_CHECKING:
    from rejoinder.learn.forms.base import Form
    from rejoinder.learn.material import Material
    from rejoinder.learn.progress import Progress as Training
    from rejoinder.learn.training import Outcome

PAIRS = "pairs.parquet"
TRAINING = "training"


@dataclass(frozen=True)
class Watch:
    """How a run is shown: each gives, for the name of a stage, what is told how far it is."""

    pieces: Callable[[str], AbstractContextManager[Progress | None]] = lambda stage: nullcontext()
    training: Callable[[str], AbstractContextManager[Callable[[Training], None] | None]] = (
        lambda stage: nullcontext()
    )


@dataclass
class Run:
    """One fit: what it is made of, and where."""

    inputs: list[str]
    work: Path
    settings: Fitting
    format: str | None
    exclude: list[str]
    watch: Watch

    def check(self) -> None:
        """Whatever can be known to be wrong before the first stage."""
        from rejoinder.fitting.ranges import check_metrics
        from rejoinder.learn.forms import check_options

        _ = self.retriever
        check_metrics(self.settings.figures.ranges, self.settings.language)
        if self.format is not None:
            from rejoinder.registry import READERS

            READERS.make(self.format)
        rater, scorer = self.settings.rater, self.settings.unreferenced
        for name, part, kinds in (
            (f"{RATER}.negatives", rater, rater.settings.negatives),
            (f"{SCORER}.hard", scorer, scorer.settings.hard),
        ):
            own = {"vectors": OWN} if reads_own_vectors(part.form) else {}
            check_options(part.form.name, {**dict(part.form.params), **own})
            if part.form.name != "vectors" and (by := sorted(BY_VECTOR & set(kinds))):
                raise UsageError(
                    f"{name}: {', '.join(by)}: negatives by vector need the form vectors, not"
                    f" {part.form.name}"
                )
        for setting in ("closeness", "spare"):
            if getattr(scorer.settings, setting) and scorer.form.name != "vectors":
                raise UsageError(
                    f"{SCORER}.{setting} needs the form vectors, not {scorer.form.name}"
                )

    @cached_property
    def parts(self) -> Parts:
        """All parts. The pool comes last: networks may read more of a text than it does, and what
        they have read need not be read again."""
        rater, unreferenced = self.networks
        return Parts(self.pairs, self.vectors, self.pool, rater, unreferenced)

    @cached_property
    def networks(self) -> tuple[Stage, Stage]:
        """The rater and the unreferenced scorer, trained by all processes together, who meet once
        for both."""
        _ = self.pairs, self.vectors  # the first process makes them, and the others wait
        with open_team():
            return self.rater, self.unreferenced

    # --- pairs

    @cached_property
    def pairs(self) -> Stage:
        settings = self.settings
        decides = {
            "inputs": [(path, digest(path)) for path in self.inputs],
            "exclude": [digest(path) for path in self.exclude],
            "format": self.format,
            "data": asdict(settings.data),
            "language": settings.language,
            "seed": settings.seed,
        }

        def make(folder: Path) -> None:
            with self.watch.pieces("reading") as advance:
                gathered = gather(
                    self.inputs,
                    folder / PAIRS,
                    settings.data,
                    language=settings.language,
                    format=self.format,
                    exclude=self.exclude,
                    seed=settings.seed,
                    on_progress=advance,
                )
            write_json(folder / f"{RESULT}.json", asdict(gathered))

        return run_stage(self.work, "pairs", decides, make)

    @cached_property
    def material(self) -> Material:
        from rejoinder.learn.material import read_material

        # the pairs stage has drawn those that count
        return read_material(
            self.pairs.folder / PAIRS, most_held_out=self.settings.data.most_held_out
        )

    # --- word vectors

    @cached_property
    def vectors(self) -> Stage | None:
        """Vectors of this evaluator's own, if anybody reads them."""
        asked = self.settings.vectors
        if asked is None or not self.settings.needs_vectors:
            return None
        import pyarrow.parquet as pq

        from rejoinder.encode.static.train.run import Settings, read_corpus, train_vectors

        settings = Settings(
            **asdict(asked), tok=self.tokenizer, lower=True, seed=self.settings.seed
        ).completed()

        def make(folder: Path) -> None:
            # words of dialogues held out must be as new as those of a test set
            learnt_from = folder / PAIRS
            pq.write_table(self.material.training.table, learnt_from)
            with self.watch.pieces("reading words") as advance:
                corpus = read_corpus([str(learnt_from)], settings, advance)
            learnt_from.unlink()
            with self.watch.pieces(f"{settings.method} vectors") as advance:
                train_vectors(
                    corpus,
                    folder / OWN_FOLDER,
                    settings,
                    inputs=[Path(path).name for path in self.inputs],
                    threads=1,  # with more, fastText gives other vectors each time
                    on_progress=advance,
                )

        return run_stage(self.work, "vectors", [self.pairs.key, asdict(settings)], make)

    @property
    def tokenizer(self) -> str:
        return known_language(self.settings.language).tokenizer

    # --- pool

    @cached_property
    def retriever(self) -> Retriever:
        spec = parse(self.settings.retrieval.by)
        if reads_own_vectors(spec):
            spec = Spec(spec.name, (*spec.params, ("vectors", OWN)))
        return make_retriever(str(spec), self.settings.language)

    @cached_property
    def pool(self) -> Stage:
        vectors = self.vectors
        retriever = self.retriever
        if vectors is not None:
            retriever = retriever.at(vectors.folder / POOL)

        def make(folder: Path) -> None:
            pairs = str(self.pairs.folder / PAIRS)
            with self.watch.pieces("indexing") as advance:
                build_index(pairs, retriever, folder / POOL, split="train", on_progress=advance)
            # where this run has its pairs is nobody's business
            known = msgspec.structs.replace(
                read_manifest(folder / POOL), pairs=", ".join(Path(p).name for p in self.inputs)
            )
            text = msgspec.json.format(msgspec.json.encode(known), indent=2)
            (folder / POOL / INDEX_MANIFEST).write_bytes(text + b"\n")

        decides = [self.pairs.key, str(retriever), retriever.depends]
        return run_stage(self.work, "pool", decides, make)

    # --- networks

    @cached_property
    def rater(self) -> Stage:
        from rejoinder.learn.rater import fit_rater

        return self._learnt(RATER, self.settings.rater, fit_rater)

    @cached_property
    def unreferenced(self) -> Stage:
        from rejoinder.learn.scorer import fit_scorer

        return self._learnt(SCORER, self.settings.unreferenced, fit_scorer)

    def _learnt(self, name: str, part: Learnt[Any], fit: Callable[..., Any]) -> Stage:
        """Train a network; its folder in the end holds the network, or a reason why not."""
        own = self.vectors if reads_own_vectors(part.form) else None

        def make(folder: Path) -> None:
            form = self._form(part)
            if is_first():
                form.watch = lambda: self.watch.pieces(f"{name}: reading")
            with self.watch.training(name) as tell:
                model, outcome = fit(self.material, form, part.settings, folder / TRAINING, tell)
            if not is_first():
                return
            shutil.rmtree(folder / name, ignore_errors=True)
            if model is None:
                write_json(folder / f"{RESULT}.json", {"missing": outcome})
                return
            model.save(folder / name)
            write_json(folder / f"{RESULT}.json", _result(outcome))

        read = _read_by(part.form)
        decides = [
            self.pairs.key, own and own.key, str(part.form), read, part.settings.plain(),
            batches_a_step(part),
        ]  # fmt: skip
        return run_stage(self.work, name, decides, make, together=True)

    def _form(self, part: Learnt[Any]) -> Form:
        from rejoinder.learn.forms import make_form

        options: dict[str, Any] = dict(part.form.params)
        if reads_own_vectors(part.form):
            assert self.vectors is not None
            # where the network will stand, seen from the vectors
            options |= {"vectors": OWN, "home": self.vectors.folder / POOL}
        if part.form.name == "vectors" and "vectors" in options:
            options.setdefault("tokenizer", self.tokenizer)
        # pieces of words lie with the pairs that they were learnt from: both networks read them
        return make_form(part.form.name, options, self.material, self.pairs.folder)

    # --- figures

    @cached_property
    def figures(self) -> Stage:
        from rejoinder.fitting.figures import measure

        parts, settings = self.parts, self.settings

        def make(folder: Path) -> None:
            draft = folder / "draft"
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            parts.put(draft, {})
            write_manifest(draft, parts.manifest(settings, self.retriever, {}))
            with self.watch.pieces("measuring") as advance:
                found = measure(
                    draft, self.material, settings.figures, settings.language,
                    seed=settings.seed, on_progress=advance,
                )  # fmt: skip
            write_json(folder / f"{RESULT}.json", found)
            shutil.rmtree(draft)

        decides = [parts.keys, asdict(settings.retrieval), asdict(settings.figures)]
        return run_stage(self.work, "figures", decides, make)


def _read_by(form: Spec) -> dict[str, str]:
    """Digests of the model or the vectors that a form names: it may change between two runs."""
    given = dict(form.params)
    if "model" in given:
        return SentenceVectors(model=str(given["model"])).depends
    if "vectors" in given:
        return StaticVectors(vectors=str(given["vectors"])).depends
    return {}


def _result(outcome: Outcome) -> dict[str, Any]:
    """How a training went; no seconds: the same run has the same bytes."""
    return {
        "steps": outcome.steps,
        "best_step": outcome.best_step,
        "loss": outcome.best_loss,
        "first_loss": outcome.first_loss,
        "history": outcome.history,
    }

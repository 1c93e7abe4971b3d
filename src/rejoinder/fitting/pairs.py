"""The first stage: collect pairs from logs and files of pairs, and split them.

Logs go through the log pipeline, files of pairs are concatenated. Pairs of test sets are left out,
too many pairs are sampled by whole dialogues, and no dialogue is on both sides of the split.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError, MissingExtra, UsageError, missing_extra
from rejoinder.evaluator.manifest import HELD_OUT
from rejoinder.files.output import open_output
from rejoinder.files.paths import file_digest, is_file
from rejoinder.fitting.settings import DataSettings
from rejoinder.fitting.stages import write_json
from rejoinder.logs.readers.likely_format import likely_format
from rejoinder.progress import Progress
from rejoinder.registry import READERS
from rejoinder.text.languages import language as known_language
from rejoinder.wording import option

if TYPE_CHECKING:
    import pyarrow as pa

    from rejoinder.learn.training_data import TrainingData

PAIRS = "pairs.parquet"
OTHER_LANGUAGE_SHARE = 0.05
"""Share of texts in another language from which on there is a note."""
LANGUAGE_SAMPLE = 2000
"""Number of texts whose language is identified."""


@dataclass(frozen=True)
class CollectedPairs:
    """Origin and counts of the pairs, for manifest and card; JSON."""

    files: dict[str, str]
    """Name and SHA-256 of each input."""
    counts: dict[str, int]
    leaks: dict[str, int]
    """Pairs left out because a test set has their utterance: exactly, or nearly."""
    split_by: str
    notes: list[str] = field(default_factory=list)


def collect_pairs(
    inputs: Sequence[str],
    output: Path,
    settings: DataSettings,
    *,
    language: str,
    format: str | None,
    learn_from: str | None = None,
    rejects: Path | None = None,
    exclude: Sequence[str] = (),
    seed: int = 0,
    on_progress: Progress | None = None,
) -> CollectedPairs:
    """Write ``output`` (Parquet, with a column split), and beside it the held-out utterances.

    If no record of the logs can be read, they are written to ``rejects`` with the reasons.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise missing_extra("fit", "pyarrow", "duckdb", task="fitting") from None
    from rejoinder.learn.training_data import (
        OPTIONAL,
        REQUIRED,
        TRAIN,
        VALIDATION,
        TrainingData,
        has_both_sides,
        read_pairs,
    )

    files = {Path(path).name: input_digest(path) for path in inputs}
    logs = [path for path in inputs if not is_pairs(path)]
    notes: list[str] = []
    tables = [
        (path, read_pairs(Path(path), REQUIRED, OPTIONAL)) for path in inputs if is_pairs(path)
    ]
    if logs:
        assert format is not None
        made = output.with_name(f"logs-{output.name}")
        notes += _pairs_from_logs(
            logs, made, settings, language, format, learn_from, rejects, files, on_progress
        )
        if not pq.read_metadata(made).num_rows:
            raise DataError(
                f"read as {format}, it has no pair of utterance and response that passes the"
                " filters; 'rejoinder corpus' reports what was left out, and why",
                path=", ".join(logs),
            )
        tables.append((", ".join(logs), read_pairs(made, REQUIRED, OPTIONAL)))
    parts, split_by = [], []
    counts: Counter[str] = Counter()
    for number, (path, table) in enumerate(tables):
        counts["pairs"] += table.num_rows
        table, blank = _normalised(table, f"{number}:" if len(tables) > 1 else "")
        if blank:
            counts["blank"] += blank
        table, decided = _split(table, settings.validation_share, path)
        parts.append(table)
        split_by.append(decided)
    clean, leaks = _without_leaks(pa.concat_tables(parts), exclude)
    whole, counts["repeated"] = _without_repeats(clean)
    if clean.num_rows and not has_both_sides(whole):
        # one side is empty: split all that is left by dialogue
        undecided = pa.nulls(clean.num_rows, pa.string())
        place = clean.schema.get_field_index("split")
        clean = clean.set_column(place, "split", undecided)
        clean, decided = _split(clean, settings.validation_share, ", ".join(inputs))
        whole, counts["repeated"] = _without_repeats(clean)
        split_by = [decided]
        notes.append(
            "all pairs of one side of the split were test material or repeated: the pairs were"
            f" split anew, by {decided}"
        )
    if not has_both_sides(whole):
        raise DataError(
            f"{counts['pairs']:,} pairs ({sum(leaks.values()):,} of them test material,"
            f" {counts['repeated']:,} held-out pairs that repeat others) are too few: at least one"
            " dialogue for training and another, different one for validation are needed",
            path=", ".join(inputs),
        )
    data = TrainingData.from_table(
        whole,
        max_pairs=settings.max_pairs,
        max_validation_pairs=settings.max_validation_pairs,
        seed=seed,
    )
    sides = {TRAIN: data.training.table, VALIDATION: data.validation.table}
    taken = pa.concat_tables(
        table.append_column("split", pa.array([name] * table.num_rows, pa.string()))
        for name, table in sides.items()
    )
    all_counts = {**counts, **{k: n for k, n in data.counts.items() if k != "pairs"}}
    all_counts |= _describe(data)
    notes += _language_notes(taken, language)
    with open_output(output) as stream:
        pq.write_table(taken, stream, row_group_size=100_000)
    utterances = list(dict.fromkeys(data.validation.utterances))
    write_json(output.with_name(HELD_OUT), utterances)
    decided = " and ".join(dict.fromkeys(split_by))
    return CollectedPairs(files, all_counts, leaks, decided, notes)


def is_pairs(path: str) -> bool:
    """Return whether a file contains pairs, by its name; other files are logs."""
    return path.endswith(".parquet")


def check_inputs(inputs: Sequence[str], exclude: Sequence[str], format: str | None) -> None:
    """Raise UsageError for everything that is wrong with the arguments, before any work."""
    problems = []
    for path in [*inputs, *exclude]:
        # an input that is not a file may be a package, which the reader of its format finds
        if (is_pairs(path) or path in exclude or format is None) and not is_file(path):
            problems.append(f"{path}: there is no such file")
    logs = [path for path in inputs if not is_pairs(path)]
    if logs and format is None:
        likely = likely_format(logs[0])
        problems.append(
            f"{logs[0]}: not .parquet, so it is a log: add its format, which looks like"
            f" {option('format', likely)} (see 'rejoinder ls')"
            if likely is not None
            else f"{logs[0]}: not .parquet, so it is a log: give its format ({option('format')}),"
            f" one of {', '.join(READERS.names())} (see 'rejoinder ls')"
        )
    if len({Path(path).name for path in inputs}) < len(inputs):
        problems.append("two inputs have the same name; give each once, and rename one if needed")
    if not logs and format is not None:
        problems.append(f"{option('format')} is for logs; pairs (.parquet) need none")
    if problems:
        raise UsageError(*problems)


def input_digest(path: str) -> str:
    """Return the SHA-256 of a file; a package is identified by its name."""
    return file_digest(Path(path)).hex() if is_file(path) else path


def _pairs_from_logs(
    logs: list[str],
    output: Path,
    settings: DataSettings,
    language: str,
    format: str,
    learn_from: str | None,
    rejects: Path | None,
    files: dict[str, str],
    on_progress: Progress | None,
) -> list[str]:
    """Write the pairs of logs; return notes for the user."""
    try:
        from rejoinder.logs.pipeline import Settings, beside, make_pairs
    except ImportError:
        raise missing_extra("fit", "duckdb", "pyarrow", task="reading logs") from None
    from rejoinder.logs.clean import Cleaning
    from rejoinder.logs.readers.reader import make_reader
    from rejoinder.logs.split import Split
    from rejoinder.logs.threads import Threads

    share = settings.validation_share
    pipeline = Settings(
        reader=make_reader(format, learn_from),
        cleaning=Cleaning.for_language(language),
        threads=Threads(turns=settings.context_turns),
        split=Split((1 - share, share, 0.0)),
        # ids decide the order of pairs, so they must be the same in the next run; they stay here
        salt=hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest(),
    )
    try:
        report = make_pairs(logs, output, pipeline, on_progress=on_progress)
    except DataError as error:
        written = beside(output, "rejects.jsonl")
        if rejects is None or not written.is_file():
            raise
        shutil.move(written, rejects)
        raise DataError(str(error).replace(str(written), str(rejects))) from None
    notes = []
    if unread := sum(report.rejects.values()):
        notes.append(f"{unread:,} of {report.records:,} records of the logs could not be read")
    if report.not_learned:
        learned = getattr(pipeline.reader, "learn_from", "user")
        role = "user" if learned == "assistant" else "assistant"
        notes.append(
            f"{report.not_learned:,} pairs were left out because the {role} wrote the response;"
            f" {option('learn_from', role)} learns from those instead"
        )
    foreign = report.removed.get("language", 0) + report.removed.get("script", 0)
    posts = report.posts + foreign
    if posts and foreign / posts >= OTHER_LANGUAGE_SHARE:
        notes.append(
            f"{foreign:,} of {posts:,} posts ({foreign / posts:.0%}) are not in"
            f" {known_language(language).name} and were left out"
        )
    return notes


def _normalised(table: pa.Table, prefix: str) -> tuple[pa.Table, int]:
    """Return the table with all columns and ids with the prefix, without blank texts, and the
    number of pairs with a blank text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from rejoinder.learn.training_data import REQUIRED

    texts = [pc.not_equal(pc.utf8_trim_whitespace(table.column(name)), "") for name in REQUIRED]
    filled = pc.and_(*texts)
    blank = table.num_rows - int(pc.sum(filled).as_py() or 0)
    table = table.filter(filled)
    rows = table.num_rows
    if "context" in table.column_names:
        kind = pa.large_list(pa.large_string())
        context = table.column("context")
        if context.null_count or pc.list_flatten(context).null_count:
            turns_of_rows = [
                [turn for turn in turns or [] if turn is not None] for turns in context.to_pylist()
            ]
            context = pa.chunked_array([turns_of_rows], kind)
    else:
        context = pa.array([[]] * rows, pa.large_list(pa.large_string()))
    columns = {"context": context, **{name: table.column(name) for name in REQUIRED}}
    dialogue = table.column("dialogue_id" if "dialogue_id" in table.column_names else "utterance")
    if "utterance_id" in table.column_names:
        utterance = table.column("utterance_id")
    else:  # the same words in the same dialogue
        tab = pa.scalar("\t", pa.large_string())
        utterance = pc.binary_join_element_wise(dialogue, table.column("utterance"), tab)
    for name, ids in (("dialogue_id", dialogue), ("utterance_id", utterance)):
        before, nothing = (pa.scalar(text, pa.large_string()) for text in (prefix, ""))
        columns[name] = pc.binary_join_element_wise(before, pc.fill_null(ids, nothing), nothing)
    split = table.column("split") if "split" in table.column_names else pa.nulls(rows, pa.string())
    columns["split"] = split.cast(pa.string())
    return pa.table(columns), blank


def _split(table: pa.Table, share: float, path: str) -> tuple[pa.Table, str]:
    """Split as the column ``split`` says, or hold out a share of the dialogues; test pairs are left
    out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from rejoinder.learn.training_data import TRAIN, VALIDATION, assign_split

    table = table.filter(pc.fill_null(pc.not_equal(table.column("split"), "test"), True))
    if not table.num_rows:
        raise DataError("has no pairs for training", path=path)
    table, decided = assign_split(table, share)
    held_out = pc.fill_null(pc.equal(table.column("split"), VALIDATION), False)
    sides = np.where(held_out.to_numpy(), VALIDATION, TRAIN)
    place = table.schema.get_field_index("split")
    return table.set_column(place, "split", pa.array(sides.tolist(), pa.string())), decided


def _without_leaks(table: pa.Table, exclude: Sequence[str]) -> tuple[pa.Table, dict[str, int]]:
    """Return the pairs whose utterance is in no test set, and counts of the pairs left out."""
    from rejoinder.logs.contamination import Fingerprint, last_turns

    if not exclude:
        return table, {}
    fingerprint = Fingerprint.of(turn for path in exclude for turn in last_turns(path))
    leaks: list[str | None] = []
    for batch in table.select(["utterance"]).to_batches(50_000):
        leaks += fingerprint.find(batch.column(0).to_pylist())
    counts = {"exact": leaks.count("exact"), "near": leaks.count("near")}
    return table.filter(np.array([kind is None for kind in leaks])), counts


def _without_repeats(table: pa.Table) -> tuple[pa.Table, int]:
    """Return the table without validation pairs that are also training pairs, and their number.

    Files overlap, dialogues are copied, and "thank you", "you are welcome" is everywhere.
    """
    import pyarrow.compute as pc

    from rejoinder.learn.training_data import TRAIN

    hashes = _hashes(table)
    trained = pc.equal(table.column("split"), TRAIN).to_numpy()
    kept = trained | ~np.isin(hashes, hashes[trained])
    return table.filter(kept), int((~kept).sum())


def _hashes(table: pa.Table) -> NDArray[np.uint64]:
    """[n] return a hash of each pair; among 10 million pairs, two collide in one of 300,000 runs,
    and then one validation pair less is used."""
    from rejoinder.learn.training_data import REQUIRED
    from rejoinder.logs.contamination import normalise

    digests = bytearray()
    for batch in table.select(list(REQUIRED)).to_batches(50_000):
        texts = (normalise(column.to_pylist()) for column in batch.columns)
        for pair in zip(*texts, strict=True):
            text = "\t".join(pair).encode("utf-8", "surrogatepass")
            digests += hashlib.blake2b(text, digest_size=8).digest()
    return np.frombuffer(digests, np.uint64)


def _describe(data: TrainingData) -> dict[str, int]:
    """Count dialogues, utterances, and utterances with several different responses, which the rater
    is trained on."""
    sides = (data.training, data.validation)
    return {
        "dialogues": sum(len(side.table.column("dialogue_id").unique()) for side in sides),
        "utterances": sum(len(np.unique(side.utterance_ids)) for side in sides),
        "utterances_with_several_responses": sum(len(side.response_groups) for side in sides),
    }


def _language_notes(table: pa.Table, language: str) -> list[str]:
    """Return a note if many texts of a sample are in another language."""
    from rejoinder.text.identify import in_other_language

    step = max(1, table.num_rows // LANGUAGE_SAMPLE)
    texts = table.column("response").take(np.arange(0, table.num_rows, step)).to_pylist()
    try:
        share = sum(in_other_language(texts, language)) / len(texts)
    except MissingExtra:
        return []
    if share < OTHER_LANGUAGE_SHARE:
        return []
    return [
        f"{share:.0%} of a sample of {len(texts):,} responses are not in"
        f" {known_language(language).name}: fit one evaluator per language, and choose it with"
        f" {option('language')}"
    ]

"""The first stage: whatever the user gave becomes one file of pairs, to learn from and held out.

Logs go through the log pipeline, files of pairs are put together. Pairs of a test set are left
out, too many are thinned out by whole dialogues, and every dialogue is on one side only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.evaluator.manifest import HELD_OUT as HELD_OUT_FILE
from rejoinder.fitting.settings import Data
from rejoinder.fitting.stages import write_json
from rejoinder.io import file_digest, open_output
from rejoinder.learn.material import Material
from rejoinder.learn.pairs import read_pairs, split_rows
from rejoinder.logs.contamination import Fingerprint, last_turns, normalise
from rejoinder.progress import Progress
from rejoinder.text.languages import language as known_language

if TYPE_CHECKING:
    import pyarrow as pa


TRAIN, HELD_OUT = "train", "validation"
FOREIGN_SHARE = 0.05
"""From this share of texts in another language on, the user is told."""
LOOKED_AT = 2000
"""Texts that the language is guessed of."""
_TEXTS = ("utterance", "response")
_IDS = ("dialogue_id", "utterance_id", "split")


@dataclass(frozen=True)
class Gathered:
    """What the pairs are, for manifest and card; JSON."""

    files: dict[str, str]
    """Name and SHA-256 of each input."""
    counts: dict[str, int]
    leaks: dict[str, int]
    """Pairs left out because a test set has their utterance, word for word or nearly."""
    split_by: str
    notes: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "notes"}


def gather(
    inputs: Sequence[str],
    output: Path,
    settings: Data,
    *,
    language: str,
    format: str | None,
    exclude: Sequence[str] = (),
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Gathered:
    """Write ``output`` (Parquet, split into train and validation), and beside it the utterances
    held out."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("fitting needs pyarrow and duckdb: pip install pyarrow duckdb") from None
    files = {_name(path): digest(path) for path in inputs}
    logs = [path for path in inputs if not is_pairs(path)]
    notes: list[str] = []
    tables = [(path, _read(path)) for path in inputs if is_pairs(path)]
    if logs:
        made = output.with_name(f"logs-{output.name}")
        notes += _from_logs(logs, made, settings, language, format, files, on_progress)
        if not pq.read_metadata(made).num_rows:
            raise DataError(
                f"no pair of utterance and response is left of it, read as {format};"
                f" 'rejoinder corpus' says what was left out and why",
                path=", ".join(logs),
            )
        tables.append((", ".join(logs), _read(str(made))))
    parts, split_by = [], []
    counts: Counter[str] = Counter()
    for number, (path, table) in enumerate(tables):
        counts["pairs"] += table.num_rows
        table, left_out = _named(table, f"{number}:" if len(tables) > 1 else "")
        counts.update(left_out)
        table, decided = _split(table, settings.held_out, path)
        parts.append(table)
        split_by.append(decided)
    clean, leaks = _without_leaks(pa.concat_tables(parts), exclude)
    whole, counts["repeated"] = _without_repeats(clean)
    if clean.num_rows and not _has_both(whole):
        # by the same share as elsewhere, from all that is left
        clean = clean.set_column(*_split_column(clean, [None] * clean.num_rows))
        clean, decided = _split(clean, settings.held_out, ", ".join(inputs))
        whole, counts["repeated"] = _without_repeats(clean)
        split_by = [decided]
        notes.append(
            "all pairs of one side, to learn from or held out, were test material or repeated:"
            f" pairs are held out anew, by {decided}"
        )
    try:
        if not _has_both(whole):
            raise DataError("one side is empty")
        material = Material.of(
            whole, most=settings.most, most_held_out=settings.most_held_out, seed=seed
        )
    except DataError:
        raise DataError(
            f"{counts['pairs']:,} pairs, of which {sum(leaks.values()):,} are test material, are"
            " too few: at least one dialogue to learn from, and another one to be held out, are"
            " needed",
            path=", ".join(inputs),
        ) from None
    sides = {TRAIN: material.training.table, HELD_OUT: material.validation.table}
    taken = pa.concat_tables(
        table.append_column("split", pa.array([name] * table.num_rows, pa.string()))
        for name, table in sides.items()
    )
    known = {**counts, **{k: n for k, n in material.counts.items() if k != "pairs"}}
    known |= _described(material)
    notes += _foreign(taken, language)
    with open_output(output) as stream:
        pq.write_table(taken, stream, row_group_size=100_000)
    utterances = list(dict.fromkeys(material.validation.utterances))
    write_json(output.with_name(HELD_OUT_FILE), utterances)
    return Gathered(files, known, leaks, " and ".join(dict.fromkeys(split_by)), notes)


def is_pairs(path: str) -> bool:
    return path.endswith(".parquet")


def check_inputs(inputs: Sequence[str], exclude: Sequence[str], format: str | None) -> None:
    """All that is wrong with the arguments, before any work."""
    problems = []
    for path in [*inputs, *exclude]:
        # what is no file may be a package, which its reader knows
        if (is_pairs(path) or path in exclude or format is None) and not Path(path).is_file():
            problems.append(f"{path}: there is no such file")
    logs = [path for path in inputs if not is_pairs(path)]
    if logs and format is None:
        problems.append(f"{logs[0]}: not .parquet, so it is a log: say which --format it has")
    if len({_name(path) for path in inputs}) < len(inputs):
        problems.append("two inputs have the same name; give each once, and each its own name")
    if not logs and format is not None:
        problems.append("--format is for logs; pairs (.parquet) have one of their own")
    if problems:
        raise UsageError(*problems)


def digest(path: str) -> str:
    """A file by its content; what is no file (a package) by its name."""
    if not Path(path).is_file():
        return path
    return file_digest(Path(path)).hex()


def _name(path: str) -> str:
    """Without the folder: an evaluator should not tell how somebody's disk is ordered."""
    return Path(path).name


def _from_logs(
    logs: list[str],
    output: Path,
    settings: Data,
    language: str,
    format: str | None,
    files: dict[str, str],
    on_progress: Progress | None,
) -> list[str]:
    """Logs → pairs; returns what a person should know of it."""
    try:
        from rejoinder.logs.pipeline import Settings, make_pairs
    except ImportError:
        raise MissingExtra("logs need duckdb and pyarrow: pip install duckdb pyarrow") from None
    from rejoinder.logs.clean import Cleaning
    from rejoinder.logs.split import Split
    from rejoinder.logs.threads import Threads
    from rejoinder.registry import READERS

    assert format is not None
    account = make_pairs(
        logs,
        output,
        Settings(
            reader=READERS.make(format),
            cleaning=Cleaning.for_language(language),
            threads=Threads(turns=settings.context),
            split=Split((1 - settings.held_out, settings.held_out, 0.0)),
            # ids decide the order of pairs, so they must be the same next time; they stay here
            salt=hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest(),
        ),
        on_progress=on_progress,
    )
    notes = []
    if rejects := sum(account.rejects.values()):
        notes.append(f"{rejects:,} of {account.records:,} records of the logs could not be read")
    foreign = account.removed.get("language", 0) + account.removed.get("script", 0)
    kept = account.posts + foreign
    if kept and foreign / kept >= FOREIGN_SHARE:
        notes.append(
            f"{foreign:,} of {kept:,} posts ({foreign / kept:.0%}) are not in"
            f" {known_language(language).name} and were left out"
        )
    return notes


def _read(path: str) -> pa.Table:
    return read_pairs(Path(path), _TEXTS, ("context", *_IDS))


def _named(table: pa.Table, prefix: str) -> tuple[pa.Table, dict[str, int]]:
    """All columns, ids of their own in each file, and no pair without text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [pc.not_equal(pc.utf8_trim_whitespace(table.column(name)), "") for name in _TEXTS]
    filled = pc.and_(*texts)
    blank = table.num_rows - int(pc.sum(filled).as_py() or 0)
    table = table.filter(filled)
    rows = table.num_rows
    if "context" in table.column_names:
        kind = pa.large_list(pa.large_string())
        context = table.column("context")
        if context.null_count or pc.list_flatten(context).null_count:
            said = [
                [turn for turn in turns or [] if turn is not None] for turns in context.to_pylist()
            ]
            context = pa.chunked_array([said], kind)
    else:
        context = pa.array([[]] * rows, pa.large_list(pa.large_string()))
    columns = {"context": context, **{name: table.column(name) for name in _TEXTS}}
    dialogue = table.column("dialogue_id" if "dialogue_id" in table.column_names else "utterance")
    utterance = dialogue
    if "utterance_id" in table.column_names:
        utterance = table.column("utterance_id")
    else:  # the same words at the same place
        tab = pa.scalar("\t", pa.large_string())
        utterance = pc.binary_join_element_wise(dialogue, table.column("utterance"), tab)
    for name, ids in (("dialogue_id", dialogue), ("utterance_id", utterance)):
        before, nothing = (pa.scalar(text, pa.large_string()) for text in (prefix, ""))
        columns[name] = pc.binary_join_element_wise(before, pc.fill_null(ids, nothing), nothing)
    split = table.column("split") if "split" in table.column_names else pa.nulls(rows, pa.string())
    columns["split"] = split.cast(pa.string())
    return pa.table(columns), {"blank": blank} if blank else {}


def _split(table: pa.Table, share: float, path: str) -> tuple[pa.Table, str]:
    """Train and validation as the pairs say; else a share of the dialogues is held out."""
    import pyarrow.compute as pc

    # what the pairs keep for a test stays there
    table = table.filter(pc.fill_null(pc.not_equal(table.column("split"), "test"), True))
    if not table.num_rows:
        raise DataError("there is no pair in it to learn from", path=path)
    rows, decided = split_rows(table, share)
    names = np.full(table.num_rows, TRAIN, object)
    names[rows[HELD_OUT]] = HELD_OUT
    return table.set_column(*_split_column(table, names.tolist())), decided


def _split_column(table: pa.Table, names: list[str | None]) -> tuple[int, str, pa.Array]:
    import pyarrow as pa

    return table.schema.get_field_index("split"), "split", pa.array(names, pa.string())


def _has_both(table: pa.Table) -> bool:
    return {TRAIN, HELD_OUT} <= set(table.column("split").unique().to_pylist())


def _without_leaks(table: pa.Table, exclude: Sequence[str]) -> tuple[pa.Table, dict[str, int]]:
    if not exclude:
        return table, {}
    fingerprint = Fingerprint.of(turn for path in exclude for turn in last_turns(path))
    found: list[str | None] = []
    for batch in table.select(["utterance"]).to_batches(50_000):
        found += fingerprint.find(batch.column(0).to_pylist())
    counts = {"exact": found.count("exact"), "near": found.count("near")}
    return table.filter(np.array([kind is None for kind in found])), counts


def _without_repeats(table: pa.Table) -> tuple[pa.Table, int]:
    """Without pairs held out that are learnt from, too: files overlap, dialogues are copied, and
    everybody says "thank you" and "you are welcome"."""
    import pyarrow.compute as pc

    said = _hashes(table)
    learnt = pc.equal(table.column("split"), TRAIN).to_numpy()
    kept = learnt | ~np.isin(said, said[learnt])
    return table.filter(kept), int((~kept).sum())


def _hashes(table: pa.Table) -> NDArray[np.uint64]:
    """[n] a number for each pair; two of 10 million are the same by chance once in 300,000 runs,
    and then one pair less is held out."""
    found = bytearray()
    for batch in table.select(list(_TEXTS)).to_batches(50_000):
        texts = (normalise(column.to_pylist()) for column in batch.columns)
        for pair in zip(*texts, strict=True):
            text = "\t".join(pair).encode("utf-8", "surrogatepass")
            found += hashlib.blake2b(text, digest_size=8).digest()
    return np.frombuffer(found, np.uint64)


def _described(material: Material) -> dict[str, int]:
    """Dialogues, utterances, and how many of them have several different responses: on either
    side, and as the rater takes them, the same words on two occasions among them."""
    sides = (material.training, material.validation)
    return {
        "dialogues": sum(len(side.table.column("dialogue_id").unique()) for side in sides),
        "utterances": sum(len(np.unique(side.groups)) for side in sides),
        "utterances_with_several_responses": sum(len(side.answered) for side in sides),
    }


def _foreign(table: pa.Table, language: str) -> list[str]:
    """A word of warning if many texts are in another language, as far as a sample tells."""
    from rejoinder.logs.filters.speech import sounds_otherwise

    step = max(1, table.num_rows // LOOKED_AT)
    texts = table.column("response").take(np.arange(0, table.num_rows, step)).to_pylist()
    try:
        foreign = sum(sounds_otherwise(texts, language))
    except MissingExtra:
        return []
    if foreign / len(texts) < FOREIGN_SHARE:
        return []
    return [
        f"{foreign / len(texts):.0%} of {len(texts):,} responses looked at are not in"
        f" {known_language(language).name}: fit one evaluator for each language, and say which"
        " with --language"
    ]

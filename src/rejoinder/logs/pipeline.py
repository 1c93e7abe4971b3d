"""Turn logs into pairs: read, clean, filter, thread, leave out leaks, split, write, report.

Each step makes tables from tables. Reading and cleaning take the longest: they run over chunks of
the inputs in several processes, and an interrupted run resumes after the chunks that are done.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from rejoinder.engine import Engine, open_engine
from rejoinder.errors import DataError, RejoinderError
from rejoinder.files.output import LOCK, only_run, open_output, unwritable
from rejoinder.files.paths import file_digest, hidden_beside, is_file, open_stdin, work_folder
from rejoinder.logs.bot_filters import BotFilters
from rejoinder.logs.clean import Cleaning
from rejoinder.logs.contamination import Fingerprint, MarkLeaks, last_turns
from rejoinder.logs.corpus_report import CorpusReport, summarize_corpus
from rejoinder.logs.read import read_chunk
from rejoinder.logs.readers.likely_format import likely_format
from rejoinder.logs.readers.lines import Chunk
from rejoinder.logs.readers.reader import DELETED, Reader
from rejoinder.logs.schema import CLEANED, PAIRS
from rejoinder.logs.split import Split
from rejoinder.logs.threads import Threads
from rejoinder.progress import Progress
from rejoinder.version import __version__
from rejoinder.wording import option

NAMED = pa.schema([PAIRS.field(name) for name in PAIRS.names if name not in ("responses", "split")])
MARKED = NAMED.append(pa.field("leak", pa.string()))


@dataclass(frozen=True)
class Settings:
    """All settings that decide which pairs are written."""

    reader: Reader
    cleaning: Cleaning
    bot_filters: BotFilters = field(default_factory=BotFilters)
    threads: Threads = field(default_factory=Threads)
    split: Split = field(default_factory=Split)
    exclude: tuple[str, ...] = ()
    salt: str | None = None
    """Without one, a random salt is drawn and discarded, so hashes cannot be recomputed."""
    strict: bool = False
    """Whether the first bad record ends the run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for the manifest and the resume key, without the salt."""
        return {
            "format": str(self.reader),
            "cleaning": asdict(self.cleaning),
            "bot_filters": asdict(self.bot_filters),
            "context_turns": self.threads.turns,
            "split": {
                "shares": self.split.shares,
                "dates": [str(date) for date in self.split.dates],
                "seed": self.split.seed,
            },
            "exclude": list(self.exclude),
        }


@dataclass(frozen=True)
class ReadAndClean:
    """An Arrow function from rows that describe chunks to the cleaned posts of the chunks."""

    reader: Reader
    cleaning: Cleaning
    salt: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                chunk = Chunk(row["path"], row["start"], row["end"], row["first_line"])
                for posts in read_chunk(self.reader, chunk, self.salt):
                    yield self.cleaning.apply(posts)


def make_pairs(
    inputs: Sequence[str],
    output: Path,
    settings: Settings,
    *,
    engine: str = "duckdb",
    memory: str = "2GB",
    on_progress: Progress | None = None,
) -> CorpusReport:
    """Write ``output`` (Parquet), its manifest and its rejects; return the report.

    An interrupted run leaves a hidden folder beside the output, from which the next one resumes; a
    run that ends because of bad data leaves only the rejects.
    """
    spooled, work = hidden_beside(output, "stdin"), work_folder(output)
    options = {"memory": memory} if engine == "duckdb" else {}
    try:
        paths = [_spool(spooled) if path == "-" else path for path in dict.fromkeys(inputs)]
        chunks = [chunk for path in paths for chunk in settings.reader.chunk(path)]
        digests = {path: _digest(path) for path in paths}
        with _remove_unless_resumable(work), only_run(work):
            key, salt = _open_work(work, settings, digests)
            with open_engine(engine, work / "engine", **options) as running:
                report = _run(running, chunks, output, settings, salt, key, on_progress)
    finally:
        spooled.unlink(missing_ok=True)
    manifest = {
        "rejoinder": __version__,
        "engine": engine,
        "inputs": digests,
        "settings": settings.to_dict(),
        **report.to_dict(),
    }
    with open_output(beside(output, "manifest.json")) as stream:
        stream.write(json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n")
    return report


@contextlib.contextmanager
def _remove_unless_resumable(work: Path) -> Iterator[None]:
    """Remove the work folder after success or bad data; keep it after an interruption."""
    existed = work.exists()
    try:
        yield
    except DataError:
        shutil.rmtree(work, ignore_errors=True)
        raise
    except RejoinderError:
        if not existed and not any(work.rglob("*.parquet")):  # no piece is done
            shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work, ignore_errors=True)


def beside(output: Path, name: str) -> Path:
    """Return the path of a file that belongs to an output.

    >>> beside(Path("pairs.parquet"), "manifest.json").name
    'pairs.manifest.json'
    """
    return output.with_name(f"{output.name.removesuffix('.parquet')}.{name}")


def _run(
    engine: Engine,
    chunks: list[Chunk],
    output: Path,
    settings: Settings,
    salt: str,
    key: str,
    on_progress: Progress | None,
) -> CorpusReport:
    listed = [{"number": number, **asdict(chunk)} for number, chunk in enumerate(chunks)]
    engine.table("chunks", pa.Table.from_pylist(listed, _CHUNKS))
    engine.map(
        "cleaned",
        "SELECT * FROM chunks ORDER BY number",
        ReadAndClean(settings.reader, settings.cleaning, salt),
        CLEANED,
        resume_key=key,
        piece_rows=1,
        on_progress=on_progress,
    )
    _write_rejects(engine, output, settings)
    settings.bot_filters.apply(engine, "cleaned", "filtered")
    settings.threads.pair(engine, "filtered", "threaded")
    _check_roles(engine, output)
    _hash_ids(engine, salt)
    if settings.exclude:
        turns = (turn for path in settings.exclude for turn in last_turns(path))
        mark = MarkLeaks(Fingerprint.of(turns))
        ordered = "SELECT * FROM named ORDER BY response_id, utterance_id"
        # not resumed: the key has the names of the excluded files, not their content
        engine.map("marked", ordered, mark, MARKED)
    else:
        engine.view("marked", "SELECT *, CAST(NULL AS STRING) AS leak FROM named")
    engine.view(
        "clean_pairs",
        """
        SELECT *, CAST(COUNT(*) OVER (PARTITION BY utterance_id) AS INT) AS responses
        FROM marked WHERE leak IS NULL
        """,
    )
    engine.create("pairs", settings.split.sql("clean_pairs"))
    engine.write_parquet(
        f"""
        SELECT {", ".join(PAIRS.names)} FROM pairs
        ORDER BY dialogue_id, turn, utterance_id, response_id
        """,
        output,
        PAIRS,
    )
    return summarize_corpus(engine, settings.cleaning.filters, len(settings.exclude) > 0)


_CHUNKS = pa.schema(
    [
        pa.field("number", pa.int64()),
        pa.field("path", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("first_line", pa.int64()),
    ]
)


def _check_roles(engine: Engine, output: Path) -> None:
    """Raise DataError if the chosen role never replies."""
    if engine.scalar("SELECT COUNT(*) FROM threaded"):
        return
    other = engine.scalar("SELECT COUNT(*) FROM all_pairs_of_dialogues WHERE NOT learn")
    if other:
        raise DataError(
            f"all {other:,} replies are by a role that is not learnt from; by default only turns"
            " of people (user) are learnt;"
            f" {option('learn_from', 'assistant')} learns the assistant's replies",
            path=engine.scalar("SELECT MIN(path) FROM chunks"),
        )


def _hash_ids(engine: Engine, salt: str) -> None:
    """Replace ids by salted hashes, too: the id of a tweet reveals its author."""
    hashed = {
        "dialogue_id": "root",
        "utterance_id": "utterance_key",
        "response_id": "response_key",
    }
    columns = ", ".join(
        f"md5({engine.text(salt + ':')} || {hashed[name]}) AS {name}" if name in hashed else name
        for name in NAMED.names
    )
    engine.create("named", f"SELECT {columns} FROM threaded")


def _write_rejects(engine: Engine, output: Path, settings: Settings) -> None:
    """Write bad records to a file; raise DataError if there is no good one, or if strict.

    Deleted posts are counted as rejects, but they are not written: the log itself is fine.
    """
    query = f"""
        SELECT source, line, reject, text FROM cleaned WHERE reject <> '{DELETED}'
        ORDER BY source, line, reject, text
    """
    path = beside(output, "rejects.jsonl")
    rejected = engine.fetch(query)
    if rejected.num_rows and settings.strict:
        first = rejected.slice(0, 1).to_pylist()[0]
        raise DataError(first["reject"], path=first["source"], line=first["line"])
    if rejected.num_rows:
        with open_output(path) as stream:
            for row in rejected.to_pylist():
                line = {"source": row["source"], "line": row["line"], "reason": row["reject"]}
                record = json.dumps({**line, "record": row["text"]}, ensure_ascii=False)
                stream.write(record.encode("utf-8", "surrogatepass") + b"\n")
    else:
        path.unlink(missing_ok=True)
    if engine.scalar("SELECT COUNT(*) FROM cleaned WHERE reject IS NULL"):
        return
    right = f"is {option('format')} right?"
    if not rejected.num_rows:
        source = engine.scalar("SELECT MIN(path) FROM chunks")
        count = engine.scalar("SELECT COUNT(*) FROM cleaned")
        deleted = f" ({count:,} are deleted)" if count else ""
        raise DataError(f"there is no post in it{deleted}; {right}", path=source)
    first = rejected.slice(0, 1).to_pylist()[0]
    likely = likely_format(first["source"])
    if likely not in (None, settings.reader.name):
        right = f"the records look like {option('format', likely)}."
    raise DataError(
        f"{first['reject']}; none of the {rejected.num_rows:,} records can be read:"
        f" {right} All reasons are in {path}",
        path=first["source"],
        line=first["line"],
    )


def _spool(path: Path) -> str:
    """Copy stdin to a file, which several processes can read."""
    with open_output(path) as stream:
        shutil.copyfileobj(open_stdin(), stream)
    return str(path)


def _digest(path: str) -> str:
    """Return the digest of a file; an input that is not a file (a package) is its own."""
    return file_digest(path).hex() if is_file(path) else path


def _open_work(work: Path, settings: Settings, digests: dict[str, str]) -> tuple[str, str]:
    """Open the folder of an interrupted run with the same inputs and settings, or an empty one.

    Returns the key of the run, under which its finished pieces are stored, and its salt.
    """
    named = {"version": __version__, "inputs": digests, "settings": settings.to_dict()}
    salt = hashlib.sha256((settings.salt or "").encode()).hexdigest() if settings.salt else None
    text = json.dumps({**named, "salt": salt}, sort_keys=True, default=str)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    kept = work / key
    try:
        if not kept.is_file():
            for path in work.iterdir():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name != LOCK:
                    path.unlink()
            kept.touch(mode=0o600)
            kept.write_text(settings.salt or secrets.token_hex(16))
        return key, kept.read_text()
    except OSError as error:
        raise unwritable(work, error) from None

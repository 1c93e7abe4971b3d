"""From logs to pairs: read and clean, sift, thread, leave out leaks, split, write, account.

Each step makes tables from tables. Reading and cleaning is the long one: it runs over pieces
of the inputs in several processes, and what an interrupted run has finished is not done again.
"""

from __future__ import annotations

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
from rejoinder.errors import DataError
from rejoinder.io import open_output, open_stdin
from rejoinder.logs.account import Account, take_stock
from rejoinder.logs.clean import Cleaning
from rejoinder.logs.contamination import Fingerprint, MarkLeaks, last_turns
from rejoinder.logs.read import read_chunk
from rejoinder.logs.readers.base import DELETED, Reader
from rejoinder.logs.readers.lines import Chunk
from rejoinder.logs.schema import CLEANED, PAIRS
from rejoinder.logs.sift import Sifting
from rejoinder.logs.split import Split
from rejoinder.logs.threads import Threads
from rejoinder.progress import Progress
from rejoinder.version import __version__

NAMED = pa.schema([PAIRS.field(name) for name in PAIRS.names if name not in ("responses", "split")])
MARKED = NAMED.append(pa.field("leak", pa.string()))


@dataclass(frozen=True)
class Settings:
    """Everything that decides which pairs come out."""

    reader: Reader
    cleaning: Cleaning
    sifting: Sifting = field(default_factory=Sifting)
    threads: Threads = field(default_factory=Threads)
    split: Split = field(default_factory=Split)
    exclude: tuple[str, ...] = ()
    salt: str | None = None
    """Without one, a random salt is drawn and thrown away: hashes can't be recomputed."""
    strict: bool = False

    def plain(self) -> dict[str, Any]:
        """For the manifest and the resume key; the salt stays secret."""
        return {
            "format": str(self.reader),
            "cleaning": asdict(self.cleaning),
            "sifting": asdict(self.sifting),
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
    """An Arrow function: from a list of chunks to their cleaned posts."""

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
) -> Account:
    """Write ``output`` (Parquet), its manifest and its rejects; returns the account."""
    spooled = output.with_name(f".{output.name}.stdin")
    paths = [_spool(spooled) if path == "-" else path for path in dict.fromkeys(inputs)]
    chunks = [chunk for path in paths for chunk in settings.reader.chunk(path)]
    digests = {path: _digest(path) for path in paths}
    work = output.with_name(f".{output.name}.work")
    key, salt = _open_work(work, settings, digests)
    options = {"memory": memory} if engine == "duckdb" else {}
    with open_engine(engine, work / "engine", **options) as running:
        account = _run(running, chunks, output, settings, salt, key, on_progress)
    manifest = {
        "rejoinder": __version__,
        "engine": engine,
        "inputs": digests,
        "settings": settings.plain(),
        **account.plain(),
    }
    with open_output(beside(output, "manifest.json")) as stream:
        stream.write(json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n")
    shutil.rmtree(work, ignore_errors=True)
    spooled.unlink(missing_ok=True)
    return account


def beside(output: Path, name: str) -> Path:
    """``pairs.parquet`` → ``pairs.manifest.json``."""
    return output.with_name(f"{output.name.removesuffix('.parquet')}.{name}")


def _run(
    engine: Engine,
    chunks: list[Chunk],
    output: Path,
    settings: Settings,
    salt: str,
    key: str,
    on_progress: Progress | None,
) -> Account:
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
    _set_rejects_aside(engine, output, settings.strict)
    settings.sifting.apply(engine, "cleaned", "sifted")
    settings.threads.pair(engine, "sifted", "threaded")
    _name(engine, salt)
    if settings.exclude:
        turns = (turn for path in settings.exclude for turn in last_turns(path))
        mark = MarkLeaks(Fingerprint.of(turns))
        ordered = "SELECT * FROM named ORDER BY response_id, utterance_id"
        # nothing is resumed: the key names the excluded files, not what stands in them
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
    return take_stock(engine, settings.cleaning.filters, len(settings.exclude) > 0)


_CHUNKS = pa.schema(
    [
        pa.field("number", pa.int64()),
        pa.field("path", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("first_line", pa.int64()),
    ]
)


def _name(engine: Engine, salt: str) -> None:
    """Ids leave as salted hashes, too: a tweet's id tells who wrote it."""
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


def _set_rejects_aside(engine: Engine, output: Path, strict: bool) -> None:
    """Bad records go to a file of their own; strictly, the first one ends the run.

    A post that was deleted is counted with them, but it is no fault of the log.
    """
    query = f"""
        SELECT source, line, reject, text FROM cleaned WHERE reject <> '{DELETED}'
        ORDER BY source, line, reject, text
    """
    if strict:
        first = engine.fetch(f"{query} LIMIT 1").to_pylist()
        if first:
            raise DataError(first[0]["reject"], path=first[0]["source"], line=first[0]["line"])
    if not engine.scalar("SELECT COUNT(*) FROM cleaned WHERE reject IS NULL"):
        sources = engine.scalar("SELECT MIN(path) FROM chunks")
        rejects = engine.scalar("SELECT COUNT(*) FROM cleaned")
        raise DataError(
            f"there is no post in it ({rejects:,} bad records); is --format right?", path=sources
        )
    path = beside(output, "rejects.jsonl")
    rejected = engine.fetch(query)
    if not rejected.num_rows:
        path.unlink(missing_ok=True)
        return
    with open_output(path) as stream:
        for row in rejected.to_pylist():
            line = {"source": row["source"], "line": row["line"], "reason": row["reject"]}
            record = json.dumps({**line, "record": row["text"]}, ensure_ascii=False)
            stream.write(record.encode("utf-8", "surrogatepass") + b"\n")


def _spool(path: Path) -> str:
    """Stdin as a file: several processes, and a second run, can read that."""
    with open_output(path) as stream:
        shutil.copyfileobj(open_stdin(), stream)
    return str(path)


def _digest(path: str) -> str:
    """A file by its content; what is no file (a package) by its name."""
    if not Path(path).is_file():
        return path
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _open_work(work: Path, settings: Settings, digests: dict[str, str]) -> tuple[str, str]:
    """The folder of an interrupted run, if it was the same run; otherwise an empty one.

    Returns the key that names the run's finished pieces, and its salt.
    """
    from rejoinder.errors import UsageError

    named = {"version": __version__, "inputs": digests, "settings": settings.plain()}
    given = hashlib.sha256((settings.salt or "").encode()).hexdigest() if settings.salt else None
    text = json.dumps({**named, "salt": given}, sort_keys=True, default=str)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    kept = work / key
    try:
        if not kept.is_file():
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            kept.touch(mode=0o600)
            kept.write_text(settings.salt or secrets.token_hex(16))
        return key, kept.read_text()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{work}: cannot be written: {reason}") from None

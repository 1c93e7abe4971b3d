"""Every function of the interface, on DuckDB, on Spark in one process, and on a real cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import map_functions as functions
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import Cluster, driver_environment
from map_functions import NUMBERS, Noted

from rejoinder.engine import Engine, open_engine
from rejoinder.engine.tables import digest
from rejoinder.errors import DataError, MissingExtra, RejoinderError, ResourceError, UsageError

HERE = Path(__file__).parent
pytestmark = pytest.mark.xdist_group("spark")
on_duckdb = pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
on_cluster = pytest.mark.parametrize("engine", ["cluster"], indirect=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module", params=["duckdb", "local[2]", "cluster"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    work = tmp_path_factory.mktemp("work")
    spec = request.param
    with pytest.MonkeyPatch.context() as patch:
        for name, value in driver_environment(tmp_path_factory.mktemp("settings")).items():
            patch.setenv(name, value)
        if spec == "cluster":
            spec = request.getfixturevalue("cluster").url
        options = {"processes": 2} if spec == "duckdb" else {}
        with open_engine(spec, work, **options) as opened:
            opened.table("mixed", MIXED)
            yield opened


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with open_engine("duckdb", tmp_path_factory.mktemp("reference")) as opened:
        opened.table("mixed", MIXED)
        yield opened


def numbers(count: int) -> pa.Table:
    texts = [None if i % 5 == 4 else f"text {i}" for i in range(count)]
    return pa.table([pa.array(range(count), pa.int64()), texts], schema=NUMBERS)


MIXED = pa.table(
    {
        "i": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "g": ["a", "a", "b", "b", "b"],
        "s": ["x", "y", None, "é", "Z"],
        "yes": [True, False, None, True, False],
        "words": [["hello", "world"], [], None, ["日本", None], ["it's"]],
        "share": pa.array([0.5, None, -2.5, 1e300, 0.0]),
        "t": pa.array(
            [
                datetime(2020, 1, 1, tzinfo=UTC),
                datetime(2020, 1, 2, 23, 59, 59, 999999, tzinfo=UTC),
                None,
                datetime(2021, 2, 3, 12, tzinfo=UTC),
                datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
            ],
            pa.timestamp("us", tz="UTC"),
        ),
    }
)

# each is run over the table ``mixed``; what the docstring of base.py promises
QUERIES = [
    "SELECT i, row_number() OVER (PARTITION BY g ORDER BY i DESC) AS r, lag(s) OVER (ORDER BY i)"
    " AS l, count(*) OVER (PARTITION BY g) AS c, lead(i, 2) OVER (ORDER BY i) AS e,"
    " first_value(s) OVER (PARTITION BY g ORDER BY i) AS f, dense_rank() OVER (ORDER BY g) AS d,"
    " sum(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total"
    " FROM mixed ORDER BY i",
    "SELECT i, g FROM mixed QUALIFY row_number() OVER (PARTITION BY g ORDER BY i) = 1 ORDER BY i",
    "SELECT g, count(*) AS n, count_if(i > 3) AS many, count(*) FILTER (WHERE yes) AS y,"
    " bool_or(s IS NULL) AS o, bool_and(i > 1) AS a, max_by(i, i) AS x,"
    " min_by(s, i) FILTER (WHERE s IS NOT NULL) AS m,"
    " any_value(g) AS v, min(s) AS lo, max(s) AS hi, sum(i) AS total, avg(i) AS mean,"
    " count(DISTINCT yes) AS d, bit_or(i) AS bits FROM mixed GROUP BY ALL ORDER BY g",
    "SELECT a.i FROM mixed AS a SEMI JOIN mixed AS b ON b.i = a.i + 1 ORDER BY a.i",
    "SELECT a.i FROM mixed AS a ANTI JOIN mixed AS b ON b.i = a.i + 1 ORDER BY a.i",
    "SELECT a.i, b.s AS other FROM mixed AS a LEFT JOIN mixed AS b ON a.i = b.i + 1 ORDER BY a.i",
    "SELECT i FROM mixed AS a WHERE NOT EXISTS (SELECT 1 FROM mixed AS b WHERE b.i = a.i + 1)",
    "SELECT i, s IS DISTINCT FROM 'x' AS other FROM mixed ORDER BY i",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 7)"
    " SELECT n FROM r ORDER BY n",
    "SELECT i, 'old' AS k FROM mixed UNION ALL SELECT 9, 'new' ORDER BY i LIMIT 4 OFFSET 2",
    "SELECT md5(s) AS m, length(s) AS n, substring(s, 1, 1) AS b, lower(s) AS lo, s || '!' AS e,"
    " replace(s, 'x', 'yy') AS r, trim(' ' || s || ' ') AS t, concat_ws('-', s, g) AS c,"
    " s LIKE 'x%' AS k, regexp_extract(g || i, '([a-z])([0-9])', 2) AS two,"
    " regexp_like(g, '^[ab]$') AS ab, startswith(s, 'x') AS st FROM mixed ORDER BY i",
    "SELECT array_append(words, 'end') AS a, words || words AS twice, slice(words, 2, 5) AS rest,"
    " slice(words, 1, 1) AS first, size(words) AS n"
    " FROM mixed WHERE words IS NOT NULL ORDER BY i",
    "SELECT i, array_join(words, ' ') AS joined FROM mixed ORDER BY i",
    "SELECT i, array_contains(words, 'hello') AS h FROM mixed WHERE i <> 4 ORDER BY i",
    "SELECT i, explode(split(s || ' ' || g, ' ')) AS word FROM mixed WHERE i < 3 ORDER BY i, word",
    "SELECT i, coalesce(array_agg(g) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 2 PRECEDING"
    " AND 1 PRECEDING), {empty}) AS before FROM mixed ORDER BY i",
    "SELECT i, array_agg(i) OVER (PARTITION BY g ORDER BY i DESC ROWS BETWEEN UNBOUNDED PRECEDING"
    " AND UNBOUNDED FOLLOWING) AS all_of_group FROM mixed ORDER BY i",
    "SELECT g, array_agg(s) FILTER (WHERE s IS NOT NULL AND i IN (1, 4)) AS a FROM mixed"
    " GROUP BY g ORDER BY g",
    "SELECT {pair} AS pair, {quoted} AS quoted, {empty} AS none",
    "SELECT CAST(t AS DATE) AS day, year(t) AS y, date_trunc('hour', t) AS h,"
    " unix_micros(t) AS us, datediff(CAST(t AS DATE), CAST('2020-01-01' AS DATE)) AS days,"
    " t + INTERVAL '1' DAY AS later, t < CAST('2020-01-02 00:00:00Z' AS TIMESTAMP) AS early,"
    " CAST(CAST(t AS DATE) AS STRING) AS text FROM mixed ORDER BY i",
    "SELECT TRY_CAST('x' AS INT) AS n, CAST('12' AS BIGINT) AS b, CAST(7 AS STRING) AS s,"
    " CAST(TRUE AS INT) AS one, CAST(NULL AS STRING) AS nothing",
    "SELECT 7 / 2 AS half, CAST(floor(7 / 2) AS BIGINT) AS whole, CAST(floor(-7 / 2) AS BIGINT)"
    " AS down, -7 % 3 AS rest, CAST(round(2.5e0) AS INT) AS r, (5 >> 1) & 1 AS bit, 1 << 3 AS b,"
    " 4 | 1 AS o, greatest(1, 2) AS g, nullif(1, 1) AS n, if(1 = 1, 'a', 'b') AS i",
    "SELECT s FROM mixed ORDER BY s NULLS FIRST",
    "SELECT s FROM mixed ORDER BY s DESC NULLS LAST",
    "SELECT 'a' < 'B' AS x, 'é' > 'z' AS y, 'Z' < 'a' AS z, '日' > 'é' AS w",
    "SELECT count(*) AS n FROM mixed WHERE s <> 'x'",
    "SELECT * FROM mixed ORDER BY i",
]


@pytest.mark.parametrize("engine", ["local[2]"], indirect=True)
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_engines_agree_on_every_sql_construct(engine: Engine, duckdb: Engine, query: str) -> None:
    results = []
    for one in (duckdb, engine):
        pair, quoted = one.array("'a'", "'b'"), one.text("it's a \\ and\n'")
        results.append(one.fetch(query.format(pair=pair, quoted=quoted, empty=one.array())))
    ours, theirs = results
    assert theirs.to_pylist() == ours.to_pylist()
    wide = {"int32", "int64"}  # the width of a whole number is each engine's choice
    for left, right in zip(ours.schema, theirs.schema, strict=True):
        assert left.equals(right) or {str(left.type), str(right.type)} <= wide


def test_a_bad_cast_is_an_error_on_both(engine: Engine) -> None:
    with pytest.raises(Exception, match=r"(?i)conver|cast"):
        engine.fetch("SELECT CAST('x' AS INT)")


def test_tables_keep_their_types(engine: Engine) -> None:
    assert engine.fetch("SELECT * FROM mixed ORDER BY i").equals(MIXED)
    assert engine.fetch("SELECT * FROM mixed WHERE i > 9").schema == MIXED.schema
    assert engine.scalar("SELECT max(s) FROM mixed WHERE g = 'a'") == "y"
    assert engine.scalar("SELECT s FROM mixed WHERE i > 9") is None


def test_tables_and_views_are_replaced_and_dropped(engine: Engine) -> None:
    engine.table("one", numbers(4))
    engine.view("more", "SELECT i + 1 AS i FROM one")
    engine.create("one", "SELECT i + 10 AS i, s FROM one")  # from itself
    assert engine.scalar("SELECT min(i) FROM more") == 11  # a view sees the new table
    engine.create("more", "SELECT 5 AS i")  # a table in the place of a view
    assert engine.scalar("SELECT i FROM more") == 5
    engine.view("more", "SELECT 6 AS i")
    assert engine.scalar("SELECT i FROM more") == 6
    engine.drop("more")
    engine.drop("more")
    with pytest.raises(Exception, match="more"):
        engine.fetch("SELECT * FROM more")
    engine.drop("one")


PAIRS = pa.schema(
    [
        pa.field("n", pa.int32(), nullable=False),
        pa.field("words", pa.list_(pa.string()), nullable=False),
        pa.field("t", pa.timestamp("us", tz="UTC")),
        pa.field("s", pa.string()),
    ]
)
MANY = (
    "SELECT CAST(i * 7919 % 230003 AS INT) AS n, split(s, ' ') AS words,"
    " CAST('2020-01-01 00:00:00Z' AS TIMESTAMP) AS t, s FROM many ORDER BY n"
)


def test_parquet_files_are_the_same_to_the_byte(
    engine: Engine, duckdb: Engine, tmp_path: Path
) -> None:
    files = [tmp_path / "reference.parquet", tmp_path / "other.parquet"]
    for one, file in zip((duckdb, engine), files, strict=True):
        texts = [f"text {i}" for i in range(230_003)]
        one.table("many", pa.table({"i": range(230_003), "s": texts}))
        assert one.write_parquet(MANY, file, PAIRS) == 230_003
        one.drop("many")
    written = pq.ParquetFile(files[1])
    assert written.schema_arrow.equals(PAIRS)
    assert written.metadata.num_row_groups == 3
    assert written.metadata.row_group(0).column(0).compression == "ZSTD"
    assert written.read().column("n").to_pylist() == list(range(230_003))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_parquet_appears_whole_or_not_at_all(engine: Engine, tmp_path: Path) -> None:
    engine.table("few", numbers(10))
    with pytest.raises(TypeError, match="column s: NULL in 2 rows"):
        strict = pa.schema([NUMBERS.field("i"), NUMBERS.field("s").with_nullable(False)])
        engine.write_parquet("SELECT * FROM few", tmp_path / "out.parquet", strict)
    assert list(tmp_path.iterdir()) == []
    engine.write_parquet("SELECT * FROM few WHERE i > 99", tmp_path / "out.parquet", NUMBERS)
    assert pq.read_table(tmp_path / "out.parquet").equals(NUMBERS.empty_table())
    with pytest.raises(UsageError, match="cannot be written"):
        engine.write_parquet("SELECT * FROM few", tmp_path / "no" / "out.parquet", NUMBERS)


@pytest.mark.parametrize("rows", [12, 1500])
def test_maps_apply_a_function_to_all_rows(engine: Engine, rows: int) -> None:
    source = numbers(rows)
    engine.table("source", source)
    size = None if rows < 100 else 400
    calls: list[tuple[int, int]] = []
    engine.map(
        "kept",
        "SELECT * FROM source ORDER BY i",
        functions.same,
        NUMBERS,
        piece_rows=size,
        on_progress=lambda done, total: calls.append((done, total)),
    )
    assert engine.fetch("SELECT * FROM kept ORDER BY i").to_pylist() == source.to_pylist()
    pieces = rows if size is None else 4
    assert calls[-1] == (pieces, pieces)
    assert calls == sorted(calls)

    engine.map("half", "SELECT * FROM kept", functions.even, NUMBERS, piece_rows=size)
    assert engine.fetch("SELECT i FROM half ORDER BY i")["i"].to_pylist() == [*range(0, rows, 2)]

    engine.map("kept", "SELECT * FROM half", functions.thrice, NUMBERS, piece_rows=size)
    got = engine.fetch("SELECT i, s FROM kept ORDER BY i, s").to_pylist()
    texts = source["s"].to_pylist()
    assert got == [{"i": i, "s": f"{texts[i]}{c}"} for i in range(0, rows, 2) for c in "abc"]


def test_a_map_in_one_call_sees_the_rows_in_order(engine: Engine) -> None:
    engine.table("source", numbers(1500))
    query = "SELECT * FROM source ORDER BY i DESC"
    engine.map("sums", query, functions.running_sum, NUMBERS, parallel=False)
    assert engine.fetch("SELECT i, s FROM sums WHERE i >= 1497 ORDER BY i").to_pylist() == [
        {"i": 1497, "s": str(1499 + 1498 + 1497)},
        {"i": 1498, "s": str(1499 + 1498)},
        {"i": 1499, "s": "1499"},
    ]


@pytest.mark.parametrize("parallel", [True, False])
def test_a_map_of_no_rows(engine: Engine, parallel: bool) -> None:
    engine.table("source", numbers(0))
    engine.map("none", "SELECT * FROM source", functions.same, NUMBERS, parallel=parallel)
    empty = engine.fetch("SELECT * FROM none")
    assert empty.num_rows == 0
    assert empty.schema.types == NUMBERS.types


def test_errors_of_a_function_keep_their_type(engine: Engine) -> None:
    engine.table("source", numbers(6))
    query = "SELECT * FROM source ORDER BY i"
    with pytest.raises(DataError) as caught:
        engine.map("bad", query, functions.bad_line, NUMBERS)
    assert str(caught.value) == "log.jsonl:3: not a record"
    assert (caught.value.path, caught.value.line) == ("log.jsonl", 3)
    engine.map("good", query, functions.same, NUMBERS)  # the engine goes on
    assert engine.scalar("SELECT count(*) FROM good") == 6


@pytest.mark.parametrize("engine", ["duckdb", "local[2]"], indirect=True)
def test_other_errors_of_a_function(engine: Engine) -> None:
    engine.table("source", numbers(2))
    query = "SELECT * FROM source ORDER BY i"
    with pytest.raises(ZeroDivisionError):
        engine.map("bad", query, functions.zero, NUMBERS)
    with pytest.raises(RuntimeError, match="Odd: 1 and 2"):
        engine.map("bad", query, functions.odd_failure, NUMBERS)
    with pytest.raises(TypeError, match="column i: NULL"):
        engine.map("bad", query, functions.null_number, NUMBERS)


def test_a_finished_map_is_not_computed_again(engine: Engine, tmp_path: Path) -> None:
    def run(rows: int, key: str) -> int:
        before = len(list(tmp_path.iterdir()))
        engine.table("source", numbers(rows))
        query = "SELECT * FROM source ORDER BY i"
        engine.map("kept", query, Noted(tmp_path), NUMBERS, resume_key=key)
        got = engine.fetch("SELECT * FROM kept ORDER BY i")
        assert got.to_pylist() == numbers(rows).to_pylist()
        return len(list(tmp_path.iterdir())) - before

    assert run(8, "a") == 8
    assert run(8, "a") == 0
    assert run(8, "b") == 8
    # more rows: DuckDB computes what is new, Spark the whole map
    assert run(10, "a") == (2 if type(engine).__name__ == "DuckDB" else 10)


@on_duckdb
def test_pieces_before_a_failure_are_kept(engine: Engine, tmp_path: Path) -> None:
    engine.table("source", pa.concat_tables([numbers(8), numbers(8)]))  # rows that come twice
    query = "SELECT * FROM source ORDER BY i"
    with pytest.raises(DataError, match="stop here"):
        engine.map("kept", query, Noted(tmp_path, fails_at=7), NUMBERS, resume_key="k")
    before = len(list(tmp_path.iterdir()))
    assert before == 14
    calls: list[tuple[int, int]] = []
    engine.map(
        "kept",
        query,
        Noted(tmp_path),
        NUMBERS,
        resume_key="k",
        on_progress=lambda done, total: calls.append((done, total)),
    )
    assert len(list(tmp_path.iterdir())) == 16
    assert calls == [(done, 16) for done in range(1, 17)]
    assert engine.scalar("SELECT count(*) FROM kept") == 16


def test_a_digest_does_not_depend_on_batches() -> None:
    table = MIXED.select(["i", "s", "words", "t", "yes"])
    whole = digest(table.to_batches())
    assert digest([*table.slice(0, 2).to_batches(), *table.slice(2).to_batches()]) == whole
    assert digest(pa.concat_tables([table, table]).slice(5).to_batches()) == whole
    assert digest(table.slice(1).to_batches()) != whole
    moved = table.take([1, 0, 2, 3, 4])
    assert digest(moved.to_batches()) != whole


@on_duckdb
def test_a_worker_that_dies_is_reported(engine: Engine) -> None:
    engine.table("source", numbers(6))
    query = "SELECT * FROM source ORDER BY i"
    with pytest.raises(ResourceError, match="a worker process died"):
        engine.map("dead", query, functions.suicide, NUMBERS)
    engine.map("alive", query, functions.same, NUMBERS)  # with new workers
    assert engine.scalar("SELECT count(*) FROM alive") == 6


def script(text: str, *arguments: object) -> subprocess.Popen[bytes]:
    """A program in a process of its own."""
    head = """
        import resource, sys, time
        from pathlib import Path
        import pyarrow as pa
        from map_functions import NUMBERS, Noted, same
        from rejoinder.engine import open_engine
        from rejoinder.errors import RejoinderError
        folder = Path(sys.argv[1])
    """
    source = textwrap.dedent(head) + textwrap.dedent(text)
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(HERE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def until(condition: object, seconds: float = 60) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_a_killed_write_leaves_nothing(tmp_path: Path) -> None:
    text = """
        with open_engine("duckdb", folder / "work") as engine:
            rows = sys.argv[2]
            query = f"SELECT range AS i, md5(CAST(range AS STRING)) AS s FROM range({rows})"
            engine.write_parquet(query, folder / "out.parquet", NUMBERS)
    """
    process = script(text, tmp_path, 10**9)
    until(lambda: any(file.stat().st_size > 10**5 for file in tmp_path.glob(".out.parquet.*")))
    process.kill()
    process.communicate()
    assert not (tmp_path / "out.parquet").exists()
    again = script(text, tmp_path, 1000)
    assert again.communicate() == (b"", b"")
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 1000


def test_a_killed_run_resumes_and_its_workers_end(tmp_path: Path) -> None:
    text = """
        with open_engine("duckdb", folder / "work", processes=2) as engine:
            query = "SELECT range AS i, 'x' AS s FROM range(8) ORDER BY i"
            job = Noted(folder / "notes", seconds=float(sys.argv[2]))
            engine.map("kept", query, job, NUMBERS, resume_key="k")
            assert engine.fetch("SELECT i FROM kept ORDER BY i")["i"].to_pylist() == [*range(8)]
    """
    notes = tmp_path / "notes"
    notes.mkdir()
    process = script(text, tmp_path, 0.5)
    parts = tmp_path / "work" / "maps"
    until(lambda: len(list(parts.glob("kept-*/*-0.parquet"))) >= 3)
    process.kill()
    process.communicate()
    workers = {int(note.name.split("-")[1]) for note in notes.iterdir()}
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), 10)
    done = len(list(parts.glob("kept-*/*-0.parquet")))
    begun = len(list(notes.iterdir()))
    assert done < 8
    again = script(text, tmp_path, 0)
    assert again.communicate() == (b"", b"")
    assert len(list(notes.iterdir())) - begun == 8 - done


def test_one_run_at_a_time_uses_a_work_folder(duckdb: Engine) -> None:
    with pytest.raises(ResourceError, match="another run is using this work folder"):
        open_engine("duckdb", duckdb.work)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


LONG = "SELECT range AS i, md5(CAST(range AS STRING)) AS s FROM range(3000000)"


def test_a_full_disk_is_reported_in_one_line(small_disk: Path, tmp_path: Path) -> None:
    def full(engine: Engine, job: str) -> None:
        with pytest.raises(RejoinderError, match=r"disk is full|no space left") as caught:
            if job == "create":
                engine.create("t", LONG)
            elif job == "map":
                engine.map("t", LONG, functions.same, NUMBERS)
            elif job == "sort":
                ranked = f"SELECT row_number() OVER (ORDER BY s) AS r FROM ({LONG})"
                engine.scalar(f"SELECT max(r) FROM ({ranked})")
            elif job == "spill":
                engine.write_parquet(f"{LONG} ORDER BY s", tmp_path / "out.parquet", NUMBERS)
            else:
                engine.write_parquet(LONG, small_disk / "out.parquet", NUMBERS)
        assert "\n" not in str(caught.value)

    for job in ("create", "map", "sort", "spill"):
        with open_engine("duckdb", small_disk / "work", memory="60MB", processes=2) as engine:
            full(engine, job)
    with open_engine("duckdb", tmp_path / "work") as engine:
        full(engine, "write")
    assert not [*small_disk.glob("*out.parquet*"), *tmp_path.glob("*out.parquet*")]


def test_a_file_size_limit_is_reported(tmp_path: Path) -> None:
    process = script(
        """
        with open_engine("duckdb", folder / "work") as engine:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
            query = "SELECT range AS i, md5(CAST(range AS STRING)) AS s FROM range(1000000)"
            try:
                engine.write_parquet(query, folder / "out.parquet", NUMBERS)
            except RejoinderError as error:
                print(error.exit_code, error)
        """,
        tmp_path,
    )
    out, err = process.communicate()
    assert out.endswith(b"out.parquet: cannot be written: file too large\n")
    assert err == b""
    assert [file.name for file in tmp_path.iterdir()] == ["work"]


def test_too_little_memory_is_reported(tmp_path: Path) -> None:
    with (
        open_engine("duckdb", tmp_path, memory="20MB", threads=1) as engine,
        pytest.raises(ResourceError, match="needs more memory than its limit of 20MB"),
    ):
        engine.scalar(f"SELECT length(string_agg(s, '')) FROM ({LONG})")
    with (
        open_engine("duckdb", tmp_path, memory="20MB", threads=1) as engine,
        pytest.raises(ResourceError, match="needs more memory than its limit of 20MB"),
    ):
        query = f"SELECT 1 AS i, string_agg(s, '') AS s FROM ({LONG})"
        engine.write_parquet(query, tmp_path / "out.parquet", NUMBERS)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("spec", ["duck", "spark:", "local2", "yarn", "spark://host", "spark://:x"])
def test_unknown_engines(spec: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected"):
        open_engine(spec, tmp_path)


def test_bad_settings_and_folders(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="memory lots"):
        open_engine("duckdb", tmp_path, memory="lots")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="the work folder cannot be written"):
        open_engine("duckdb", tmp_path / "file")


def test_an_unreachable_master(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(ResourceError, match=r"cannot reach the Spark master spark://127.0.0.1:1: "):
        open_engine("spark://127.0.0.1:1", tmp_path)
    assert time.monotonic() - begun < 20


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingExtra, match="Java 17"):
        open_engine("local[2]", tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra, match=r"pip install 'rejoinder\[spark\]'"):
        open_engine("local[2]", tmp_path)


def test_engines_are_imported_when_opened() -> None:
    program = "import rejoinder.engine, sys; print({'duckdb', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"set()"


@on_cluster
def test_the_cluster_does_the_work(engine: Engine, cluster: Cluster, tmp_path: Path) -> None:
    """Both workers take part, each in a process of its own."""
    engine.table("source", numbers(8))
    query = "SELECT * FROM source ORDER BY i"
    engine.map("kept", query, Noted(tmp_path, seconds=0.3), NUMBERS)
    processes = {note.name.split("-")[1] for note in tmp_path.iterdir()}
    assert len(processes) >= 2
    assert str(os.getpid()) not in processes


@on_cluster
def test_a_lost_worker_does_not_change_the_result(
    engine: Engine, cluster: Cluster, tmp_path: Path
) -> None:
    """Near the end: the cluster is one worker short from here on."""
    engine.table("source", numbers(16))

    def kill() -> None:
        until(lambda: len(list(tmp_path.iterdir())) >= 4)
        cluster.kill(1)

    killer = threading.Thread(target=kill)
    killer.start()
    query = "SELECT * FROM source ORDER BY i"
    engine.map("kept", query, Noted(tmp_path, seconds=0.5), NUMBERS)
    killer.join()
    assert cluster.workers[1].returncode == -signal.SIGKILL
    got = engine.fetch("SELECT * FROM kept ORDER BY i")
    assert got.to_pylist() == numbers(16).to_pylist()
    begun = [note.name.split("-")[0] for note in tmp_path.iterdir()]
    assert len(begun) > len(set(begun)) == 16  # the killed task was begun again

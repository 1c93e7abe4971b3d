"""The cache returns what was stored, also after damage to the file and kills of processes."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.files import cache as module
from rejoinder.files.cache import Cache, cache_folder, key_of, open_cache


def file_of(folder: Path) -> Path:
    (found,) = folder.glob("*.sqlite")
    return found


def value_of(key: bytes, size: int = 3000) -> bytes:
    """What the test stores under a key: the same in every process."""
    return random.Random(key).randbytes(size)


def keys(count: int, start: int = 0) -> list[bytes]:
    return [key_of(str(number)) for number in range(start, start + count)]


def test_entries_are_read_by_another_process(tmp_path: Path) -> None:
    entries = {key: value_of(key) for key in keys(1000)}
    Cache(tmp_path).put(entries.items())
    code = (
        "import sys; from pathlib import Path\n"
        "from rejoinder.files.cache import Cache, key_of\n"
        "found = Cache(Path(sys.argv[1])).get([key_of(str(n)) for n in range(1001)])\n"
        "print(len(found), found[key_of('7')].hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1000", value_of(key_of("7")).hex()]


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_parts_have_different_keys(one: list[str], other: list[str]) -> None:
    assert (key_of(*one) == key_of(*other)) == (one == other)


def test_the_first_of_two_processes_decides(tmp_path: Path) -> None:
    """What a server said twice must be the same in both runs, also if an entry was damaged."""
    key = key_of("question")
    one, two = Cache(tmp_path, kind="answers"), Cache(tmp_path, kind="answers")
    assert one.put_first(key, b"first") == b"first"
    assert two.put_first(key, b"second") == b"first"
    assert two.get([key]) == one.get([key]) == {key: b"first"}
    assert file_of(tmp_path).name == "answers-1-1.sqlite"
    with sqlite3.connect(file_of(tmp_path)) as database:
        database.execute("UPDATE entries SET data = 'damaged'")
    database.close()
    assert Cache(tmp_path, kind="answers").put_first(key, b"third") == b"third"
    assert Cache(tmp_path, kind="answers").get([key]) == {key: b"third"}
    assert Cache(None).put_first(key, b"memory") == b"memory"


def test_texts_are_not_in_the_file(tmp_path: Path) -> None:
    secret = "my password is hunter2"
    Cache(tmp_path).put([(key_of(secret), b"1234")])
    assert all(b"hunter2" not in path.read_bytes() for path in tmp_path.iterdir())


def test_damaged_entry_is_missing_and_counted_and_can_be_stored_again(tmp_path: Path) -> None:
    first, second, third = keys(3)
    Cache(tmp_path).put((key, value_of(key)) for key in (first, second, third))
    with sqlite3.connect(file_of(tmp_path)) as database:
        flipped = bytes([value_of(first)[0] ^ 1]) + value_of(first)[1:]
        database.execute("UPDATE entries SET data = ? WHERE key = ?", (flipped, first))
        # data of another entry, whole in itself
        database.execute(
            "UPDATE entries SET (checksum, data) ="
            " (SELECT checksum, data FROM entries WHERE key = ?) WHERE key = ?",
            (third, second),
        )
    database.close()

    cache = Cache(tmp_path)
    assert cache.get([first, second, third]) == {third: value_of(third)}
    assert cache.repaired == 2
    assert cache.notes() == ["cache: 2 damaged entries were computed again"]
    cache.put((key, value_of(key)) for key in (first, second))

    again = Cache(tmp_path)
    assert again.get([first, second]) == {key: value_of(key) for key in (first, second)}
    assert again.repaired == 0 and again.notes() == []


@pytest.mark.parametrize("damage", ["no database", "cut off", "garbage in the middle"])
def test_damaged_file_is_renamed(tmp_path: Path, damage: str) -> None:
    Cache(tmp_path).put((key, value_of(key)) for key in keys(200))
    path = file_of(tmp_path)
    whole = path.read_bytes()
    if damage == "no database":
        path.write_bytes(b"Dear diary, today I bought a hammock. " * 100)
    elif damage == "cut off":
        path.write_bytes(whole[: len(whole) // 3])
    else:
        path.write_bytes(whole[:8192] + bytes(8192 * 40) + whole[8192 * 41 :])

    cache = Cache(tmp_path)
    found = cache.get(keys(200))
    assert all(data == value_of(key) for key, data in found.items())
    missing = [key for key in keys(200) if key not in found]
    assert missing
    cache.put((key, value_of(key)) for key in missing)
    cache.put((key, value_of(key)) for key in missing)  # a first write may be what notices

    after = Cache(tmp_path)
    assert after.get(missing) == {key: value_of(key) for key in missing}
    assert cache.problem is None
    assert cache.repaired or cache.set_aside == [path.with_suffix(".damaged")]
    assert "damaged" in cache.notes()[0]


def test_two_processes_rename_a_damaged_file_once(tmp_path: Path) -> None:
    """The second must not delete the new file of the first."""
    Cache(tmp_path).put([(key_of("old"), b"1234")])
    file_of(tmp_path).write_bytes(b"no database " * 1000)
    one, other = Cache(tmp_path), Cache(tmp_path)
    assert one.get(keys(1)) == {} == other.get(keys(1))
    one.put((key, value_of(key)) for key in keys(5))
    other.put((key, value_of(key)) for key in keys(5, start=5))
    assert len(Cache(tmp_path).get(keys(10))) == 10
    assert len(one.set_aside) + len(other.set_aside) == 1


WRITER = """
import random, sys
from pathlib import Path
from rejoinder.files.cache import Cache, key_of
cache = Cache(Path(sys.argv[1]))
order = list(range(400))
random.Random(int(sys.argv[2])).shuffle(order)
print("ready", flush=True)
for start in range(0, 400, 20):
    some = [key_of(str(n)) for n in order[start:start + 20]]
    known = cache.get(some)
    assert all(data == random.Random(key).randbytes(3000) for key, data in known.items())
    fresh = [key for key in some if key not in known]
    cache.put((key, random.Random(key).randbytes(3000)) for key in fresh)
if sys.argv[3] == "forever":
    while True:  # until it is killed
        cache.put((key, random.Random(key).randbytes(3000)) for key in some)
assert cache.problem is None and not cache.repaired and not cache.set_aside, cache.notes()
"""


def test_many_processes_write_and_one_is_killed(tmp_path: Path) -> None:
    def start(number: int, end: str = "ends") -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", WRITER, str(tmp_path / "new"), str(number), end]
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)

    doomed = [start(100 + n, "forever") for n in range(2)]
    writers = [start(n) for n in range(4)]
    for process in doomed:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    doomed[0].send_signal(signal.SIGKILL)
    for process in writers:
        process.communicate(timeout=60)
    doomed[1].send_signal(signal.SIGKILL)
    for process in doomed:
        process.communicate()
    assert [process.returncode for process in writers] == [0] * 4

    cache = Cache(tmp_path / "new")
    assert cache.get(keys(400)) == {key: value_of(key) for key in keys(400)}
    assert cache.notes() == []
    with sqlite3.connect(file_of(tmp_path / "new")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


def test_forked_child_opens_its_own_connection(tmp_path: Path) -> None:
    """SQLite's connections do not survive a fork; the child's writes must reach the file."""
    code = """
import os, sys
from pathlib import Path
from rejoinder.files.cache import Cache, key_of
cache = Cache(Path(sys.argv[1]), max_memory=0)
cache.put([(key_of("parent"), b"1")])
if os.fork() == 0:
    cache.put([(key_of("child"), b"2")])
    os._exit(0 if len(cache.get([key_of("parent"), key_of("child")])) == 2 else 1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
cache.put([(key_of("after"), b"3")])
assert len(cache.get([key_of("parent"), key_of("child"), key_of("after")])) == 3
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)


def test_memory_is_used_before_the_file_and_is_bounded(tmp_path: Path) -> None:
    room = 10 * (3000 + module.ENTRY_OVERHEAD)
    cache = Cache(None, max_memory=room)
    first, *others = keys(11)
    cache.put((key, value_of(key)) for key in [first, *others[:9]])
    assert cache.get([first]) == {first: value_of(first)}
    cache.put([(others[9], value_of(others[9]))])
    # the first was used after the second, so the second had to go
    assert set(cache.get([first, *others])) == {first, *others} - {others[0]}
    assert cache.notes() == []


def test_file_is_bounded(tmp_path: Path) -> None:
    cache = Cache(tmp_path, max_memory=0, max_file=2**20)
    for start in range(0, 2000, 50):
        cache.put((key, value_of(key)) for key in keys(50, start))
    # a fourth goes at a time, and the log may hold as much again as was written last
    assert file_of(tmp_path).stat().st_size < 1.5 * 2**20
    found = cache.get(keys(2000))
    assert 150 < len(found) < 350
    assert set(keys(50, 1950)) <= set(found)


def test_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "cache")
    (key,) = keys(1)
    cache.put([(key, b"1234")])
    assert cache.get([key]) == {key: b"1234"}  # from memory
    (note,) = cache.notes()
    assert "continuing without it" in note


def test_location_of_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.setenv("REJOINDER_CACHE", "off")
    assert cache_folder() is None
    open_cache().put([(key_of("off"), b"1234")])  # in memory, nowhere else
    monkeypatch.setenv("REJOINDER_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "rejoinder"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "rejoinder"

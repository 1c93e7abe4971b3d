"""What a run remembers: which step was done with what, so that it need not be done again.

A step is done when all it makes is there, unchanged, and was made by the same command line of the
same code from the same content. The memory is one small file in the run's folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from rejoinder.errors import DataError
from rejoinder.io import open_output
from rejoinder.recipe.file import Step
from rejoinder.version import __version__

FILE = ".run.json"


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version, and a digest of the program as it is installed: whoever works on it changes the
    code more often than the number."""
    home = Path(__file__).resolve().parents[1]
    whole = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(f"{path.relative_to(home)}\0{path.stat().st_size}\0".encode())
            whole.update(path.read_bytes())
    return f"{__version__}+{whole.hexdigest()[:16]}"


class Made(msgspec.Struct, frozen=True):
    """How a step was done."""

    key: str
    makes: dict[str, str]
    """Digests of what it made."""
    seconds: float


class Memory:
    """The memory of a run's folder."""

    def __init__(self, work: Path) -> None:
        self._path = work / FILE
        self._digests: dict[tuple[str, tuple[int, ...]], str] = {}
        try:
            self.steps = msgspec.json.decode(self._path.read_bytes(), type=dict[str, Made])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            self.steps = {}  # nothing done yet, or nothing that can be trusted

    def key(self, step: Step) -> str:
        """What decides the outcome of a step, in one digest."""
        parts = (
            code_version(),
            step.arguments,
            step.stdout,
            sorted(step.makes),
            {path: self.digest(path) for path in sorted(step.reads)},
        )
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    def done(self, step: Step) -> bool:
        """Whether the step need not be done again."""
        made = self.steps.get(step.name)
        if made is None or made.makes.keys() != set(step.makes):
            return False
        present = [*step.makes, *step.reads]
        if not all(os.path.exists(path) for path in present) or made.key != self.key(step):
            return False
        return all(self.digest(path) == digest for path, digest in made.makes.items())

    def remember(self, step: Step, key: str, seconds: float) -> None:
        made = Made(key, {path: self.digest(path) for path in step.makes}, round(seconds, 3))
        self.steps[step.name] = made
        self._write()

    def forget(self, step: Step) -> None:
        """The step begins anew: what it leaves if it is killed must not pass for its result."""
        if self.steps.pop(step.name, None) is not None:
            self._write()

    def _write(self) -> None:
        with open_output(self._path) as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(self.steps), indent=1))

    def digest(self, path: str) -> str:
        """Of a file's content, or of all files in a folder and their names."""
        if not os.path.isdir(path):
            return self._file(path)
        whole = hashlib.sha256()
        for name in sorted(_inside(path)):
            whole.update(f"{name}\0{self._file(os.path.join(path, name))}\0".encode())
        return whole.hexdigest()

    def _file(self, path: str) -> str:
        try:
            with open(path, "rb") as stream:
                about = os.fstat(stream.fileno())
                version = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
                if (path, version) not in self._digests:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                    self._digests[path, version] = digest
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(f"cannot be read: {reason}", path=path) from None
        return self._digests[path, version]


def _inside(folder: str) -> Iterator[str]:
    for base, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(base, name), folder)

"""Remember which steps of a recipe are done, so that they need not be done again.

A step is done if all its outputs are there, unchanged, and were written by the same command line
of the same code from the same inputs. The state is one small file in the run's folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.checked import read_json
from rejoinder.files.output import open_output
from rejoinder.files.paths import exists, is_folder, open_regular, reason
from rejoinder.recipe.file import Step
from rejoinder.version import __version__

FILE = ".run.json"


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version and a digest of the installed code, which changes more often."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(package)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:16]}"


class StepRecord(msgspec.Struct, frozen=True):
    """The inputs, outputs and duration of a finished step."""

    key: str
    outputs: dict[str, str]
    """Path and digest of each output."""
    seconds: float


class RunState:
    """The steps that are done in a run's folder."""

    def __init__(self, work: Path) -> None:
        self._path = work / FILE
        self._digests: dict[tuple[str, tuple[int, ...]], str] = {}
        self.steps: dict[str, StepRecord]
        try:
            self.steps = read_json(self._path, dict[str, StepRecord])
        except DataError:
            self.steps = {}  # nothing is done yet, or the file is damaged

    def key(self, step: Step) -> str:
        """Return one digest of everything that decides the outputs of a step."""
        parts = (
            code_version(),
            step.arguments,
            step.stdout,
            sorted(step.outputs),
            {path: self.digest(path) for path in sorted(step.inputs)},
        )
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    def is_done(self, step: Step) -> bool:
        """Return whether the step need not be done again."""
        record = self.steps.get(step.name)
        if record is None or record.outputs.keys() != set(step.outputs):
            return False
        present = [*step.outputs, *step.inputs]
        if not all(exists(path) for path in present) or record.key != self.key(step):
            return False
        return all(self.digest(path) == digest for path, digest in record.outputs.items())

    def remember(self, step: Step, key: str, seconds: float) -> None:
        """Note that a step is done."""
        outputs = {path: self.digest(path) for path in step.outputs}
        self.steps[step.name] = StepRecord(key, outputs, round(seconds, 3))
        self._write()

    def forget(self, step: Step) -> None:
        """Note that a step is not done: what it leaves when it is killed is not its result."""
        if self.steps.pop(step.name, None) is not None:
            self._write()

    def _write(self) -> None:
        with open_output(self._path) as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(self.steps), indent=1))

    def digest(self, path: str) -> str:
        """Return the digest of a file's content, or of all files of a folder and their names."""
        if not is_folder(path):
            return self._file_digest(path)
        digest = hashlib.sha256()
        for name in sorted(_files_of(path)):
            digest.update(f"{name}\0{self._file_digest(os.path.join(path, name))}\0".encode())
        return digest.hexdigest()

    def _file_digest(self, path: str) -> str:
        with open_regular(path) as stream:
            status = os.fstat(stream.fileno())
            version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if (path, version) not in self._digests:
                try:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                except OSError as error:
                    raise DataError(f"cannot be read: {reason(error)}", path=path) from None
                self._digests[path, version] = digest
        return self._digests[path, version]


def _files_of(folder: str) -> Iterator[str]:
    for base, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(base, name), folder)

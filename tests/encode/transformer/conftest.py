"""What the tests of encoders share: tiny models, and a cache of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiny_models import tiny_model

Make = Callable[..., Path]


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A folder of a tiny model; the same one for the same settings, so do not change it."""
    made: dict[str, Path] = {}

    def make(kind: str = "bert", **settings: Any) -> Path:
        key = json.dumps([kind, settings], sort_keys=True)
        if key not in made:
            made[key] = tiny_model(tmp_path_factory.mktemp(kind), kind, **settings)
        return made[key]

    return make


@pytest.fixture
def own_model(tmp_path: Path) -> Path:
    """A tiny BERT in a folder that a test may change."""
    return tiny_model(tmp_path / "model")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a cache of its own: what another test computed would hide a mistake."""
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"

"""A small evaluator, fitted once per session."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fitting.toy import QUICK, dialogues, write
from rejoinder.fitting.fit import FitResult, fit
from rejoinder.fitting.settings import read_settings


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Sums depend on the number of threads."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pairs") / "pairs.parquet", dialogues())


@pytest.fixture(scope="session")
def fitted(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> FitResult:
    output = tmp_path_factory.mktemp("fitted") / "evaluator"
    made = fit([str(pairs)], output, read_settings("tiny", "en", seed=3, overrides=QUICK))
    assert made is not None
    return made

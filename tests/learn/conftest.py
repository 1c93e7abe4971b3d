"""Small networks gain nothing from a second thread: on a busy machine they wait for it forever."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: see rejoinder.learn

import pytest
import torch


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Only for tests that stay in this process: sums of another number of threads have other last
    bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

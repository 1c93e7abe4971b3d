"""A pytest fixture that fails a test when a bot is worse than its baseline.

def test_the_new_bot(rejoinder_gate):
    rejoinder_gate("items.jsonl", ["rouge-l"], worse_than="old-bot")
    rejoinder_gate("items.jsonl", ["rouge-l"], under={"rouge-l": 0.3})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pytest

from rejoinder.errors import GateFailed


class Gate(Protocol):
    """Compare or score items, and fail the test if a condition is not met."""

    def __call__(
        self,
        items: Any,
        metrics: Any = (),
        *,
        worse_than: str | None = None,
        margin: float = 0.0,
        under: Mapping[str, float] | None = None,
        **options: Any,
    ) -> None: ...


@pytest.fixture
def rejoinder_gate() -> Gate:
    """Return a function that fails the test if a system is worse than a baseline or a limit.

    ``worse_than`` names the baseline (see :func:`rejoinder.compare`, whose further options are
    accepted, such as ``scores=`` or ``by="people"``), ``margin`` the difference to accept;
    ``under`` has the lowest acceptable corpus value by metric (see :func:`rejoinder.score`).
    """

    def gate(
        items: Any,
        metrics: Any = (),
        *,
        worse_than: str | None = None,
        margin: float = 0.0,
        under: Mapping[str, float] | None = None,
        **options: Any,
    ) -> None:
        import rejoinder

        if worse_than is None and not under:
            raise ValueError("the gate has no condition: give worse_than= or under=")
        try:
            if worse_than is not None:
                rejoinder.compare(
                    items, metrics, baseline=worse_than, margin=margin, **options
                ).fail_if_worse()
            if under:
                rejoinder.score(items, metrics or list(under), **options).fail_under(under)
        except GateFailed as failure:
            pytest.fail(str(failure), pytrace=False)

    return gate

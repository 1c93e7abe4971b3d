"""Report progress: work calls a function with the number of units done and their total.

The caller decides how progress is shown; the work itself prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]


def part_of(on_progress: Progress | None, before: int, total: int) -> Progress | None:
    """Return a callback for a part of the work that starts after ``before`` of ``total`` units.

    >>> part_of(lambda done, total: print(f"{done} of {total}"), 20, 100)(5, 10)
    25 of 100
    """
    if on_progress is None:
        return None
    return lambda done, _: on_progress(before + done, total)


def pass_of(on_progress: Progress | None, number: int, passes: int) -> Progress | None:
    """Return a callback for pass ``number`` (from 0) of several passes over the same units.

    >>> pass_of(lambda done, total: print(f"{done} of {total}"), 1, 2)(5, 10)
    7 of 10
    """
    if on_progress is None:
        return None
    return lambda done, total: on_progress((number * total + done) // passes, total)

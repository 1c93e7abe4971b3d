"""How work tells how far it is: a function that is called with how many of how many are done.

Whoever starts the work decides what that looks like; the work itself prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]


def part_of(on_progress: Progress | None, before: int, total: int) -> Progress | None:
    """For a part of the work, behind ``before``: what it tells is told as progress of the whole.

    >>> part_of(lambda done, total: print(f"{done} of {total}"), 20, 100)(5, 10)
    25 of 100
    """
    if on_progress is None:
        return None
    return lambda done, _: on_progress(before + done, total)


def pass_of(on_progress: Progress | None, number: int, passes: int) -> Progress | None:
    """For one of several passes over the same: all of them together are the whole.

    >>> pass_of(lambda done, total: print(f"{done} of {total}"), 1, 2)(5, 10)
    7 of 10
    """
    if on_progress is None:
        return None
    return lambda done, total: on_progress((number * total + done) // passes, total)

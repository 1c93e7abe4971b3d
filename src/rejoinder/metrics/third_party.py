"""Checks of metrics that are not part of Rejoinder.

What such a metric raises or returns by mistake becomes one line that names the metric. A mistake
in a built-in metric is a bug of Rejoinder and stays a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoinder.errors import RejoinderError, Terminated, UsageError
from rejoinder.metrics.batch import Floats

if TYPE_CHECKING:
    from rejoinder.metrics.metric import Metric

_PASSED = (RejoinderError, MemoryError, ModuleNotFoundError, Terminated)
"""Errors with a message, or an exit code, of their own on the command line."""


def is_builtin(cls: type[Metric]) -> bool:
    """Return whether a metric is part of Rejoinder."""
    return cls.__module__.partition(".")[0] == "rejoinder"


@contextmanager
def third_party_errors(cls: type[Metric]) -> Iterator[None]:
    """Raise UsageError, with the name of the metric, for what a third-party metric raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if is_builtin(cls) or isinstance(error, _PASSED):
            raise
        text = f": {error}" if str(error) else ""
        raise UsageError(f"{cls.name} raised {type(error).__name__}{text}") from error


def checked_stats(metric: Metric, returned: Any, n: int) -> Floats:
    """Return what ``stats`` returned for n items; UsageError unless it is [n, d] numbers."""
    if is_builtin(type(metric)):
        rows: Floats = returned
        return rows
    problem = None
    rows = _array(returned)
    if rows.dtype.kind not in "biuf":
        problem = f"{_described(returned)} for {n} items"
    elif rows.ndim == 2 and len(rows) != n:
        problem = f"{len(rows)} rows for {n} items"
    elif rows.ndim != 2 or rows.shape[1] == 0:
        problem = f"an array of shape {list(rows.shape)} for {n} items"
    if problem is not None:
        raise UsageError(f"{metric.name}: stats returned {problem}; expected [{n}, d] numbers")
    return rows


def checked_values(metric: Metric, returned: Any, rows: Floats) -> Floats:
    """Return what ``finish`` returned for rows; UsageError unless it is a number for each."""
    if is_builtin(type(metric)):
        values: Floats = returned
        return values
    values, shape = _array(returned), rows.shape[:-1]
    if values.dtype.kind not in "biuf" or values.shape != shape:
        number = values.dtype.kind in "biuf"
        found = f"an array of shape {list(values.shape)}" if number else _described(returned)
        raise UsageError(
            f"{metric.name}: finish returned {found}; expected numbers of shape {list(shape)}"
        )
    return values


def checked_parts(metric: Metric, returned: Any, rows: Floats) -> dict[str, Floats]:
    """Return the parts of rows; UsageError unless they are named numbers, one for each row."""
    if not is_builtin(type(metric)):
        if not isinstance(returned, Mapping) or not all(isinstance(key, str) for key in returned):
            raise UsageError(
                f"{metric.name}: parts returned {_described(returned)}; expected names with numbers"
            )
        for key, part in returned.items():
            values = _array(part)
            if values.dtype.kind not in "biuf" or values.shape != rows.shape[:-1]:
                raise UsageError(
                    f"{metric.name}: the part '{key}' is not a number for each of {len(rows)} rows"
                )
    parts: dict[str, Floats] = returned
    return parts


def checked_measure(metric: Metric, returned: Any) -> float:
    """Return what ``measure`` returned; UsageError unless it is a finite number."""
    if is_builtin(type(metric)):
        value: float = returned
        return value
    number = _array(returned)
    if number.dtype.kind not in "biuf" or number.ndim or not np.isfinite(number):
        raise UsageError(
            f"{metric.name}: measure returned {_described(returned)}; expected a finite number"
        )
    return float(number)


def _array(value: Any) -> Any:
    try:
        return np.asarray(value)
    except ValueError:  # lists of different lengths
        return np.asarray(None)


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return repr(value) if isinstance(value, float) else f"a {type(value).__name__}"

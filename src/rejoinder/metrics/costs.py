"""What the scores of a metric took: seconds, and requests and tokens of language models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.checked import read_json
from rejoinder.files.paths import AnyPath
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.wording import option


class MetricCost(msgspec.Struct, frozen=True):
    """What the scores of one metric took."""

    replies: int
    seconds: float
    """On the clock, those of several processes added up."""
    requests: int = 0
    tokens: int = 0

    def __add__(self, other: MetricCost) -> MetricCost:
        return MetricCost(
            self.replies + other.replies,
            self.seconds + other.seconds,
            self.requests + other.requests,
            self.tokens + other.tokens,
        )


def cost_of_batch(result: BatchScores) -> MetricCost:
    """Return what one batch took."""
    judged = [each for each in result.judging or () if each is not None]
    return MetricCost(
        len(result.values),
        result.seconds,
        round(sum(each["requests"] for each in judged)),
        round(sum(each["tokens"] for each in judged)),
    )


def write_costs(stream: Any, costs: Mapping[str, MetricCost]) -> None:
    """Write what the scores of each metric took."""
    stream.write(msgspec.json.format(msgspec.json.encode({"costs": costs}), indent=1) + b"\n")


def read_costs(path: AnyPath) -> dict[str, MetricCost]:
    """Read what :func:`write_costs` has written."""
    record = read_json(path, dict[str, Any])
    try:
        return msgspec.convert(record.get("costs"), dict[str, MetricCost])
    except msgspec.ValidationError as error:
        why = f"{error}; expected what score {option('costs', 'FILE')} writes"
        raise DataError(why, path=os.fspath(path)) from None

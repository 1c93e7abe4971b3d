"""``sample``: join files of pairs and draw some of the pairs at random."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rejoinder.errors import missing_extra
from rejoinder.files.paths import check_output
from rejoinder.verbs.arguments import SEED, as_paths
from rejoinder.verbs.results import Result


@dataclass(frozen=True)
class SampleResult(Result):
    """The number of pairs that were written, and of those that they were drawn from."""

    pairs: int
    available: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sample(
    pairs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    output: str | os.PathLike[str],
    count: int | None = None,
    split: str | None = None,
    seed: int = SEED,
) -> SampleResult:
    """Write the pairs of Parquet files into one, all of them or ``count`` at random; of one
    ``split`` only (train, validation, test), if it is named."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise missing_extra("logs", str(error.name), task="reading pairs") from None
    from rejoinder.logs.sample import sample_pairs

    names = as_paths(pairs)
    target = Path(output)
    check_output(target, names)
    return SampleResult(*sample_pairs(names, target, count, seed, split))

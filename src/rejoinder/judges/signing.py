"""The signature of a judge: all that decides its answers, and when they were given."""

from __future__ import annotations

from typing import Any

from rejoinder.judges.asking import JudgeSettings
from rejoinder.judges.rubric import Rubric
from rejoinder.llm.questions import Server
from rejoinder.version import __version__


def signature_of(asking: JudgeSettings, rubric: Rubric, server: Server, **more: str) -> str:
    """Return the signature of a judge; ``more`` is what its kind adds about the rubric."""
    signed = {
        "model": asking.model or "none",
        "said": "+".join(sorted(server.names)) or "nothing",
        "rubric": f"{rubric.name.rpartition('/')[2]}-{rubric.digest}",
        "language": rubric.language,
        **more,
        "references": _word(asking.references),
        "n": str(asking.n),
        "temperature": f"{asking.effective_temperature:g}",
        "seed": str(asking.seed) if asking.send_seed else f"{asking.seed} (not sent)",
        "logprobs": _word(asking.logprobs),
        "structured": _word(asking.structured),
        "max_tokens": str(asking.max_tokens or "auto"),
        "window": str(asking.window),
        "asked": server.dates,
        "version": __version__,
    }
    parts = (f"{key}:{value.replace('|', '/')}" for key, value in signed.items())
    return "|".join([asking.name, *parts])


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)

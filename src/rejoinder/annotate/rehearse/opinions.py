"""What simulated people think: a planted quality of each reply, seen by each person in their way.

The quality of a reply is drawn from a standard normal distribution, of which a part belongs to the
system that gave it. A person sees it with a constant error of their own (its standard deviation is
``view``) and judges with an error that differs from question to question (NOISE), as the judges of
:mod:`rejoinder.pairwise.simulate` do (Thurstone 1927); people also differ in how severe they are
(SEVERITY). Everything is drawn from the seed and the texts, so it does not depend on who is asked
what, and when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from rejoinder.pairwise.simulate import NOISE

SYSTEM = 0.6
"""Standard deviation of the systems' means; the rest of the variance is between their replies."""
SEVERITY = 0.25
DISTRACTOR_QUALITY = -2.0
NORMAL = NormalDist()

Unit = tuple[str, str]
"""A context and a reply, each as :func:`plain` text."""


def plain(texts: str | Sequence[str]) -> str:
    """Return a text, or the turns of a context, as it can be compared after it was on a page.

    >>> plain(["How  are", "you?"])
    'How are\\nyou?'
    """
    turns = [texts] if isinstance(texts, str) else texts
    return "\n".join(" ".join(turn.split()) for turn in turns)


@dataclass(frozen=True)
class Opinions:
    """Qualities of replies, and how people see them."""

    seed: int
    qualities: Mapping[Unit, float]
    """The quality of each reply in its context; others were given to another context."""
    view: float
    """Standard deviation of the error with which a person sees a reply."""

    @classmethod
    def of(cls, seed: int, replies: Mapping[Unit, str], view: float) -> Opinions:
        """Draw the quality of each reply; ``replies`` gives its system."""
        shared = SYSTEM if len(set(replies.values())) > 1 else 0.0
        own = (1 - shared**2) ** 0.5
        return cls(
            seed,
            {
                unit: shared * draw(seed, "system", system) + own * draw(seed, "reply", *unit)
                for unit, system in replies.items()
            },
            view,
        )

    def quality(self, unit: Unit) -> float:
        return self.qualities.get(unit, DISTRACTOR_QUALITY)

    def seen(self, person: str, unit: Unit) -> float:
        """Return the quality of a reply as a person sees it, always the same."""
        return self.quality(unit) + self.view * draw(self.seed, person, "view", *unit)

    def noise(self, person: str, *question: str) -> float:
        """Return the error of a person's answer to a question."""
        return NOISE * draw(self.seed, person, "noise", *question)

    def rating(self, person: str, unit: Unit, question: str, scale: Sequence[int]) -> int:
        """Return how a person rates a reply: all values of a scale are about equally frequent."""
        severity = SEVERITY * draw(self.seed, person, "severity")
        seen = self.seen(person, unit) + self.noise(person, question, *unit) + severity
        spread = NormalDist(0, (1 + self.view**2 + NOISE**2) ** 0.5)
        return scale[min(int(spread.cdf(seen) * len(scale)), len(scale) - 1)]

    def preference(self, person: str, first: Unit, second: Unit) -> float:
        """Return how much better the first reply seems to a person than the second."""
        if second < first:
            return -self.preference(person, second, first)
        difference = self.seen(person, first) - self.seen(person, second)
        return difference + self.noise(person, *first, *second)


@lru_cache(maxsize=200_000)
def draw(seed: int, *names: str) -> float:
    """Return a standard normal number that depends on the seed and the names only.

    >>> draw(1, "a") == draw(1, "a") != draw(2, "a")
    True
    """
    digest = hashlib.blake2b("\0".join([str(seed), *names]).encode(), digest_size=8).digest()
    return NORMAL.inv_cdf((int.from_bytes(digest, "big") + 0.5) / 2**64)

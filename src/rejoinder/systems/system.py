"""The interface of dialogue systems, which reply to contexts, for example from a pool of pairs.

A system is a frozen dataclass; its fields are the parameters of its spec, which is also its name in
the items that it writes. A missing reply is not an empty reply: it comes with the reason.

The reply to a context must not depend on the other contexts of the file: a system that draws at
random derives its generator from the seed and the context alone.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UsageError
from rejoinder.files.paths import is_folder
from rejoinder.items import TURN_END
from rejoinder.progress import Progress
from rejoinder.registry import SYSTEMS
from rejoinder.spec import Spec, parameters, parse, spec_of

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool

NO_TURN = "the context has no turn"
EMPTY_TURN = "the last turn is empty"
EMPTY_REPLY = "the reply is empty"
MAX_SEED = 2**63 - 1
_SEPARATORS = {"/", os.sep}

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Replies:
    """The replies of a system to one context, best first; or the reason why there is none."""

    texts: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Request:
    """How many replies are wanted, and from which pairs."""

    pool: Pool | None = None
    leaks: Mask | None = None
    """Rows of the pool that no reply may come from: a context ends with their utterance."""
    n: int = 1
    on_progress: Progress | None = None
    note: Callable[[str], None] = lambda text: None
    """Receives what was left out or replaced on the way."""
    message: Callable[[str], None] = lambda text: None
    """Receives facts that need no attention, such as how many requests will be sent."""


@dataclass(frozen=True, kw_only=True)
class System(ABC):
    """A dialogue system; subclasses write :meth:`answer`."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for ``rejoinder ls``."""
    kind: ClassVar[str] = "system"
    needs_pool: ClassVar[bool] = True
    generates: ClassVar[bool] = False
    """Whether it makes up its replies, so that their language has to be checked."""

    @property
    def languages(self) -> tuple[str, ...] | None:
        """The languages that it was trained on; None: any."""
        return None

    def __str__(self) -> str:
        return str(spec_of(self, self.name))

    def reply(
        self,
        contexts: Sequence[Sequence[str]],
        pool: Pool | None = None,
        *,
        n: int = 1,
        leaks: Mask | None = None,
        on_progress: Progress | None = None,
        on_note: Callable[[str], None] = lambda text: None,
        on_message: Callable[[str], None] = lambda text: None,
    ) -> list[Replies]:
        """Return up to n distinct replies to each context, or the reason for none."""
        if pool is None and self.needs_pool:
            raise UsageError(f"{self} takes its replies from a pool of pairs: name one")
        request = Request(pool, leaks, n, on_progress, on_note, on_message)
        reasons = [_reason(context) for context in contexts]
        usable = [i for i, reason in enumerate(reasons) if reason is None]
        answers = self.answer([contexts[i] for i in usable], request) if usable else []
        replies = [Replies(reason=reason) for reason in reasons]
        for i, answer in zip(usable, answers, strict=True):
            replies[i] = answer
        return replies

    @abstractmethod
    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        """Reply to contexts whose last turn has text."""


def _reason(context: Sequence[str]) -> str | None:
    if not context:
        return NO_TURN
    return None if context[-1].strip() else EMPTY_TURN


def distinct(texts: Iterable[str], n: int) -> tuple[str, ...]:
    """Return the first n different texts that are not blank."""
    chosen: dict[str, None] = {}
    for text in texts:
        if text.strip():
            chosen.setdefault(text)
        if len(chosen) == n:
            break
    return tuple(chosen)


def context_rng(seed: int, context: Sequence[str]) -> np.random.Generator:
    """Return the random generator of a context."""
    text = TURN_END.join(context).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
    return np.random.default_rng([seed, number])


def make_system(spec: str | Spec, seed: int | None = None) -> System:
    """Make the system that a spec describes, with this seed if the spec sets none.

    The name of a folder is the spec of the trained system in it: bots/hred.
    """
    if isinstance(spec, str):
        is_path = "(" not in spec and (_SEPARATORS & set(spec) or is_folder(spec))
        known = is_path and spec in SYSTEMS.names()
        spec = Spec("trained", (("model", spec),)) if is_path and not known else parse(spec)
    system: Any = SYSTEMS.make(spec)
    if seed is not None and "seed" in parameters(type(system)) and "seed" not in dict(spec.params):
        system = replace(system, seed=seed)
    return system  # type: ignore[no-any-return]

"""``command``: any program that reads a context a line as JSON and writes a reply a line.

The program is started once, without a shell. It reads ``{"id", "context", "n", "seed"}`` and writes
``{"response": …}`` or ``{"responses": […]}``, with or without the ``id``, after each line or all at
the end; ``{"error": …}`` is the reason for no reply.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from rejoinder.llm.secrets import refuse_secrets
from rejoinder.systems.controls import Seeded
from rejoinder.systems.program import Program
from rejoinder.systems.system import EMPTY_REPLY, Replies, Request, context_rng, distinct

MAX_TIMEOUT = 24 * 3600.0
NOTHING_SAID = "the program gave no reply"
EXPECTED = '{"response": "…"} or {"responses": ["…"]}'
SHOWN = 120
"""Characters of a line that an error repeats."""


class _Line(msgspec.Struct):
    """A line that the program writes; other fields are ignored."""

    id: str | int | None = None
    response: str | msgspec.UnsetType | None = msgspec.UNSET
    responses: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    error: str | None = None


_DECODER = msgspec.json.Decoder(_Line)


@dataclass(frozen=True, kw_only=True)
class Command(Seeded):
    """Lets a program reply."""

    name: ClassVar[str] = "command"
    summary: ClassVar[str] = "a program that reads and writes JSON lines"
    needs_pool: ClassVar[bool] = False
    generates: ClassVar[bool] = True

    run: str
    """The program and its arguments, as in a shell; there is no shell."""
    timeout: float = field(default=300.0, compare=False)
    """Seconds without a line until the program is ended."""

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            words = shlex.split(self.run)
        except ValueError as error:
            raise ValueError(f"run is no command: {error}".lower()) from None
        if not words:
            raise ValueError("run is empty; expected a program and its arguments")
        if not 0 < self.timeout <= MAX_TIMEOUT:
            raise ValueError(f"timeout={self.timeout} is not above 0 s and up to a day")
        refuse_secrets(self.run)

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        questions = (self._question(i, context, request.n) for i, context in enumerate(contexts, 1))
        program = Program(self.run, self.timeout)
        answers: dict[int, Replies] = {}
        numbering = _Numbering(len(contexts))
        with program.running(questions) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    answer = _decode(line)
                    own = numbering.number_of(answer.id)
                except ValueError as error:
                    raise program.wrong(f"{error}: {_shown(line)}", number) from None
                answers[own] = _replies(answer, request.n)
                if request.on_progress is not None:
                    request.on_progress(len(answers), len(contexts))
        if len(answers) < len(contexts) and not numbering.by_id:
            # without ids nobody knows which contexts they belong to
            raise program.wrong(
                f"the program ended after {len(answers):,} of {len(contexts):,} replies"
            )
        nothing = Replies(reason=NOTHING_SAID)
        return [answers.get(number, nothing) for number in range(1, len(contexts) + 1)]

    def _question(self, number: int, context: Sequence[str], n: int) -> bytes:
        seed = int(context_rng(self.seed, context).integers(2**31))
        turns = [turn.encode("utf-8", "replace").decode() for turn in context]
        record = {"id": str(number), "context": turns, "n": n, "seed": seed}
        return msgspec.json.encode(record) + b"\n"


class _Numbering:
    """Finds the context that a line replies to: by its id, or by its place."""

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        self._seen: set[int] = set()
        self.by_id: bool | None = None

    def number_of(self, id: str | int | None) -> int:
        """Return the number of the context, from 1; ValueError says what is wrong."""
        if self.by_id is None:
            self.by_id = id is not None
        if self.by_id != (id is not None):
            raise ValueError("some lines have an id, others have none")
        number = len(self._seen) + 1 if id is None else _number(id)
        if not 1 <= number <= self._contexts:
            what = "one reply too many" if id is None else f"there is no context with the id {id}"
            raise ValueError(what)
        if number in self._seen:
            raise ValueError(f"a second reply to the context with the id {id}")
        self._seen.add(number)
        return number


def _decode(line: bytes) -> _Line:
    """Return a line of the program; ValueError says what is wrong with it."""
    try:
        answer = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}, expected {EXPECTED}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        raise ValueError(f"not JSON, expected {EXPECTED}") from None
    if answer.response is msgspec.UNSET and answer.responses is msgspec.UNSET and not answer.error:
        raise ValueError(f"no reply, expected {EXPECTED}")
    return answer


def _number(id: str | int) -> int:
    try:
        return int(id)
    except ValueError:
        return 0


def _replies(answer: _Line, n: int) -> Replies:
    texts = [answer.response] if isinstance(answer.response, str) else []
    if isinstance(answer.responses, list):
        texts += answer.responses
    found = distinct((text.strip() for text in texts), n)
    if found:
        return Replies(found)
    if answer.error is not None:
        return Replies(reason=" ".join(answer.error.split())[:SHOWN] or NOTHING_SAID)
    return Replies(reason=EMPTY_REPLY if texts else NOTHING_SAID)


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")

"""Ask many chats of one server at the same time, each until it is answered or given up.

A failure that may pass is tried again: a broken connection, 408, 409, 425, 429 and 5xx but 501. A
failure of a single chat is its result. Only what no chat can get over ends the session with an
:class:`~rejoinder.llm.errors.EndpointError`: no connection at the first request, a rejected key,
an address or model that the server does not know, or a server that answers none of the requests.
The first chat is asked alone, so that one of many requests tells what is wrong.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from rejoinder.llm.backoff import MAX_RETRY_AFTER, wait_before
from rejoinder.llm.budget import Spending
from rejoinder.llm.chat import Answer, Chat, Failure, Result, decode
from rejoinder.llm.endpoint import Endpoint
from rejoinder.llm.errors import EndpointError, Unanswered
from rejoinder.llm.limits import Limits
from rejoinder.llm.pace import Pace
from rejoinder.llm.secrets import redact
from rejoinder.llm.transport import NoAnswer, NotConnected, Received, TooSlow, Transport

RETRIED = frozenset({408, 409, 425, 429})
"""Besides 5xx."""
NOT_IMPLEMENTED = 501
"""What a server says of parameters that it never takes."""
FIRST_TRIES = 3
"""Tries of the first request if there is no connection."""
SLOW_TRIES = 3
"""Tries of a request that takes too long."""
MAX_FAILURES = 10
"""Failures in a row after which the server is no longer asked."""

OnResult = Callable[[Chat, Result], None]


class Session:
    """One run of requests; ``on_result`` receives each result as soon as it is there.

    ``known`` is the number of answers that were found in the cache: they are not given up because
    the others fail.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        limits: Limits,
        spending: Spending,
        key: str | None,
        on_result: OnResult,
        *,
        known: int = 0,
        seed: int = 0,
    ) -> None:
        self._endpoint, self._limits, self._key = endpoint, limits, key
        self._spending, self._on_result, self._seed = spending, on_result, seed
        self._pace = Pace(limits.requests_per_second)
        self._known = known
        self._responses = self._answers = self._failures = 0
        self._server_failures = 0
        """Chats that were given up because of the server, not because of what they say."""
        self._stopped: str | None = None
        self._last_reason = ""

    async def run(self, chats: Sequence[Chat]) -> None:
        """Ask all chats."""
        if not chats:
            return
        transport = Transport(self._endpoint, self._limits, self._key)
        try:
            waiting = iter(chats)
            await self._work(transport, [next(waiting)])
            await _together(
                self._work(transport, waiting)
                for _ in range(min(self._limits.concurrency, len(chats) - 1))
            )
        finally:
            await transport.close()
        if self._server_failures == len(chats) and not self._known:
            raise self._no_answer(self._last_reason)

    async def _work(self, transport: Transport, chats: Iterable[Chat]) -> None:
        """Ask chats one after the other; several workers share one iterator."""
        for chat in chats:
            if self._stopped is not None:
                self._on_result(chat, Failure(self._stopped))
                continue
            result = await self._ask(transport, chat)
            self._on_result(chat, result)

    async def _ask(self, transport: Transport, chat: Chat) -> Result:
        """Ask until there is an answer, or a reason to give up."""
        body = chat.body(self._endpoint)
        rng = random.Random(body + str((self._seed, chat.draw)).encode())
        for attempt in range(1, self._limits.retries + 2):
            await self._pace.wait()
            if (reason := self._spending.reason_to_stop(chat)) is not None:
                return Failure(reason)
            self._spending.begin(chat)
            asked = time.time()
            try:
                received = await transport.post(body)
            except NoAnswer as error:
                problem, may_pass, wait = str(error), True, None
                self._check_connection(error, attempt)
                if isinstance(error, TooSlow) and attempt >= SLOW_TRIES:
                    break
            else:
                self._responses += 1
                if 200 <= received.status < 300:
                    result = decode(received.body, asked)
                    if isinstance(result, Answer):
                        result = msgspec.structs.replace(
                            result, seconds=max(0.0, time.time() - asked)
                        )
                        self._spending.end(chat, result.tokens)
                    return self._finished(result)
                self._spending.end(chat, 0)
                problem = self._describe(received)
                self._check_rejection(received, problem)
                may_pass, wait = _may_pass(received.status), received.retry_after
            if wait is not None and wait > MAX_RETRY_AFTER:
                problem += f", and asks to wait {wait:,.0f} s"
                break
            if not may_pass or attempt > self._limits.retries:
                break
            await self._wait(attempt, wait, rng)
        tries = "" if attempt == 1 else f" after {attempt} tries"
        return self._given_up(f"{problem}{tries}", counts=may_pass)

    async def _wait(self, attempt: int, wished: float | None, rng: random.Random) -> None:
        own = wait_before(attempt, rng)
        if wished is None:
            await asyncio.sleep(own)
        else:
            # nobody asks meanwhile, and those that wait do not all come back at once
            self._pace.pause(wished)
            await asyncio.sleep(wished + min(own, 1.0))

    def _finished(self, result: Result) -> Result:
        if isinstance(result, Failure):
            return self._given_up(result.reason, counts=False)
        self._answers += 1
        self._failures = 0
        return result

    def _given_up(self, reason: str, *, counts: bool) -> Failure:
        """Count a failure; one that concerns its chat alone counts only before any answer."""
        self._last_reason = reason
        self._server_failures += counts
        if counts or not (self._answers or self._known):
            self._failures += 1
        if self._failures >= MAX_FAILURES:
            if not (self._answers or self._known):
                raise self._no_answer(reason)
            self._stopped = f"not asked: {self._failures} requests before it failed ({reason})"
        return Failure(reason)

    def _check_connection(self, error: NoAnswer, attempt: int) -> None:
        if isinstance(error, NotConnected) and not self._responses and attempt >= FIRST_TRIES:
            raise self._error(f"cannot be reached: {error}; is the server running?")

    def _check_rejection(self, received: Received, problem: str) -> None:
        """Raise an error for what would be said to every request."""
        status, variable = received.status, self._endpoint.key_variable
        if status == 401 or (status == 403 and not self._answers):
            if self._key is None:
                raise self._error(
                    f"wants a key: set the environment variable {variable} ({problem})"
                )
            raise self._error(f"rejects the key in the environment variable {variable} ({problem})")
        if status == 402 or (status == 429 and b"insufficient_quota" in received.body):
            raise self._error(f"the account has nothing left to spend ({problem})")
        if not self._answers and (status in (404, 405) or 300 <= status < 400):
            raise self._error(
                f"has no model '{self._endpoint.model}', or is not the address of an"
                f" OpenAI-compatible server, which often ends in /v1 ({problem})"
            )

    def _describe(self, received: Received) -> str:
        text = f"the server said {received.status} {received.phrase}".rstrip()
        said = redact(_message(received.body), self._key)
        return f"{text}: {said}" if said else text

    def _no_answer(self, reason: str) -> Unanswered:
        return Unanswered(
            f"{self._endpoint.url}: none of {self._failures} requests was answered: {reason}"
        )

    def _error(self, message: str) -> EndpointError:
        return EndpointError(f"{self._endpoint.url}: {message}")


def _may_pass(status: int) -> bool:
    return status in RETRIED or (status >= 500 and status != NOT_IMPLEMENTED)


def _message(body: bytes) -> str:
    """Return what an error in the usual formats says, in one line."""
    try:
        record: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return ""
    for key in ("error", "message", "detail"):
        if isinstance(record, dict) and key in record:
            record = record[key]
    return " ".join(record.split())[:160] if isinstance(record, str) else ""


async def _together(work: Iterable[Any]) -> None:
    """Run coroutines at the same time; the first error, or an interrupt, ends all of them."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Simulated people who take part in a study with a browser."""

from __future__ import annotations

import http.client
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from rejoinder.annotate.rehearse.browser import Browser, WrongResponse
from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour, Fields
from rejoinder.annotate.rehearse.page import Page

REPEATS, CARELESS_REPEATS = 0.1, 0.7
"""Share of the answers in which a writer repeats something."""
SENT_AGAIN = 0.03
"""Share of the answers that are sent twice, as after a lost connection."""
FAST = 0.5
"""Median time of people who are too fast, as a share of the study's minimum."""
MAX_REFUSED = 100
"""Refusals of one task after which a person gives up."""


class Manner(StrEnum):
    """How a person takes part."""

    CAREFUL = "careful"
    CARELESS = "careless"
    FAST = "fast"
    PASTING = "pasting"


@dataclass(frozen=True)
class Pace:
    """How long people think."""

    seconds: float
    """Median time of an answer."""
    min_seconds: float
    """The study's limit, below which an answer is too fast."""
    speed: float
    """Seconds of the study in a second of the rehearsal."""

    def draw(self, manner: Manner, rng: random.Random) -> float:
        """Return how long an answer takes."""
        if manner is Manner.FAST:
            return FAST * self.min_seconds * math.exp(rng.gauss(0, 0.2))
        return self.seconds * math.exp(rng.gauss(0, 0.35))


Expected = Callable[[str], Mapping[str, list[str]]]
"""Returns the right values of the fields of a task of the training round or entrance test, by its
lease; nothing for other tasks."""


@dataclass
class Person:
    """A simulated person."""

    name: str
    manner: Manner
    behaviour: Behaviour
    pace: Pace
    expected: Expected
    script: bool
    """Whether the browser runs scripts."""
    rng: random.Random
    acknowledged: list[str] = field(default_factory=list)
    """Leases of the answers that the server said it has stored."""
    sent_again: int = 0
    refused: int = 0
    repeats: int = 0
    """Answers that repeated something and had to be refused."""
    repeats_refused: int = 0
    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def take_part(self, link: str, on_answer: Callable[[], None]) -> None:
        """Open the secret link and answer until there is nothing left to do."""
        browser = Browser(link, script=self.script)
        try:
            page = browser.open(urlsplit(link).path)
            while True:
                if page.is_feedback:
                    page = browser.open("/")
                elif page.action.endswith("/consent"):
                    page = browser.send(page.action, {**page.hidden, "agree": "1"})
                elif page.action.endswith("/answer"):
                    page = self._answer(browser, page, on_answer)
                elif page.action:
                    page = browser.send(page.action, page.hidden)
                else:
                    return
        except (OSError, http.client.HTTPException, WrongResponse) as error:
            self.errors.append(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            browser.close()

    def _answer(self, browser: Browser, page: Page, on_answer: Callable[[], None]) -> Page:
        """Answer a task, again if the answer is refused, and return what follows."""
        lease = page.hidden["lease"]
        for _ in range(MAX_REFUSED):
            fields, repeats = self._fields(page)
            seconds = self.pace.draw(self.manner, self.rng)
            time.sleep(seconds / self.pace.speed)
            form = {**page.hidden, **fields, "seconds": f"{seconds:.3f}"}
            began = time.perf_counter()
            following = browser.send(page.action, form)
            self.latencies.append(time.perf_counter() - began)
            self.repeats += repeats
            if following.outcome != "refused":
                break
            self.refused += 1
            self.repeats_refused += repeats
        if following.outcome not in ("stored", "late"):
            raise WrongResponse(f"the answer was {following.outcome or 'not acknowledged'}")
        self.acknowledged.append(lease)
        on_answer()
        if self.rng.random() < SENT_AGAIN and not following.is_feedback:
            following = browser.send(page.action, form)
            self.sent_again += 1
            if following.outcome != "repeated":
                raise WrongResponse(f"an answer sent twice was {following.outcome}")
        return following

    def _fields(self, page: Page) -> tuple[Fields, bool]:
        """Return what the person enters, and whether that repeats something on purpose."""
        careless = self.manner is Manner.CARELESS
        if careless and not page.texts:
            return self.behaviour.careless_answer(page, self.rng), False
        fields = self.behaviour.answer(self.name, page, self.rng)
        if self.rng.random() < (CARELESS_REPEATS if careless else REPEATS):
            repeated = self.behaviour.repeat(page, fields, self.rng)
            if repeated is not None:
                return repeated, True
        if self.manner is Manner.PASTING:
            fields |= {f"pasted-{number}": "1" for number in range(len(page.texts))}
        for name, right in self.expected(page.hidden["lease"]).items():
            if right:
                fields[name] = right[0]
            elif name in page.boxes:
                fields.pop(name, None)
            elif name in page.choices:
                fields[name] = page.choices[name][0]
        return fields, False


def all_at_once(people: list[Person], links: list[str], on_answer: Callable[[], None]) -> None:
    """Let people take part at the same time."""
    threads = [
        threading.Thread(target=person.take_part, args=(link, on_answer), name=person.name)
        for person, link in zip(people, links, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

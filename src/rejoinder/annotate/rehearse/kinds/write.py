"""Simulated writers: replies that fit the slots, and some that repeat and must be refused."""

from __future__ import annotations

import random

from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour, Fields
from rejoinder.annotate.rehearse.opinions import Unit
from rejoinder.annotate.rehearse.page import Page
from rejoinder.annotate.tasks.write import characters

SYLLABLES = {
    "ja": list("あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよ"),
    "zh": list("的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以"),
}
"""What replies in languages without blanks between words are made of."""
LATIN = [consonant + vowel for consonant in "bdfghklmnprstvw" for vowel in "aeiou"]
USUAL_LENGTHS = 12, 40
"""Characters of a reply, where the slot allows them."""


class WriteBehaviour(Behaviour):
    """Replies are random syllables of the study's language."""

    def units(self) -> dict[Unit, str]:
        return {}

    def answer(self, person: str, page: Page, rng: random.Random) -> Fields:
        return {name: self._reply(rng, *limits) for name, limits in page.texts.items()}

    def _reply(self, rng: random.Random, low: int, high: int) -> str:
        """Return a new reply of an allowed length."""
        usual, long = USUAL_LENGTHS
        length = rng.randint(min(max(low, usual), high), min(max(low, long), high))
        syllables = SYLLABLES.get(self.store.settings.text_language, LATIN)
        text = ""
        while len(text) < length:
            blank = " " if syllables is LATIN and rng.random() < 0.3 else ""
            text += rng.choice(syllables) + blank
        return text[:length].strip().ljust(low, "a")

    def repeat(self, page: Page, fields: Fields, rng: random.Random) -> Fields | None:
        sources = list(fields.items())
        if page.turns and "***" not in page.turns[-1]:
            sources.append(("", page.turns[-1]))
        possible = [
            (name, text)
            for name, (low, high) in page.texts.items()
            for source, text in sources
            if source != name and low <= characters(text) <= high
        ]
        if not possible:
            return None
        name, text = rng.choice(possible)
        return fields | {name: text}

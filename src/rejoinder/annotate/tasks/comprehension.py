"""``comprehension``: people rate how well an utterance is understood without its context.

The utterance is the last turn of a context. Only utterances that everybody understands can be
replied to by somebody who has not read the rest (Sugiyama, Meguro & Higashinaka 2019, section
3.1.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from rejoinder.annotate.settings_file import Problem
from rejoinder.annotate.study import ComprehensionSettings, StudySettings, scale_problems
from rejoinder.annotate.tasks.kind import (
    Accepted,
    EarlierReplies,
    Export,
    Form,
    Json,
    Kind,
    Known,
    NewTask,
    Refusal,
    StoredAnswer,
    item_record,
)
from rejoinder.annotate.tasks.known import read_known
from rejoinder.annotate.tasks.scales import chosen_value, is_on_scale, scale_page
from rejoinder.errors import DataError
from rejoinder.items import Item


class Comprehension(Kind[ComprehensionSettings]):
    """Ratings of utterances that are shown without their context."""

    name = "comprehension"
    template = "comprehension.html"

    @classmethod
    def setting_problems(
        cls, options: ComprehensionSettings, settings: StudySettings
    ) -> list[Problem]:
        problems: list[Problem] = []
        if not options.question.strip():
            problems.append((("comprehension", "question"), "must not be empty"))
        problems += scale_problems(options.scale, options.labels, ("comprehension",))
        if options.keep_from not in options.scale:
            problems.append((("comprehension", "keep_from"), "must be a value of the scale"))
        return problems

    def item_problems(self, items: Sequence[Item]) -> list[str]:
        if not items:
            return ["there are no items"]
        without = [item.id for item in items if not utterance_of(item)]
        if not without:
            return []
        return [
            f"{len(without)} of {len(items)} items have no context whose last turn could be shown,"
            f" such as '{without[0]}'"
        ]

    def tasks(self, items: Sequence[Item], rng: np.random.Generator) -> list[NewTask]:
        """Return a task for each distinct utterance."""
        utterances = dict.fromkeys(utterance_of(item) for item in items)
        return [
            NewTask(f"utterance-{number}", number, -1, {"utterance": utterance})
            for number, utterance in enumerate(utterances)
        ]

    def view(self, content: Json, variant: int, rng: np.random.Generator) -> Json:
        return {}

    def page(self, content: Json, view: Json) -> Json:
        return {
            "utterance": content["utterance"],
            "question": self.options.question,
            "steps": scale_page(self.options.scale, self.options.labels),
        }

    def check(
        self, content: Json, view: Json, form: Form, earlier: EarlierReplies
    ) -> Accepted | list[Refusal]:
        chosen = chosen_value(form, "rating", self.options.scale)
        return [chosen] if isinstance(chosen, Refusal) else Accepted({"rating": chosen})

    def known_tasks(self, path: str) -> list[Known]:
        """Read lines such as ``{"context": ["…"], "expected": [4, 5], "explanation": "…"}``: the
        last turn of ``context`` is shown, ``expected`` are the ratings that are right.
        """
        known = []
        for line, record in read_known(path):
            expected = record.expected
            if not record.context or not expected or not is_on_scale(expected, self.options.scale):
                raise DataError(
                    "expected 'context', and in 'expected' a list of right ratings",
                    path=path,
                    line=line,
                )
            known.append(Known({"utterance": record.context[-1]}, expected, record.explanation))
        return known

    def is_expected(self, known: Json, value: Json) -> bool:
        return value["rating"] in known["expected"]

    def expected_fields(self, known: Json, view: Json) -> dict[str, list[str]]:
        return {"rating": [str(value) for value in known["expected"]]}

    def rated_items(self, answers: Sequence[StoredAnswer]) -> list[Item]:
        """Return each utterance as an item, whose response it is."""
        ratings = _by_utterance(answers)
        keys = {answer.content["utterance"]: answer.key for answer in answers}
        return [Item(keys[text], text, ratings=each) for text, each in ratings.items()]

    def export(
        self, items: Sequence[Item], answers: Sequence[StoredAnswer], dimension: str | None = None
    ) -> Export:
        """Return the items whose utterance all people understand, with nothing else as context.

        An utterance is kept if it has the answers that were wanted, and each is ``keep_from`` or
        higher. Ratings are under ``comprehension``. The second file, ``rated``, has all utterances
        with their ratings.
        """
        ratings = _by_utterance(answers)
        records = []
        for item in items:
            own = ratings.get(utterance_of(item), {})
            enough = len(own) >= self.settings.answers_per_task
            if enough and min(own.values()) >= self.options.keep_from:
                kept = msgspec.structs.replace(item, context=[utterance_of(item)])
                records.append(item_record(kept) | {"comprehension": own})
        rated = [item_record(item) for item in self.rated_items(answers)]
        return Export("items", records, {"rated": rated})


def utterance_of(item: Item) -> str:
    """Return the last turn of an item's context; empty without one."""
    return item.context[-1].strip() if item.context else ""


def _by_utterance(answers: Sequence[StoredAnswer]) -> dict[str, dict[str, float]]:
    """Return the ratings of each utterance by annotator."""
    ratings: dict[str, dict[str, float]] = {}
    for answer in answers:
        own = ratings.setdefault(answer.content["utterance"], {})
        own[answer.person] = float(answer.value["rating"])
    return ratings

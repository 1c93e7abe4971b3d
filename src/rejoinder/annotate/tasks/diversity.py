"""``diversity``: people mark which replies of a system fit, then rate how different those are.

A set consists of several replies of one system to one context (Gupta et al. 2019, section 5.2.1).
Replies that do not fit must not make a system look diverse, so only the fitting ones are rated.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from rejoinder.annotate.settings_file import Problem
from rejoinder.annotate.study import DiversitySettings, StudySettings, scale_problems
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

MAX_REPLIES = 50


class Diversity(Kind[DiversitySettings]):
    """Ratings of the diversity of sets of replies."""

    name = "diversity"
    template = "diversity.html"

    @classmethod
    def setting_problems(cls, options: DiversitySettings, settings: StudySettings) -> list[Problem]:
        problems: list[Problem] = []
        for name in ("fit_question", "question"):
            if not getattr(options, name).strip():
                problems.append((("diversity", name), "must not be empty"))
        problems += scale_problems(options.scale, options.labels, ("diversity",))
        if not 2 <= options.replies <= MAX_REPLIES:
            problems.append((("diversity", "replies"), f"must be from 2 to {MAX_REPLIES}"))
        if options.at_most_fitting and (not options.scale or options.scale[0] > 2):
            problems.append(
                (
                    ("diversity", "at_most_fitting"),
                    "counts replies, so the scale must begin with 2 or less",
                )
            )
        return problems

    def item_problems(self, items: Sequence[Item]) -> list[str]:
        if not items:
            return ["there are no items"]
        sets = sets_of(items)
        small = [members for members in sets if len(members) < self.options.replies]
        problems = []
        if small:
            first = small[0]
            problems.append(
                f"{len(small)} of {len(sets)} sets, the replies of a system to a context, have"
                f" fewer than {self.options.replies} replies; the set of '{first[0].id}', system"
                f" '{first[0].system}', has {len(first)}"
            )
        without = [members[0].id for members in sets if not members[0].context]
        if without:
            problems.append(
                f"{len(without)} of {len(sets)} sets have no context to fit to, such as that of"
                f" '{without[0]}'"
            )
        return problems

    def tasks(self, items: Sequence[Item], rng: np.random.Generator) -> list[NewTask]:
        """Return a task for each set; of larger sets, the first replies are shown."""
        contexts: dict[str, int] = {}
        systems: dict[str, int] = {}
        made = []
        for number, members in enumerate(sets_of(items)):
            first = members[0]
            content = {
                "context": first.context,
                "context_id": first.context_id,
                "system": first.system,
                "replies": [
                    {"item": item.id, "text": item.response}
                    for item in members[: self.options.replies]
                ],
            }
            context = contexts.setdefault(first.group, len(contexts))
            system = systems.setdefault(first.system, len(systems))
            made.append(NewTask(f"set-{number}", context, system, content))
        return made

    def view(self, content: Json, variant: int, rng: np.random.Generator) -> Json:
        return {"order": [int(place) for place in rng.permutation(len(content["replies"]))]}

    def page(self, content: Json, view: Json) -> Json:
        options = self.options
        return {
            "context": content["context"],
            "replies": [content["replies"][place]["text"] for place in view["order"]],
            "fit_question": options.fit_question,
            "question": options.question,
            "steps": scale_page(options.scale, options.labels),
            "at_most_fitting": options.at_most_fitting,
        }

    def check(
        self, content: Json, view: Json, form: Form, earlier: EarlierReplies
    ) -> Accepted | list[Refusal]:
        """Accept the marks, and a rating if two or more replies fit.

        With fewer, the set is as little diverse as the scale allows; a rating that was chosen
        before the marks were removed is ignored.
        """
        fits = [False] * len(content["replies"])
        for shown, place in enumerate(view["order"]):
            fits[place] = form.get(f"fits-{shown}") == "1"
        count, options = sum(fits), self.options
        if count < 2:
            counted = options.at_most_fitting and count in options.scale
            return Accepted({"fits": fits, "rating": count if counted else options.scale[0]})
        chosen = chosen_value(form, "rating", options.scale)
        if isinstance(chosen, Refusal):
            return [chosen]
        if options.at_most_fitting and chosen > count:
            return [Refusal("rating", "more_than_fitting", {"fitting": count})]
        return Accepted({"fits": fits, "rating": chosen})

    def known_tasks(self, path: str) -> list[Known]:
        """Read lines such as ``{"context": [...], "replies": [...], "expected": {"fits": [true,
        false, true], "ratings": [4, 5]}, "explanation": "…"}``: which replies fit, and which
        ratings are right; without ``ratings``, all are.
        """
        known = []
        for line, record in read_known(path):
            expected = record.expected
            fits = expected.get("fits") if isinstance(expected, dict) else None
            right = expected.get("ratings", []) if isinstance(expected, dict) else None
            if (
                not isinstance(fits, list)
                or not all(isinstance(mark, bool) for mark in fits)
                or len(fits) != len(record.replies)
                or len(fits) < 2
                or not is_on_scale(right, self.options.scale)
            ):
                raise DataError(
                    "expected two or more 'replies', and in 'expected' an object with 'fits', true"
                    " or false for each reply, and 'ratings', a list of right ratings",
                    path=path,
                    line=line,
                )
            replies = [{"item": "", "text": text} for text in record.replies]
            content = {"context": record.context, "replies": replies}
            known.append(Known(content, expected, record.explanation))
        return known

    def is_expected(self, known: Json, value: Json) -> bool:
        expected = known["expected"]
        right = expected.get("ratings") or [value["rating"]]
        return value["fits"] == expected["fits"] and value["rating"] in right

    def expected_fields(self, known: Json, view: Json) -> dict[str, list[str]]:
        expected = known["expected"]
        fields = {
            f"fits-{shown}": ["1"] if expected["fits"][place] else []
            for shown, place in enumerate(view["order"])
        }
        return fields | {"rating": [str(value) for value in expected.get("ratings", [])]}

    def rated_items(self, answers: Sequence[StoredAnswer]) -> list[Item]:
        """Return each set as an item, whose response is the replies in lines."""
        found: dict[str, Item] = {}
        ratings: dict[str, dict[str, float]] = {}
        for answer in answers:
            content = answer.content
            text = "\n".join(reply["text"] for reply in content["replies"])
            whose = content["context"], content["system"]
            found.setdefault(
                answer.key, Item(answer.key, text, *whose, context_id=content["context_id"])
            )
            ratings.setdefault(answer.key, {})[answer.person] = float(answer.value["rating"])
        return [msgspec.structs.replace(item, ratings=ratings[key]) for key, item in found.items()]

    def export(
        self, items: Sequence[Item], answers: Sequence[StoredAnswer], dimension: str | None = None
    ) -> Export:
        """Return the ratings of the sets; the second file, ``items``, has the marks as ratings.

        A line is ``{"context_id", "system", "ratings": {annotator: rating}}``, with the turns as
        ``context`` if the items have no ``context_id``. A reply that fits has the rating 1,
        otherwise 0.
        """
        sets: dict[str, Json] = {}
        marks: dict[str, dict[str, float]] = {}
        for answer in answers:
            content = answer.content
            name = "context" if content["context_id"] is None else "context_id"
            record = {name: content[name], "system": content["system"], "ratings": {}}
            own = sets.setdefault(answer.key, record)["ratings"]
            own[answer.person] = float(answer.value["rating"])
            for reply, fits in zip(content["replies"], answer.value["fits"], strict=True):
                marks.setdefault(reply["item"], {})[answer.person] = float(fits)
        marked = [
            item_record(msgspec.structs.replace(item, ratings=marks.get(item.id))) for item in items
        ]
        return Export("set ratings", list(sets.values()), {"items": marked})


def sets_of(items: Sequence[Item]) -> list[list[Item]]:
    """Return the replies of each system to each context."""
    sets: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        sets.setdefault((item.group, item.system), []).append(item)
    return list(sets.values())

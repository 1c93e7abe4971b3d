"""``rate``: people rate replies on one or several scales.

A page has one reply, or all replies of a context in random order. Planted distractors, replies
that were given to other contexts, show who does not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.annotate.settings_file import Problem
from rejoinder.annotate.study import RateSettings, StudySettings, scale_problems
from rejoinder.annotate.tasks.kind import (
    Accepted,
    EarlierReplies,
    Export,
    Form,
    ImportedTask,
    Json,
    Kind,
    Known,
    NewTask,
    Refusal,
    StoredAnswer,
)
from rejoinder.annotate.tasks.known import read_known
from rejoinder.annotate.tasks.rating_records import export_ratings, rated_replies
from rejoinder.annotate.tasks.scales import chosen_value, is_on_scale, scale_page
from rejoinder.annotate.tasks.written_records import system_of_source
from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.annotators import DISTRACTOR

if TYPE_CHECKING:
    from rejoinder.annotate.imports.record import ImportedAnswer

ORIGINAL, COLLECTED = "original", "collected"


@dataclass(frozen=True)
class Rated:
    """A reply to be rated: a response, a reference (by its number), or a distractor."""

    item: str
    text: str
    system: str
    reference: int | None = None

    def to_json(self) -> Json:
        return {
            "item": self.item,
            "text": self.text,
            "system": self.system,
            "reference": self.reference,
        }


class Rate(Kind[RateSettings]):
    """Ratings of replies."""

    name = "rate"
    template = "rate.html"

    @classmethod
    def setting_problems(cls, options: RateSettings, settings: StudySettings) -> list[Problem]:
        problems: list[Problem] = []
        if not options.dimensions:
            problems.append((("rate", "dimensions"), "needs at least one dimension"))
        seen: set[str] = set()
        for number, dimension in enumerate(options.dimensions):
            path = ("rate", "dimensions", number)
            if not dimension.name.replace("-", "_").isidentifier():
                problems.append(((*path, "name"), "must be letters, digits and hyphens"))
            if dimension.name in seen:
                problems.append(((*path, "name"), "is used twice; names must be different"))
            seen.add(dimension.name)
            problems += scale_problems(dimension.scale, dimension.labels, path)
        if not 0 <= options.distractors <= 10:
            problems.append((("rate", "distractors"), "must be from 0 to 10"))
        return problems

    def item_problems(self, items: Sequence[Item]) -> list[str]:
        options = self.options
        if not items:
            return ["there are no items to rate"]
        problems = []
        if options.replies == "references" and not any(item.references for item in items):
            problems.append(
                "no item has references, which this study rates; add some with 'rejoinder expand'"
            )
        if options.replies == "original-collected" and not any(
            len(item.references) >= 2 for item in items
        ):
            problems.append("no item has two references: the original one and a collected one")
        contexts = {item.group for item in items}
        if options.distractors and len(contexts) <= options.distractors:
            problems.append(
                f"{options.distractors} distractors for each context need more than"
                f" {options.distractors} contexts, there are {len(contexts)}"
            )
        return problems

    def tasks(self, items: Sequence[Item], rng: np.random.Generator) -> list[NewTask]:
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(item.group, []).append(item)
        replies = [self._replies(members, rng) for members in groups.values()]
        planted = self._distractors(replies, rng)
        systems: dict[str, int] = {}
        made = []
        for number, (members, own) in enumerate(zip(groups.values(), replies, strict=True)):
            context = next((item.context for item in members if item.context), [])
            if not own:
                continue
            shown = [*own, *planted[number]]
            shared = {"context": context, "context_id": members[0].context_id}
            if self.options.layout == "context":
                content = {**shared, "replies": [each.to_json() for each in shown]}
                made.append(NewTask(f"context-{number}", number, -1, content))
                continue
            for place, each in enumerate(shown):
                system = systems.setdefault(each.system, len(systems))
                content = {**shared, "replies": [each.to_json()]}
                made.append(NewTask(f"reply-{number}-{place}", number, system, content))
        return made

    def _replies(self, items: Sequence[Item], rng: np.random.Generator) -> list[Rated]:
        """Return the replies of a context that are rated."""
        if self.options.replies == "responses":
            return [Rated(item.id, item.response, item.system) for item in items]
        if self.options.replies == "references":
            # replies of several systems to a context share its references
            distinct: dict[str, Rated] = {}
            for item in items:
                for number, reference in enumerate(item.references):
                    source = system_of_source(reference.source or "reference")
                    rated = Rated(item.id, reference.text, source, number)
                    distinct.setdefault(reference.text, rated)
            return list(distinct.values())
        item = max(items, key=lambda each: len(each.references))
        if len(item.references) < 2:
            return []
        other = int(rng.integers(1, len(item.references)))
        return [
            Rated(item.id, item.references[0].text, ORIGINAL, 0),
            Rated(item.id, item.references[other].text, COLLECTED, other),
        ]

    def _distractors(
        self, replies: Sequence[Sequence[Rated]], rng: np.random.Generator
    ) -> list[list[Rated]]:
        """Return for each context replies that were given to other contexts."""
        count, size = self.options.distractors, len(replies)
        planted: list[list[Rated]] = [[] for _ in replies]
        if not count:
            return planted
        for number, own in enumerate(replies):
            if not own:
                continue
            taken = {each.text for each in own}
            for other in rng.permutation(size):
                pool = [each for each in replies[other] if each.text not in taken]
                if other == number or not pool or len(planted[number]) == count:
                    continue
                chosen = pool[int(rng.integers(len(pool)))]
                taken.add(chosen.text)
                name = f"{own[0].item}:{DISTRACTOR}-{len(planted[number])}"
                planted[number].append(Rated(name, chosen.text, DISTRACTOR))
        return planted

    def view(self, content: Json, variant: int, rng: np.random.Generator) -> Json:
        return {"order": [int(place) for place in rng.permutation(len(content["replies"]))]}

    def page(self, content: Json, view: Json) -> Json:
        return {
            "context": content["context"],
            "replies": [content["replies"][place]["text"] for place in view["order"]],
            "dimensions": [
                {
                    "name": dimension.name,
                    "question": dimension.question,
                    "steps": scale_page(dimension.scale, dimension.labels),
                }
                for dimension in self.options.dimensions
            ],
        }

    def check(
        self, content: Json, view: Json, form: Form, earlier: EarlierReplies
    ) -> Accepted | list[Refusal]:
        refusals: list[Refusal] = []
        ratings: list[dict[str, int]] = [{} for _ in content["replies"]]
        for shown, place in enumerate(view["order"]):
            for dimension in self.options.dimensions:
                chosen = chosen_value(form, f"{dimension.name}-{shown}", dimension.scale)
                if isinstance(chosen, Refusal):
                    refusals.append(chosen)
                else:
                    ratings[place][dimension.name] = chosen
        return refusals or Accepted({"ratings": ratings})

    def imported(
        self, answers: Sequence[ImportedAnswer], unread: Counter[str]
    ) -> list[ImportedTask]:
        """Match ratings by the id of the item; a page of several replies needs all of them."""
        rng = np.random.default_rng(self.settings.seed)
        by_item = {answer.item: answer for answer in answers}
        names = [dimension.name for dimension in self.options.dimensions]
        matched: set[str] = set()
        made = []
        for task in self.tasks(self.study.items, rng):
            items = [reply["item"] for reply in task.content["replies"]]
            own = [by_item[item] for item in items if item in by_item]
            matched.update(answer.item for answer in own)
            if not own:
                continue
            if len(own) < len(items):
                unread["tasks: not all replies of the page are rated"] += 1
                continue
            ratings = [self._ratings(answer, names, unread) for answer in own]
            if None not in ratings:
                view = {"order": list(range(len(items)))}
                seconds = [answer.seconds for answer in own if answer.seconds is not None]
                made.append(
                    ImportedTask(
                        task, view, {"ratings": ratings}, sum(seconds) or None, own[-1].time
                    )
                )
        unread["answers about items that are not in the study"] += len(by_item.keys() - matched)
        return made

    def _ratings(
        self, answer: ImportedAnswer, names: Sequence[str], unread: Counter[str]
    ) -> dict[str, int] | None:
        """Return the rating of each dimension; a single scale may have any name."""
        values = dict(answer.values)
        if len(names) == len(values) == 1:
            values = {names[0]: next(iter(values.values()))}
        ratings = {}
        for dimension in self.options.dimensions:
            value = values.get(dimension.name)
            if value not in dimension.scale:
                unread[
                    f"answers: {dimension.name} is missing"
                    if value is None
                    else f"answers: {dimension.name} is not on the scale"
                ] += 1
                return None
            ratings[dimension.name] = int(value)
        return ratings

    def known_tasks(self, path: str) -> list[Known]:
        """Read lines such as ``{"context": [...], "replies": [...], "expected": [[4, 5], [1, 2]],
        "explanation": "..."}``: for each reply the ratings of the first dimension that are right.
        """
        known = []
        scale = self.options.dimensions[0].scale
        for line, record in read_known(path):
            expected = record.expected
            fits = (
                isinstance(expected, list)
                and len(expected) == len(record.replies)
                and all(each and is_on_scale(each, scale) for each in expected)
            )
            if not fits or not record.replies:
                raise DataError(
                    "expected 'replies', and in 'expected' a list of right ratings for each",
                    path=path,
                    line=line,
                )
            replies = [Rated("", text, "").to_json() for text in record.replies]
            content = {"context": record.context, "replies": replies}
            known.append(Known(content, expected, record.explanation))
        return known

    def is_expected(self, known: Json, value: Json) -> bool:
        first = self.options.dimensions[0].name
        return all(
            rating[first] in right
            for rating, right in zip(value["ratings"], known["expected"], strict=True)
        )

    def expected_fields(self, known: Json, view: Json) -> dict[str, list[str]]:
        first = self.options.dimensions[0].name
        return {
            f"{first}-{shown}": [str(value) for value in known["expected"][place]]
            for shown, place in enumerate(view["order"])
        }

    def rated_items(
        self, answers: Sequence[StoredAnswer], dimension: str | None = None
    ) -> list[Item]:
        """Return the rated replies as items: responses, references and distractors alike.

        The ratings are those of ``dimension``, by default the first.
        """
        return rated_replies(answers, dimension or self.dimensions()[0])

    def dimensions(self) -> list[str]:
        return [dimension.name for dimension in self.options.dimensions]

    def export(
        self, items: Sequence[Item], answers: Sequence[StoredAnswer], dimension: str | None = None
    ) -> Export:
        """Return the items with the ratings of their replies or references, and the distractors.

        See :mod:`rejoinder.annotate.tasks.rating_records`.
        """
        name = dimension or self.dimensions()[0]
        chosen = next(each for each in self.options.dimensions if each.name == name)
        return export_ratings(items, answers, chosen, self.dimensions())

"""Studies that the tests of one process share; each test invites people of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from annotate.browser.live import LiveStudy, Record, init, live, write_lines

MANY = 100
"""More answers for each task than all tests together give."""

Serve = Callable[..., LiveStudy]


def dialogues(contexts: int = 6) -> list[Record]:
    """Replies of three systems, with two references for each context."""
    things = ["the rain", "a cat", "the sea", "my bike", "old films", "fresh bread"]
    return [
        {
            "id": f"{number}:{system}",
            "context_id": f"c{number}",
            "context": [f"I was thinking of {thing}.", f"What about {thing}?"][: number % 2 + 1],
            "response": f"{thing.capitalize()}? {reply}",
            "system": system,
            "references": [f"Tell me more about {thing}.", f"I know {thing} well enough."],
        }
        for number, thing in enumerate(things[:contexts])
        for system, reply in (("warm", "How lovely!"), ("flat", "Well."), ("lost", "No idea."))
    ]


def five_replies(contexts: int = 4) -> list[Record]:
    """Five replies of one system to each context."""
    words = ["Yes.", "No.", "Perhaps.", "Why?", "Never mind."]
    return [
        {
            "id": f"{number}:{place}",
            "context_id": f"c{number}",
            "context": [f"Shall we meet on day {number}?"],
            "response": word,
            "system": "bot",
        }
        for number in range(contexts)
        for place, word in enumerate(words)
    ]


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Makes a study of a template and serves it until the tests end."""
    with ExitStack() as stack:

        def start(template: str, *options: str, items: Any = None, **settings: Any) -> LiveStudy:
            folder = tmp_path_factory.mktemp(template)
            source = write_lines(folder / "items.jsonl", dialogues() if items is None else items)
            settings = {"answers_per_task": MANY, **settings}
            init(folder / "study", template, source, *options, **settings)
            return stack.enter_context(live(folder / "study"))

        yield start


@pytest.fixture(scope="session")
def ratings(serve: Serve) -> LiveStudy:
    """One reply at a time, on a scale of 5 labelled values; a batch is three tasks."""
    return serve("gupta-ratings", tasks_per_batch=3, people__completion_code="DONE-42")


@pytest.fixture(scope="session")
def pages(serve: Serve) -> LiveStudy:
    """Three replies on a page."""
    return serve("gupta-quality")


@pytest.fixture(scope="session")
def writing(serve: Serve) -> LiveStudy:
    """Two replies of 2 to 60 characters to a context."""
    slots = {"write.slots.0.count": 2, "write.slots.0.max_characters": 60}
    return serve("gupta-references", **slots)


@pytest.fixture(scope="session")
def pairs(serve: Serve) -> LiveStudy:
    """Which of two replies is better, or both equally good."""
    options = {"compare.ties": True, "compare.share": 1.0, "compare.repeated_share": 1.0}
    return serve("sugiyama-pairs", **options)


@pytest.fixture(scope="session")
def sets(serve: Serve) -> LiveStudy:
    """How different five replies are."""
    return serve("gupta-diversity", items=five_replies())


@pytest.fixture(scope="session")
def utterances(serve: Serve) -> LiveStudy:
    """Whether an utterance is understood alone."""
    return serve("sugiyama-comprehension")


@pytest.fixture
def link(request: pytest.FixtureRequest) -> Callable[[LiveStudy], str]:
    """Invites somebody, named after the test, and returns the link."""
    numbers = iter(range(1000))

    def invite(study: LiveStudy) -> str:
        return study.invite(f"{request.node.name} {next(numbers)}")[0]

    return invite

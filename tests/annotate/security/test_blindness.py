"""Nothing that annotators can fetch tells the system, the source or what others answered.

Systems, sources, ids, names and comments are words that occur nowhere else, so that one of them in
any response, header, address or file is a leak. All kinds and all templates are walked through from
the first page to the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from annotate.rating_studies import FakeClock, open_store
from annotate.security.everything import Visitor
from annotate.security.filling import filled_in, hidden, inline_code
from annotate.studies import make_study
from rejoinder.annotate import schema
from rejoinder.annotate.store import Store
from rejoinder.annotate.study_templates import names, write_study
from rejoinder.annotate.web.security import HEADERS

SECRET = re.compile(
    "zz(?:item|context|system|original|collected|retrieved|explanation|somebody|written|comment)"
)
"""Marker words."""
WHOLE_STUDY = {"tasks_per_batch": 2, "people.max_tasks": 8, "people.completion_code": "QQCODE"}


def records(contexts: int = 8) -> list[dict[str, Any]]:
    """Items that fit every template, with marked systems, sources and ids."""
    return [
        {
            "id": f"zzitem-{context}-{system}-{number}",
            "context_id": f"zzcontext-{context}",
            "context": [f"Have you been to place {context}?", f"Yes, place {context} is nice."],
            "response": f"Answer {number}{system} about {context}, with {number * 7919} words.",
            "system": f"zzsystem{system}",
            "references": [
                {"text": f"First {context} is known.", "source": "zzoriginal"},
                {"text": f"Second text for {context}, another.", "source": "zzcollected"},
                {"text": f"Third {context} thing from afar.", "source": "zzretrieved"},
            ],
        }
        for context in range(contexts)
        for system in ("a", "b")
        for number in range(5)
    ]


def template_study(folder: Path, template: str, **overrides: Any) -> Store:
    """Make a study of a template with consent and training round, and open it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "replies.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records()))
    write_study(
        template,
        folder / "study",
        path,
        consent=True,
        training=True,
        overrides={**WHOLE_STUDY, **overrides},
    )
    return open_store(folder / "study")


def with_entrance_test(store: Store, template: str) -> Store:
    """Return the study with an entrance test: the training round, with marked explanations."""
    folder = store.study.folder
    store.close()
    lines = []
    for line in (folder / "training.jsonl").read_text().splitlines():
        lines.append(json.dumps({**json.loads(line), "explanation": "zzexplanation"}))
    (folder / "test.jsonl").write_text("\n".join(lines))
    text = (folder / "study.toml").read_text()
    text = re.sub(r'^test = ""$', 'test = "test.jsonl"', text, flags=re.MULTILINE)
    text = re.sub(r"^pass_share = .*$", "pass_share = 0.0", text, flags=re.MULTILINE)
    assert 'test = "test.jsonl"' in text and "pass_share = 0.0" in text
    (folder / "study.toml").write_text(text)
    return open_store(folder)


def leaks(visitor: Visitor, allowed: Sequence[str] = ()) -> set[str]:
    """Return the marker words that a visitor received."""
    return set(SECRET.findall(visitor.everything())) - set(allowed)


@pytest.fixture(params=names())
def walked(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Visitor]:
    """A study of each template that a visitor has walked through, after somebody else."""
    store = with_entrance_test(template_study(tmp_path, request.param), request.param)
    other = Visitor(store, "zzsomebody").enter()
    for _ in range(10):
        assert other.answer("zzwritten", "zzcomment")
    others_lease = other.lease()
    assert others_lease is not None
    visitor = Visitor(store).enter()
    assert leaks(visitor) == set()
    before = visitor.everything()
    assert "QQCODE" not in before
    visitor.answer_all(carelessly=True)
    assert visitor.page().count("QQCODE") == 1  # all batches are done
    visitor.send("/answer", {**hidden(visitor.page()), "lease": others_lease, "rating": "1"})
    visitor.try_every_address()
    store.pause(True)
    visitor.page()
    store.pause(False)
    store.exclude(store.find_person("visitor"), True)
    visitor.page()
    visitor.try_every_address()
    return store, visitor


def test_everything_that_an_annotator_can_reach(walked: tuple[Store, Visitor]) -> None:
    store, visitor = walked
    codes = {each.status_code for each in visitor.seen}
    assert codes >= {200, 303, 403, 404, 405}
    assert leaks(visitor) == set()
    text = visitor.everything()
    with store.database.reading() as connection:
        pseudonyms = connection.scalars(select(schema.people.c.pseudonym)).all()
        keys = [key for key in connection.scalars(select(schema.tasks.c.key)) if len(key) > 3]
        phases = {each.phase for each in connection.execute(select(schema.answers))}
    assert phases == {"training", "test", "work"}
    assert len(pseudonyms) == 2
    for secret in (*pseudonyms, *(f'"{key}"' for key in keys), "distractor", "retrieved"):
        assert secret not in text
    # every page was shown
    for page in ("/consent", "/start", "/answer", "/continue"):
        assert f'action="{page}"' in text
    # and each of them is without scripts in its text, and has the headers
    for response in visitor.seen:
        if response.headers.get("content-type", "").startswith("text/html"):
            assert inline_code(response.text) == []
        for name, value in HEADERS.items():
            if name != "cache-control" or "/static/" not in str(response.url):
                assert response.headers[name] == value
    cookies = [each.headers["set-cookie"] for each in visitor.seen if "set-cookie" in each.headers]
    assert cookies
    assert all("HttpOnly" in each and "SameSite=lax" in each for each in cookies)


def test_a_page_that_tells_the_system_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = template_study(tmp_path, "gupta-ratings")
    page = store.kind.page

    def careless(content: Any, view: Any) -> Any:
        shown = page(content, view)
        return {**shown, "replies": [f"{each['text']} {each}" for each in content["replies"]]}

    visitor = Visitor(store).enter()
    while visitor.answer() and "Practice" in visitor.page():
        pass
    assert leaks(visitor) == set()
    monkeypatch.setattr(store.kind, "page", careless)
    visitor.page()
    assert leaks(visitor) == {"zzitem", "zzsystem"}


WORDS = [f"word{number}x" for number in range(20)]


def masked_study(folder: Path, clock: Any = None) -> Store:
    """A study in which one of three people sees all words, the others 70 % and 40 % of them."""
    masks = "".join(f"[[write.masks]]\nshare = {share}\npeople = 1\n" for share in (0.0, 0.3, 0.6))
    settings = (
        "kind = 'write'\ntitle = 'Replies'\nanswers_per_task = 3\nlease_minutes = 10\n"
        f"[write]\nquestion = 'Write.'\n[[write.slots]]\ncount = 2\n{masks}"
    )
    items = [{"id": "1", "context": [" ".join(WORDS[:10]), " ".join(WORDS[10:])], "response": ""}]
    return open_store(make_study(folder, settings, items), clock=clock)


def hidden_words(store: Store, person: str) -> set[str]:
    """Return the words that a person must not see."""
    with store.database.reading() as connection:
        view = connection.scalar(
            select(schema.leases.c.view).where(schema.leases.c.person == store.find_person(person))
        )
    shown = " ".join(view.get("context", WORDS)).split()
    return {word for word in WORDS if word not in shown}


def test_masked_words_never_reach_the_browser(tmp_path: Path) -> None:
    store = masked_study(tmp_path / "study")
    counts = []
    for number in range(3):
        visitor = Visitor(store, f"person {number}").enter()
        visitor.send("/answer", {**hidden(visitor.page()), "reply-0": "a" * 3000})
        visitor.send("/answer", {**hidden(visitor.page()), "reply-0": " ".join(WORDS[:10])})
        visitor.answer_all(carelessly=True)
        visitor.try_every_address()
        masked = hidden_words(store, visitor.name)
        # what they sent themselves comes back when it is refused
        sent = " ".join(WORDS[:10])
        text = visitor.everything().replace(sent, "")
        assert [word for word in masked if word in text] == []
        counts.append(len(masked))
    assert sorted(counts) == [0, 6, 12]


def test_a_task_that_comes_back_has_the_same_words_masked(tmp_path: Path) -> None:
    """The lease of somebody who saw a mask expires, and the same person gets the task again."""
    clock = FakeClock()
    store = masked_study(tmp_path / "study", clock)
    visitors = [Visitor(store, f"person {number}").enter() for number in range(3)]
    first = {visitor.name: hidden(visitor.page())["lease"] for visitor in visitors}
    masked = {visitor.name: hidden_words(store, visitor.name) for visitor in visitors}
    for turn in range(4):
        clock.time += 3600  # all leases expire
        for visitor in visitors if turn % 2 else reversed(visitors):
            assert hidden(visitor.page())["lease"] == first[visitor.name]
            text = visitor.everything()
            assert [word for word in masked[visitor.name] if word in text] == []
    # an answer that the browser has kept since the first page is still accepted
    form = filled_in(visitors[0].page(), visitors[0].rng)
    clock.time += 3600
    visitors[0].page()
    assert visitors[0].send("/answer", form).headers["rejoinder-answer"] == "stored"

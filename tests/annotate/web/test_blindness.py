"""Nothing that people can fetch tells which system a reply is of, or what others answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.routing import Route

from annotate.web.client import FETCH, Person, browser
from annotate.web.kinds import TABLES, fill_in, study
from rejoinder.annotate.web.app import make_app
from rejoinder.annotate.web.static_files import static_files


@pytest.mark.parametrize("kind", list(TABLES))
def test_everything_that_people_can_reach(kind: str, tmp_path: Path) -> None:
    settings = "answers_per_task = 3"
    store = study(tmp_path / "s", kind, settings=settings, training=True)
    other = Person(store, "Somebody Else").begin()
    for number in range(4):
        other.send("/answer", {**fill_in(kind, number), "comment": "a private remark"})
    ann = Person(store, "ann")
    seen = []

    def look(response) -> None:
        seen.append(f"{response.text} {response.headers} {response.url}")

    look(ann.browser.get("/"))
    ann.begin()
    for number in range(30):
        look(ann.browser.get("/"))
        look(ann.send("/answer", {}))
        look(ann.send("/answer", fill_in(kind, number + 4), headers=FETCH if number % 2 else {}))
    assert "Tasks done" in ann.page()
    paths = [route.path for route in make_app(store).routes if isinstance(route, Route)]
    assert "/study/status.json" in paths
    for path in paths:
        address = path.replace("{token}", "x").replace("{name}", "task.js")
        for response in (ann.browser.get(address), ann.browser.post(address, data={"csrf": "x"})):
            look(response)
    for name in static_files():
        look(browser(store).get(f"/static/{name}"))
    everything = "\n".join(seen)
    for secret in ("secret-", "distractor", "Somebody Else", "a private remark", "p-"):
        found = everything.find(secret)
        if secret == "p-":  # pseudonyms
            with store.database.reading() as connection:
                pseudonyms = connection.exec_driver_sql("SELECT pseudonym FROM people").scalars()
                assert not any(name in everything for name in pseudonyms.all())
            continue
        assert found < 0, everything[max(0, found - 100) : found + 100]
    for key in ("context-0", "reply-0-0", "set-0", "utterance-0"):
        assert f'"{key}"' not in everything

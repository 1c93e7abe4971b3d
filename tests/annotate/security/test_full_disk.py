"""A full disk: the answer is refused, the page says so, keeps it and sends it again, once.

The operating system keeps the server from writing (the limit on the size of files, set from outside
while it runs), as a full disk would.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from annotate.rating_studies import items, make_study, open_store
from annotate.security.filling import hidden
from annotate.server import Server, running_server

pytestmark = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="only Linux limits the files of a running process"
)
FULL = "because the server's disk is full"


@contextmanager
def full_disk(server: Server) -> Iterator[None]:
    """Let no file of the server be written while the block runs."""
    pid, unlimited = server.process.pid, resource.RLIM_INFINITY
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, unlimited))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return make_study(
        tmp_path / "study", settings="answers_per_task = 2", records=items(contexts=3)
    )


def link_of(study: Path, server: Server, name: str) -> str:
    store = open_store(study)
    (token,) = store.invite([name])
    return f"{server.address}/p/{token}"


def test_the_browser_keeps_the_answer_and_sends_it_again(browser: Browser, study: Path) -> None:
    with running_server(study) as server:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.goto(link_of(study, server, "ann"))
        page.click("button.primary")
        page.wait_for_selector("form[data-send]")
        lease = page.input_value("input[name=lease]")
        with full_disk(server):
            page.check("input[value='4']")
            with page.expect_response("**/answer") as refused:
                page.click("main button.primary")
            assert refused.value.status == 507
            assert "rejoinder-answer" not in refused.value.headers
            expect(page.locator("#banner")).to_contain_text(FULL, timeout=30_000)
            assert page.input_value("input[name=lease]") == lease
            # it tries again by itself, and on request
            with page.expect_response("**/answer") as again:
                pass
            assert again.value.status == 507
            kept = page.evaluate(
                "Object.keys(localStorage).filter((key) => key.includes('answer'))"
            )
            assert len(kept) == 1
            # even if the page is closed meanwhile: it says what is wrong when it is opened again
            page.close()
            page = context.new_page()
            page.set_default_timeout(30_000)
            opened = page.goto(server.address)
            assert opened is not None
            assert opened.status == 507
            assert "The server's disk is full" in page.inner_text("main")
        store = open_store(study)
        assert store.stored_answers() == []
        with page.expect_response("**/answer") as stored:
            page.goto(server.address)
        assert stored.value.headers["rejoinder-answer"] == "stored"
        # not wait_for_function: the page's content security policy forbids the eval it polls with
        expect(page.locator("input[name=lease]").first).not_to_have_value(lease, timeout=30_000)
        assert page.evaluate("Object.keys(localStorage).filter(k => k.includes('answer'))") == []
        page.reload()
        page.wait_for_selector("form[data-send]")
        (answer,) = store.stored_answers()
        assert answer.value == {"ratings": [{"appropriateness": 4}]}
        context.close()


def test_people_without_javascript_are_told_and_nothing_is_lost(study: Path) -> None:
    """Four people send their answers into the full disk, then once more."""
    with running_server(study) as server:
        people = []
        for number in range(4):
            client = httpx.Client(base_url=server.address, follow_redirects=True)
            client.get(link_of(study, server, f"person-{number}"))
            client.post("/start", data=hidden(client.get("/").text))
            people.append((client, {**hidden(client.get("/").text), "appropriateness-0": "2"}))
        with full_disk(server):
            for client, form in people:
                refused = client.post("/answer", data=form)
                assert refused.status_code == 507
                assert "was not stored" in refused.text
                assert refused.headers["retry-after"]
                assert client.get("/healthz").text == "ok"
                assert client.get("/static/task.js").status_code == 200
        store = open_store(study)
        assert store.stored_answers() == []
        for expected in ("stored", "repeated"):
            for client, form in people:
                sent = client.post("/answer", data=form, follow_redirects=False)
                assert sent.headers["rejoinder-answer"] == expected
        assert len(store.stored_answers()) == 4
        for client, _ in people:
            client.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0

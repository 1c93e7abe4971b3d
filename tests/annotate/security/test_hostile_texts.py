"""Hostile texts run no script in a real browser, wherever they stand, and are shown as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from annotate.rating_studies import open_store
from annotate.security.payloads import HTML, LEAVING, MARKDOWN, TEXTS
from annotate.security.running import served
from annotate.security.watching import Watched, watched
from annotate.studies import make_study
from rejoinder.annotate.store import Store

HARMLESS = (
    "Failed to load resource: the server responded with a status of 4",
    "Autofocus processing was blocked",
)
"""Beginnings of messages that Chromium writes to the console of any page."""
ALL = "\n".join(TEXTS)
SHORT = [text for text in TEXTS if len(text) <= 80 and text.isprintable()]
"""Texts that can be names of people."""


def quoted(text: str) -> str:
    """Return a text as a string of TOML."""
    return json.dumps(text, ensure_ascii=False)


SCALE = f"scale = [1, 2, 3]\nlabels = [{', '.join(quoted(text) for text in TEXTS[:3])}]\n"
QUESTION = quoted(ALL)
TABLES = {
    "rate": '[rate]\nlayout = "context"\n[[rate.dimensions]]\nname = "fit"\n'
    f"question = {QUESTION}\n{SCALE}",
    "write": f"[write]\nquestion = {QUESTION}\n[[write.slots]]\nmax_characters = 2000\n",
    "compare": f"[compare]\nquestion = {QUESTION}\n",
    "diversity": f"[diversity]\nfit_question = {QUESTION}\nquestion = {QUESTION}\n"
    f"replies = {len(HTML)}\n{SCALE}",
    "comprehension": f"[comprehension]\nquestion = {QUESTION}\nkeep_from = 3\n{SCALE}",
}
REPLIES: dict[str, Sequence[str]] = {"compare": [ALL, ALL + "."], "diversity": HTML}


def hostile_study(folder: Path, kind: str) -> Store:
    """Make a study in which everything that is shown is hostile."""
    records: list[Mapping[str, Any]] = [
        {
            "id": f"{text}-{number}",
            "context_id": "1",
            "context": [*TEXTS, ALL],
            "response": text,
            "system": HTML[0] if kind == "diversity" else TEXTS[number % len(TEXTS)],
            "references": [text],
        }
        for number, text in enumerate(REPLIES.get(kind, TEXTS))
    ]
    settings = (
        f"kind = {quoted(kind)}\ntitle = {quoted(ALL)}\nconsent = 'consent.md'\n"
        f"answers_per_task = 2\n[people]\nsign_up = 'open'\ncompletion_code = {quoted(ALL)}\n"
    )
    make_study(folder, settings + TABLES[kind], records, {"consent.md": []})
    for name in ("consent.md", "instructions.md"):
        (folder / name).write_text("\n\n".join([*TEXTS, MARKDOWN]))
    return open_store(folder)


def test_the_texts_are_dangerous_where_nothing_is_escaped(browser: Browser) -> None:
    """What the other tests listen for does happen on a careless page."""
    address = "http://careless.invalid"
    with watched(browser) as watch:
        watch.page.route(f"{address}/", lambda route: route.fulfill(body="careless"))
        watch.page.goto(f"{address}/")
        for text in [*HTML, *LEAVING]:
            if "http-equiv=refresh" in text:
                continue  # leaves the page
            watch.page.set_content(f'<p title="{text}">{text}</p><textarea>{text}</textarea>')
        watch.page.wait_for_timeout(200)
        dialogs = {line for line in watch.happened if line.startswith("dialog")}
        assert len(dialogs) >= 15
        assert len(set(watch.outside(address))) >= 3
        watch.page.set_content("".join(text for text in HTML if "refresh" not in text))
        assert len(watch.foreign_elements()) >= 15


def show_everything(page: Page) -> None:
    """Open what is folded, put the mouse over everything, and give all fields the focus."""
    page.evaluate(
        """() => {
          for (const each of document.querySelectorAll("details")) each.open = true;
          for (const each of document.querySelectorAll("*")) {
            each.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
            each.focus?.();
          }
        }"""
    )


def check(watch: Watched, *texts: str) -> None:
    """Nothing ran, nothing foreign is on the page, and the texts can be read."""
    show_everything(watch.page)
    assert watch.foreign_elements() == []
    shown = watch.page.evaluate("document.documentElement.textContent")
    values = watch.page.evaluate(
        "[...document.querySelectorAll('input, textarea')].map((each) => each.value).join('\\n')"
    )
    for text in texts:
        assert text in shown or text in values
    # a pseudonym or digest may contain these digits by chance
    plain = re.sub(r"\b(?:p-)?[0-9a-f]{8,}\b", "", shown + values)
    assert "1337" not in plain
    assert [line for line in watch.happened if not line.startswith(HARMLESS)] == []


def press(page: Page, selector: str) -> None:
    """Press a button that leads to another page."""
    with page.expect_navigation():
        page.click(selector)


def fill_in(page: Page, text: str) -> None:
    """Answer the task of any kind, with a text wherever one can be written."""
    page.locator("details.comment").evaluate("(each) => { each.open = true; }")
    page.locator("textarea[name=comment]").fill(text)
    for field in page.locator("textarea[name^=reply-]").all():
        field.fill(" ".join(LEAVING))  # the whole text would repeat the context
    page.evaluate(
        "for (const each of document.querySelectorAll('main .step:first-child input,"
        " main input[type=checkbox], main .side input')) each.checked = true;"
    )


@pytest.mark.parametrize("kind", list(TABLES))
def test_annotators_pages(kind: str, browser: Browser, tmp_path: Path) -> None:
    store = hostile_study(tmp_path / "study", kind)
    with served(store) as address, watched(browser) as watch:
        page = watch.page
        page.goto(f"{address}/join")
        check(watch, ALL)
        page.fill("input[name=name]", "\u202e" + LEAVING[3])  # not printable: shown again
        press(page, "button.primary")
        check(watch, LEAVING[3])
        page.fill("input[name=name]", LEAVING[3])
        press(page, "button.primary")
        page.goto(f"{address}/")
        check(watch, *HTML)
        page.check("input[name=agree]")
        press(page, "button.primary")
        check(watch, *HTML)
        press(page, "button.primary")
        page.wait_for_selector("form[data-send]")
        check(watch, ALL)
        # sent without an answer: everything that was entered comes back
        page.locator("details.comment").evaluate("(each) => { each.open = true; }")
        page.fill("textarea[name=comment]", ALL)
        for field in page.locator("textarea[name^=reply-]").all():
            field.fill(TEXTS[0])  # repeats the context
        for box in page.locator("input[type=checkbox]").all():
            box.check()
        with page.expect_response("**/answer") as refused:
            page.keyboard.press("Control+Enter")
        assert refused.value.status == 422
        page.wait_for_selector(".errors")
        check(watch, ALL)
        # without the script of the page, too
        page.evaluate("document.querySelector('form[data-send]').removeAttribute('data-send')")
        press(page, "button.primary")
        page.wait_for_load_state()
        check(watch, ALL)
        fill_in(page, ALL)
        with page.expect_response("**/answer") as sent:
            page.click("main button.primary")
        assert sent.value.headers["rejoinder-answer"] == "stored"
        expect(page.locator(".errors")).to_have_count(0, timeout=30_000)
        check(watch, ALL)
        assert watch.outside(address) == []
        paths = {url.removeprefix(address).partition("?")[0] for url in watch.requested}
        assert {path for path in paths if not path.startswith("/static/")} <= {
            "/", "/join", "/consent", "/start", "/answer"
        }  # fmt: skip
    assert [answer.comment for answer in store.stored_answers()] == [ALL[:2000].strip()]


def test_the_researchers_page(browser: Browser, tmp_path: Path) -> None:
    """Names of people, systems and reasons are hostile; people sign up under them."""
    store = hostile_study(tmp_path / "study", "rate")
    for number, name in enumerate(SHORT):
        person = store.sign_up(name)
        assert person is not None
        store.advance(person, "consent")
        store.advance(person, "instructions")
        step = store.next_step(person)
        if step.lease is not None and number < 4:
            form = {f"fit-{place}": str(1 + (place + number) % 3) for place in range(len(TEXTS))}
            store.submit(person, {**form, "lease": step.lease.code, "comment": ALL})
    token = store.secret("researcher")
    with served(store) as address, watched(browser) as watch:
        watch.page.goto(f"{address}/researcher/{token}")
        check(watch, *SHORT)
        for action in ("pause", "exclude"):
            press(watch.page, f"form[action$='/study/{action}'] button >> nth=0")
            check(watch, *SHORT)
        # the page replaces its content by itself
        watch.page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        with watch.page.expect_response(f"{address}/study"):
            watch.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        check(watch, *SHORT)
        for path in ("/study/status.json", "/p/<script>alert(1)<%2fscript>", "/<img src=x>"):
            watch.page.goto(address + path)
            check(watch)
        assert watch.outside(address) == []


def test_links_of_instructions_lead_nowhere_dangerous(browser: Browser, tmp_path: Path) -> None:
    store = hostile_study(tmp_path / "study", "comprehension")
    (token,) = store.invite(["ann"])
    with served(store) as address, watched(browser) as watch:
        watch.page.goto(f"{address}/p/{token}")
        addresses = watch.page.eval_on_selector_all(".text a", "all => all.map(each => each.href)")
        assert addresses
        assert {url.partition(":")[0] for url in addresses} <= {"http", "https", "mailto"}
        check(watch)

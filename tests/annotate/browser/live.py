"""Studies served by a real process, and people who take part in a real browser."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from annotate.server import Server, running_server
from rejoinder.cli.main import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

Record = dict[str, Any]
TIMEOUT = 15_000
REFUSED = "the server responded with a status of 422"
"""What the browser's console says of a refused answer."""


def command(*words: object) -> str:
    """Run ``rejoinder`` and return what it prints to standard output."""
    with io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) as printed:
        with redirect_stdout(printed):
            code = run([str(word) for word in words])
        assert code == 0, words
        printed.seek(0)
        return printed.read()


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records))
    return path


def read_lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def init(folder: Path, template: str, items: Path, *options: str, **settings: Any) -> Path:
    """Make a study by the real command; ``people__sign_up`` stands for ``people.sign_up``.

    The places of a consent text that a researcher has to fill in are filled in.
    """
    changes = [
        part
        for key, value in settings.items()
        for part in ("--set", f"{key.replace('__', '.')}={json.dumps(value)}")
    ]
    command("annotate", "init", folder, "-t", template, "--items", items, *options, *changes)
    consent = folder / "consent.md"
    if consent.exists():
        consent.write_text(re.sub(r"\[\[(.*?)\]\]", r"\1", consent.read_text(), flags=re.DOTALL))
    return folder


@dataclass(frozen=True)
class LiveStudy:
    """A study and its server."""

    folder: Path
    server: Server

    def invite(self, *names: str) -> list[str]:
        """Return the secret links of people."""
        named = [part for name in names for part in ("--name", name)]
        links = json.loads(command("annotate", "invite", self.folder, *named, "--json"))["links"]
        return list(links)

    def export(self, name: str = "export.jsonl", *options: str) -> list[Record]:
        """Export the answers to a file beside the study; return its records."""
        output = self.folder.parent / name
        command("annotate", "export", self.folder, "-o", output, *options)
        return read_lines(output)

    def answers_of(self, name: str) -> list[Record]:
        """Return the answers of the people whose name begins so, oldest first."""
        raw = self.folder.parent / "raw.jsonl"
        self.export("all.jsonl", "--raw", str(raw))
        return [row for row in read_lines(raw) if row["person"].startswith(name)]

    def status(self) -> Record:
        found: Record = json.loads(command("annotate", "status", self.folder, "--json"))
        return found


@contextmanager
def live(folder: Path, *options: str) -> Iterator[LiveStudy]:
    """Serve a study."""
    with running_server(folder, *options) as server:
        yield LiveStudy(folder, server)


@dataclass
class Visitor:
    """Somebody with a browser of their own."""

    context: BrowserContext
    page: Page
    host: str
    complaints: list[str] = field(default_factory=list)
    """Errors and warnings of the browser's console."""
    elsewhere: list[str] = field(default_factory=list)
    """Requests to other hosts."""

    @property
    def main(self) -> Locator:
        return self.page.locator("main")

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return self.main.inner_text()

    @property
    def lease(self) -> str | None:
        """The code of the task that is shown."""
        found = self.page.locator("input[name=lease]")
        return found.get_attribute("value") if found.count() else None

    @property
    def on_task(self) -> bool:
        return self.page.locator("form[data-send]").count() > 0

    def changed(self, act: Callable[[], Any]) -> None:
        """Do something and wait until the content of the page is another one."""
        self.main.evaluate("main => { main.dataset.before = '1'; }")
        act()
        self.page.wait_for_selector("main:not([data-before])")

    def press(self, label: str) -> None:
        """Press a button or follow a link by its label, and wait for what it shows."""
        button = self.main.get_by_role("button", name=label, exact=True)
        link = self.main.get_by_role("link", name=label, exact=True)
        self.changed(button.or_(link).first.click)

    def send(self) -> None:
        """Send the task's form and wait for the answer, whatever it is."""
        self.changed(self.page.locator("form[data-send] button[type=submit]").click)

    def choose(self, name: str, value: object) -> None:
        """Choose a radio button or mark a box of the task's form."""
        self.page.locator(f'input[name="{name}"][value="{value}"]').check()

    def write(self, number: int, text: str) -> None:
        """Type a reply into a slot."""
        self.page.locator(f"textarea[name=reply-{number}]").fill(text)

    def begin(self) -> None:
        """Read the instructions and start."""
        self.press("Start")

    def answer_all(self, fill: Callable[[Visitor], Any], most: int = 200) -> int:
        """Answer tasks, as ``fill`` fills them in, until there are no more; return how many."""
        count = 0
        while count < most:
            if self.on_task:
                fill(self)
                self.send()
                count += 1
            elif (more := self.page.locator("form[action$='/continue'] button")).count():
                self.changed(more.click)
            else:
                break
        return count


@contextmanager
def visitor(browser: Browser, address: str, **options: Any) -> Iterator[Visitor]:
    """Open an address in a browser of its own, with a wide window unless told otherwise.

    At the end, the browser must have had nothing to complain about and asked no other host.
    """
    options.setdefault("viewport", {"width": 1280, "height": 844})
    context = browser.new_context(**options)
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    someone = Visitor(context, page, urlsplit(address).netloc)

    def note_request(url: str) -> None:
        if urlsplit(url).netloc != someone.host:
            someone.elsewhere.append(url)

    def note_message(kind: str, text: str) -> None:
        if kind in ("error", "warning") and REFUSED not in text:
            someone.complaints.append(text)

    page.on("request", lambda request: note_request(request.url))
    page.on("pageerror", lambda error: someone.complaints.append(str(error)))
    page.on("console", lambda message: note_message(message.type, message.text))
    try:
        page.goto(address)
        yield someone
        assert not someone.complaints, someone.complaints
        assert not someone.elsewhere
    finally:
        context.close()

"""Run a rating study in Potato and in Label Studio, and answer it over HTTP like a browser does.

Each program is a subclass of ``Program``: it starts a study of items rated from 1 to 5 on
loopback, gives a ``Person`` who logs in and answers, and reads back what is stored. Every person
may rate every item. ``answer`` lets many people answer at once for some seconds.

An answer is what a browser must send between two tasks, no more: the answer itself, and the
request for the next task. Login, accounts and static files are not part of it. People log in with
an HTTP library and answer with the light client of annotate_http.py, in every program.

Settings are those that each program documents for studies with several people:

- Potato: gunicorn with one worker and eight threads, as in its container image, which refuses more
  workers (every process has its own state); the state of a person is a JSON file.
- Label Studio: uWSGI with four processes, as in its container image, without the nginx in front of
  it, which would only serve static files here; PostgreSQL, which its documentation asks for when
  many people work at once, or SQLite, the default of its package.

Nothing leaves the machine: checks for updates, analytics and error reports are off.
"""

from __future__ import annotations

import asyncio
import html
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import time
import venv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx

from annotate_http import Browser, Response
from memory import resident
from private_postgres import PrivatePostgres, missing_programs
from rejoinder.files.cache import cache_folder

Answers = dict[tuple[str, str], int]
"""The rating of each (person, item)."""

PASSWORD = "Only for a benchmark 1"


class Person(ABC):
    """Someone who logs in and rates one item after the other."""

    keep_alive = True

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.acknowledged: Answers = {}
        self.item: str | None = None
        self.page = b""
        self.client = httpx.Client(
            base_url=url,
            follow_redirects=True,
            trust_env=False,
            timeout=120,
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self.browser = Browser(url, keep_alive=self.keep_alive)

    def enter(self) -> None:
        """Log in, and keep the cookies for the answers."""
        self.log_in()
        self.browser.cookies.update(
            {each.name: each.value or "" for each in self.client.cookies.jar}
        )
        self.client.close()

    @abstractmethod
    def log_in(self) -> None:
        """Register or log in, and fetch the first task."""

    @abstractmethod
    async def _send(self, rating: int) -> None:
        """Store the rating of the current item."""

    @abstractmethod
    async def _next(self) -> None:
        """Fetch the next task and set ``item``, None after the last one."""

    async def answer_one(self, rating: int) -> float:
        """Rate the current item, fetch the next one, and return the seconds of both together."""
        assert self.item is not None, f"{self.name} has rated all items"
        began = time.perf_counter()
        await self._send(rating)
        self.acknowledged[self.name, self.item] = rating
        await self._next()
        return time.perf_counter() - began

    async def _get(self, path: str, *expected: int) -> Response:
        return self._checked(await self.browser.request("GET", path), expected)

    async def _post(
        self, path: str, value: Any, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a value as JSON."""
        given = {"content-type": "application/json", **(headers or {})}
        response = await self.browser.request("POST", path, json.dumps(value).encode(), given)
        return self._checked(response, ())

    def _checked(self, response: Response, expected: Sequence[int]) -> Response:
        good = response.status in expected or 200 <= response.status < 300
        assert good, f"status {response.status}: {response.content[:200]!r}"
        return response


@dataclass
class Server:
    """A running study; stopped by the process groups that it consists of."""

    url: str
    folder: Path
    processes: list[subprocess.Popen[bytes]]
    postgres: PrivatePostgres | None = None
    setup_seconds: float = 0.0
    """To create the database and the project and to load the items."""
    start_seconds: float = 0.0
    """From the command that starts the server to its first page."""
    lost: int = 0
    """Acknowledged answers that are not stored."""

    def resident(self) -> float:
        """Return the GB of memory of all processes, a database server among them."""
        pids = [process.pid for process in self.processes]
        pids += [self.postgres.process.pid] if self.postgres else []
        return sum(map(resident, pids))

    def stop(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):  # ended by itself
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if self.postgres:
            self.postgres.stop()


class Program(ABC):
    """A program for studies, with the interface that the benchmark uses."""

    name: str
    packages: tuple[str, ...] = ()
    python_variable = ""
    """The environment variable that names the Python in which the packages are installed."""

    @abstractmethod
    def start(self, folder: Path, items: Mapping[str, str], port: int) -> Server:
        """Start a study of items, given as texts by id, and wait for its first page."""

    @abstractmethod
    def person(self, server: Server, name: str) -> Person: ...

    @abstractmethod
    def stored(self, server: Server) -> Answers:
        """Return all stored answers, read from files or database, not from the server."""

    def answers_stored(self, server: Server) -> int:
        return len(self.stored(server))

    @contextmanager
    def running(self, folder: Path, items: Mapping[str, str]) -> Iterator[Server]:
        """Start a study on a free port and stop it at the end."""
        server = self.start(folder, items, free_port())
        try:
            yield server
        finally:
            server.stop()

    def python(self) -> Path:
        """Return the Python that has the packages; without the variable, create it with pip."""
        if chosen := os.environ.get(self.python_variable):
            return Path(chosen)
        cache = cache_folder()
        assert cache, f"set {self.python_variable}, because REJOINDER_CACHE is off"
        folder = cache / "peers" / re.sub(r"\W+", "-", " ".join(self.packages))
        python = folder / "bin" / "python"
        if not (folder / "complete").exists():
            venv.create(folder, with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *self.packages], check=True)
            (folder / "complete").touch()
        return python

    def launch(
        self, command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start a process in a group of its own, with its output in ``server.log``."""
        with (folder / "server.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "HOME": str(folder), **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def first_page(server: Server, path: str, seconds: float = 120) -> float:
    """Wait until a page is served and return the time at which it was.

    An HTTP library would take a part of the processor that the server needs to start.
    """
    host = server.url.removeprefix("http://")
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if any(process.poll() is not None for process in server.processes):
            break
        try:
            with closing(http.client.HTTPConnection(host, timeout=60)) as connection:
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
                if response.status == 200:
                    return time.perf_counter()
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.01)
    server.stop()
    log = (server.folder / "server.log").read_text("utf-8", errors="replace")
    raise RuntimeError(f"no page at {server.url}{path}; the end of server.log:\n{log[-2000:]}")


class Potato(Program):
    """Potato 2: https://www.potatoannotator.com/docs."""

    name = "Potato 2.12.1"
    packages = ("potato-annotation==2.12.1", "gunicorn==27.0.1")
    python_variable = "POTATO_PYTHON"
    threads = 8

    def start(self, folder: Path, items: Mapping[str, str], port: int) -> Server:
        python = self.python()
        began = time.perf_counter()
        (folder / "config.yaml").write_text(json.dumps(self._config()), "utf-8")  # JSON is YAML
        with (folder / "items.jsonl").open("w", encoding="utf-8") as stream:
            for name, text in items.items():
                stream.write(json.dumps({"id": name, "text": text}) + "\n")
        started = time.perf_counter()
        command = [python, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "1"]
        command += ["--threads", str(self.threads), "--timeout", "120", "--access-logfile", "-"]
        command += ["--error-logfile", "-", "potato.flask_server:create_app('config.yaml')"]
        environment = {
            "POTATO_NONINTERACTIVE": "1",
            "POTATO_SECRET_KEY": PASSWORD,
            "POTATO_GENERATED_TEMPLATES_DIR": str(folder / "templates"),
        }
        process = self.launch(command, folder, environment)
        server = Server(f"http://127.0.0.1:{port}", folder, [process])
        server.setup_seconds = started - began
        server.start_seconds = first_page(server, "/") - started
        return server

    def _config(self) -> dict[str, Any]:
        scheme = {
            "annotation_type": "likert",
            "name": "appropriateness",
            "description": "How appropriate is the reply?",
            "size": 5,
            "min_label": "not at all",
            "max_label": "very",
            "label_requirement": {"required": True},
        }
        return {
            "annotation_task_name": "Appropriateness of replies",
            "task_dir": ".",
            "output_annotation_dir": "annotation_output",
            "data_files": ["items.jsonl"],
            "item_properties": {"id_key": "id", "text_key": "text"},
            "user_config": {"allow_all_users": True, "users": []},
            "require_password": False,
            "annotation_schemes": [scheme],
        }

    def person(self, server: Server, name: str) -> Person:
        return PotatoPerson(server.url, name)

    def stored(self, server: Server) -> Answers:
        found: Answers = {}
        for path in (server.folder / "annotation_output").glob("*/user_state.json"):
            state = json.loads(path.read_bytes())
            for item, labels in state["instance_id_to_label_to_value"].items():
                for label, value in labels:
                    assert label["schema"] == "appropriateness", label
                    found[state["user_id"], item] = int(value)
        return found


class PotatoPerson(Person):
    """Someone in Potato: an answer is saved, the server told to move on, the page loaded."""

    def log_in(self) -> None:
        page = self.client.post("/auth", data={"email": self.name}).raise_for_status()
        self._read(page.content)

    async def _send(self, rating: int) -> None:
        answer = {"instance_id": self.item, "annotations": {f"appropriateness:{rating}": rating}}
        reply = await self._post("/updateinstance", answer)
        assert json.loads(reply.content)["status"] == "success", reply.content

    async def _next(self) -> None:
        move = {"action": "next_instance", "instance_id": self.item}
        await self._post("/annotate", move, {"X-Potato-Navigation": "1"})
        self._read((await self._get("/annotate")).content)

    def _read(self, page: bytes) -> None:
        found = re.search(rb'<input id="instance_id"[^>]*value="([^"]*)"', page)
        assert found or b"You have completed the annotation task" in page, page[:2000]
        self.item = html.unescape(found[1].decode()) if found else None


class LabelStudio(Program):
    """Label Studio: https://labelstud.io/guide."""

    packages = ("label-studio==1.23.2", "pyuwsgi==2.0.30.post1")
    python_variable = "LABEL_STUDIO_PYTHON"
    processes = 4
    admin = "admin@example.org"
    sql = (
        "SELECT who.email, task.data, answer.result FROM task_completion AS answer"
        " JOIN task ON task.id = answer.task_id JOIN htx_user AS who"
        " ON who.id = answer.completed_by_id"
    )

    def __init__(self, database: str = "postgresql") -> None:
        assert database in ("postgresql", "sqlite"), database
        self.database = database
        self.name = f"Label Studio 1.23.2 with {database}"

    def start(self, folder: Path, items: Mapping[str, str], port: int) -> Server:
        python = self.python()
        began = time.perf_counter()
        (folder / "config.xml").write_text(
            '<View><Text name="dialogue" value="$dialogue"/>'
            '<Rating name="appropriateness" toName="dialogue" maxRating="5" required="true"/>'
            "</View>"
        )
        postgres = self._postgres()
        environment = self._environment(folder, postgres)
        command = [python.parent / "label-studio", "init", "ratings", "--quiet"]
        command += ["--username", self.admin, "--password", PASSWORD]
        command += ["--label-config", folder / "config.xml"]
        assert self.launch(command, folder, environment).wait() == 0, folder / "server.log"

        started = time.perf_counter()
        process = self.launch(self._server(python, port), folder, environment)
        server = Server(f"http://127.0.0.1:{port}", folder, [process], postgres)
        shown = first_page(server, "/user/login/")
        try:
            self._load(server, items)
        except Exception:
            server.stop()
            raise
        server.start_seconds = shown - started
        server.setup_seconds = time.perf_counter() - began - server.start_seconds
        return server

    def _postgres(self) -> PrivatePostgres | None:
        if self.database == "sqlite":
            return None
        assert not missing_programs(), f"not on PATH: {', '.join(missing_programs())}"
        return PrivatePostgres()

    def _environment(self, folder: Path, postgres: PrivatePostgres | None) -> dict[str, str]:
        settings = {
            "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"),
            "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
            "DJANGO_DB": self.database,
            "APP_WEBSERVER": "uwsgi",
            "LATEST_VERSION_CHECK": "false",
            "COLLECT_ANALYTICS": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "FEATURE_FLAGS_OFFLINE": "true",
        }
        if postgres:
            settings |= {"POSTGRE_HOST": str(postgres.folder), "POSTGRE_USER": "postgres"}
        return settings

    def _server(self, python: Path, port: int) -> list[str | Path]:
        """Return the command of deploy/uwsgi.ini in the sources of Label Studio."""
        package = next(python.parent.parent.glob("lib/python3*/site-packages/label_studio"))
        command = [python.parent / "uwsgi", "--virtualenv", python.parent.parent]
        command += ["--chdir", package, "--http", f"127.0.0.1:{port}"]
        command += ["--module", "core.wsgi:application", "--processes", str(self.processes)]
        command += ["--buffer-size", "65535", "--http-timeout", "300", "--post-buffering", "4096"]
        command += ["--max-requests", "5000", "--harakiri", "120", "--log-5xx"]
        command += ["--listen", "1024"]  # it drops people beyond 100, whom nginx would let wait
        switches = "master single-interpreter die-on-term need-app ignore-sigpipe thunder-lock"
        switches += " ignore-write-errors disable-write-exception disable-logging enable-threads"
        return command + [f"--{switch}" for switch in f"{switches} lazy-apps".split()]

    def _load(self, server: Server, items: Mapping[str, str]) -> None:
        """Load the items and allow any number of answers an item."""
        admin = LabelStudioPerson(server.url, self.admin)
        admin.open("/user/login/")
        many = {"maximum_annotations": 1_000_000, "sampling": "Sequential sampling"}
        admin.client.patch("/api/projects/1/", json=many).raise_for_status()
        tasks = [{"data": {"item": name, "dialogue": text}} for name, text in items.items()]
        admin.client.post("/api/projects/1/import", json=tasks).raise_for_status()
        admin.client.close()

    def person(self, server: Server, name: str) -> Person:
        return LabelStudioPerson(server.url, f"{name}@example.org")

    def stored(self, server: Server) -> Answers:
        found: Answers = {}
        for person, task, answer in self._rows(server):
            (result,) = json.loads(answer)
            assert (person, json.loads(task)["item"]) not in found, "an answer is stored twice"
            found[person, json.loads(task)["item"]] = result["value"]["rating"]
        return found

    def _rows(self, server: Server) -> Iterator[Sequence[str]]:
        if server.postgres:
            yield from (line.split("\t") for line in server.postgres.query(self.sql).splitlines())
        else:
            path = server.folder / "data" / "label_studio.sqlite3"
            with closing(sqlite3.connect(path)) as database:
                yield from database.execute(self.sql)


class LabelStudioPerson(Person):
    """Someone in Label Studio: the page stays, tasks and answers go through its API."""

    keep_alive = False  # uWSGI closes each connection

    def log_in(self) -> None:
        self.open("/user/signup/")
        self.client.get("/projects/1/data?labeling=1").raise_for_status()
        self._read(self.client.get("/api/projects/1/next/").raise_for_status().content)

    def open(self, path: str) -> None:
        """Send the form of a sign-up or login page."""
        page = self.client.get(path).raise_for_status()
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert token, page.text
        form = {"email": self.name, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
        headers = {"Referer": str(page.url)}
        entered = self.client.post(path, data=form, headers=headers).raise_for_status()
        assert "/user/" not in entered.url.path, entered.text

    async def _send(self, rating: int) -> None:
        region = {
            "id": "answer",
            "type": "rating",
            "from_name": "appropriateness",
            "to_name": "dialogue",
            "origin": "manual",
            "value": {"rating": rating},
        }
        answer = {"result": [region], "lead_time": 1.0, "project": 1}
        reply = await self._post(f"/api/tasks/{self.task}/annotations/?project=1", answer)
        assert reply.status == 201, reply.status

    async def _next(self) -> None:
        reply = await self._get("/api/projects/1/next/", 404)
        self.item = None
        if reply.status != 404:  # the answer when no task is left
            self._read(reply.content)

    def _read(self, content: bytes) -> None:
        task = json.loads(content)
        self.task: int = task["id"]
        self.item = task["data"]["item"]


@dataclass
class Load:
    """What many people achieved together."""

    people: list[Person]
    seconds: float = 0.0
    """The whole time, from the first request to the last answer."""
    latencies: list[float] = field(default_factory=list)
    """Seconds of each answer and the page after it."""
    failures: list[str] = field(default_factory=list)
    resident: float = 0.0
    """The most GB of memory that the server held, looked at each half second."""

    @property
    def acknowledged(self) -> Answers:
        return {key: rating for one in self.people for key, rating in one.acknowledged.items()}

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds


BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError, AssertionError)
"""What happens when a server does not answer, or not as it should."""


def answer(
    program: Program,
    server: Server,
    people: int,
    seconds: float,
    rating: Callable[[int, int], int] = lambda person, number: 1 + (person + number) % 5,
    think: float = 0.0,
) -> Load:
    """Let people log in one after the other, then answer all at once for some seconds.

    ``rating(person, number)`` is what a person answers to their task of that number, and ``think``
    how many seconds each waits before an answer. Who gets an error stops.
    """
    load = Load([program.person(server, f"person-{number}") for number in range(people)])
    for one in load.people:
        one.enter()

    async def work(number: int, one: Person, until: float) -> None:
        done = 0
        try:
            while one.item is not None and time.perf_counter() < until:
                await asyncio.sleep(think)
                load.latencies.append(await one.answer_one(rating(number, done)))
                done += 1
        except BROKEN as error:
            load.failures.append(f"{one.name}: {type(error).__name__}: {error}"[:500])
        await one.browser.close()

    async def watch() -> None:
        while True:
            load.resident = max(load.resident, await asyncio.to_thread(server.resident))
            await asyncio.sleep(0.5)

    async def all_at_once() -> None:
        watching = asyncio.create_task(watch())
        began = time.perf_counter()
        await asyncio.gather(*(work(*one, began + seconds) for one in enumerate(load.people)))
        load.seconds = time.perf_counter() - began
        watching.cancel()

    with ThreadPoolExecutor(1) as threads:  # the caller may have an event loop of its own
        threads.submit(asyncio.run, all_at_once()).result()
    return load

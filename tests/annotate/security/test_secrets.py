"""Secret links, sessions and tokens are nowhere but in the browsers they belong to."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Request
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from annotate.rating_studies import items, join, make_study, open_store
from annotate.security.filling import filled_in, hidden
from annotate.security.running import served
from annotate.server import running_server
from rejoinder.annotate import schema
from rejoinder.annotate.store import Store
from rejoinder.verbs import annotate

SETTINGS = "answers_per_task = 2\n[people]\nsign_up = 'open'\n"


class Secrets:
    """Browsers whose cookies, links and tokens are collected."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.found: set[str] = set()

    def open(self, link: str) -> httpx.Client:
        """Open a secret link in a new browser."""
        client = httpx.Client(base_url=self.address, follow_redirects=True, timeout=30)
        client.get(link)
        self.found.add(link.rpartition("/")[2])
        self.collect(client, client.get("/").text)
        return client

    def collect(self, client: httpx.Client, page: str) -> None:
        self.found |= {value for _, value in client.cookies.items()}
        self.found |= {value for name, value in hidden(page).items() if name == "csrf" and value}
        self.found |= set(re.findall(r"/p/([\w-]+)", page))

    def sign_up(self) -> httpx.Client:
        client = httpx.Client(base_url=self.address, follow_redirects=True, timeout=30)
        page = client.get("/join").text
        self.collect(client, page)
        self.collect(client, client.post("/join", data={**hidden(page), "name": "guest"}).text)
        return client


def answer_some(client: httpx.Client, rng: Any) -> None:
    client.post("/start", data=hidden(client.get("/").text))
    for _ in range(3):
        client.post("/answer", data=filled_in(client.get("/").text, rng))


def stored_texts(store: Store, folder: Path) -> str:
    """Return everything that the database and the files of the study contain."""
    texts = [path.read_bytes().decode("latin-1") for path in folder.iterdir() if path.is_file()]
    with store.database.reading() as connection:
        for table in schema.tables.sorted_tables:
            texts += [str(tuple(row)) for row in connection.execute(select(table))]
    return "\n".join(texts)


def test_secrets_are_neither_stored_nor_logged_nor_exported(
    tmp_path: Path, address: str | None
) -> None:
    rng = np.random.default_rng(3)
    folder = make_study(tmp_path / "study", settings=SETTINGS, records=items(contexts=3))
    database = [] if address is None else ["--database", address]
    with running_server(folder, *database) as server:
        secrets = Secrets(server.address)
        (link,) = annotate.invite(folder, names=["ann"], database=address).links
        clients = [secrets.open(link), secrets.sign_up()]
        for client in clients:
            answer_some(client, rng)
        researcher = secrets.open(server.researcher)
        secrets.collect(researcher, researcher.get("/study").text)
        csrf = hidden(researcher.get("/study").text)["csrf"]
        researcher.post("/study/pause", data={"csrf": csrf})
        # what servers like to log: faults, addresses that do not exist, broken requests
        for path in (f"{link}x", f"/nowhere?{csrf}", f"/join?name={csrf}", f"/study/{csrf}"):
            clients[0].get(path)
        clients[0].post("/answer", content=f"csrf={csrf}&%ff".encode())
        clients[0].request("TRACE", "/", headers={"Authorization": csrf})
        for client in (*clients, researcher):
            client.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        assert server.process.stderr is not None
        logged = server.process.stderr.read()
    # links, sessions and csrf tokens of two people and the researcher, and the visitor's token
    assert len(secrets.found) >= 10
    assert all(len(secret) >= 16 for secret in secrets.found)
    store = open_store(folder, address)
    texts = {"log": logged, "database": stored_texts(store, folder)}
    texts["status"] = json.dumps(annotate.status(folder, database=address).to_dict())
    for name in ("raw.jsonl", "raw.csv", "raw.parquet"):
        out, raw = tmp_path / "out.jsonl", tmp_path / name
        annotate.export(folder, output=out, raw=raw, database=address)
        texts[name] = out.read_text() + raw.read_bytes().decode("latin-1")
    for where, text in texts.items():
        assert text.strip()
        assert [secret for secret in secrets.found if secret in text] == [], where
    assert "Traceback" not in logged


def test_errors_of_the_database_do_not_quote_what_people_wrote(
    tmp_path: Path, address: str | None
) -> None:
    """They are logged, if they are bugs."""
    store = open_store(make_study(tmp_path / "study"), address)
    person = join(store, "ann")
    with pytest.raises(IntegrityError) as caught, store.database.writing() as connection:
        connection.execute(insert(schema.names).values(person=person, name="a private name"))
    assert "private" not in str(caught.value)


def test_other_sites_do_not_learn_addresses(browser: Browser, tmp_path: Path) -> None:
    """A link of the instructions, and pictures of other pages, are asked for without a Referer."""
    folder = make_study(tmp_path / "study", settings=SETTINGS)
    (folder / "instructions.md").write_text("Read [this](http://outside.invalid/guide) first.")
    store = open_store(folder)
    (token,) = store.invite(["ann"])
    researcher = store.secret("researcher")
    asked: list[Request] = []
    with served(store) as address:
        context = browser.new_context()
        context.route("http://outside.invalid/**", lambda route: route.fulfill(body="outside"))
        context.on("request", lambda request: asked.append(request))
        page = context.new_page()
        page.goto(f"{address}/p/{token}")
        assert page.url == f"{address}/"  # the link does not stay in the address bar
        with context.expect_page() as opened:
            page.click("a[href^='http://outside']")
        opened.value.wait_for_load_state()
        assert opened.value.evaluate("[window.opener, document.referrer]") == [None, ""]
        page.goto(f"{address}/researcher/{researcher}")
        assert page.url == f"{address}/study"
        headers = [request.all_headers() for request in asked]
        context.close()
    assert any(request.url.startswith("http://outside") for request in asked)
    assert [each["referer"] for each in headers if "referer" in each] == []

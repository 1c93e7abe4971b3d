"""The site builds strictly, is complete, and works without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser import opened
from rejoinder.registry import METRICS

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.xdist_group("docs-site")  # built once per session

OWN = {"vcosine", "expanded", "mean", "self-similarity", "calibrated"}
"""Metrics without a paper of their own."""


def build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as 'make docs' does; not quietly, because hidden warnings would not count."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_make_docs_is_strict() -> None:
    assert "mkdocs build --strict\n" in (ROOT / "Makefile").read_text()


def test_a_broken_link_is_an_error(tmp_path: Path) -> None:
    """Links to missing pages and to missing headings."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs" / "spark.md").open("a") as page:
        page.write("\n[one](nowhere.md) and [another](logs.md#nowhere)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr
    assert "'#nowhere'" in done.stderr
    assert "Aborted with 2 warnings" in done.stdout + done.stderr


def text_of(page: Path) -> str:
    """Return the text of a page without mark-up."""
    body = page.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", body))


def test_pages_refer_to_no_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        hosts = set(re.findall(r"(?:https?:)?//([a-z0-9-]+(?:\.[a-z0-9-]+)+)", page.read_text()))
        assert hosts <= {"www.w3.org"}, page  # the namespace of SVG


def test_navigation_tabs(site: Path) -> None:
    home = (site / "index.html").read_text("utf-8")
    tabs = home.partition('class="md-tabs"')[2].partition("</nav>")[0]
    assert [name.strip() for name in re.findall(r">\s*([^<>]+?)\s*</a>", tabs)] == [
        "Start", "How to", "Reference", "Studies",
    ]  # fmt: skip


@pytest.mark.parametrize("name", METRICS.builtin)
def test_each_metric_has_a_page(site: Path, name: str) -> None:
    """Formula, citation, parameters, use, and figures or the reason why there are none."""
    text = text_of(site / "metrics" / f"{name}.html")
    assert " = " in text or "score" in text
    assert bool(re.search(r"[\w.] \(?(19|20)\d\d", text)) == (name not in OWN), "citation"
    for part in ("Needs ", "When to use it", "Parameters", "Signature", "Agreement with people"):
        assert part in text
    assert METRICS.make(name).signature().rpartition("|version")[0] in text.replace("&amp;", "&")
    figures = text.partition("measured here")[2]
    figure = r"-?\.\d{2,3} (\[-?\.\d\d, -?\.\d\d\]|± \.\d{3})"
    assert re.search(rf"{figure}|curve|Not measured", figures), figures


def test_every_metric_has_a_use() -> None:
    with (ROOT / "docs" / "hooks" / "uses.toml").open("rb") as stream:
        uses = tomllib.load(stream)
    assert list(uses) == list(METRICS.builtin)
    assert all(len(use["use"]) > 40 for use in uses.values())


def test_cited_works_are_in_the_literature() -> None:
    """Citations on pages and in docstrings of metrics."""
    entries = (ROOT / "docs" / "literature.md").read_text("utf-8").split("\n- ")
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name != "literature.md"]
    metrics = [
        Path(sys.modules[METRICS.find(name).__module__].__file__ or "") for name in METRICS.builtin
    ]
    cited = re.compile(r"([A-Z]\w+) (?:et al\.,?|(?:&|and) [A-Z]\w+) \(?((?:19|20)\d\d)")
    found = set()
    for page in [*pages, *metrics]:
        text = " ".join(page.read_text("utf-8").split())
        found |= set(cited.findall(text))
    assert len(found) > 25
    for name, year in sorted(found):
        assert any(name in entry and f" {year}:" in entry for entry in entries), (name, year)


def test_lists_and_tables_are_rendered(site: Path) -> None:
    """mkdocs needs a blank line before a list, unlike GitHub."""
    for page in site.rglob("*.html"):
        article = page.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
        prose = re.sub(r"<(pre|code)\b.*?</\1>", "", article, flags=re.DOTALL)
        assert not re.search(r"\n(- |\d\. |\|---|```)", prose), page


def test_search_works_from_the_disk(browser: Browser, site: Path) -> None:
    """Opened in a browser without a server, the site makes no network request."""
    with opened(browser, (site / "index.html").as_uri()) as (page, complaints, asked):
        page.click("input.md-search__input")
        page.get_by_text("Type to start searching").wait_for(timeout=30_000)
        page.keyboard.type("winning rate")
        for name in ("pairs", "estimators"):
            link = page.locator(f'.md-search-result__link[href*="/{name}.html?h=winning"]')
            link.first.wait_for(timeout=30_000)
        assert not complaints
        assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob", "about"}
        assert any(url.endswith(".js") for url in asked)

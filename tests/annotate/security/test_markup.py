"""Templates and scripts keep to the content security policy, and to automatic escaping."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from annotate.security.filling import inline_code
from annotate.web.client import Person, Researcher, browser, hidden_fields
from annotate.web.kinds import fill_in, study
from rejoinder.annotate.study import LANGUAGES
from rejoinder.annotate.web.pages import TEMPLATES
from rejoinder.annotate.web.static_files import FOLDER

PAGES = sorted(TEMPLATES.rglob("*.html"))
EXPRESSION = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_templates_have_no_scripts_styles_or_unescaped_texts(path: Path) -> None:
    text = path.read_text("utf-8")
    assert inline_code(EXPRESSION.sub("", text)) == []
    expressions = " ".join(EXPRESSION.findall(text))
    for unsafe in ("safe", "autoescape", "Markup", "do "):
        assert not re.search(rf"(\|\s*|%\s*){unsafe}\b", expressions), unsafe
    # values of attributes are quoted, so that a blank in a text ends nothing
    assert not re.search(r"\s[\w-]+=\{\{", text)


def test_what_is_inline_would_be_found() -> None:
    for html in (
        "<script>alert(1)</script>",
        "<script src='//outside.invalid/x.js'></script>",
        "<p style='color: red'>",
        "<p onclick=x>",
        "<a href=' javascript:x'>",
        "<style>p {}</style>",
    ):
        assert inline_code(html), html


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.js")), ids=lambda path: path.name)
def test_scripts_make_no_html_of_texts(path: Path) -> None:
    text = path.read_text("utf-8")
    unsafe = (
        r"(inner|outer)HTML\s*\+?=[^=]|insertAdjacentHTML|document\.write|\beval\(|new Function"
        r"|setTimeout\(\s*[\"'`]|srcdoc|https?://|import\("
    )
    assert re.findall(unsafe, text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_beside_the_tasks(language: str, tmp_path: Path) -> None:
    """Sign-up, welcome, researcher's page, and messages."""
    store = study(
        tmp_path / "s",
        "rate",
        settings=f"language = '{language}'",
        tables="[people]\nsign_up = 'open'\n",
    )
    client = browser(store)
    pages = [client.get("/join")]
    form = hidden_fields(pages[0].text)
    pages += [client.post("/join", data={**form, "name": name}) for name in ("\n", "ann")]
    Person(store, "bob").begin().send("/answer", fill_in("rate"))
    researcher = Researcher(store)
    pages += [researcher.browser.get("/study"), client.get("/p/x"), client.get("/nowhere")]
    pages += [client.post("/answer", json={}), client.get("/study"), client.put("/")]
    codes = [page.status_code for page in pages]
    assert codes == [200, 422, 200, 200, 404, 404, 415, 403, 405]
    for page in pages:
        assert page.text.startswith("<!doctype html>")
        assert inline_code(page.text) == []

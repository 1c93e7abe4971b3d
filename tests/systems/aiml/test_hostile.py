"""Rule files that want endless work, programs or files: they get neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aiml_bots import bot, category, chat, write
from rejoinder.errors import DataError
from rejoinder.systems.aiml.rules import load
from rejoinder.systems.aiml.session import EMPTY, MAX_CALLS, MAX_LEVELS, MAX_STEPS, Session

DEEP = f"its rules call one another more than {MAX_CALLS} deep"
STEPS = f"its rules need more than {MAX_STEPS:,} steps"
LONG = "its rules make a text of more than 20,000 characters"
NESTED = f"its rules are nested more than {MAX_LEVELS} deep"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("<srai>A</srai>", DEEP),
        ("x <srai>A</srai>", DEEP),
        ("<srai>B</srai>", DEEP),
        ("<srai>TWICE A</srai>", STEPS),
        ("<srai>LONGER x</srai>", LONG),
        ("<srai>ALL</srai>", LONG),
        ("<think>" * 10 + "<srai>A</srai>" + "</think>" * 10, NESTED),
        ("<condition name='x'><li><loop/></li></condition>", STEPS),
        ("<system>touch stolen</system>", "<system>"),
        ("<javascript>alert(1)</javascript>", "<javascript>"),
        ("<sraix>hello</sraix>", "<sraix>"),
        ("<learn>other.aiml</learn>", "<learn>"),
        ("<learnf><category/></learnf>", "<learnf>"),
        ("", EMPTY),
    ],
)
def test_a_reason_instead_of_a_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    double = '<set name="x"><get name="x"/><get name="x"/></set>'
    rules = bot(
        tmp_path,
        category("A", template),
        category("B", "<srai>C</srai>"),
        category("C", "<srai>B</srai>"),
        category("TWICE *", "<srai>T0</srai>"),
        *(category(f"T{i}", f"<srai>T{i + 1}</srai>" * 2) for i in range(60)),
        category("LONGER *", "<srai>LONGER <star/> <star/> <star/></srai>"),
        category("ALL", '<set name="x">ab</set>' + double * 40),
    )
    text, why = Session(rules).respond("a")
    assert text == ""
    assert reason in why
    if reason.startswith("<"):
        assert why == f"the rule asks for {reason}, which is not carried out"
    assert not (tmp_path / "stolen").exists()


def test_the_other_sentences_are_answered(tmp_path: Path) -> None:
    rules = bot(tmp_path, category("A", "<srai>A</srai>"), category("B", "fine"))
    assert chat(rules, "A. B. A") == ["fine"]


def test_wildcards_that_would_be_tried_in_every_combination(tmp_path: Path) -> None:
    """20 stars over 200 words have more than 10^25 divisions; none ends with Z."""
    rules = bot(tmp_path, category("* " * 20 + "Z", "x"), category("A" + " * A" * 20 + " Z", "x"))
    session = Session(rules)
    assert session.respond("a " * 200)[0] == ""
    assert session.steps < 20_000


BOMB = """<?xml version="1.0"?>
<!DOCTYPE aiml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<aiml><category><pattern>A</pattern><template>&b;</template></category></aiml>"""
OUTSIDE = """<!DOCTYPE aiml [<!ENTITY a SYSTEM "secret.txt">]>
<aiml><category><pattern>A</pattern><template>&a;</template></category></aiml>"""
ELSEWHERE = """<!DOCTYPE aiml SYSTEM "aiml.dtd">
<aiml><category><pattern>A</pattern><template>&nbsp;</template></category></aiml>"""
NESTING = "<aiml>\n" + category("A", "<think>" * 200 + "</think>" * 200) + "</aiml>"


@pytest.mark.parametrize(
    ("content", "line", "complaint"),
    [
        (BOMB, 2, "the file declares an entity, which is not read"),
        (OUTSIDE, 1, "the file declares an entity"),
        (ELSEWHERE, 2, "the file uses an entity that is not one of XML"),
        (NESTING, 2, "elements are nested more than 100 deep"),
        ("<aiml>\n<category>\n<pattern>A</template>", 3, "not XML: mismatched tag"),
        ("", 1, "not XML: no element found"),
        ("<html/>", 1, "not AIML: there is no element <aiml>"),
        ('<?xml version="1.0" encoding="no-such"?><aiml/>', 1, "encoding"),
        ("<aiml>\n</aiml>", None, "there is no rule in these AIML files"),
    ],
)
def test_files_that_are_refused(
    tmp_path: Path, content: str, line: int | None, complaint: str
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "rules.aiml").write_text(content)
    with pytest.raises(DataError) as caught:
        load(str(tmp_path))
    assert complaint in str(caught.value)
    assert caught.value.line == line
    where = tmp_path if line is None else tmp_path / "rules.aiml"
    assert caught.value.path == str(where)


def test_broken_files_can_be_left_out(tmp_path: Path) -> None:
    write(tmp_path, category("A", "a"))
    (tmp_path / "broken.aiml").write_text("<aiml>\n<oops>")
    notes: list[str] = []
    rules = load(str(tmp_path), skip_broken=True, on_note=notes.append)
    assert chat(rules, "a") == ["a"]
    assert len(notes) == 1
    assert notes[0].startswith("1 files are broken and were left out; the first: ")
    assert "broken.aiml:2: not XML" in notes[0]


def test_categories_that_are_no_rules_are_counted(tmp_path: Path) -> None:
    notes: list[str] = []
    write(
        tmp_path,
        category("A", "a"),
        "<category><pattern>B</pattern></category>",
        "<category><template>b</template></category>",
        category("...", "no word"),
        category("<star/>", "no pattern"),
    )
    rules = load(str(tmp_path), on_note=notes.append)
    assert rules.graph.size == 1
    path = json.dumps(str(tmp_path / "rules.aiml"))[1:-1]
    assert notes == [
        f"4 categories are not rules and were left out; the first: {path}:3: it has no <template>"
    ]

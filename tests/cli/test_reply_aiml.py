"""``rejoinder reply --system 'aiml(…)'`` as a user starts it."""

from __future__ import annotations

import json
from pathlib import Path

from aiml_bots import category, write
from support import Run

CONTEXTS = b"""\
{"id": "1", "context": ["My name is Ann", "Hello, Ann.", "Who am I?"]}
{"id": "2", "context": ["loop"]}
{"id": "3", "context": ["run a program"]}
{"id": "4", "context": ["anything else"]}
{"id": "5", "context": []}
"""


def test_replies_and_reasons(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    write(
        tmp_path / "rules",
        category("MY NAME IS *", '<set name="name"><star/></set>'),
        category("WHO AM I", 'You are <get name="name"/>. <random><li>A</li><li>B</li></random>'),
        category("LOOP", "<srai>LOOP</srai>"),
        category("RUN *", "<system>touch stolen</system>"),
        "<category><pattern>X</pattern></category>",
    )
    systems = ["-s", "aiml(rules=rules)", "-s", "aiml(rules=rules,match=cosine)"]
    done = run("reply", "-", *systems, "-n", "2", "-o", "out.jsonl", "--json", stdin=CONTEXTS)
    assert done.returncode == 0, done.stderr
    standard, cosine = json.loads(done.stdout)["systems"]
    assert standard == {
        "system": "aiml(rules=rules)",
        "replies": 2,
        "without_reply": {
            "its rules call one another more than 100 deep": 1,
            "the rule asks for <system>, which is not carried out": 1,
            "no rule matches": 1,
            "the context has no turn": 1,
        },
    }
    # the same, but nothing is similar to 'anything else', and a rule is asked once
    assert cosine["replies"] == 1
    assert cosine["without_reply"]["no pattern shares a word with the input"] == 1
    items = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    first, second = items[:2]
    assert {first["response"], second["response"]} == {"You are Ann. A", "You are Ann. B"}
    assert first["id"] == "1:aiml(rules=rules):1"
    assert second["id"] == "1:aiml(rules=rules):2"
    assert first["context_id"] == second["context_id"] == "1"
    assert b"aiml(rules=rules): 1 categories are not rules and were left out" in done.stderr
    assert not (tmp_path / "stolen").exists()


def test_bad_rules(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "bad.aiml").write_text("<aiml>\n<category>\n</aiml>")
    done = run("reply", "-", "-s", "aiml(rules=rules)", stdin=CONTEXTS)
    assert done.returncode == 3
    assert done.stderr == b"rejoinder: rules/bad.aiml:3: not XML: mismatched tag\n"
    assert not done.stdout
    done = run("reply", "-", "-s", "aiml(rules=nowhere)", stdin=CONTEXTS)
    assert done.returncode == 3
    assert done.stderr == b"rejoinder: nowhere: cannot be read: no such file or folder\n"
    done = run("reply", "-", "-s", "aiml", "-s", "aiml(rules=x,match=y)", stdin=CONTEXTS)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 2

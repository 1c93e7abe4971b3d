"""``rejoinder reply --system 'command(…)'`` with real little programs."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from support import Run

CONTEXTS = b"""\
{"id": "a", "context": ["Hi.", "Hello!", "How are you?"]}
{"id": "b", "context": ["Tea?"]}
{"id": "c", "context": []}
{"id": "d", "context": ["Bye."]}
"""

READ = "import json, sys\nfor line in sys.stdin:\n    q = json.loads(line)\n"


def program(folder: Path, code: str) -> str:
    (folder / "bot.py").write_text(code)
    return f'command(run="{sys.executable} bot.py")'


def test_a_program_that_answers_line_by_line(run: Run, tmp_path: Path) -> None:
    spec = program(
        tmp_path,
        READ
        + "    print(json.dumps({'response': f\"{len(q['context'])} turns, n={q['n']}\"}),"
        + " flush=True)\n",
    )
    done = run("reply", "-", "-s", spec, "-o", "out.jsonl", "--json", stdin=CONTEXTS)
    assert done.returncode == 0, done.stderr
    (outcome,) = json.loads(done.stdout)["systems"]
    assert outcome["replies"] == 3
    assert outcome["without_reply"] == {"the context has no turn": 1}
    items = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [item["response"] for item in items] == ["3 turns, n=1", "1 turns, n=1", "1 turns, n=1"]
    assert items[0]["system"] == spec


def test_a_program_that_answers_at_the_end_in_any_order(run: Run, tmp_path: Path) -> None:
    """With ids, lines may come in any order, and may be missing."""
    code = (
        "import json, sys\n"
        "questions = [json.loads(line) for line in sys.stdin]\n"
        "assert len({q['seed'] for q in questions}) == len(questions)\n"
        "for q in reversed(questions[1:]):\n"
        "    print(json.dumps({'id': q['id'], 'responses': ['', q['id'], ' x ', 'x', 'y']}))\n"
    )
    spec = program(tmp_path, code)
    done = run("reply", "-", "-s", spec, "-n", "2", stdin=CONTEXTS)
    assert done.returncode == 0, done.stderr
    items = [json.loads(line) for line in done.stdout.splitlines()]
    assert [item["response"] for item in items] == ["2", "x", "3", "x"]
    assert b"1 contexts without a reply: the program gave no reply" in done.stderr


def test_reasons_for_no_reply(run: Run, tmp_path: Path) -> None:
    code = READ + (
        "    print(json.dumps([{'response': '  '}, {'response': None}, {'error': 'no  idea'}]"
        "[int(q['id']) - 1]))\n"
    )
    done = run("reply", "-", "-s", program(tmp_path, code), stdin=CONTEXTS)
    assert done.returncode == 0, done.stderr
    for reason in ("the reply is empty", "the program gave no reply", "no idea"):
        assert f"1 contexts without a reply: {reason}\n".encode() in done.stderr


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        (
            READ + "    print(json.dumps({'response': 'x'}), flush=True)\n    1 / 0\n",
            "bot.py':2: the program ended with exit code 1; it said: Traceback",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "':1: the program ended with"),
        ("print('Loading the model …')", '\':1: not JSON, expected {"response": "…"}'),
        ("print('{}')", '\':1: no reply, expected {"response"'),
        ("print('[1]')", "':1: Expected `object`, got `array`"),
        ("print('{\"response\": 7}')", "':1: Expected `str | null`, got `int`"),
        ("pass", "':1: the program ended after 0 of 3 replies"),
        ('print(\'{"response": "x"}\')', "':2: the program ended after 1 of 3 replies"),
        ('print(\'{"response": "x"}\\n\' * 4)', "':4: one reply too many"),
        ('print(\'{"id": 9, "response": "x"}\')', "':1: there is no context with the id 9"),
        ('print(\'{"id": 1, "response": "x"}\\n\' * 2)', "':2: a second reply to"),
        (
            'print(\'{"id": 1, "response": "x"}\\n{"response": "x"}\')',
            "':2: some lines have an id, others have none",
        ),
    ],
)
def test_programs_that_fail(run: Run, tmp_path: Path, code: str, complaint: str) -> None:
    done = run("reply", "-", "-s", program(tmp_path, code), stdin=CONTEXTS)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count(b"\n") == 1
    assert complaint in done.stderr.decode()
    assert not done.stdout


def test_a_program_that_hangs_is_ended(run: Run, tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pids', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "print('thinking', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )
    spec = program(tmp_path, code).replace(")", ",timeout=2)")
    start = time.monotonic()
    done = run("reply", "-", "-s", spec, stdin=CONTEXTS)
    assert done.returncode == 3
    assert time.monotonic() - start < 30
    assert b":1: nothing was written for 2 s, so the program was ended; it said: thinking" in (
        done.stderr
    )
    for pid in (tmp_path / "pids").read_text().split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().split()[2] == "Z"


def test_there_is_no_shell(run: Run, tmp_path: Path) -> None:
    done = run("reply", "-", "-s", 'command(run="cat; touch stolen")', stdin=CONTEXTS)
    assert done.returncode == 4
    assert b"the program 'cat;' cannot be started: no such file" in done.stderr
    assert not (tmp_path / "stolen").exists()
    for spec, complaint in (
        ('command(run="")', b"run is empty"),
        ('command(run="a \'b")', b"run is no command: no closing quotation"),
        ("command(run=a,timeout=0)", b"timeout=0.0 is not above 0"),
    ):
        done = run("reply", "-", "-s", spec, stdin=CONTEXTS)
        assert done.returncode == 2
        assert complaint in done.stderr


def test_many_contexts_do_not_block_the_pipes(run: Run, tmp_path: Path) -> None:
    """A megabyte in each direction, written before anything is read."""
    code = (
        "import sys\nprint('{\"response\": \"' + 'x' * 2000 + '\"}\\n' * 1, end='', flush=True)\n"
        + READ
        + "    if q['id'] != '1': print('{\"response\": \"' + 'x' * 2000 + '\"}')\n"
    )
    lines = (json.dumps({"context": [f"{n} " * 200]}) for n in range(600))
    spec = program(tmp_path, code)
    done = run("reply", "-", "-s", spec, stdin="\n".join(lines).encode())
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 600

"""Cells of tab-separated files that begin with a quote: quoted by a spreadsheet, or plain text."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rejoinder.cli.main import run
from rejoinder.errors import DataError
from rejoinder.files.tables import CsvRows

LIMIT = 2**20


def cells(content: str, limit: int = LIMIT) -> list[list[str]]:
    """The rows of a file with the columns id and response."""
    stream = io.BytesIO(f"id\tresponse\n{content}".encode())
    return [list(row.values()) for _, row in CsvRows(stream, "i.tsv", "\t", limit)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('1\t"Yes," he said\n2\tno\n', [['"Yes," he said'], ["no"]]),  # begins with a quote
        ('1\t"What\n2\tno\n', [['"What'], ["no"]]),  # a quote that is never closed
        ('1\t"Yes" and "no"\n', [['"Yes" and "no"']]),  # begins and ends with one
        ('1\t5" wide\n', [['5" wide']]),  # one inside
        ('1\t"What\n2\tit is 5" wide\n', [['"What'], ['it is 5" wide']]),  # text follows
        ('1\t"\n2\tno\n', [['"'], ["no"]]),
        ('1\t"quoted"\n', [["quoted"]]),
        ('1\t"he said ""yes"""\n', [['he said "yes"']]),
        ('1\t""\n', [[""]]),
        ('1\t"a\tb"\n', [["a\tb"]]),  # three cells if the quotes were text
        ('1\t"a\nb"\n2\tc\n', [["a\nb"], ["c"]]),  # line 3 has one cell: the quotes are not text
        ('1\t"a\n\nb"\n', [["a\n\nb"]]),
        ('1\t"a\r\nb"\r\n2\tc\r\n', [["a\r\nb"], ["c"]]),
    ],
)
def test_quotes(content: str, expected: list[list[str]]) -> None:
    assert [[reply] for _, reply in cells(content)] == expected


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        # one row with the reply 'hello⏎2⇥y', or two rows: each line has two cells
        ('1\t"hello\n2\ty"\n', "i.tsv:2: a quote opens a cell that ends in line 3, but it may"),
        # the cells '1⇥a' and '', or '"1' and 'a"' with an empty third one
        ('"1\ta"\t\n', "i.tsv:2: a quote opens a cell that ends in line 2, but it may"),
        ('1\t"he said \\"yes\\""\n', 'i.tsv:2: quotes inside a quoted cell are written \\"'),
        ('1\ta\n2\t"a\tb\n', "i.tsv:3: broken row: a quote is opened and never closed"),
        ('1\t"a\t"b"\n', "i.tsv:2: broken row: text follows a closing quote"),
        ('1\t"a\tb"\tc\n', "i.tsv:2: the row has 3 cells, the header 2"),
        ("1\n", "i.tsv:2: the row has 1 cells, the header 2"),
    ],
)
def test_refused(content: str, complaint: str) -> None:
    with pytest.raises(DataError, match=re.escape(complaint)):
        cells(content)


def test_a_quote_that_is_not_closed_for_long() -> None:
    """The closing quote is looked for in as many characters as a row may have."""
    content = '0\t"What\n' + "".join(f"{n}\tx\n" for n in range(1, 100)) + '100\ty"\n'
    assert cells(content, limit=200)[:2] == [["0", '"What'], ["1", "x"]]
    with pytest.raises(DataError, match=r"i\.tsv:2: a quote opens a cell that ends in line 102"):
        cells(content)


texts = st.text('ab"\t\n, \\', max_size=6)


@example(['\\"\n'])  # its first line looks like a cell with \"
@given(st.lists(texts, min_size=1, max_size=4))
def test_what_a_spreadsheet_writes_is_read_or_refused(replies: list[str]) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, dialect="excel-tab")
    writer.writerows([str(n), reply] for n, reply in enumerate(replies))
    try:
        assert [reply for _, reply in cells(stream.getvalue())] == replies
    except DataError as error:
        assert "it may belong to the text" in str(error)
        assert any("\t" in reply and "\n" in reply for reply in replies)


@given(st.lists(texts.map(lambda text: re.sub(r"\s", " ", text)), min_size=1, max_size=4))
def test_what_is_written_without_quoting_is_read_or_refused(replies: list[str]) -> None:
    """Only a text that is quoted as a whole loses its quotes."""
    quoted = re.compile(r'"(([^"]|"")*)"')
    expected = [
        match[1].replace('""', '"') if (match := quoted.fullmatch(reply)) else reply
        for reply in replies
    ]
    try:
        read = cells("".join(f"{n}\t{reply}\n" for n, reply in enumerate(replies)))
        assert [reply for _, reply in read] == expected
    except DataError as error:
        refusal = re.search(r"it may belong to the text|are written \\\"", str(error))
        assert refusal
        assert sum(reply.count('"') for reply in replies) > 1


def test_join_converts_a_tsv_file_of_plain_texts(tmp_path: Path) -> None:
    (tmp_path / "i.tsv").write_text('response\treference\n"Yes\tYes\nhe said "no"\t"No," he said\n')
    out = tmp_path / "items.jsonl"
    assert run(["join", str(tmp_path / "i.tsv"), "-o", str(out)]) == 0
    items = [json.loads(line) for line in out.read_text().splitlines()]
    assert [item["response"] for item in items] == ['"Yes', 'he said "no"']
    assert items[1]["references"] == [{"text": '"No," he said'}]

"""Every reader on hand-written records and on the real files; cutting, damage, hashed authors."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from archive import make_archive, reject_kind
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.errors import DataError, UsageError
from rejoinder.files.jsonl import MAX_LINE_BYTES
from rejoinder.logs.read import BATCH_ROWS, MAX_CHARACTERS, read_chunk
from rejoinder.logs.readers import lines as lines_module
from rejoinder.logs.readers.likely_format import likely_format
from rejoinder.logs.readers.lines import Chunk, Lines, cut
from rejoinder.logs.readers.reader import DELETED, Reader, Turn, dialogue, make_reader
from rejoinder.logs.readers.times import BadTime, microseconds
from rejoinder.logs.schema import POSTS
from rejoinder.registry import READERS

Row = dict[str, Any]
SALT = b"sea salt"


def rows(reader: Reader, path: Path | str, size: int = 2**25, salt: bytes = SALT) -> list[Row]:
    found: list[Row] = []
    for chunk in reader.chunk(str(path), size):
        for batch in read_chunk(reader, chunk, salt):
            assert batch.schema.equals(POSTS)
            assert batch.num_rows <= BATCH_ROWS
            found += batch.to_pylist()
    return found


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Lines of a format → rows."""

    def run(spec: str, *lines: Any) -> list[Row]:
        path = tmp_path / "log"
        texts = [
            line if isinstance(line, bytes) else
            (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)).encode()
            for line in lines
        ]  # fmt: skip
        path.write_bytes(b"\n".join(texts) + b"\n")
        return rows(READERS.make(spec), path)

    return run


def said(found: Iterable[Row]) -> list[str]:
    return [row["text"] for row in found]


# --- times


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("Tue Jun 20 00:58:40 +0000 2017", datetime(2017, 6, 20, 0, 58, 40)),
        ("Tue Jun 20 00:58:40 PDT 2017", datetime(2017, 6, 20, 7, 58, 40)),
        ("Tue Jun 20 00:58:40 +0930 2017", datetime(2017, 6, 19, 15, 28, 40)),
        ("2017-06-20T00:58:40.000Z", datetime(2017, 6, 20, 0, 58, 40)),
        ("2022-08-06T14:51:18.360000", datetime(2022, 8, 6, 14, 51, 18, 360000)),
        ("2017-06-20T09:58:40+09:00", datetime(2017, 6, 20, 0, 58, 40)),
        ("2017-06-20", datetime(2017, 6, 20)),
        (1497920320, datetime(2017, 6, 20, 0, 58, 40)),
        (1497920320.5, datetime(2017, 6, 20, 0, 58, 40, 500000)),
        ("1497920320", datetime(2017, 6, 20, 0, 58, 40)),
        (1497920320000, datetime(2017, 6, 20, 0, 58, 40)),
    ],
)
def test_times(time: str | float, expected: datetime) -> None:
    assert microseconds(time) == round(expected.replace(tzinfo=UTC).timestamp() * 1e6)


@pytest.mark.parametrize(
    "time",
    [
        "Thu Feb 30 12:00:00 +0000 2017",
        "Tue Jun 20 24:58:40 +0000 2017",
        "Tue Jun 20 00:58:40 XYZ 2017",
        "Tue Foo 20 00:58:40 +0000 2017",
        "Tue Jun 20 00-58-40 +0000 2017",
        "2017-13-01T00:00:00Z",
        "yesterday",
        "",
        -1,
        1e18,
        float("nan"),
        float("inf"),
        True,
    ],
)
def test_impossible_times(time: str | float) -> None:
    with pytest.raises(BadTime, match="expected ISO 8601, epoch seconds or Twitter's format"):
        microseconds(time)


# --- twitter

V1 = {
    "created_at": "Tue Jun 20 00:58:40 +0000 2017",
    "id": 877000000000000001,
    "id_str": "877000000000000001",
    "text": "good morning",
    "user": {"id": 42, "id_str": "42", "screen_name": "ada"},
    "source": '<a href="http://example.com" rel="nofollow">Twitter for iPhone</a>',
    "entities": {"user_mentions": []},
    "lang": "en",
}
V2 = {
    "id": "877000000000000001",
    "text": "good morning",
    "author_id": "42",
    "created_at": "2017-06-20T00:58:40.000Z",
    "source": "Twitter for iPhone",
    "lang": "en",
}


def test_both_api_versions_of_twitter_give_the_same_posts(read: Any) -> None:
    first, second = read("twitter", V1, V2)
    assert first | {"line": 2} == second
    assert first["id"] == "877000000000000001"
    assert first["time"] == datetime(2017, 6, 20, 0, 58, 40, tzinfo=UTC)
    assert (first["label"], first["client"]) == ("en", "Twitter for iPhone")
    assert (first["kind"], first["reject"], first["parent"]) == ("posts", None, None)


LINKS: list[tuple[dict[str, Any], str | None, bool, bool]] = [
    # fields, parent, retweet, mention
    (V1 | {"in_reply_to_status_id_str": "7"}, "7", False, False),
    (V1 | {"in_reply_to_status_id": 7, "in_reply_to_status_id_str": None}, "7", False, False),
    (V1 | {"retweeted_status": {"id": 3}}, None, True, False),
    (V1 | {"retweeted_status": None}, None, False, False),
    (V1 | {"text": "RT @bob: hello"}, None, True, False),
    (V1 | {"is_quote_status": True, "quoted_status_id": 5}, None, False, True),
    (V1 | {"entities": {"user_mentions": [{"id": 1}]}}, None, False, True),
    (
        V1 | {"entities": {"user_mentions": [{"id": 1}]}, "in_reply_to_status_id_str": "7"},
        "7",
        False,
        False,
    ),
    (V2 | {"referenced_tweets": [{"type": "replied_to", "id": "7"}]}, "7", False, False),
    (V2 | {"referenced_tweets": [{"type": "retweeted", "id": "7"}]}, None, True, False),
    (V2 | {"referenced_tweets": [{"type": "quoted", "id": "7"}]}, None, False, True),
    (V2 | {"entities": {"mentions": [{"username": "bob"}]}}, None, False, True),
    (V2 | {"text": "hello @bob"}, None, False, True),
    (V2 | {"text": "write to bob@example.com"}, None, False, False),
    (V2 | {"text": "hello @bob", "entities": {}}, None, False, False),
]


@pytest.mark.parametrize(("record", "parent", "retweet", "mention"), LINKS)
def test_twitter_links(
    read: Any, record: Row, parent: str | None, retweet: bool, mention: bool
) -> None:
    (row,) = read("twitter", record)
    assert (row["parent"], row["retweet"], row["mention"]) == (parent, retweet, mention)


def test_twitter_long_texts_are_complete(read: Any) -> None:
    v1 = V1 | {"text": "cut …", "truncated": True, "extended_tweet": {"full_text": "the whole"}}
    full = {key: value for key, value in V1.items() if key != "text"} | {"full_text": "the whole"}
    v2 = V2 | {"note_tweet": {"text": "the whole"}}
    assert said(read("twitter", v1, full, v2)) == ["the whole"] * 3


def test_twitter_api_responses_are_unwrapped(read: Any) -> None:
    bad = V2 | {"created_at": "never"}
    found = read("twitter", {"data": V2}, {"data": [V2, bad, V2 | {"id": "9"}], "includes": {}})
    assert [row["line"] for row in found] == [1, 2, 2, 2]
    assert [row["reject"] is None for row in found] == [True, True, False, True]


def without(record: Row, *names: str) -> Row:
    return {key: value for key, value in record.items() if key not in names}


BAD: list[tuple[str, Any, str]] = [
    ("twitter", without(V1, "id", "id_str"), "missing: id"),
    ("twitter", without(V1, "text"), "missing: text"),
    ("twitter", without(V1, "user"), "missing: user or author_id"),
    ("twitter", V1 | {"user": {}}, "missing: user or author_id"),
    ("twitter", without(V2, "author_id"), "missing: user or author_id"),
    ("twitter", without(V2, "created_at"), "missing: created_at"),
    ("twitter", V2 | {"created_at": "2017-02-30"}, "time: '2017-02-30' is not a time"),
    ("twitter", V2 | {"text": 5}, "text: expected text or null, got a whole number"),
    ("twitter", V1 | {"in_reply_to_status_id_str": V1["id_str"]}, "answers itself"),
    ("twitter", V2 | {"text": "a" * (MAX_CHARACTERS + 1)}, "100,001 characters"),
    ("twitter", {"delete": {"status": {"id": 1}}}, DELETED),
    ("twitter", b'{"id": 1, "text": "cut o', "broken JSON"),
    ("twitter", b'{"id": "1", "text": "lone \\ud800"}', "broken JSON"),
    ("twitter", b"[1, 2]", "expected an object"),
    ("twitter", b"[" * 100_000, "expected an object"),
    ("twitter", b'{"x":' * 100_000, "broken JSON"),
    ("twitter", b'{"id": "1", "text": "\xff"}', "not UTF-8"),
    ("reddit", {"id": "a", "created_utc": 1}, "missing: body"),
    ("reddit", {"body": "hi", "created_utc": 1}, "missing: id"),
    ("reddit", {"id": "a", "body": "hi", "created_utc": 1}, "missing: parent_id"),
    ("reddit", {"id": "a", "title": "hi"}, "missing: created_utc"),
    ("reddit", {"id": "a", "body": "[removed]", "parent_id": "t3_b"}, DELETED),
    ("reddit", {"id": "a", "title": "hi", "selftext": "[deleted]"}, DELETED),
    ("messages", {"speaker": "a", "text": "hi"}, "missing: dialogue_id"),
    ("messages", {"dialogue_id": 1, "text": "hi"}, "missing: speaker"),
    ("messages", {"dialogue_id": 1, "speaker": "a"}, "missing: text"),
    ("messages", {"dialogue_id": 1, "speaker": "a", "text": "hi", "time": "x"}, "is not a time"),
    ("chat", {"id": 1}, "missing: messages"),
    ("chat", {"messages": []}, "no turn with text"),
    ("chat", {"messages": [{"role": "system", "content": "be nice"}]}, "no turn with text"),
    ("chat", {"messages": [{"role": "narrator", "content": "hi"}]}, "messages[0].role: 'narrator'"),
    ("chat", {"messages": [{"role": "user", "content": 1}]}, "messages[0].content: expected"),
    ("tsv", "\t\t \t.".replace(".", ""), None),
    ("dailydialog", "no end of an utterance", "no __eou__"),
    ("dailydialog", "__eou__ __eou__", "no turn with text"),
    ("self-dialogue", {"turns": ["a"]}, "missing: worker"),
    ("self-dialogue", {"worker": "w", "turns": ["a"], "submitted": "soon"}, "is not a time"),
    ("real-persona-chat", {"turns": [{"speaker": "AA"}]}, "missing: text"),
    ("empatheticdialogues", {"id": "hit:1"}, "missing: turns"),
    ("empatheticdialogues", {"turns": [["speaker"]]}, "turns[0]"),
    ("empatheticdialogues", {"turns": []}, "no turn with text"),
]


@pytest.mark.parametrize(("spec", "record", "reason"), BAD)
def test_bad_records_are_rejects(read: Any, spec: str, record: Any, reason: str | None) -> None:
    found = read(spec, record)
    if reason is None:  # a blank line
        assert found == []
        return
    (row,) = found
    assert reason.lower() in row["reject"].lower()
    assert len(row["text"]) <= 500
    assert row["line"] == 1


def test_a_bad_record_does_not_affect_others(read: Any) -> None:
    found = read("twitter", V2, b"\xff\xfe", b"", b"  ", b"{", V2 | {"id": "5"})
    assert [row["line"] for row in found] == [1, 2, 5, 6]
    assert [row["reject"] is None for row in found] == [True, False, False, True]


def test_deep_nesting_among_unread_fields(read: Any) -> None:
    (row,) = read("twitter", json.dumps(V2)[:-1].encode() + b', "x": ' + b"[" * 5000)
    assert "broken JSON" in row["reject"]


# --- the other formats


def test_reddit(read: Any) -> None:
    post = {"id": "a", "author": "ada", "created_utc": "1497920320", "title": "T", "selftext": "S"}
    comment = {"id": "b", "author": "[deleted]", "created_utc": 1497920320, "body": "B"}
    found = read(
        "reddit",
        post,
        comment | {"parent_id": "t3_a", "link_id": "t3_a"},
        comment | {"id": "t1_c", "parent_id": "t1_b"},
        post | {"id": "d", "crosspost_parent": "t3_a", "selftext": ""},
    )
    assert [(row["id"], row["parent"]) for row in found] == [
        ("t3_a", None),
        ("t1_b", "t3_a"),
        ("t1_c", "t1_b"),
        ("t3_d", None),
    ]
    assert said(found) == ["T S", "B", "B", "T"]
    assert [row["author"] is None for row in found] == [False, True, True, False]
    assert [row["retweet"] for row in found] == [False, False, False, True]
    assert {row["time"] for row in found} == {datetime(2017, 6, 20, 0, 58, 40, tzinfo=UTC)}


def test_messages_have_no_turn_and_no_parent(read: Any) -> None:
    message = {"dialogue_id": 1, "speaker": "a", "text": "hi", "time": 1497920320000}
    other = message | {"dialogue_id": "x"}
    found = read("messages", message, other, without(message, "time"))
    assert [(row["thread"], row["turn"], row["parent"], row["id"]) for row in found] == [
        ("1", None, None, "1"),
        ("x", None, None, "2"),
        ("1", None, None, "3"),
    ]
    assert found[2]["time"] is None
    assert len({row["author"] for row in found}) == 1
    assert len({row["author"] for row in read("messages(local=true)", message, other)}) == 2


MESSAGES = [
    ("7", "user", "2026-03-01 09:00:25", "hi\nthere"),
    ("7", "Bot", "2026-03-01 09:00:50", 'hello, "you"'),
    ("7", "ann", "", "bye"),
    ("8", "user", "", "hi"),
]


@pytest.mark.parametrize(("ending", "delimiter"), [("csv", ","), ("csv.gz", ";"), ("tsv", "\t")])
def test_messages_in_a_table_are_those_of_json_lines(
    read: Any, tmp_path: Path, ending: str, delimiter: str
) -> None:
    fields = ("dialogue_id", "speaker", "time", "text")
    stream = io.StringIO()
    header = ("Conversation ID", "sender", "timestamp", "message")
    csv.writer(stream, delimiter=delimiter).writerows([header, *MESSAGES])
    path = tmp_path / f"log.{ending}"
    content = stream.getvalue().encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    records = [dict(zip(fields, row, strict=True)) for row in MESSAGES]
    lines = [{name: cell for name, cell in record.items() if cell} for record in records]
    for spec in ("messages", "messages(local=true)", "messages(learn_from=all)"):
        reader = make_reader(spec)
        table, expected = rows(reader, path), read(spec, *lines)
        for name in ("text", "thread", "author", "time", "learn"):
            assert [row[name] for row in table] == [row[name] for row in expected], name
    # the second message of the file begins in its fourth line: the first has two
    assert [row["line"] for row in table] == [2, 4, 5, 6]
    assert reader.notes(str(path)) == [  # type: ignore[attr-defined]
        f"{path}: columns recognised by name: dialogue_id = Conversation ID, speaker = sender,"
        " text = message, time = timestamp",
        f"{path}: speakers read as roles: user as user (2 of 4 messages), Bot as assistant (1 of 4"
        " messages); if they are people, format='messages(roles=false)' reads them as such",
    ]


def test_speakers_that_are_roles(read: Any) -> None:
    """They are other people in every dialogue, and what the assistant wrote is context only."""
    lines = [
        {"dialogue_id": dialogue, "speaker": speaker, "text": "hi"}
        for dialogue in ("1", "2")
        for speaker in ("user", "Assistant", "ann")
    ]
    found = read("messages", *lines)
    assert [row["learn"] for row in found] == [True, False, True] * 2
    authors = [row["author"] for row in found]
    assert authors[2] == authors[5]  # ann is one person
    assert len(set(authors)) == 5
    learn = [row["learn"] for row in read("messages(learn_from=assistant)", *lines[:3])]
    assert learn == [False, True, True]


def test_people_who_are_called_like_roles(read: Any, tmp_path: Path) -> None:
    def said(*speakers: str) -> list[dict[str, str]]:
        return [{"dialogue_id": f"{n}", "speaker": s, "text": "hi"} for n, s in enumerate(speakers)]

    # Ai is a name; programs are called AI or ai
    found = read("messages", *said("Ai", "Ai", "AI", "ai"))
    assert [row["learn"] for row in found] == [True, True, False, False]
    assert len({row["author"] for row in found}) == 3
    found = read("messages(roles=false)", *said("Bot", "Bot", "ai", "user"))
    assert all(row["learn"] for row in found)
    assert len({row["author"] for row in found}) == 3
    with pytest.raises(UsageError, match="learn_from=all has no use with roles=false"):
        make_reader("messages(roles=false)", learn_from="all")


@pytest.mark.parametrize(
    ("speakers", "noted"),
    [
        (["ann", "bob", "Ai"], None),
        (["user", "bot", "user", "bot"], None),
        (["user", "User", "ai", "AI"], None),
        (["Human", "User"], "Human as user (1 of 2 messages), User as user (1 of 2 messages);"),
        (["ai", "ann", "ai"], "ai as assistant (2 of 3 messages); if they are people,"),
    ],
)
def test_speakers_that_may_be_people_are_noted(
    tmp_path: Path, speakers: list[str], noted: str | None
) -> None:
    lines = [json.dumps({"dialogue_id": 1, "speaker": each, "text": "hi"}) for each in speakers]
    (tmp_path / "log.jsonl").write_text("\n".join(["{", "7", "{}", *lines]))
    notes = make_reader("messages").notes(str(tmp_path / "log.jsonl"))  # type: ignore[attr-defined]
    assert len(notes) == (noted is not None)
    assert noted is None or noted in notes[0]
    assert not make_reader("messages(roles=false)").notes(str(tmp_path / "log.jsonl"))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("conversation,text\n1,hi\n", "no column holds the speaker; the columns are conversation,"),
        ("id,from,body\n1,a,hi\n", "rename the column to dialogue_id (or dialog_id, conv"),
        ("chat,from,body\n1,a,hi\n1,b\n", "log.csv:3: the row has 2 cells, the header 3"),
        ('chat,from,body\n1,a,"hi\n', "log.csv:2: broken row: a quote is opened and never closed"),
        ("", "the file is empty"),
    ],
)
def test_bad_tables_of_messages(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(DataError) as error:
        rows(make_reader("messages"), tmp_path / "log.csv")
    assert complaint in str(error.value)


def test_rows_without_speaker_or_with_a_wrong_time_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("chat,from,body,date\n1,,hi,\n1,a,hi,yesterday\n1,a,hi,2026-01-01\n")
    found = rows(make_reader("messages"), path)
    assert [row["reject"] is None for row in found] == [False, False, True]
    assert found[0]["reject"].startswith("the field is missing: speaker")
    assert "'yesterday' is not a time" in found[1]["reject"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "x,y", "messages"),
        ("a.jsonl", '{"messages": []}', "chat"),
        ("a.jsonl", '[{"role": "user", "content": "hi"}]', "chat"),
        ("a.jsonl", '{"dialogue_id": 1, "speaker": "a", "text": "b"}', "messages"),
        ("a.txt", "hi __eou__ hello __eou__", "dailydialog"),
        ("a.txt", "hi there", None),
        ("a.jsonl", '{"x": 1}', None),
        ("none.jsonl", None, None),
    ],
)
def test_the_likely_format(
    tmp_path: Path, name: str, content: str | None, expected: str | None
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert likely_format(str(tmp_path / name)) == expected


def test_chat(read: Any) -> None:
    record = {
        "id": "c1",
        "created": 1497920320,
        "messages": [
            {"role": "system", "content": "be nice"},
            {"role": "user", "content": "hi"},
            {"role": "user", "content": [{"type": "text", "text": "there"}, {"type": "image_url"}]},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "content": "42"},
            {"role": "assistant", "content": "hello"},
        ],
    }
    found = read("chat", record, record)
    assert said(found) == ["hi there", "hello"] * 2
    assert [(r["thread"], r["turn"], r["id"], r["parent"]) for r in found[:2]] == [
        ("1", 0, "1/0", None),
        ("1", 1, "1/1", "1/0"),
    ]
    assert len({row["author"] for row in found}) == 4
    assert found[0]["time"] == datetime(2017, 6, 20, 0, 58, 40, tzinfo=UTC)


@pytest.mark.parametrize(
    "record",
    [
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
        {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]},
        {"messages": [{"role": "human", "content": "hi"}, {"role": "bot", "content": "hello"}]},
    ],
)
def test_chat_logs_in_other_common_forms(read: Any, record: Any) -> None:
    found = read("chat", record)
    assert said(found) == ["hi", "hello"]
    assert [row["learn"] for row in found] == [True, False]
    assert [r["learn"] for r in read("chat(learn_from=assistant)", record)] == [False, True]
    assert [r["learn"] for r in read("chat(learn_from=all)", record)] == [True, True]


def test_learn_from_is_for_formats_with_roles() -> None:
    assert str(make_reader("chat", "assistant")) == "chat(learn_from=assistant)"
    assert str(make_reader("chat")) == "chat"
    with pytest.raises(UsageError, match="format 'tsv' has no roles"):
        make_reader("tsv", "user")
    with pytest.raises(UsageError, match="contradicts"):
        make_reader("chat(learn_from=all)", "user")
    with pytest.raises(UsageError, match="learn_from=bot is not one of user, assistant, all"):
        make_reader("chat", "bot")


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:00"])
def test_times_beyond_the_calendar_are_rejected(read: Any, time: str) -> None:
    (row,) = read("messages", {"dialogue_id": "1", "speaker": "a", "text": "hi", "time": time})
    assert row["reject"].startswith(f"time: '{time}' is not a time")


def test_tsv_and_dailydialog(read: Any) -> None:
    assert said(read("tsv", "one\ttwo\t\tthree")) == ["one", "two", "three"]
    assert said(read("dailydialog", "a b . __eou__ c __eou__")) == ["a b .", "c"]
    assert said(read("dailydialog", "a __eou__ c")) == ["a", "c"]
    assert said(read("dailydialog", "甲。__eou__乙__eou__\t1\t2 1\t0 0")) == ["甲。", "乙"]


def test_dailydialog_plusplus(read: Any) -> None:
    """Good replies answer one post; contexts that begin alike are one dialogue; wrong replies
    are not read."""
    record = {
        "context": ["may I help you?", " a room , please . "],
        "positive_responses": ["for how long?", "we are full .", "for how long?", " "],
        "adversarial_negative_responses": ["no room for doubt"],
        "random_negative_responses": [17],
    }
    other = {"context": ["may I help you?"], "positive_responses": ["just looking"]}
    found = read("dailydialog-plusplus", record, other)
    assert said(found) == [
        "may I help you?", "a room , please .", "for how long?", "we are full .",
        "may I help you?", "just looking",
    ]  # fmt: skip
    asked, wanted, *replies, again, looking = found
    assert asked["parent"] is None
    assert wanted["parent"] == asked["id"] == again["id"] == looking["parent"]
    assert {row["parent"] for row in replies} == {wanted["id"]}
    assert len({row["id"] for row in found}) == 5
    guest, clerk = wanted["author"], asked["author"]
    assert guest != clerk
    assert {row["author"] for row in (*replies, again)} == {clerk}
    assert looking["author"] == guest


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"positive_responses": ["a"]}, "context"),
        ({"context": ["a"]}, "positive_responses"),
        ({"context": [" "], "positive_responses": ["a"]}, "no turn with text"),
        ({"context": ["a"], "positive_responses": []}, "no good reply"),
        ({"context": "a", "positive_responses": ["b"]}, "context"),
    ],
)
def test_dailydialog_plusplus_bad_records(read: Any, record: Row, reason: str) -> None:
    (row,) = read("dailydialog-plusplus", record)
    assert reason in row["reject"]


def test_conversations_end_at_blank_and_bad_lines(read: Any) -> None:
    found = read("conversations", "\ufeffa", "b", "", "\u3000", "", "c", b"\xff", "d", "e")
    assert [(r["text"], r["line"], r["thread"], r["turn"]) for r in found if not r["reject"]] == [
        ("a", 1, "1", 0),
        ("b", 2, "1", 1),
        ("c", 6, "6", 0),
        ("d", 8, "8", 0),
        ("e", 9, "8", 1),
    ]
    assert [row["line"] for row in found if row["reject"]] == [7]


def test_self_dialogue_has_two_sides(read: Any) -> None:
    time = "Tue Jun 20 00:58:40 PDT 2017"
    record = {"worker": "W", "submitted": time, "turns": ["a", "b", "c"], "topic": "t", "id": "i"}
    found = read("self-dialogue", record)
    authors = [row["author"] for row in found]
    assert authors[0] == authors[2] != authors[1]
    assert found[0]["time"] == datetime(2017, 6, 20, 7, 58, 40, tzinfo=UTC)


def test_real_persona_chat_unknown_time(read: Any) -> None:
    turns = [
        {"speaker": "AA", "text": "はい", "time": "NaT"},
        {"speaker": "AB", "text": "うん", "time": "2022-08-06T14:51:18.360000"},
    ]
    first, second = read("real-persona-chat", {"id": 1, "turns": turns})
    assert first["time"] is None
    assert second["time"] == datetime(2022, 8, 6, 14, 51, 18, 360000, tzinfo=UTC)


def test_empathetic_dialogues_has_two_roles(read: Any) -> None:
    turns = [["speaker", "Well_comma_ it rained."], ["listener", "Oh no."], ["speaker", "Yes."]]
    found = read("empatheticdialogues", {"id": "hit:1_conv:2", "turns": turns})
    assert said(found) == ["Well, it rained.", "Oh no.", "Yes."]
    assert found[0]["author"] == found[2]["author"] != found[1]["author"]


def test_chitchat_from_a_file(tmp_path: Path) -> None:
    typed = {"sender": "s", "timestamp": "2018-05-02T19:38:15Z", "text": "hi"}
    other = typed | {"sender": "t", "text": "oh"}
    chats = {
        "a": {"messages": [[typed, typed], [other]]},
        "b": {"messages": [[{"text": "hi"}]]},
        "c": {"messages": [[typed | {"timestamp": "late"}]]},
        "d": {"messages": []},
    }
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(chats))
    found = rows(READERS.make("chitchat"), path)
    assert said(found)[:2] == ["hi hi", "oh"]
    reasons = [row["reject"] for row in found[2:]]
    assert "missing: sender" in reasons[0]
    assert "is not a time" in reasons[1]
    assert "no turn" in reasons[2]
    path.write_text("{")
    (row,) = rows(READERS.make("chitchat"), path)
    assert "expected the dataset.json" in row["reject"]


@given(st.lists(st.tuples(st.sampled_from(["", " ", "x", "y"]), st.sampled_from([None, "a", "b"]))))
def test_turns_of_a_dialogue(said_by: list[tuple[str, str | None]]) -> None:
    turns = [Turn(text, speaker) for text, speaker in said_by]
    if not "".join(text for text, _ in said_by).strip():
        with pytest.raises(ValueError, match="no turn"):
            dialogue(turns, "s", 1)
        return
    posts = dialogue(turns, "s", 1)
    assert [post.turn for post in posts] == list(range(len(posts)))
    assert [post.parent for post in posts] == [None, *(post.id for post in posts[:-1])]
    assert all(a.author != b.author for a, b in pairwise(posts))
    words = [word for text, _ in said_by for word in text.split()]
    assert " ".join(post.text for post in posts).split() == words


# --- the real files


@pytest.mark.parametrize(
    ("spec", "path", "dialogues", "turns"),
    [
        ("conversations", "twitter/conversations.txt", 1_925, 10_628),
        ("self-dialogue", "self-dialogue/dialogues.jsonl.gz", 24_186, 374_124),
        ("real-persona-chat", "real-persona-chat-ja/dialogues.jsonl.gz", 13_583, 408_619),
        # the file has 995 dialogues, whatever its description says
        ("dailydialog", "xdailydialog-zh/validation.txt", 995, 8_025),
        ("dailydialog", "dailydialog/test.txt", 1_000, 7_740),
        ("dailydialog", "dailydialog/validation.txt", 1_000, 8_069),
        ("empatheticdialogues", "empatheticdialogues/valid.jsonl.gz", 2_769, 12_074),
    ],
)
def test_real_files(data: Path, spec: str, path: str, dialogues: int, turns: int) -> None:
    reader = READERS.make(spec)
    (chunk,) = reader.chunk(str(data / path))
    table = pa.Table.from_batches(read_chunk(reader, chunk, SALT))
    assert table.num_rows == turns
    assert table["reject"].null_count == turns
    assert len(table["thread"].unique()) == dialogues
    assert len(table["id"].unique()) == turns
    assert table["turn"].to_numpy().min() == 0
    if spec == "dailydialog":
        texts = table["text"].to_pylist()
        assert not any("\t" in text or "__eou__" in text for text in texts)


def test_real_dailydialog_plusplus(data: Path) -> None:
    """7,641 contexts of 5 good replies, of which 3 stand twice: 7,638 posts are answered as the
    last of a context; their replies are posts with a parent that is there."""
    reader = READERS.make("dailydialog-plusplus")
    (chunk,) = reader.chunk(str(data / "dailydialog-plusplus/positives.jsonl"))
    table = pa.Table.from_batches(read_chunk(reader, chunk, SALT))
    assert table["reject"].null_count == table.num_rows
    rows = table.select(["id", "parent", "line"]).to_pylist()
    known = {row["id"] for row in rows}
    assert {row["parent"] for row in rows} - {None} <= known
    last_of_line = {row["line"]: row["parent"] for row in rows}
    assert (len(last_of_line), len(set(last_of_line.values()))) == (7_641, 7_638)


def test_chitchat_package() -> None:
    import chitchat_dataset as dataset

    typed = [u for _, m in _chitchat(dataset) for part in m for u in part]
    assert len(typed) == 258_145
    reader = READERS.make("chitchat")
    (chunk,) = reader.chunk("chitchat-dataset")
    table = pa.Table.from_batches(read_chunk(reader, chunk, SALT))
    # typed in a row is one turn: 138,737 messages, of which 12 are empty
    assert table.num_rows == 138_716
    assert len(table["thread"].unique()) == 7_168
    assert table["reject"].null_count == table.num_rows
    size = sum(len("".join(u["text"].split())) for u in typed)
    assert sum(len("".join(text.split())) for text in table["text"].to_pylist()) == size


def _chitchat(dataset: Any) -> Iterable[tuple[str, list[list[Row]]]]:
    document = Path(dataset.__file__).with_name("dataset.json").read_bytes()
    return ((key, chat["messages"]) for key, chat in json.loads(document).items())


# --- cutting


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=40),
    st.integers(1, 40),
    st.integers(1, 30),
    st.booleans(),
)
def test_any_cut_gives_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], size: int, block: int, end: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.txt"
    path.write_bytes(b"\n".join(texts) + (b"\n" if end else b""))
    whole = _lines(Chunk(str(path)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "BLOCK", block)
        chunks = cut(str(path), size)
        parts = [_lines(chunk) for chunk in chunks]
    assert [line for part, _ in parts for line in part] == whole[0]
    assert [bad for _, part in parts for bad in part] == whole[1]
    assert chunks[0].start == 0
    assert chunks[-1].end == path.stat().st_size
    assert all(a.end == b.start for a, b in pairwise(chunks))


def _lines(chunk: Chunk) -> tuple[list[tuple[int, bytes]], list[Any]]:
    lines = Lines(chunk)
    return list(lines), lines.bad


@pytest.mark.parametrize("size", [1, 1000, 50_000, 10**9])
def test_any_chunk_size_gives_the_same_posts(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.jsonl"
    make_archive(path, 300, 5, rates={"long": 0})
    reader = READERS.make("twitter")
    whole = rows(reader, path)
    assert rows(reader, path, size) == whole


def test_records_that_span_lines_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\nb\n\nc\nd\n")
    assert READERS.make("conversations").chunk(str(path), 1) == [Chunk(str(path))]
    packed = tmp_path / "a.tsv.gz"
    packed.write_bytes(gzip.compress(b"a\tb\n" * 10))
    assert READERS.make("tsv").chunk(str(packed), 1) == [Chunk(str(packed))]


@pytest.mark.parametrize("name", ["no.jsonl", "no.jsonl.gz", "folder", "folder.zst"])
@pytest.mark.parametrize("spec", ["twitter", "conversations", "chitchat"])
def test_an_input_that_cannot_be_read(tmp_path: Path, spec: str, name: str) -> None:
    for folder in ("folder", "folder.zst"):
        (tmp_path / folder).mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        READERS.make(spec).chunk(str(tmp_path / name))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_empty_archives(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    assert rows(READERS.make("twitter"), path) == []
    make_archive(path, 0, 1)
    assert rows(READERS.make("twitter"), path) == []


# --- long lines, big batches


def test_too_long_lines_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    size = MAX_LINE_BYTES
    path.write_bytes(b"a\tb\n" + b"x" * (size + 5) + b"\nc\td\n" + b"y" * (size + 1))
    for chunk_size in (2**25, 2**20):
        found = rows(READERS.make("tsv"), path, chunk_size)
        assert [(row["line"], row["text"][:1]) for row in found] == [
            (1, "a"),
            (1, "b"),
            (2, "x"),
            (3, "c"),
            (3, "d"),
            (4, "y"),
        ]
        assert "longer than 16 MB" in found[2]["reject"]
        assert len(found[2]["text"]) == 500


def test_batches_stay_small(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(("x" * 90_000 + "\t" + "y" * 90_000 + "\n") * 60)
    reader = READERS.make("tsv")
    batches = list(read_chunk(reader, reader.chunk(str(path))[0], SALT))
    assert sum(batch.num_rows for batch in batches) == 120
    assert max(batch.nbytes for batch in batches) < 10 * 2**20


# --- compressed, cut off, damaged


def packed(name: str, content: bytes) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(content, mtime=0)
    return zstandard.ZstdCompressor().compress(content)


CONTENT = "".join(f"hello {n}, how is number {n * 7919 % 1009}?\tfine {n}\n" for n in range(5000))


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.tsv.zst"])
def test_compressed_is_the_same_as_plain(tmp_path: Path, name: str) -> None:
    plain, path = tmp_path / "a.tsv", tmp_path / name
    plain.write_text(CONTENT)
    half = len(CONTENT) // 2
    # two frames, one behind the other, and the padding of a tape
    parts = [packed(name, part.encode()) for part in (CONTENT[:half], CONTENT[half:])]
    path.write_bytes(b"".join(parts) + b"\0" * 1000)
    reader = READERS.make("tsv")
    assert said(rows(reader, path)) == said(rows(reader, plain))


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.tsv.zst"])
@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.9999])
def test_a_cut_off_file(tmp_path: Path, name: str, share: float) -> None:
    path = tmp_path / name
    # several frames or blocks, so that something can be read before the cut
    whole = packed(name, CONTENT.encode()) if name.endswith("gz") else _frames()
    path.write_bytes(whole[: max(3, int(len(whole) * share))])
    *good, last = rows(READERS.make("tsv"), path)
    assert "damaged or cut off here (its end is missing)" in last["reject"]
    assert all(row["reject"] is None for row in good)
    expected = [text for line in CONTENT.splitlines() for text in line.split("\t")]
    assert said(good) == expected[: len(good)]
    if share > 0.2:
        assert len(good) > 0.7 * share * len(expected)
    assert last["line"] == len(good) // 2 + 1


def _frames() -> bytes:
    """A frame with a block every few KB, as a long file has."""
    out = io.BytesIO()
    raw = CONTENT.encode()
    with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
        for begin in range(0, len(raw), 4096):
            writer.write(raw[begin : begin + 4096])
            writer.flush(zstandard.FLUSH_BLOCK)
    return out.getvalue()


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.tsv.zst"])
def test_a_damaged_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    whole = bytearray(packed(name, CONTENT.encode()))
    whole[len(whole) // 2 : len(whole) // 2 + 50] = b"\xff" * 50
    path.write_bytes(whole)
    found = rows(READERS.make("tsv"), path)
    assert "damaged or cut off here" in found[-1]["reject"]
    path.write_bytes(b"this is not compressed at all")
    (row,) = rows(READERS.make("tsv"), path)
    assert "damaged or cut off here" in row["reject"]


def test_long_windows_of_reddit_dumps(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    parameters = zstandard.ZstdCompressionParameters(window_log=28)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(writer.compress(b"a\tb\n") + writer.flush())
    with pytest.raises(zstandard.ZstdError):
        zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    assert said(rows(READERS.make("tsv"), path)) == ["a", "b"]


# --- authors


def test_authors_are_hashed_with_the_salt(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = V1 | {"user": {"id_str": "secretary-4711", "screen_name": "ada_l"}}
    other = V2 | {"author_id": "grace-4712"}
    path.write_text("\n".join(json.dumps(r) for r in (record, record, other)))
    reader = READERS.make("twitter")
    found = rows(reader, path)
    assert not any(name in str(found) for name in ("4711", "ada_l", "4712"))
    first, second, third = (row["author"] for row in found)
    assert first == second != third
    assert len(first) == 16
    int(first, 16)
    assert [row["author"] for row in rows(reader, path)] == [first, second, third]
    for salt in (b"pepper", b"", b"long" * 50):
        assert rows(reader, path, salt=salt)[0]["author"] != first


# --- planted archives, as far as a reader can see them


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_planted_archives(tmp_path: Path, language: str, version: int, ending: str) -> None:
    path = tmp_path / f"a.jsonl{ending}"
    truth = make_archive(path, 2000, 7, language=language, version=version, rates={"long": 1})
    found = rows(READERS.make("twitter"), path)
    kinds = Counter(row["reject"] and reject_kind(row["reject"]) for row in found)
    assert kinds == Counter(planted.reject for planted in truth.posts)
    by_line = {row["line"]: row for row in found}
    assert len(by_line) == len(found) == len(truth.posts)
    for planted in truth.posts:
        row = by_line[planted.line]
        assert (row["reject"] and reject_kind(row["reject"])) == planted.reject
        if planted.reject is None:
            assert (row["id"], row["parent"]) == (planted.id, planted.parent)
            assert (row["retweet"], row["mention"]) == (planted.retweet, planted.mention)


@pytest.mark.parametrize("version", [1, 2])
def test_simple_archives(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.jsonl"
    truth = make_archive(path, 5000, 7, version=version, simple=True)
    found = rows(READERS.make("twitter"), path)
    assert len(found) == truth.counts["posts"] >= 5000
    assert len({row["id"] for row in found}) == len(found)
    assert sum(row["retweet"] for row in found) == truth.counts["retweets"]
    assert not any(row["reject"] or row["mention"] for row in found)


def test_the_same_seed_makes_the_same_archive(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        make_archive(path, 500, seed)
    one, same, other = (path.read_bytes() for path in paths)
    assert one == same != other


def test_every_reader_is_registered_and_prints() -> None:
    for name in READERS.names():
        reader = READERS.make(name)
        assert reader.name == name == str(reader)
        assert reader.kind in ("posts", "dialogue")
        assert reader.summary

"""The log pipeline: the known pairs of generated archives, the same on every engine."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from archive import Truth, make_archive, reject_kind

from rejoinder.errors import DataError
from rejoinder.logs.bot_filters import BotFilters
from rejoinder.logs.clean import Cleaning
from rejoinder.logs.pipeline import Settings, make_pairs
from rejoinder.logs.schema import PAIRS
from rejoinder.logs.split import Split
from rejoinder.logs.threads import Threads
from rejoinder.registry import READERS

SALT = "pepper"


def settings(format: str, language: str = "en", **options: object) -> Settings:
    options.setdefault("cleaning", Cleaning.for_language(language))
    return Settings(reader=READERS.make(format), salt=SALT, **options)  # type: ignore[arg-type]


def rows(path: Path) -> list[dict[str, Any]]:
    table = pq.read_table(path)
    assert table.schema.equals(PAIRS)
    return table.to_pylist()


def hashed(key: str) -> str:
    return hashlib.md5(f"{SALT}:{key}".encode()).hexdigest()


def expected_rows(truth: Truth, turns: int) -> list[tuple[object, ...]]:
    return sorted(
        (
            hashed(pair.root),
            pair.turn,
            tuple(pair.context[-turns:]) if turns else (),
            pair.utterance,
            pair.response,
            hashed(pair.utterance_id),
            hashed(pair.response_id),
        )
        for pair in truth.pairs
    )


def found_rows(path: Path) -> list[tuple[object, ...]]:
    names = (
        "dialogue_id",
        "turn",
        "context",
        "utterance",
        "response",
        "utterance_id",
        "response_id",
    )
    return sorted(
        tuple(tuple(r[n]) if n == "context" else r[n] for n in names)  # type: ignore[arg-type]
        for r in rows(path)
    )


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("version", [1, 2])
def test_planted_truth_filter_by_filter(tmp_path: Path, language: str, version: int) -> None:
    archive = tmp_path / ("archive.jsonl.gz" if version == 2 else "archive.jsonl")
    truth = make_archive(archive, 6000, seed=7, language=language, version=version, rate_bots=2)
    output = tmp_path / "pairs.parquet"
    report = make_pairs([str(archive)], output, settings("twitter", language))
    assert found_rows(output) == expected_rows(truth, turns=4)
    removed = Counter(post.removed for post in truth.posts if post.removed)
    assert report.removed == dict(removed)
    changed = Counter(name for post in truth.posts for name in post.changed)
    mine = {name: count for name, count in report.changed.items() if name != "spaces"}
    assert mine == {name: count for name, count in changed.items() if name != "spaces"}
    assert report.records == len(truth.posts)
    assert report.retweets == sum(p.retweet and not p.reject and not p.removed for p in truth.posts)
    assert report.pairs == len(truth.pairs)
    assert report.utterances == truth.counts["utterances"]
    assert report.several == truth.counts["several"]
    assert report.dialogues == truth.counts["dialogues"]
    rejects = [
        json.loads(line) for line in (tmp_path / "pairs.rejects.jsonl").read_bytes().splitlines()
    ]
    planted = Counter((p.line, p.reject) for p in truth.posts if p.reject)
    assert Counter((r["line"], reject_kind(r["reason"])) for r in rejects) == planted
    assert sum(report.rejects.values()) == len(rejects)
    assert sorted(os.listdir(tmp_path)) == sorted(
        [archive.name, "pairs.manifest.json", "pairs.parquet", "pairs.rejects.jsonl"]
    )


def test_filters_can_be_switched_off(tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    truth = make_archive(archive, 3000, seed=3, rate_bots=1)
    cleaning = Cleaning.for_language("en", off=["short", "language"])
    bot_filters = BotFilters(off=("bot-rate", "duplicate"))
    report = make_pairs(
        [str(archive)],
        tmp_path / "p.parquet",
        settings("twitter", cleaning=cleaning, bot_filters=bot_filters),
    )
    assert not {"short", "language", "bot-rate", "duplicate"} & set(report.removed)
    assert report.removed["repeated-id"] == truth.counts["removed:repeated-id"]
    nothing = BotFilters(off=BotFilters.names)
    report = make_pairs(
        [str(archive)],
        tmp_path / "q.parquet",
        settings("twitter", cleaning=cleaning, bot_filters=nothing),
    )
    assert not set(BotFilters.names) & set(report.removed)


def messages(path: Path, *lines: tuple[str, str, str, str]) -> Path:
    fields = ("dialogue_id", "speaker", "text", "time")
    path.write_text("\n".join(json.dumps(dict(zip(fields, line, strict=True))) for line in lines))
    return path


def test_messages_are_ordered_merged_and_separated_by_gaps(tmp_path: Path) -> None:
    log = messages(
        tmp_path / "log.jsonl",
        ("d", "ann", "good morning everybody", "2020-01-01T10:00:00Z"),
        ("e", "cat", "the other dialogue begins", "2020-01-01T10:00:30Z"),
        ("d", "bob", "did you sleep well", "2020-01-01T10:02:00Z"),
        ("d", "bob", "good morning to you", "2020-01-01T10:01:00Z"),
        ("d", "ann", "ok", "2020-01-01T10:03:00Z"),  # removed: too short
        ("d", "bob", "what is the plan for today", "2020-01-01T10:04:00Z"),
        ("d", "ann", "we will paint the kitchen", "2020-01-01T10:05:00Z"),
        ("d", "bob", "which colour shall we take", "2020-01-01T10:06:00Z"),
        ("e", "dan", "and here is the answer", "2020-01-01T10:07:00Z"),
    )
    make_pairs([str(log)], tmp_path / "p.parquet", settings("messages"))
    found = sorted(
        (r["turn"], r["context"], r["utterance"], r["response"])
        for r in rows(tmp_path / "p.parquet")
    )
    assert found == [
        (1, [], "good morning everybody", "good morning to you did you sleep well"),
        (1, [], "the other dialogue begins", "and here is the answer"),
        # turn 2 is gone, so turn 3 answers nothing, and context does not reach across
        (4, [], "what is the plan for today", "we will paint the kitchen"),
        (
            5,
            ["what is the plan for today"],
            "we will paint the kitchen",
            "which colour shall we take",
        ),
    ]


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_context_is_limited_to_the_last_turns(tmp_path: Path, turns: int) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    said = [f"this is turn {word} of it" for word in words]
    (tmp_path / "d.txt").write_text(" __eou__ ".join(said) + " __eou__\n")
    make_pairs(
        [str(tmp_path / "d.txt")],
        tmp_path / "p.parquet",
        settings("dailydialog", threads=Threads(turns=turns)),
    )
    found = {r["turn"]: r["context"] for r in rows(tmp_path / "p.parquet")}
    assert found == {k: said[max(0, k - 1 - turns) : k - 1] for k in range(1, 7)}


def test_several_good_replies_share_one_utterance(tmp_path: Path) -> None:
    """DailyDialog++: the replies of one context, and what contexts have in common."""
    log = tmp_path / "log.jsonl"
    good = {"context": ["may i help you?", "a room, please"],
            "positive_responses": ["for how long?", "we are full"]}  # fmt: skip
    other = {"context": ["may i help you?", "just looking around"],
             "positive_responses": ["take your time"]}  # fmt: skip
    log.write_text("".join(json.dumps(record) + "\n" for record in (good, other)))
    output = tmp_path / "pairs.parquet"
    report = make_pairs([str(log)], output, settings("dailydialog-plusplus"))
    found = {(r["utterance"], r["response"]): r for r in rows(output)}
    assert {key: (r["context"], r["responses"]) for key, r in found.items()} == {
        ("may i help you?", "a room, please"): ([], 2),
        ("may i help you?", "just looking around"): ([], 2),
        ("a room, please", "for how long?"): (["may i help you?"], 2),
        ("a room, please", "we are full"): (["may i help you?"], 2),
        ("just looking around", "take your time"): (["may i help you?"], 1),
    }
    assert len({r["utterance_id"] for r in found.values()}) == 3
    assert len({r["dialogue_id"] for r in found.values()}) == 1
    assert report.removed == {"repeated-id": 1}


def test_authors_and_ids_are_hashed(tmp_path: Path) -> None:
    log = messages(
        tmp_path / "log.jsonl",
        ("secretdialogue", "anneliese", "good morning everybody", "2020-01-01"),
        ("secretdialogue", "bobby", "good morning to you", "2020-01-02"),
    )
    outputs = []
    for salt in ("a", "b", None):
        output = tmp_path / f"{salt}.parquet"
        chosen = Settings(READERS.make("messages"), Cleaning.for_language("en"), salt=salt)
        make_pairs([str(log)], output, chosen)
        for path in tmp_path.glob(f"{salt}.*"):
            content = path.read_bytes()
            assert b"anneliese" not in content
            assert b"secretdialogue" not in content
        outputs.append(rows(output)[0])
    assert len({row["response_author"] for row in outputs}) == 3
    assert len({row["dialogue_id"] for row in outputs}) == 3


def test_splits_by_dialogue_and_by_time(tmp_path: Path) -> None:
    from datetime import datetime

    archive = tmp_path / "archive.jsonl"
    make_archive(archive, 5000, seed=1)
    shares = make_pairs(
        [str(archive)], tmp_path / "a.parquet", settings("twitter", split=Split((0.6, 0.3, 0.1)))
    ).splits
    total = sum(shares.values())
    for name, share in (("train", 0.6), ("validation", 0.3), ("test", 0.1)):
        assert shares[name] / total == pytest.approx(share, abs=0.06)
    found = rows(tmp_path / "a.parquet")
    sides = {(r["dialogue_id"], r["split"]) for r in found}
    assert len(sides) == len({r["dialogue_id"] for r in found})
    times = sorted(r["time"] for r in found)  # type: ignore[type-var]
    middle: datetime = times[len(times) // 2].replace(tzinfo=None)  # type: ignore[union-attr]
    make_pairs(
        [str(archive)], tmp_path / "b.parquet", settings("twitter", split=Split(dates=(middle,)))
    )
    by_time = rows(tmp_path / "b.parquet")
    first: dict[object, datetime] = {}
    for r in by_time:
        when: datetime = r["time"].replace(tzinfo=None)  # type: ignore[union-attr]
        first[r["dialogue_id"]] = min(first.get(r["dialogue_id"], when), when)
    for r in by_time:
        assert r["split"] == ("train" if first[r["dialogue_id"]] < middle else "test")
    assert {r["split"] for r in by_time} == {"train", "test"}


@pytest.mark.parametrize("bad", [(0.5, 0.5), (0.5, 0.6, -0.1), (0.5, 0.2, 0.2)])
def test_shares_must_add_up(bad: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        Split(bad)


def test_leaks_are_left_out_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "d.txt"
    log.write_text(
        "How was your holiday in the mountains? __eou__ It was wonderful, thanks. __eou__\n"
        "Shall we have lunch together? __eou__ Yes, with pleasure. __eou__\n"
    )
    items = tmp_path / "items.jsonl"
    context = ["hello", "how was your holiday in the mountains"]
    items.write_text(json.dumps({"id": "1", "context": context, "response": "fine"}))
    report = make_pairs(
        [str(log)], tmp_path / "p.parquet", settings("dailydialog", exclude=(str(items),))
    )
    assert report.leaks == {"exact": 1}
    (left,) = rows(tmp_path / "p.parquet")
    assert left["utterance"] == "Shall we have lunch together?"
    # pairs serve as a test set, too
    report = make_pairs(
        [str(log)],
        tmp_path / "q.parquet",
        settings("dailydialog", exclude=(str(tmp_path / "p.parquet"),)),
    )
    assert report.leaks == {"exact": 1}


def test_strict_runs_end_at_the_first_bad_record(tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    truth = make_archive(archive, 500, seed=5)
    first = min(post.line for post in truth.posts if post.reject)
    with pytest.raises(DataError, match=rf"archive\.jsonl:{first}: "):
        make_pairs([str(archive)], tmp_path / "p.parquet", settings("twitter", strict=True))
    assert not (tmp_path / "p.parquet").exists()


def test_deleted_posts_are_counted_but_not_written_as_rejects(tmp_path: Path) -> None:
    shared = {"created_utc": 1577836800, "author": "ann"}
    log = [
        {"id": "a", "title": "good morning", "selftext": "how are you all", **shared},
        {"id": "b", "parent_id": "t3_a", "link_id": "t3_a", "body": "[deleted]", **shared},
        {
            "id": "c",
            "parent_id": "t3_a",
            "link_id": "t3_a",
            "body": "very well, thank you",
            "created_utc": 1577836900,
            "author": "bob",
        },
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, log)))
    report = make_pairs(
        [str(tmp_path / "r.jsonl")], tmp_path / "p.parquet", settings("reddit", strict=True)
    )
    assert report.rejects == {"deleted": 1}
    assert report.pairs == 1
    assert not (tmp_path / "p.rejects.jsonl").exists()


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.jsonl: there is no post in it; is format= right"):
        make_pairs([str(tmp_path / "empty.jsonl")], tmp_path / "p.parquet", settings("twitter"))
    assert {path.name for path in tmp_path.iterdir()} == {"empty.jsonl"}


def test_a_wrong_format_names_the_first_bad_record_and_writes_rejects(tmp_path: Path) -> None:
    (tmp_path / "wrong.jsonl").write_bytes(b"\nhello\nworld\n")
    complaint = r"wrong\.jsonl:2: broken JSON .*; none of the 2 records can be read: is format="
    with pytest.raises(DataError, match=complaint):
        make_pairs([str(tmp_path / "wrong.jsonl")], tmp_path / "p.parquet", settings("twitter"))
    assert {path.name for path in tmp_path.iterdir()} == {"wrong.jsonl", "p.rejects.jsonl"}
    rejects = (tmp_path / "p.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["record"] for line in rejects] == ["hello", "world"]


def chat_log(path: Path) -> str:
    """Two conversations of four turns each: user, assistant, user, assistant."""
    said = ["how are you today", "I am an assistant", "nice to hear that", "thank you very much"]
    roles = ["user", "assistant"] * 2
    messages = [{"role": r, "content": t} for r, t in zip(roles, said, strict=True)]
    path.write_text("".join(json.dumps({"messages": messages}) + "\n" for _ in range(2)))
    return str(path)


@pytest.mark.parametrize(
    ("spec", "responses", "not_learned"),
    [
        ("chat", ["nice to hear that"], 4),
        ("chat(learn_from=assistant)", ["I am an assistant", "thank you very much"], 2),
        (
            "chat(learn_from=all)",
            ["I am an assistant", "nice to hear that", "thank you very much"],
            0,
        ),
    ],
)
def test_only_the_chosen_role_is_learnt_from(
    tmp_path: Path, spec: str, responses: list[str], not_learned: int
) -> None:
    log = chat_log(tmp_path / "chat.jsonl")
    report = make_pairs([log], tmp_path / "p.parquet", settings(spec))
    assert sorted(str(row["response"]) for row in rows(tmp_path / "p.parquet")) == sorted(
        2 * responses
    )
    assert (report.pairs, report.not_learned) == (2 * len(responses), not_learned)
    # the other role is still context
    longest = max(rows(tmp_path / "p.parquet"), key=lambda row: row["turn"])  # type: ignore[arg-type,return-value]
    assert longest["utterance"] in ("I am an assistant", "nice to hear that")
    assert longest["context"][0] == "how are you today"  # type: ignore[index]


def test_a_log_in_which_the_role_never_replies_is_refused_with_advice(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "how are you"},
        {"role": "assistant", "content": "fine yes"},
    ]
    (tmp_path / "chat.jsonl").write_text(json.dumps({"messages": said}) + "\n")
    with pytest.raises(DataError, match=r"chat\.jsonl: all 1 replies .*learn_from='assistant'"):
        make_pairs([str(tmp_path / "chat.jsonl")], tmp_path / "p.parquet", settings("chat"))
    assert {path.name for path in tmp_path.iterdir()} == {"chat.jsonl"}


def test_a_split_by_time_with_time_zones_is_in_utc() -> None:
    from datetime import datetime

    dates = ("2020-01-01T08:00:00+09:00", "2020-01-02")
    split = Split(dates=tuple(map(datetime.fromisoformat, dates)))
    assert split.dates == (datetime(2019, 12, 31, 23), datetime(2020, 1, 2))
    for edge in ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:00"):
        with pytest.raises(ValueError, match="not between the years 1 and 9999 in UTC"):
            Split(dates=(datetime.fromisoformat(edge),))
    assert "TIMESTAMP '0001-01-01 00:00:00'" in Split(dates=(datetime(1, 1, 1),)).sql("t")


def test_same_inputs_same_bytes(tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    make_archive(archive, 2000, seed=2)
    for name in ("a", "b"):
        make_pairs([str(archive)], tmp_path / f"{name}.parquet", settings("twitter"))
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_several_files_are_one_archive(tmp_path: Path) -> None:
    """A reply may stand in another file than its parent, and a post in both."""
    archive = tmp_path / "archive.jsonl"
    truth = make_archive(archive, 2000, seed=4)
    lines = archive.read_bytes().splitlines(keepends=True)
    parts = [tmp_path / f"{k}.jsonl" for k in range(3)]
    for k, part in enumerate(parts):
        part.write_bytes(b"".join(lines[k::3]))
    make_pairs([str(part) for part in parts], tmp_path / "p.parquet", settings("twitter"))
    assert found_rows(tmp_path / "p.parquet") == expected_rows(truth, turns=4)


REAL = {
    "twitter/conversations.txt": ("conversations", "en"),
    "xdailydialog-zh/validation.txt": ("dailydialog", "zh"),
}


@pytest.mark.parametrize("name", REAL)
def test_real_logs_become_pairs(data: Path, tmp_path: Path, name: str) -> None:
    format, language = REAL[name]
    report = make_pairs([str(data / name)], tmp_path / "p.parquet", settings(format, language))
    assert report.pairs > 0.6 * report.records
    assert sum(report.removed.values()) < 0.15 * report.records
    for row in rows(tmp_path / "p.parquet")[:2000]:
        for text in (row["utterance"], row["response"]):
            assert "http" not in str(text)
            assert "  " not in str(text)

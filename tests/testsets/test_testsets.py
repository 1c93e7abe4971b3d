"""The test sets: their content, files with parallel lines, and bad files."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.files.item_file import read_items
from rejoinder.files.jsonl import write_jsonl
from rejoinder.files.output import open_output
from rejoinder.items import Item
from rejoinder.testsets import CATALOGUE, VARIABLE, find, load, names
from rejoinder.testsets.conture import read as conture
from rejoinder.testsets.dailydialog_multiref import COLUMNS, hred, rated
from rejoinder.testsets.dailydialog_plusplus import read as plusplus
from rejoinder.testsets.dbdc3 import read as dbdc3
from rejoinder.testsets.dstc7 import read as dstc7
from rejoinder.testsets.grade import convai2
from rejoinder.testsets.open2ch import dev as open2ch
from rejoinder.testsets.reliable_eval import QUALITIES
from rejoinder.testsets.reliable_eval import read as reliable_eval
from rejoinder.testsets.source import Row

EXAMPLES = Path(__file__).resolve().parents[2] / "src" / "rejoinder" / "examples"

ATTACKS = ("judge-attacks-en", "judge-attacks-ja", "judge-attacks-zh")
ATTACK_SYSTEMS = [
    "plain",
    "harmless",
    "order",
    "system",
    "close",
    "turn",
    "verdict",
    "plea",
    "alone",
]
UNRATED = (*ATTACKS, "dailydialog-hred", "dailydialog-human", "reliable-eval")
"""Single replies are not rated; of reliable-eval, the dialogues are."""
DSTC7 = [
    "Constant",
    "Random",
    "Baseline",
    "Human",
    *(f"Team{t}" for t in ("A", "B", "CE", "D", "F", "G")),
]
RELIABLE = {
    "A": 3257,
    "A_p": 2994,
    "B": 3129,
    "B_p": 3018,
    "C": 3304,
    "C_p": 2872,
    "D": 3021,
    "D_p": 3079,
    "E": 3231,
    "E_p": 3077,
}
SYSTEMS = {
    "dailydialog-multiref": dict.fromkeys(
        ["human", "hredf", "seq2seqf", "CVAEf", "dualencoder_train"], 100
    ),
    "dailydialog-hred": {"hred": 6740},
    "dailydialog-human": {"human": 6740},
    "grade-convai2": dict.fromkeys(
        ["bert_ranker", "dialogGPT", "transformer_generator", "transformer_ranker"], 150
    ),
    "grade-empathetic": dict.fromkeys(["transformer_generator", "transformer_ranker"], 150),
    "dailydialog-plusplus-dev": dict.fromkeys(["good", "adversarial", "random"], 5140),
    "dailydialog-plusplus-test": dict.fromkeys(["good", "adversarial", "random"], 5710),
    "open2ch-dev": {"true": 2000, "random": 18000},
    "open2ch-test": {"true": 2000, "random": 18000},
    "dstc7-msr": dict.fromkeys(DSTC7, 508),
    # 10 system turns of each of 115 + 100 + 100 + 100 dialogues
    "dbdc3-en": {"CIC": 1150, "IRIS": 1000, "TKTK": 1000, "YI": 1000},
    "conture": {"(unnamed)": 1066},
    "reliable-eval": RELIABLE,
    **{name: dict.fromkeys(ATTACK_SYSTEMS, 8) for name in ATTACKS},
}
RATED_1_TO_5 = ["dailydialog-multiref", "grade-convai2", "grade-empathetic", "dstc7-msr"]
SCALES = dict.fromkeys(RATED_1_TO_5, (1, 5)) | dict.fromkeys(["dbdc3-en", "conture"], (0, 2))
EMPTY_REPLIES = {"dbdc3-en": 26, "conture": 14}
DIALOGUES = ("dbdc3-en", "conture", "reliable-eval")


def ratings_of(item: Item) -> list[float]:
    match item.ratings:
        case None:
            return []
        case dict() as by_annotator:
            return list(by_annotator.values())
        case list() as anonymous:
            return anonymous
        case number:
            return [number]


def by_id(name: str, references: str | None = None) -> dict[str, Item]:
    return {item.id: item for item in load(name, references)}


def reference_counts(name: str, references: str) -> dict[int, int]:
    return Counter(len(item.references) for item in load(name, references))


# what is in the sets


def test_every_set_has_its_expected_systems() -> None:
    assert list(SYSTEMS) == names()


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", SYSTEMS)
def test_counts_ids_texts_and_ratings(name: str) -> None:
    items = list(load(name))
    assert len(items) == find(name).size
    assert Counter(item.system for item in items) == SYSTEMS[name]
    assert len({item.id for item in items}) == len(items)
    lowest, highest = SCALES.get(name, (0, 1))
    assert sum(not item.response for item in items) == EMPTY_REPLIES.get(name, 0)
    for item in items:
        assert item.response == item.response.strip()
        texts = [*item.context, *(r.text for r in item.references)]
        assert all(text and text == text.strip() for text in texts)
        assert item.context
        assert item.context_id is not None
        assert all(lowest <= rating <= highest for rating in ratings_of(item))
        assert bool(ratings_of(item)) == (name not in UNRATED)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_context_id_identifies_one_context(name: str) -> None:
    pairs = {(item.context_id, tuple(item.context)) for item in load(name)}
    contexts = {context for _, context in pairs}
    assert len(pairs) == len({context_id for context_id, _ in pairs})
    if name in DIALOGUES or name == "dstc7-msr":
        # two dialogues may begin alike, and discussions share a passage
        assert len(pairs) >= len(contexts)
    elif name in UNRATED and name not in ATTACKS:
        # four dialogues stand twice in DailyDialog's test set; their turns keep their own ids,
        # as everywhere in the literature
        assert (len(pairs), len(contexts)) == (6740, 6696)
    else:
        assert len(pairs) == len(contexts)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("name", "references", "counts"),
    [
        ("dailydialog-multiref", "single", {1: 500}),
        ("dailydialog-multiref", "multi", {4: 500}),
        ("dailydialog-multiref", "none", {0: 500}),
        ("dailydialog-hred", "single", {1: 6740}),
        # turn 364_0 has an empty reference, which is left out
        ("dailydialog-hred", "multi", {5: 6739, 4: 1}),
        ("dailydialog-human", "single", {1: 6740}),
        ("dailydialog-human", "multi", {4: 6739, 3: 1}),
        ("grade-convai2", "single", {1: 600}),
        ("grade-empathetic", "none", {0: 300}),
        ("dailydialog-plusplus-dev", "single", {1: 15420}),
        # 10,280 wrong replies have 5 references, less the 6 that repeat a good one; 5,140 good
        # ones have 4, less the 2 that are the same text
        ("dailydialog-plusplus-dev", "multi", {5: 10274, 4: 5138 + 6, 3: 2}),
        ("dailydialog-plusplus-test", "multi", {5: 11420 - 5, 4: 5710 + 5}),
        # a wrong candidate of the test set has the words of the true reply
        ("dbdc3-en", "none", {0: 4150}),
        ("conture", "none", {0: 1066}),
    ],
)
def test_reference_counts(name: str, references: str, counts: dict[int, int]) -> None:
    assert reference_counts(name, references) == counts


@pytest.mark.usefixtures("data")
def test_multiref_fields() -> None:
    item = by_id("dailydialog-multiref", "multi")["73_4:hredf"]
    assert (item.response, item.ratings, item.context_id) == ("well , i see .", 2.4, "73_4")
    assert len(item.context) == 5
    original = by_id("dailydialog-multiref")["73_4:hredf"].references
    assert original == item.references[-1:]


@pytest.mark.usefixtures("data")
def test_grade_ratings_are_a_list_and_shared_contexts_share_an_id() -> None:
    items = by_id("grade-convai2")
    assert items["300:bert_ranker"].ratings == [2, 3, 5, 5, 2, 5, 2, 2, 5, 1]
    assert len({item.context_id for item in items.values()}) == 258
    # the same reply of the same system to the same context, rated twice
    twice = items["368:bert_ranker"], items["417:bert_ranker"]
    assert twice[0].context_id == twice[1].context_id
    assert twice[0].response == twice[1].response
    assert twice[0].ratings != twice[1].ratings


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", ["dailydialog-plusplus-dev", "dailydialog-plusplus-test"])
def test_no_reply_is_its_own_reference(name: str) -> None:
    for item in load(name, "multi"):
        assert item.response not in [reference.text for reference in item.references]


@pytest.mark.usefixtures("data")
def test_scored_references_do_not_reveal_the_label() -> None:
    """Whatever a reply is, it sees 4 good and 9 wrong others, unless a text stands twice."""
    seen = {}
    for item in load("dailydialog-plusplus-dev", "scored"):
        assert item.response not in [reference.text for reference in item.references]
        counts = tuple(sum(r.weight == w for r in item.references) for w in (1, -1))
        seen.setdefault(item.system, Counter())[counts] += 1
    for system, counts in seen.items():
        assert counts[4, 9] >= 5140 - 20, system
        assert counts.total() == 5140


@pytest.mark.usefixtures("data")
def test_a_persons_reply_is_none_of_its_references() -> None:
    """It is the last of the five, which systems are judged by as well."""
    people, systems = by_id("dailydialog-human", "multi"), by_id("dailydialog-hred", "multi")
    for name, item in people.items():
        other = systems[name.replace(":human", ":hred")]
        texts = [reference.text for reference in other.references]
        assert [*(r.text for r in item.references), item.response] == texts
        assert item.context == other.context


@pytest.mark.usefixtures("data")
def test_open2ch_marks_become_line_breaks() -> None:
    items = by_id("open2ch-dev")
    assert not any("__BR__" in text for i in items.values() for text in [i.response, *i.context])
    assert items["1:random-1"].response.count("\n") == 1
    assert len(items["2:true"].context) == 3


# dialogues, and their ratings


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("name", "dialogues"), [("dbdc3-en", 415), ("conture", 119), ("reliable-eval", 2925)]
)
def test_replies_of_a_dialogue_are_in_order(name: str, dialogues: int) -> None:
    """Each reply, unless it is empty, is a turn of the contexts of the later ones."""
    last: dict[str, Item] = {}
    for each in load(name):
        assert each.dialogue_id is not None
        assert each.turn is not None
        if (before := last.get(each.dialogue_id)) is not None:
            assert before.turn is not None
            assert before.turn < each.turn
            assert before.dialogue_ratings == each.dialogue_ratings
            told = [*before.context, *([before.response] if before.response else [])]
            assert each.context[: len(told)] == told
        last[each.dialogue_id] = each
    assert len(last) == dialogues


@pytest.mark.usefixtures("data")
def test_labels_of_breakdowns_become_numbers() -> None:
    """The third turn of CIC0003: of its 30 labels, 7 are O, 14 T and 9 X."""
    items = by_id("dbdc3-en")
    ratings = items["CIC0003:2"].ratings
    assert isinstance(ratings, dict)
    assert Counter(ratings.values()) == {2: 7, 1: 14, 0: 9}
    assert (ratings["815s69uf"], ratings["7iwuzf5x"], ratings["qc7myo5g"]) == (0, 1, 2)
    totals = Counter(rating for each in items.values() for rating in ratings_of(each))
    assert totals == {2: 40_900, 1: 46_432, 0: 37_168}
    assert len({name for each in items.values() for name in each.ratings}) == 732


@pytest.mark.usefixtures("data")
def test_conture_has_no_names_of_speakers_in_its_texts() -> None:
    items = by_id("conture")
    assert items["0:0"].context == ["Who would you vote for?"]
    assert items["0:0"].response == "i would for sure, it is so cool and full of history."
    assert (items["0:0"].ratings, items["0:0"].dialogue_ratings) == (0, [3, 2, 1])
    assert not any(i.response.startswith(("Chatbot:", "User:")) for i in items.values())
    assert Counter(i.ratings for i in items.values()) == {2: 501, 0: 328, 1: 237}
    of_dialogues = {i.dialogue_id: i.dialogue_ratings for i in items.values()}
    ratings = Counter(rating for each in of_dialogues.values() for rating in each)
    assert ratings == {4: 176, 5: 98, 3: 34, 2: 22, 1: 18}


@pytest.mark.usefixtures("data")
def test_quality_controls_of_reliable_eval_are_no_system() -> None:
    items = by_id("reliable-eval")
    assert items["1-1:1"].system == "A_p"
    # (0 + 2 + 3 + 0 + 2 + 9 + 2) / 7
    assert items["1-1:1"].dialogue_ratings == {"w000": pytest.approx(18 / 7)}
    workers = {name for each in items.values() for name in each.dialogue_ratings}
    assert len(workers) == 439


@pytest.mark.usefixtures("data")
def test_a_human_reply_of_dstc7_is_none_of_its_references() -> None:
    items = load("dstc7-msr")
    by_context: dict[str | None, dict[str, Item]] = {}
    for each in items:
        by_context.setdefault(each.context_id, {})[each.system] = each
    removed = 0
    for systems in by_context.values():
        human, other = systems["Human"], systems["TeamA"]
        own = letters(human.response)
        assert own not in [letters(r.text) for r in human.references]
        missing = Counter(r.text for r in other.references)
        missing.subtract(r.text for r in human.references)
        assert min(missing.values(), default=0) == 0
        removed += missing.total() > 0
    # 453 are equal but for capitals and blanks; 16 more for a link, an address or a "TIL"
    assert removed == 453 + 16
    ratings = by_context["001b44fffd2e2208487824836dbc9594b06068defc9f5164e2c54fc7"]
    assert ratings["Human"].ratings == {"anon41": 5, "anon119": 2, "anon60": 3}


# files that only their order ties together


def test_hred_lines_references_and_contexts_are_in_step(data: Path) -> None:
    folder = data / "dailydialog-multiref"
    lines = json.loads((folder / "context_to_line.json").read_text("utf-8"))
    replies = (folder / "hred_outputs.txt").read_text("utf-8").split("\n")
    originals = (folder / "single_reference.txt").read_text("utf-8").split("\n")
    items, multi = by_id("dailydialog-hred"), by_id("dailydialog-hred", "multi")
    assert [item.context_id for item in items.values()] == list(lines)
    for context_id, line in lines.items():
        item = items[f"{context_id}:hred"]
        assert item.response == replies[line - 1]
        assert f"_go {item.references[0].text} _eos" == originals[line - 1]
        assert multi[item.id].references[0] == item.references[0]
        # the reply to one turn is the next turn, up to capitals and spacing
        following = items.get(f"{context_id.split('_')[0]}_{len(item.context)}:hred")
        if following is not None:
            assert letters(following.context[-1]) == letters(item.references[0].text)
            assert following.context[:-1] == item.context


@pytest.mark.usefixtures("data")
def test_the_rated_hred_replies_are_those_of_the_full_output() -> None:
    everything = by_id("dailydialog-hred")
    rated_replies = [i for i in load("dailydialog-multiref") if i.system == "hredf"]
    assert len(rated_replies) == 100
    for item in rated_replies:
        same = everything[f"{item.context_id}:hred"]
        assert (same.response, same.references) == (item.response, item.references)
        assert [letters(turn) for turn in same.context] == [letters(t) for t in item.context]


def letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


# through the project's own format


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", SYSTEMS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    items = list(load(name))
    with open_output(tmp_path / "items.jsonl") as stream:
        write_jsonl(stream, items)
    assert list(read_items(tmp_path / "items.jsonl")) == items


# what goes wrong


def test_an_unknown_name_suggests_similar_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown dataset 'grade-convai': did you mean 'grade-c"):
        load("grade-convai")


@pytest.mark.parametrize("references", ["multi", "many"])
def test_references_not_offered(references: str) -> None:
    with pytest.raises(UsageError, match=f"'{references}'; it offers none"):
        load("open2ch-dev", references)


def test_every_set_can_be_loaded_without_references() -> None:
    assert all("none" in d.references for d in CATALOGUE.values())


@pytest.mark.parametrize("value", [None, ""])
def test_variable_not_set(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if value is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(MissingExtra) as caught:
        load("dailydialog-multiref")
    message = str(caught.value)
    assert caught.value.exit_code == 4
    assert "\n" not in message
    for part in (VARIABLE, "dailydialog-multiref/human_ratings.csv", "prakharguptaz/multirefeval"):
        assert part in message


@pytest.mark.parametrize("folder", [".", "nowhere"])
def test_file_missing(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / folder))
    with pytest.raises(MissingExtra) as caught:
        load("grade-convai2")
    for part in (VARIABLE, str(tmp_path), "grade/judgements.jsonl", "li3cmz/GRADE"):
        assert part in str(caught.value)


def test_another_file_is_refused(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "grade" / "judgements.jsonl"
    path.parent.mkdir()
    shutil.copyfile(data / "grade" / "judgements.jsonl", path)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert len(list(load("grade-convai2"))) == 600
    with path.open("a") as stream:
        stream.write("\n")
    with pytest.raises(DataError, match=r"another version of the file: .* b72623af…, found ") as e:
        load("grade-convai2")
    assert (e.value.path, e.value.exit_code) == (str(path), 3)


HEADER = ",".join(COLUMNS)


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("", 0, "expected the columns model, context_id"),
        ("a,b\n", 1, "expected the columns model, context_id"),
        (f"{HEADER}\nm,1_0,3.5,yes,no\n", 2, "5 columns; expected 7"),
        (f"{HEADER}\nm,1_0,good,yes,no,no,hm\n", 2, "could not convert string to float"),
        (f"{HEADER}\nm,1_0,3,yes,no,no,hm\nm,1_1,6,yes,no,no,hm\n", 3, "the rating is 6"),
        (f'{HEADER}\nm,1_0,3,"yes"x,no,no,hm\n', 2, "expected after"),
        (f"{HEADER}\nm,1_0,3,\udcff,no,no,hm\n", 2, "not UTF-8"),
    ],
)
def test_malformed_ratings(text: str, line: int, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "human_ratings.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    complains(rated(path), path, line, complaint)


@pytest.mark.parametrize(
    ("outputs", "originals", "file", "line", "complaint"),
    [
        ("x\ny\n", "_go b _eos\n_go c _eos\n", None, None, None),
        ("x\n", "_go b _eos\n_go c _eos\n", "outputs", 2, "outputs ends before"),
        ("x\ny\n", "_go b _eos\n", "outputs", 2, "originals ends before"),
        ("x\ny\nz\n", "_go b _eos\n_go c _eos\n_go d _eos\n", "outputs", 3, "dialogues ends"),
        ("x\ny\n", "_go c _eos\n_go b _eos\n", "originals", 1, "out of step.* turn 7_0"),
    ],
)
def test_hred_out_of_step(
    outputs: str,
    originals: str,
    file: str | None,
    line: int | None,
    complaint: str | None,
    tmp_path: Path,
) -> None:
    turns = [
        {"text": "A", "responses": ["b", "bb", ""]},
        {"text": "B", "responses": ["c "]},
        {"text": "C"},
    ]
    (tmp_path / "outputs").write_text(outputs)
    (tmp_path / "originals").write_text(originals)
    (tmp_path / "dialogues").write_text(json.dumps({"index": 7, "dialogue": turns}))
    rows = hred(tmp_path / "outputs", tmp_path / "originals", tmp_path / "dialogues")
    if file is None or line is None or complaint is None:
        assert list(rows) == [
            Row(item("7_0", "x", ["A"]), ["b"], ["b", "bb"]),
            Row(item("7_1", "y", ["A", "B"]), ["c"], ["c"]),
        ]
    else:
        complains(rows, tmp_path / file, line, complaint)


def item(turn: str, response: str, context: list[str]) -> Item:
    return Item(f"{turn}:hred", response, context, "hred", context_id=turn)


def test_malformed_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"id": 1}\n')
    complains(convai2(path), path, 1, "the field is missing")
    complains(plusplus(path), path, 1, "the field is missing")
    record = {"id": 1, "dataset": "convai2", "system": "s", "context": ["a"], "response": "b"}
    path.write_text(json.dumps(record | {"reference": "c", "ratings": [3, 6]}))
    complains(convai2(path), path, 1, r"ratings\[.*\]: expected .* <= 5")


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("1\tやあ\tはい\n2\tやあ\tいや\n", 2, "expected the label 0 or 1"),
        ("1\tやあ\n", 1, "expected the label 0 or 1"),
        ("1\tやあ\tはい\n0\tおい\tいや\n", 2, "not that of the true reply"),
        ("0\tやあ\tはい\n", 1, "not that of the true reply"),
    ],
)
def test_malformed_candidates(text: str, line: int, complaint: str, tmp_path: Path) -> None:
    archive = tmp_path / "ranking.zip"
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("ranking/dev.tsv", text)
    complains(open2ch(archive), archive / "ranking/dev.tsv", line, complaint)


def test_not_the_expected_archive(tmp_path: Path) -> None:
    archive = tmp_path / "ranking.zip"
    archive.write_bytes(b"no zip")
    complains(open2ch(archive), archive, None, "not the expected zip archive")
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("other.tsv", "")
    complains(open2ch(archive), archive, None, "not the expected zip archive")


def complains(rows: Iterator[Row], path: Path, line: int | None, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as caught:
        list(rows)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_malformed_dialogues(tmp_path: Path) -> None:
    path = tmp_path / "dialogues.jsonl"
    label = {"annotator-id": "a", "breakdown": "Y"}
    turn = {"turn-index": 0, "speaker": "S", "utterance": "hi", "annotations": [label]}
    path.write_text(json.dumps({"dialogue-id": "d", "system": "s", "turns": [turn]}))
    complains(dbdc3(path), path, 1, "invalid enum value 'Y'")
    scores = dict.fromkeys(QUALITIES, 50)
    for changed, complaint in ({"fun": 101}, "<= 100"), ({"x": 1}, "qualities robotic, inter"):
        dialogue = {"model": "A", "dialogue": [], "raw scores": scores | changed}
        path.write_text(json.dumps({"worker": "w", "data": [dialogue]}))
        complains(reliable_eval(path), path, 1, complaint)
    path.write_text(json.dumps({"id": "c", "grounding_passage": "p", "references": []}))
    complains(dstc7(path), path, 1, "the field is missing: replies")
    archive = tmp_path / "turns.json.gz"
    archive.write_bytes(b"no gzip")
    complains(conture(archive), archive, None, "not the expected JSON file")
    opinion = {"human (overall)": 6}
    record = {"dialog_id": 1, "turns": [], "dialog_ratings": [opinion]}
    archive.write_bytes(gzip.compress(json.dumps([record]).encode()))
    complains(conture(archive), archive, None, "<= 5")


# the sets that come with the project


@pytest.mark.parametrize("language", ["en", "ja"])
def test_examples(language: str) -> None:
    items = list(read_items(EXAMPLES / f"replies-{language}.jsonl"))
    assert Counter(i.system for i in items) == dict.fromkeys(
        ["careful", "generic", "off-topic"], 12
    )
    assert len({i.context_id for i in items}) == 12
    means = dict.fromkeys(["careful", "generic", "off-topic"], 0.0)
    for example in items:
        assert example.id == f"{example.context_id}:{example.system}"
        assert 1 <= len(example.context) <= 3
        assert 1 <= len(example.references) <= 4
        assert isinstance(example.ratings, dict)
        assert len(example.ratings) == 3
        assert all(rating in (1, 2, 3, 4, 5) for rating in ratings_of(example))
        means[example.system] += sum(ratings_of(example)) / 36
    assert means["careful"] > means["generic"] > means["off-topic"]
    weights = [r.weight for i in items for r in i.references if r.weight is not None]
    assert min(weights) < 0 < max(weights)
    assert any(len(set(ratings_of(i))) > 1 for i in items)

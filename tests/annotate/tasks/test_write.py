"""Written replies: what is shown, what is refused, what is exported."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotate.studies import answer_next, join, make_kind, make_study, no_earlier, stored
from rejoinder.annotate.store import Store
from rejoinder.annotate.study import Slot
from rejoinder.annotate.tasks.kind import Accepted, EarlierReply, Kind, Refusal
from rejoinder.annotate.tasks.write import Write, characters, clean
from rejoinder.annotate.tasks.written_records import Written, read_source, system_of_source
from rejoinder.errors import DataError
from rejoinder.items import item_from
from rejoinder.pairwise.answers import by_context

PAPER = """
kind = "write"
title = "Replies"
text_language = "LANGUAGE"
answers_per_task = 10
[write]
question = "How would you reply?"
slots = [
  {count = 3, max_characters = 49, min_characters = 1},
  {count = 3, min_characters = 10, max_characters = 49},
  {min_characters = 1, max_characters = 9},
]
masks = [{share = 0, people = 6}, {share = 0.3, people = 2}, {share = 0.6, people = 2}]
"""
FREE = """
kind = "write"
title = "Replies"
[write]
question = "How would you reply?"
slots = [{count = 2}]
"""
ITEMS = [
    {
        "id": "1:a",
        "context": ["I was at the sea.", "How was the weather there in the summer?"],
        "context_id": "1",
        "response": "It was sunny all the time.",
        "system": "secret-system",
        "references": [{"text": "We had a lot of rain.", "source": "secret-source"}],
    },
    {
        "id": "1:b",
        "context": ["I was at the sea.", "How was the weather there in the summer?"],
        "context_id": "1",
        "response": "I do not know, really.",
    },
    {"id": "2:a", "context": ["Good bye, see you tomorrow!"], "context_id": "2", "response": ""},
]


@pytest.fixture
def kind(tmp_path: Path) -> Kind:
    return make_kind(tmp_path, FREE, ITEMS)


def replies(*texts: str, pasted: int | None = None) -> dict[str, str]:
    form = {f"reply-{number}": text for number, text in enumerate(texts)}
    return form if pasted is None else {**form, f"pasted-{pasted}": "1"}


def reasons(
    kind: Kind, form: dict[str, str], earlier: list[EarlierReply] | None = None, context: int = 0
) -> list[tuple[str, str]]:
    task = kind.tasks(kind.study.items, np.random.default_rng(1))[context]
    checked = kind.check(task.content, {"mask": 0.0}, form, lambda: earlier or [])
    return [] if isinstance(checked, Accepted) else [(each.name, each.reason) for each in checked]


def test_one_task_per_context(kind: Kind) -> None:
    tasks = kind.tasks(kind.study.items, np.random.default_rng(1))
    assert [task.content for task in tasks] == [
        {
            "context": ITEMS[0]["context"],
            "context_id": "1",
            "item": "1:a",
            "given": [
                "It was sunny all the time.",
                "We had a lot of rain.",
                "I do not know, really.",
            ],
        },
        {"context": ITEMS[2]["context"], "context_id": "2", "item": "2:a", "given": []},
    ]


def test_lengths_are_inclusive(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, PAPER.replace("LANGUAGE", "ja"), ITEMS)
    assert isinstance(kind, Write)
    texts = [chr(ord("あ") + n) * size for n, size in enumerate((1, 30, 49, 10, 20, 49, 9))]
    assert reasons(kind, replies(*texts)) == []
    for slot, text, reason in [
        (0, "", "empty"),
        (1, " \n\u200b\u3000", "empty"),
        (2, "か" * 50, "too_long"),
        (3, "か" * 9, "too_short"),
        (5, "か" * 50, "too_long"),
        (6, "か" * 10, "too_long"),
    ]:
        changed = [*texts[:slot], text, *texts[slot + 1 :]]
        assert reasons(kind, replies(*changed)) == [(f"reply-{slot}", reason)]
    # か + combining dakuten is one character, as がis; and a family of three is one, too
    assert [characters(clean("か\u3099")), characters("👨‍👩‍👧"), clean("か\u3099")] == [1, 1, "が"]


def test_all_problems_at_once(kind: Kind) -> None:
    checked = kind.check(
        {"context": ["Hi"], "given": [], "item": "", "context_id": None},
        {"mask": 0.0},
        replies("x", "y" * 501),
        no_earlier,
    )
    assert checked == [
        Refusal("reply-0", "too_short", {"characters": 1, "min": 2, "max": 500}),
        Refusal("reply-1", "too_long", {"characters": 501, "min": 2, "max": 500}),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("how was the weather there in the summer", "repeats_context"),
        ("We had a lot of rain!!", "repeats_reference"),
        ("I don't know, really", None),
        ("I do not know really", "repeats_reference"),
        ("Wonderful, thank you for asking.", "repeats_other"),
        ("Hot and humid, I am afraid", "repeats_own"),
        ("I had to work the whole week", "repeats_own"),
        ("Sure", None),  # an own reply to another context, but a short one
        ("I had to work the whole weekend", None),  # similar to an own one, but not equal
    ],
)
def test_repeats_are_refused(kind: Kind, text: str, reason: str | None) -> None:
    earlier = [
        EarlierReply("Wonderful, thank you for asking!", is_own=False, same_context=True),
        EarlierReply("Hot and humid, I'm afraid.", is_own=True, same_context=True),
        EarlierReply("I had to work the whole week.", is_own=True, same_context=False),
        EarlierReply("Sure.", is_own=True, same_context=False),
    ]
    expected = [] if reason is None else [("reply-1", reason)]
    assert reasons(kind, replies("Something else.", text), earlier) == expected


def test_repeats_of_another_slot_name_it(kind: Kind) -> None:
    task = kind.tasks(kind.study.items, np.random.default_rng(1))[0]
    form = replies("It was hot.", "it was HOT")
    checked = kind.check(task.content, {"mask": 0.0}, form, no_earlier)
    assert checked == [Refusal("reply-1", "repeats_slot", {"slot": 1})]


def test_others_do_not_count_if_the_study_says_so(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, FREE + 'compare_with = "own"\n', ITEMS)
    other = EarlierReply("Wonderful, thanks!", is_own=False, same_context=True)
    assert reasons(kind, replies("Wonderful, thanks", "Other words."), [other]) == []


def test_flags(kind: Kind) -> None:
    content = kind.tasks(kind.study.items, np.random.default_rng(1))[1].content
    for form, flags in [
        (replies("Fine words.", "Other words."), []),
        (replies("Fine words.", "Other words.", pasted=1), ["pasted"]),
        (replies("Fine words.", "Bye!"), ["short"]),
    ]:
        checked = kind.check(content, {"mask": 0.0}, form, no_earlier)
        assert isinstance(checked, Accepted) and checked.flags == flags


def test_stored_text_is_one_line(kind: Kind) -> None:
    content = kind.tasks(kind.study.items, np.random.default_rng(1))[1].content
    checked = kind.check(
        content,
        {"mask": 0.0},
        replies(" One\r\n two\x00\u2028three ", "e\u0301te\u0301"),
        no_earlier,
    )
    assert isinstance(checked, Accepted)
    assert checked.value == {"replies": ["One two three", "été"]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.text(st.sampled_from("abc e\u0301今😀\n .") | st.characters(), max_size=14),
        min_size=7,
        max_size=7,
    )
)
def test_accepted_replies_satisfy_their_slots(tmp_path: Path, texts: list[str]) -> None:
    kind = make_kind(tmp_path, PAPER.replace("LANGUAGE", "en"), ITEMS)
    assert isinstance(kind, Write)
    task = kind.tasks(kind.study.items, np.random.default_rng(1))[0]
    checked = kind.check(task.content, {"mask": 0.0}, replies(*texts), no_earlier)
    if isinstance(checked, Accepted):
        for text, slot in zip(checked.value["replies"], kind.slots, strict=True):
            assert slot.min_characters <= characters(text) <= slot.max_characters
            assert text.strip() == text == clean(text)
    else:
        assert checked and all(int(each.name.removeprefix("reply-")) < 7 for each in checked)


@pytest.mark.parametrize("code", ["en", "ja", "zh"])
def test_masked_contexts_do_not_reach_the_page(tmp_path: Path, code: str) -> None:
    kind = make_kind(tmp_path, PAPER.replace("LANGUAGE", code), ITEMS)
    task = kind.tasks(kind.study.items, np.random.default_rng(1))[0]
    for variant, share in enumerate((0, 0.3, 0.6)):
        view = kind.view(task.content, variant, np.random.default_rng(3))
        page = kind.page(task.content, view)
        text = json.dumps(page)
        for secret in ("secret", "sunny", "1:a", "rain", "really"):
            assert secret not in text
        # 13 words: .3 * 13 = 3.9, .6 * 13 = 7.8
        if code == "en":
            assert text.count("***") == {0: 0, 0.3: 4, 0.6: 8}[share]
        assert (page["context"] == task.content["context"]) == (share == 0)
        assert page["masked"] == (share > 0)
        assert len(page["slots"]) == 7


def test_people_are_dealt_to_masks_as_in_the_paper(tmp_path: Path) -> None:
    items = [
        {"id": str(n), "context": [f"Sentence number {n} has several words."], "response": ""}
        for n in range(4)
    ]
    folder = make_study(tmp_path, PAPER.replace("LANGUAGE", "en"), items)
    store = Store.open(folder)

    def form(step) -> dict[str, str]:
        name = f"{step.lease.person} {step.task.id}"
        letters = [chr(ord("a") + (step.lease.person * 7 + n) % 26) for n in range(6)]
        longer = [f"{letter * 12} {name}" for letter in letters]
        return replies(*longer, f"{name} x")

    for number in range(10):
        person = join(store, f"person {number}")
        while answer_next(store, person, form).step == "task":
            pass
    answers = store.stored_answers()
    masks = Counter((answer.key, answer.view["mask"]) for answer in answers)
    assert masks == {
        (f"context-{n}", mask): people
        for n in range(4)
        for mask, people in ((0.0, 6), (0.3, 2), (0.6, 2))
    }
    export = store.kind.export(store.study.items, answers)
    # Table 1 of the paper: 42, 14 and 14 replies to each context
    systems = Counter(record["system"] for record in export.others["candidates"])
    assert systems == {"human": 4 * 42, "human-mask30": 4 * 14, "human-mask60": 4 * 14}
    lengths = Counter(
        (written.mask, written.min_characters, written.max_characters)
        for reference in export.records[0]["references"]
        if (written := read_source(reference["source"]))
    )
    assert lengths[0.0, 1, 49] == 18 and lengths[0.3, 10, 49] == 6 and lengths[0.6, 1, 9] == 2
    store.close()


def test_export(kind: Kind) -> None:
    task = kind.tasks(kind.study.items, np.random.default_rng(1))[0]
    answers = [
        stored(task, {"replies": ["Hot.", "Wet."]}, "ann", {"mask": 0.0}),
        stored(task, {"replies": ["So-so.", "Ask me later."]}, "bob; c", {"mask": 0.35}),
    ]
    export = kind.export(kind.study.items, answers)
    for record, given_references in zip(export.records[:2], (1, 0), strict=True):
        references = record["references"][given_references:]
        assert [each["text"] for each in references] == ["Hot.", "Wet.", "So-so.", "Ask me later."]
        assert references[3]["source"] == (
            "human; mask=0.35; slot=2; characters=2-500; author=bob; c"
        )
    assert export.records[2] == ITEMS[2]
    candidates = [item_from(dict(record)) for record in export.others["candidates"]]
    assert [(item.id, item.system) for item in candidates] == [
        ("1:human-1", "human"),
        ("1:human-2", "human"),
        ("1:human-mask35-1", "human-mask35"),
        ("1:human-mask35-2", "human-mask35"),
    ]
    # candidates share the context of the study's items
    assert by_context([*kind.study.items, *candidates])["1"].tolist() == [0, 1, 3, 4, 5, 6]


@given(st.builds(Written, st.text(), st.sampled_from([0, 0.3, 0.125]), *[st.integers(1, 99)] * 3))
def test_sources_can_be_read_back(written: Written) -> None:
    assert read_source(written.source) == written


def test_other_sources() -> None:
    assert read_source("retrieved") is None
    assert system_of_source("retrieved") == "retrieved"
    assert system_of_source(Written("ann", 0.6, 1, 2, 9).source) == "human-mask60"


def test_setting_problems(tmp_path: Path) -> None:
    settings = """
kind = "write"
title = "Replies"
text_language = "jp"
answers_per_task = 4
[write]
question = " "
max_similarity = 1.5
[[write.slots]]
count = 0
min_characters = 0
max_characters = 20000
[[write.masks]]
share = 1.5
people = 2
[[write.masks]]
share = 1.5
people = 1
"""
    with pytest.raises(DataError) as raised:
        make_kind(tmp_path, settings, ITEMS)
    lines = [line.partition("study.toml:")[2] for line in str(raised.value).splitlines()]
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [
        "text_language",
        "answers_per_task",
        "write.question",
        "write.max_similarity",
        "write.slots",
        "write.slots[0].count",
        "write.slots[0].min_characters",
        "write.slots[0].max_characters",
        "write.masks[0].share",
        "write.masks[1].share",
        "write.masks[1].share",
    ]
    assert "did you mean 'ja' (Japanese)?" in lines[0]
    assert "the masks are for 3 people: must be 3, or a multiple" in lines[1]


def test_item_problems(tmp_path: Path) -> None:
    kind = make_kind(tmp_path, PAPER.replace("LANGUAGE", "en"), ITEMS)

    def problems(*contexts: list[str]) -> list[str]:
        return kind.item_problems(
            [
                item_from({"id": str(n), "context": c, "response": ""})
                for n, c in enumerate(contexts)
            ]
        )

    assert problems() == ["there are no items whose contexts could be replied to"]
    assert problems(["Hi."], [], [" "])[0] == (
        "2 of 3 items have no context to reply to, such as '1'"
    )
    assert problems(["Hi."], ["...?!"]) == ["the context of '1' has no words that could be masked"]
    assert problems(["今日はとても良い天気ですね"]) == [
        "the context of '0' is Japanese, but text_language is en: its words cannot be masked"
    ]


def test_known_tasks(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    records = [
        {"context": ["Hi"], "expected": ["Hello!"], "explanation": "Short."},
        {"context": ["Say blue"], "expected": {"examples": ["Blue."], "contains": ["blue", "青"]}},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    known = kind.known_tasks(str(path))
    assert [each.expected.get("examples") for each in known] == [["Hello!"], ["Blue."]]
    contents = [{**each.content, "expected": each.expected} for each in known]
    assert kind.is_expected(contents[0], {"replies": ["Whatever", "else"]})
    assert kind.is_expected(contents[1], {"replies": ["Why?", "It is BLUE."]})
    assert not kind.is_expected(contents[1], {"replies": ["It is red.", "Why?"]})
    assert isinstance(
        kind.check(known[0].content, {"mask": 0.0}, replies("Good day.", "Hey you!"), no_earlier),
        Accepted,
    )
    for wrong in ({"expected": ["x"]}, {"context": ["Hi"], "expected": {"contain": ["x"]}}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(DataError, match=r"test\.jsonl:1: expected 'context', and in"):
            kind.known_tasks(str(path))


def test_known_tasks_are_not_masked(tmp_path: Path) -> None:
    """Otherwise the examples of the training round would not fit what a person saw."""
    kind = make_kind(tmp_path, PAPER.replace("LANGUAGE", "en"), ITEMS)
    path = tmp_path / "training.jsonl"
    path.write_text(json.dumps({"context": ["One *** three four five."], "expected": ["Two."]}))
    (known,) = kind.known_tasks(str(path))
    for variant in range(3):
        view = kind.view(known.content, variant, np.random.default_rng(1))
        assert kind.page(known.content, view)["context"] == ["One *** three four five."]


def test_slots_are_expanded(kind: Kind) -> None:
    assert isinstance(kind, Write)
    assert kind.slots == [Slot(count=2), Slot(count=2)]

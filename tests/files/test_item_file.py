"""Items from tables as people have them: CSV, TSV and Parquet, with other names of columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import DataError, UsageError
from rejoinder.files.columns import number
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.files.jsonl import MAX_LINE_BYTES
from rejoinder.inputs.items import as_items
from rejoinder.items import Item, Reference
from rejoinder.verbs.items import load
from rejoinder.verbs.monitor import RejoinderWarning


def read(path: Path, content: str | bytes, **arguments: Any) -> list[Item]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_items(path, **arguments))


def test_csv_with_the_names_of_the_format(tmp_path: Path) -> None:
    content = 'id,context,response,system,references,ratings\na,"hi\nyou",hello,x,hey,4\nb,,,,,\n'
    notes: list[str] = []
    assert read(tmp_path / "i.csv", content, on_note=notes.append) == [
        Item("a", "hello", ["hi", "you"], "x", [Reference("hey")], 4.0),
        Item("b", ""),
    ]
    assert notes == []


EXPECTED = [
    Item(
        "0e03be71d42e",
        "fine, thanks",
        ["hi", "how are you"],
        "a",
        [Reference("good"), Reference("ok")],
        4.5,
    )
]


EUROPE = """bot;reply;prompt;ref1;ref2;rating
a;fine, thanks;"hi
how are you";good;ok;4,5"""
TABS = """bot\treply\tprompt\tref1\tref2\trating
a\tfine, thanks\t"hi
how are you"\tgood\tok\t4.5"""
SEPARATOR_LINE = """sep=|
bot|reply|prompt|gold|rating
a|fine, thanks|["hi", "how are you"]|["good", "ok"]|4.5
"""
PRINTED_LISTS = """bot,reply,prompt,gold,rating
a,"fine, thanks","['hi', 'how are you']","['good', 'ok']",4.5
"""
MESSAGES = """Bot;Reply;Reference 1;reference_2;Score Human;Messages
a;fine, thanks;good;ok;4.5;[{"role": "system", "content": "x"}, {"role": "user", "content": "hi"},\
 {"role": "assistant", "content": "how are you"}]
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("i.csv", EUROPE),
        ("i.tsv", TABS),
        ("i.csv", SEPARATOR_LINE.replace("\n", "\r\n")),
        ("i.csv", PRINTED_LISTS),
        ("i.csv", MESSAGES),
    ],
    ids=["Excel in Europe", "TSV", "separator line", "lists printed by Python", "messages"],
)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
def test_tables_as_people_have_them(
    tmp_path: Path, name: str, content: str, packed: str, mark: bytes
) -> None:
    raw = mark + content.encode()
    if packed:
        raw = gzip.compress(raw) if packed == ".gz" else zstandard.ZstdCompressor().compress(raw)
    assert read(tmp_path / f"{name}{packed}", raw) == EXPECTED


def test_columns_are_named_by_field_or_synonym(tmp_path: Path) -> None:
    content = "n,text,gpt says,who\n7,hi,hello,bot\n"
    columns = {"id": "n", "context": "text", "reply": "GPT_says", "bot": "who"}
    assert read(tmp_path / "i.csv", content, columns=columns) == [Item("7", "hello", ["hi"], "bot")]


def test_a_guess_is_reported_once(tmp_path: Path) -> None:
    notes: list[str] = []
    file = ItemFile(tmp_path / "i.csv", on_note=notes.append)
    (tmp_path / "i.csv").write_text("answer,model,colour\nhi,a,red\n")
    assert (
        list(read_items(file)) == list(read_items(file)) == [Item("6590fb6c31d0", "hi", system="a")]
    )
    assert notes == [
        f"{tmp_path}/i.csv: columns recognised by name: response = answer, system = model;"
        " no column was recognised as context; not read: colour; add columns={'context': 'colour'}"
        " (columns={'FIELD': 'NAME'} changes it)"
    ]


def test_ids_are_made_of_the_content(tmp_path: Path) -> None:
    """A table without ids may be sorted, and be stored in another format, between two commands."""
    rows = ["hi,a,yes,4", "hi,b,yes,2", "ho,a,yes,1", "hi,a,no,3"]
    header = "context,system,response,ratings"
    items = read(tmp_path / "i.csv", "\n".join([header, *rows]))
    again = read(tmp_path / "j.csv", "\n".join([header, *reversed(rows)]))
    assert again == items[::-1]
    assert len({item.id for item in items}) == 4
    assert all(re.fullmatch("[0-9a-f]{12}", item.id) for item in items)
    records = [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows]
    assert read(tmp_path / "i.jsonl", lines(*records)) == items
    assert list(as_items(records)[0]) == items
    assert list(as_items(pd.DataFrame(records))[0]) == items


def test_without_a_context_the_references_are_part_of_the_id(tmp_path: Path) -> None:
    rows = ["yes,sure", "yes,of course"]
    items = read(tmp_path / "i.csv", "\n".join(["reply,reference", *rows]))
    assert read(tmp_path / "i.csv", "\n".join(["reply,reference", *rows[::-1]])) == items[::-1]


def test_repeated_rows_are_numbered_and_reported(tmp_path: Path) -> None:
    notes: list[str] = []
    content = "context,response,who,points\nhi,yes,ann,1\nhi,yes,bob,2\nhi,no,ann,1\nhi,yes,eve,5\n"
    items = read(tmp_path / "i.csv", content, on_note=notes.append)
    name = items[0].id
    assert [item.id for item in items] == [name, f"{name}-2", items[2].id, f"{name}-3"]
    (note,) = notes
    assert "i.csv: 2 rows repeat the same context, system and reply" in note
    content = "id,context,response\n1,hi,yes\n2,hi,yes\n3,,yes\n4,,yes\n"
    read(tmp_path / "j.csv", content, on_note=notes.append)
    assert "j.csv: 1 row repeats the same context, system and reply" in notes[1]


def test_several_columns_are_joined_by_plus(tmp_path: Path) -> None:
    content = "reply,r1,r2,gold a,gold b,t1,t2,a+b\nhi,4,5,x,y,one,two,z\n"
    columns = {"ratings": "r1 + r2", "references": "gold a+gold b", "context": "t1+t2"}
    (item,) = read(tmp_path / "i.csv", content, columns=columns)
    assert item.ratings == {"r1": 4, "r2": 5}
    assert item.references == [Reference("x"), Reference("y")]
    assert item.context == ["one", "two"]
    # a column of this very name comes first
    (item,) = read(tmp_path / "i.csv", content, columns={"references": "a+b"})
    assert item.references == [Reference("z")]
    record = {"id": 1, "response": "hi", "r1": 4, "r2": 5, "x": "a", "y": ["b", "c"]}
    columns = {"ratings": "r1+r2", "references": "x+y"}
    (item,) = read(tmp_path / "i.jsonl", lines(record), columns=columns)
    assert item.ratings == {"r1": 4, "r2": 5}
    assert [reference.text for reference in item.references] == ["a", "b", "c"]
    with pytest.raises(DataError, match="there is no column 'r3'"):
        read(tmp_path / "i.csv", content, columns={"ratings": "r1+r3"})


@pytest.mark.parametrize(
    ("header", "row", "ratings"),
    [
        ("rating_ann,rating_bob", "4,5", {"rating_ann": 4, "rating_bob": 5}),
        ("ann_rating,bob_rating", "4,5", {"ann_rating": 4, "bob_rating": 5}),
        ("score_1,score_2", "4,5", {"score_1": 4, "score_2": 5}),
        ("Rater A,Rater B", "4,5", {"Rater A": 4, "Rater B": 5}),
        ("judge_x,judge_2", "4,5", {"judge_x": 4, "judge_2": 5}),
        ("rater_age,rater_b", "4,5", None),
        ("rating_fluency,rating_ann", "4,5", None),  # a quality, not an annotator
        ("rating_ann,rating_bob", "4,good", None),
        ("rating_ann,bleu_score", "4,5", None),
    ],
)
def test_ratings_named_after_annotators(
    tmp_path: Path, header: str, row: str, ratings: dict[str, float] | None
) -> None:
    (item,) = read(tmp_path / "i.csv", f"context,reply,{header}\nhi,hello,{row}\n")
    assert item.ratings == ratings


@pytest.mark.parametrize(("ids", "same"), [(False, "equal texts and no id"), (True, "the same id")])
def test_rows_that_rate_an_item_twice_say_what_to_do(tmp_path: Path, ids: bool, same: str) -> None:
    header = "id,context,reply,rater,rating\n" if ids else "context,reply,rater,rating\n"
    rows = [f"{'1,' if ids else ''}hi,hello,{who},4" for who in ("ann", "bob", "ann")]
    with pytest.raises(DataError) as caught:
        read(tmp_path / "i.csv", header + "\n".join(rows) + "\n")
    assert str(caught.value) == (
        f"{tmp_path}/i.csv:4: annotator 'ann' has rated this item in a row before (line 2 is its"
        f" first; rows with {same} are one item): remove the row, or give the rows of different"
        " items different ids"
    )


def test_a_column_that_may_hold_ratings_is_mentioned(tmp_path: Path) -> None:
    notes: list[str] = []
    content = "context,response,score\nhi,hello,4\nhi,no,\n"
    assert read(tmp_path / "i.csv", content, on_note=notes.append)[0].ratings is None
    assert notes == [
        f"{tmp_path}/i.csv: not read: score; if 'score' holds ratings, add"
        " columns={'ratings': 'score'}"
    ]
    read(tmp_path / "i.csv", content.replace("4", "good"), on_note=notes.append)
    assert len(notes) == 1


def test_beside_annotators_a_column_score_is_the_rating(tmp_path: Path) -> None:
    content = "context,response,rater,score\nhi,hello,ann,4\nhi,hello,bob,5\n"
    (item,) = read(tmp_path / "i.csv", content)
    assert item.ratings == {"ann": 4, "bob": 5}


def test_columns_that_are_not_read_are_listed_if_others_are_named(tmp_path: Path) -> None:
    notes: list[str] = []
    content = "chat,context,answer,agent\nhi,ho,hello,a\n"
    read(tmp_path / "i.csv", content, columns={"response": "answer"}, on_note=notes.append)
    assert notes == [f"{tmp_path}/i.csv: not read: chat, agent"]
    content = "n,chat,response,agent\n1,ho,hello,a\n"
    read(tmp_path / "i.csv", content, on_note=notes.append)
    assert notes[1:] == [
        f"{tmp_path}/i.csv: no column was recognised as context; not read: n, chat, agent;"
        " add columns={'context': 'chat'}"
    ]


def test_a_row_for_each_rating_is_gathered(tmp_path: Path) -> None:
    content = (
        "item_id,reply,bot,annotator,rating\n"
        "a,hello,x,ann,4\nb,no,y,ann,1\na,hello,x,bob,5\nb,no,y,bob,n/a\nc,,x,ann,\n"
    )
    assert read(tmp_path / "i.csv", content) == [
        Item("a", "hello", system="x", ratings={"ann": 4.0, "bob": 5.0}),
        Item("b", "no", system="y", ratings={"ann": 1.0}),
        Item("c", "", system="x"),
    ]


def test_a_column_for_each_annotator(tmp_path: Path) -> None:
    content = "reply,rater_1,rater_2,rater_3\nhello,4,,5\n"
    (item,) = read(tmp_path / "i.csv", content)
    assert item.ratings == {"rater_1": 4.0, "rater_3": 5.0}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "i.csv: the file is empty; expected a header and rows"),
        ("\n", "the first line is empty; expected the names"),
        ("reply\n", "the file is empty; expected items"),
        ("text,n\n", "no column holds the response; the columns are 'text', 'n'. Name it"),
        ("reply,reply\na,b\n", "two columns are called 'reply'"),
        ("reply,answer\na,b\n", "'reply' and 'answer' could all be the response; name one"),
        ("reply,bot\na\n", "i.csv:2: the row has 1 cells, the header 2"),
        ("reply,bot\na,b\nc,d,e\n", "i.csv:3: the row has 3 cells, the header 2"),
        ('reply,bot\n"a\nb",c\n"d,e\n', "i.csv:4: broken row: a quote is opened and never closed"),
        ('reply,bot\n"a"b,c\n', "i.csv:2: broken row: text follows a closing quote"),
        ("reply,rating\na,good\n", "i.csv:2: rating: expected a number, got 'good'"),
        ('reply,rating\na,"1,234"\n', "i.csv:2: rating: expected a number, got '1,234'"),
        ("id,reply\nx,a\nx,b\n", "i.csv:3: the id is in line 2, too"),
        ("id,reply\n,a\n", "i.csv:2: the id is missing"),
        ("id,reply,rater,rating\nx,a,p,1\nx,b,q,2\n", "3: the id 'x' is in line 2 with another r"),
        ("id,reply,rater,rating\nx,a,p,1\nx,a,p,2\n", "i.csv:3: annotator 'p' has rated this item"),
        ("id,reply,rater,rating,thread_id\nx,a,p,1,s\nx,a,q,2,t\n", "with another context_id"),
        ("id,reply,prompt,rater,rating,thread_id\nx,a,h,p,1,s\nx,a,h,q,2,t\n", "other dialogue_id"),
        ("reply,Reply\na,b\n", "'reply' and 'Reply' could all be the response"),
        ("response,Response\na,b\n", "'response' and 'Response' could all be the response"),
        ('reply,refs\na,"[""b"",null]"\n', "i.csv:2: refs: expected a list of texts as JSON"),
        ('reply,refs\na,"[1,2]"\n', "i.csv:2: refs: expected a list of texts as JSON"),
        ('reply,prompt\na,"[""b"",""c"""\n', "i.csv:2: prompt: expected a list of texts as JSON"),
        ('reply,prompt\na,"[\'\\ud800\']"\n', "i.csv:2: prompt: expected a list of texts"),
        ("id,reply,rater,rating\nx,a,,1\n", "i.csv:2: the annotator of the rating is missing"),
    ],
)  # fmt: skip
def test_errors_name_file_and_line(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path / "i.csv", content)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("reply\nhä\n".encode("utf-16"), "the file is in UTF-16; in Excel, save it as 'CSV UTF-8'"),
        ("reply\nhä\n".encode("cp1252"), "i.csv:2: the line is not UTF-8; in Excel, save it as"),
        (b'reply\n"' + b"x\n" * (MAX_LINE_BYTES // 2 + 1), "the row is longer than 16 MB"),
        (b"reply\n" + b"x" * (MAX_LINE_BYTES + 1), "i.csv:2: the row is longer than 16 MB"),
    ],
    ids=["UTF-16", "cp1252", "quote not closed", "endless line"],
)
def test_foreign_encodings_and_endless_rows(tmp_path: Path, content: bytes, complaint: str) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path / "i.csv", content)
    assert complaint in str(error.value)


DSTC10 = "dialogue_id,model,context,response,reference,annotations,note\n"


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_with_the_columns_of_dstc10(tmp_path: Path, ending: str) -> None:
    """It is read like JSON lines with the same names; a cell holds JSON or a printed dictionary."""
    content = DSTC10 + (
        '7,a,"hi\nyou",fine,good,"{""overall"": [4, 5], ""grammar"": [1, 1]}",x\n'
        "7,b,hi,no,good,{'Overall': 3.5},\n"
        "8,a,hi,yes,,,\n"
    )
    notes: list[str] = []
    if ending == "tsv":
        content = content.replace(",", "\t").replace("\t ", ", ")
    assert read(tmp_path / f"i.{ending}", content, on_note=notes.append) == [
        Item("7:a", "fine", ["hi", "you"], "a", [Reference("good")], [4, 5], "7"),
        Item("7:b", "no", ["hi"], "b", [Reference("good")], 3.5, "7"),
        Item("8:a", "yes", ["hi"], "a", context_id="8"),
    ]
    assert notes == [
        f"{tmp_path}/i.{ending}: columns recognised by name: id = dialogue_id + model,"
        " context_id = dialogue_id, system = model, references = reference, ratings = annotations;"
        " not read: note (columns={'FIELD': 'NAME'} changes it)"
    ]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            "7,a,hi,x,,4,",
            'i.csv:2: annotations: expected ratings by quality, such as {"overall": [',
        ),
        ("7,a,hi,x,,{bad},", "to read other ratings, add columns={'ratings': 'annotations'}"),
        (",a,hi,x,,,", "i.csv:2: the dialogue_id is missing; expected a name or number"),
        ("7,a,hi,x,,,\n7,a,hi,y,,,", "i.csv:3: the id is in line 2, too"),
    ],
)
def test_mistakes_in_a_table_of_dstc10(tmp_path: Path, row: str, complaint: str) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path / "i.csv", f"{DSTC10}{row}\n")
    assert complaint in str(error.value)


def test_named_columns_of_a_table_of_dstc10(tmp_path: Path) -> None:
    (item,) = read(
        tmp_path / "i.csv", f"{DSTC10}7,a,hi,x,,4,\n", columns={"ratings": "annotations"}
    )
    assert (item.ratings, item.system, item.dialogue_id) == (4.0, "a", "7")


TURNS = """conversation_id,model,user_message,model_answer
7,hal,Hello!,Hi.
7,hal,How are you?,Fine.
8,hal,Hello!,Hi.
7,eve,Hello!,Hi.
"""


def test_replies_to_several_turns_of_a_conversation_keep_their_contexts(tmp_path: Path) -> None:
    items = read(tmp_path / "i.csv", TURNS)
    assert [item.group for item in items] == ["Hello!", "How are you?", "Hello!", "Hello!"]
    assert [item.dialogue_id for item in items] == ["7", "7", "8", "7"]
    assert len({item.id for item in items}) == 4
    # the ids belong to the content, not to the order
    header, *rows = TURNS.splitlines(keepends=True)
    turned = read(tmp_path / "j.csv", header + "".join(reversed(rows)))
    assert {item.id: item for item in turned} == {item.id: item for item in items}


def test_a_conversation_without_a_context_is_the_context(tmp_path: Path) -> None:
    items = read(tmp_path / "i.csv", "conversation_id,bot,reply\n7,a,hi\n7,b,no\n")
    assert [item.context_id for item in items] == ["7", "7"]


@pytest.mark.parametrize("names", [["0", "1"], ["c0012", "c0013"], ["12.5", ""]])
def test_a_column_of_numbers_or_names_is_no_context(tmp_path: Path, names: list[str]) -> None:
    rows = "".join(f"{name},how are you,fine\n" for name in names)
    notes: list[str] = []
    items = read(tmp_path / "i.csv", f"conversation,user said,answer\n{rows}", on_note=notes.append)
    assert [item.context for item in items] == [["how are you"]] * 2
    assert [item.dialogue_id or "" for item in items] == names
    assert "context = user said, dialogue_id = conversation" in notes[0]
    frame = pd.DataFrame({"conversation": [1, 2], "query": ["a b", "c d"], "answer": ["x", "y"]})
    with pytest.warns(RejoinderWarning, match="dialogue_id = conversation"):
        assert [item.dialogue_id for item in load(frame)] == ["1", "2"]


def test_a_column_of_texts_without_blanks_is_a_context(tmp_path: Path) -> None:
    (item,) = read(tmp_path / "i.csv", "conversation,answer\n今日は10時に,はい\n")
    assert item.context == ["今日は10時に"]


def test_a_workbook_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a workbook of Excel; save it as 'CSV UTF-8'"):
        read(tmp_path / "i.xlsx", b"PK")
    with pytest.raises(DataError, match="a zip file or a workbook of Excel"):
        read(tmp_path / "i.jsonl", b"PK\x03\x04")


def test_columns_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no column 'x'; the columns are 'a', 'b'"):
        read(tmp_path / "i.csv", "a,b\n1,2\n", columns={"response": "x"})
    with pytest.raises(
        UsageError, match="'colour' is no field of an item; the fields are id, resp"
    ):
        read(tmp_path / "i.csv", "a,b\n1,2\n", columns={"colour": "a"})
    with pytest.raises(UsageError, match="'response' is named twice"):
        read(tmp_path / "i.csv", "a,b\n1,2\n", columns={"response": "a", "reply": "b"})


def test_fields_that_can_not_be_of_these_columns(tmp_path: Path) -> None:
    content = "a,b\n1,2\n"
    with pytest.raises(UsageError, match="'reply' needs one column, got 2"):
        read(tmp_path / "i.csv", content, columns={"reply": ["a", "b"]})
    with pytest.raises(UsageError, match="'references' needs one column, got 0"):
        read(tmp_path / "i.csv", content, columns={"reply": "a", "references": []})
    with pytest.raises(DataError, match="the column 'a' is named for two fields"):
        read(tmp_path / "i.csv", content, columns={"reply": "a", "references": "a"})


def test_a_mistyped_field_of_json_records(tmp_path: Path) -> None:
    records = [{"id": 1, "response": "a", "bot": "x"}, {"id": 2, "response": "a"}]
    complaint = "no record has the field 'bott'; the fields are 'bot', 'id', 'response'"
    with pytest.raises(DataError, match=complaint):
        read(tmp_path / "i.jsonl", lines(*records), columns={"system": "bott"})
    with pytest.raises(DataError, match=complaint):
        list(as_items(records, {"system": "bott"})[0])
    (first, _) = as_items(records, {"system": "bot"})[0]
    assert first.system == "x"


def test_lists_of_texts_and_objects_in_a_cell(tmp_path: Path) -> None:
    content = 'reply,refs\na,"[""b"", {""text"": ""c"", ""weight"": 0.5}]"\nb,[laughs] yes\n'
    first, second = read(tmp_path / "i.csv", content)
    assert first.references == [Reference("b"), Reference("c", 0.5)]
    assert second.references == [Reference("[laughs] yes")]


def test_ratings_of_references_in_a_cell(tmp_path: Path) -> None:
    content = (
        'reply,refs\na,"[{""text"": ""c"", ""ratings"": {""ann"": 4, ""bob"": ""2""}}, ""d""]"\n'
    )
    (item,) = read(tmp_path / "i.csv", content)
    assert item.references == [Reference("c", ratings={"ann": 4.0, "bob": 2.0}), Reference("d")]


def test_rows_of_a_rating_may_have_different_references(tmp_path: Path) -> None:
    content = "id,reply,rater,rating,gold\nx,a,p,1,r\nx,a,q,2,s\nx,a,t,2,r\n"
    (item,) = read(tmp_path / "i.csv", content)
    assert item.references == [Reference("r"), Reference("s")]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"id": ["x"], "rater": "ann"}, "i.parquet:1: id: expected text or a whole number"),
        ({"id": "x", "rater": ["ann"]}, "i.parquet:1: rater: expected a name or a whole number"),
        ({"id": "x", "rater": 1.5}, "i.parquet:1: rater: expected a name or a whole number"),
    ],
)
def test_annotators_and_ids_of_other_types(
    tmp_path: Path, row: dict[str, Any], complaint: str
) -> None:
    pq.write_table(
        pa.Table.from_pylist([{**row, "reply": "a", "rating": 1}]), tmp_path / "i.parquet"
    )
    with pytest.raises(DataError, match=complaint):
        list(read_items(tmp_path / "i.parquet"))


def test_frames_of_items_come_back_from_files(tmp_path: Path) -> None:
    items = [
        Item("a", "x", ["hi"], "s", [Reference("r", 0.5)], {"ann": 4.0, "bob": 5.0}),
        Item("b", "y", ["ho"], "s", [Reference("r")], {"ann": 3.0}),
    ]
    frame = load(items).frame("pandas")
    frame.to_parquet(tmp_path / "i.parquet")
    assert list(read_items(tmp_path / "i.parquet")) == items
    frame.to_csv(tmp_path / "i.csv", index=False)
    assert list(read_items(tmp_path / "i.csv")) == items
    ratings = pa.array([[("ann", 4.0)]], pa.map_(pa.string(), pa.float64()))
    pq.write_table(pa.table({"response": ["x"], "ratings": ratings}), tmp_path / "m.parquet")
    (item,) = read_items(tmp_path / "m.parquet")
    assert item.ratings == {"ann": 4.0}


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "i.parquet"
    rows = [
        {"dialog_id": 3, "history": ["hi"], "output": "hello", "refs": ["hey"], "label": 2},
        {"dialog_id": 4, "history": None, "output": "", "refs": None, "label": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    first, second = read_items(path)
    assert first == Item(
        first.id, "hello", ["hi"], references=[Reference("hey")], ratings=2.0, dialogue_id="3"
    )
    assert second == Item(second.id, "", dialogue_id="4")


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (pa.table({"response": [1]}), "i.parquet:1: response: expected text, got a whole number"),
        (pa.Table.from_arrays([pa.array(["a"])] * 2, ["reply", "reply"]), "two columns are called"),
        (pa.table({"reply": pa.array([], pa.string())}), "the file is empty; expected items"),
        (pa.table({"response": ["a"], "context": [[1]]}), "context[0]: expected text, got a whole"),
    ],
)
def test_bad_parquet_tables(tmp_path: Path, table: pa.Table, complaint: str) -> None:
    pq.write_table(table, tmp_path / "i.parquet")
    with pytest.raises(DataError) as error:
        list(read_items(tmp_path / "i.parquet"))
    assert complaint in str(error.value)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "i.parquet"
    pq.write_table(pa.table({"reply": ["hello"] * 100}), path)
    whole = path.read_bytes()
    for content in (b"", b"no", whole[:-20], whole[:4] + b"\xff" * 40 + whole[44:]):
        with pytest.raises(DataError, match="damaged or no Parquet file"):
            read(path, content)


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_json_fields_that_look_like_known_ones_are_named(tmp_path: Path) -> None:
    content = lines(
        {"id": 1, "response": "a", "refs": ["b"], "bot": "x"},
        {"id": 2, "response": "a", "refs": ["b"], "references": []},
        {"id": 3, "response": "a", "refs": ["b"]},
    )
    notes: list[str] = []
    path = tmp_path / "i.jsonl"
    assert [item.references for item in read(path, content, on_note=notes.append)] == [[], [], []]
    assert sorted(notes) == [
        f"{path}: the field 'bot' (1 lines) is not read;"
        " if it holds the system, add columns={'system': 'bot'}",
        f"{path}: the field 'refs' (2 lines) is not read;"
        " if it holds the references, add columns={'references': 'refs'}",
    ]
    (item, *_) = read(path, content, columns={"references": "refs", "system": "bot"})
    assert (item.system, item.references) == ("x", [Reference("b")])


def test_a_missing_json_field_names_the_one_that_may_hold_it(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"i\.jsonl:1: the field is missing: .*response.*; there is"
    ):
        read(tmp_path / "i.jsonl", lines({"id": 1, "reply": "a"}))


def test_json_lines_with_one_reference_messages_and_numbers_in_text(tmp_path: Path) -> None:
    record = {
        "id": 1,
        "response": "a",
        "references": "b",
        "context": [{"role": "user", "content": "hi"}],
        "ratings": {"ann": "4", "bob": "3.5"},
    }
    (item,) = read(tmp_path / "i.jsonl", lines(record))
    assert item == Item(
        "1", "a", ["hi"], references=[Reference("b")], ratings={"ann": 4, "bob": 3.5}
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (" 4.5 ", 4.5),
        ("4,5", 4.5),
        ("0,125", 0.125),
        ("-1", -1),
        ("N/A", None),
        ("", None),
    ],
)
def test_numbers_in_text(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["1,234", "1_000", "four", "4/5", "4 5"])
def test_text_that_is_no_unambiguous_number(text: str) -> None:
    with pytest.raises(ValueError, match="Expected a number"):
        number(text)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=20)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8))
def test_any_text_survives_a_csv_file(rows: list[tuple[str, str]]) -> None:
    """What Python's csv module and pandas write is read back."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for separator in ",;":
            path = Path(folder) / f"{ord(separator)}.csv"
            plain = io.StringIO()
            writer = csv.writer(plain, delimiter=separator, lineterminator="\n")
            writer.writerow(["n", "reply", "bot"])
            writer.writerows([(number, *row) for number, row in enumerate(rows)])
            path.write_text(plain.getvalue(), encoding="utf-8", newline="")
            items = list(read_items(path, {"id": "n"}))
            assert [item.response for item in items] == [reply for reply, _ in rows]
            assert [item.system for item in items] == [bot or "(unnamed)" for _, bot in rows]


def test_a_frame_written_by_pandas(tmp_path: Path) -> None:
    frame = pd.DataFrame({"reply": ["a"], "context": [["it's", 'say "hi"']], "rating": [3]})
    frame.to_csv(tmp_path / "i.csv")  # with its index, a column without a name
    (item,) = read_items(tmp_path / "i.csv")
    assert item == Item(item.id, "a", ["it's", 'say "hi"'], ratings=3.0)


def test_messages_about_wide_tables_are_short(tmp_path: Path) -> None:
    header = ",".join(f"c{number}" for number in range(5_000))
    with pytest.raises(DataError, match="'c19' and 4,980 more") as error:
        read(tmp_path / "i.csv", header + "\n")
    assert len(str(error.value)) < 1_000
    notes: list[str] = []
    read(tmp_path / "i.csv", f"reply,{header}\nhi{',' * 5_000}\n", on_note=notes.append)
    assert "c19 and 4,980 more; add columns={'context': 'c0'} (columns={'FIELD'" in notes[0]


def test_inclusion_probabilities_in_every_format(tmp_path: Path) -> None:
    lines = '{"id":1,"response":"a","inclusion_probability":0.25}\n{"id":2,"response":"b"}\n'
    cells = "id,response,sampling_probability\n1,a,0.25\n2,b,\n"
    for name, content in (("i.jsonl", lines), ("i.csv", cells)):
        found = [item.inclusion_probability for item in read(tmp_path / name, content)]
        assert found == [0.25, None]
    dstc10 = '{"dialogue_id":"d","response":"a","model":"m","inclusion_probability":"0.5"}\n'
    assert read(tmp_path / "i.jsonl", dstc10)[0].inclusion_probability == 0.5


@pytest.mark.parametrize("value", ["0", "1.01", "-0.5", "true", '"often"', "1e400"])
def test_an_inclusion_probability_is_above_0_and_up_to_1(tmp_path: Path, value: str) -> None:
    line = f'{{"id": "a", "response": "r", "inclusion_probability": {value}}}\n'
    with pytest.raises(DataError, match=r"inclusion_probability|too large|number"):
        read(tmp_path / "i.jsonl", line)
    with pytest.raises(
        DataError, match=r"i\.jsonl:1: inclusion_probability: expected a probability above 0"
    ):
        read(tmp_path / "i.jsonl", line.replace(value, "0"))


def test_rows_of_one_item_have_one_inclusion_probability(tmp_path: Path) -> None:
    rows = "id,response,annotator,rating,inclusion_probability\na,r,ann,3,0.5\na,r,bob,4,"
    (item,) = read(tmp_path / "i.csv", f"{rows}0.5\n")
    assert (item.ratings, item.inclusion_probability) == ({"ann": 3, "bob": 4}, 0.5)
    with pytest.raises(DataError, match="another inclusion_probability"):
        read(tmp_path / "i.csv", f"{rows}0.6\n")

"""Collecting pairs: concatenated, split, without test data, and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitting.toy import Row, dialogues, row, write
from rejoinder.errors import DataError, UsageError
from rejoinder.fitting.pairs import CollectedPairs, check_inputs, collect_pairs
from rejoinder.fitting.settings import DataSettings
from rejoinder.learn.training_data import assign_split


def collected(
    tmp_path: Path, *inputs: Path, data: DataSettings | None = None, **more: Any
) -> tuple[CollectedPairs, list[Row]]:
    output = tmp_path / "out.parquet"
    options = {"language": "en", "format": None, **more}
    made = collect_pairs([str(path) for path in inputs], output, data or DataSettings(), **options)
    return made, pq.read_table(output).to_pylist()


def sides(rows: list[Row]) -> tuple[set[str], set[str]]:
    train, held_out = (
        {r["dialogue_id"] for r in rows if r["split"] == name} for name in ("train", "validation")
    )
    return train, held_out


def test_a_share_of_the_dialogues_is_held_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", dialogues(200))
    made, rows = collected(tmp_path, path, data=DataSettings(validation_share=0.2))
    train, held_out = sides(rows)
    assert not train & held_out
    assert len(train) + len(held_out) == 200
    # 40 expected; three standard deviations are 17
    assert 23 <= len(held_out) <= 57
    assert made.counts["pairs"] == len(rows) == made.counts["train"] + made.counts["validation"]
    assert made.counts["utterances_with_several_responses"] == 200
    assert list(made.files) == ["a.parquet"]
    assert made.notes == []


def test_the_column_split_decides_and_test_pairs_are_left_out(tmp_path: Path) -> None:
    names = ["train", "validation", "test"]
    table = [{**each, "split": names[int(each["dialogue_id"][1:]) % 3]} for each in dialogues(30)]
    made, rows = collected(tmp_path, write(tmp_path / "a.parquet", table))
    train, held_out = sides(rows)
    assert train == {f"d{n}" for n in range(0, 30, 3)}
    assert held_out == {f"d{n}" for n in range(1, 30, 3)}
    assert made.split_by == "the column split"
    # without validation, it is drawn from what is not kept for a test
    for each in table:
        each["split"] = "test" if each["split"] == "test" else "train"
    _, rows = collected(tmp_path, write(tmp_path / "b.parquet", table))
    train, held_out = sides(rows)
    assert held_out
    assert train | held_out == {f"d{n}" for n in range(30) if n % 3 < 2}


def test_test_material_is_left_out_and_counted(tmp_path: Path) -> None:
    table = dialogues(40)
    long = "We like the soup and bread and cheese and apple and butter and garlic."
    table.append(row("new", [], long.upper(), "so do i my friend", "new/0"))
    items = tmp_path / "items.jsonl"
    contexts = [["hello", table[0]["utterance"]], [long.replace("garlic", "garlics")]]
    items.write_text(
        "".join(
            json.dumps({"id": str(n), "context": context, "response": "x"}) + "\n"
            for n, context in enumerate(contexts)
        )
    )
    path = write(tmp_path / "a.parquet", table)
    before, _ = collected(tmp_path, path)
    assert before.leaks == {}
    made, rows = collected(tmp_path, path, exclude=[str(items)])
    same = sum(each["utterance"] == table[0]["utterance"] for each in table)
    assert made.leaks == {"exact": same, "near": 1}
    assert len(rows) == len(table) - same - 1
    assert table[0]["utterance"] not in {each["utterance"] for each in rows}


def test_too_many_pairs_are_sampled_by_whole_dialogues(tmp_path: Path) -> None:
    table = dialogues(100)
    size = {f"d{n}": sum(r["dialogue_id"] == f"d{n}" for r in table) for n in range(100)}
    path = write(tmp_path / "a.parquet", table)
    data = DataSettings(max_pairs=50, max_validation_pairs=10, validation_share=0.3)
    made, rows = collected(tmp_path, path, data=data)
    assert 45 < made.counts["train_taken"] <= 50
    assert 5 < made.counts["validation_taken"] <= 10
    for name in {each["dialogue_id"] for each in rows}:
        assert sum(each["dialogue_id"] == name for each in rows) == size[name]
    assert collected(tmp_path, path, data=data)[1] == rows
    assert collected(tmp_path, path, data=data, seed=1)[1] != rows


def test_ids_of_different_files_are_distinct(tmp_path: Path) -> None:
    """The same id in two files means different dialogues."""
    one = write(tmp_path / "a.parquet", dialogues(20, seed=1))
    two = write(tmp_path / "b.parquet", dialogues(20, seed=2))
    made, rows = collected(tmp_path, one, two)
    assert len({each["dialogue_id"] for each in rows}) == 40
    assert list(made.files) == ["a.parquet", "b.parquet"]
    assert made.counts["dialogues"] == 40


def test_pairs_of_the_training_data_are_not_held_out(tmp_path: Path) -> None:
    """The same dialogue in two files has two ids, and may be on both sides."""
    table = dialogues(40)
    copies = [{**each, "dialogue_id": f"copy of {each['dialogue_id']}"} for each in table]
    for each in copies:
        each["response"] = each["response"].upper() + "!"
    made, rows = collected(
        tmp_path,
        write(tmp_path / "a.parquet", table + copies),
        data=DataSettings(validation_share=0.4),
    )
    plain = [(each["utterance"], each["response"].lower().strip("!")) for each in rows]
    learnt = {pair for pair, each in zip(plain, rows, strict=True) if each["split"] == "train"}
    held_out = {pair for pair, each in zip(plain, rows, strict=True) if each["split"] != "train"}
    assert learnt and held_out
    assert not learnt & held_out
    assert made.counts["repeated"] == len(table) * 2 - len(rows) > 0


@pytest.mark.parametrize("gone", ["excluded", "repeated"])
def test_pairs_are_split_anew_if_one_side_is_empty(tmp_path: Path, gone: str) -> None:
    """The share of the settings is held out, with a note."""
    table = [
        {**each, "split": "validation" if each["dialogue_id"] == "d0" else "train"}
        for each in dialogues(200)
    ]
    # every dialogue twice: the new split must not hold out training pairs, either
    copies = [{**each, "dialogue_id": f"copy of {each['dialogue_id']}"} for each in table]
    more: dict[str, Any] = {}
    if gone == "excluded":
        test_set = write(tmp_path / "test.parquet", [r for r in table if r["split"] != "train"])
        more["exclude"] = [str(test_set)]
    else:
        copies = [{**each, "split": "train"} for each in copies]
    path = write(tmp_path / "a.parquet", table + copies)
    made, rows = collected(tmp_path, path, data=DataSettings(validation_share=0.3), **more)
    train, held_out = sides(rows)
    # a dialogue stays held out if both copies are: .3 * .3 of 200; three deviations are 12
    assert 12 <= len(held_out) / 2 <= 30
    assert not train & held_out
    plain = {
        name: {(r["utterance"], r["response"]) for r in rows if r["split"] == name}
        for name in ("train", "validation")
    }
    assert not plain["train"] & plain["validation"]
    assert made.split_by == "a hash of dialogue_id"
    (note,) = made.notes
    assert "split anew, by a hash of dialogue_id" in note


def test_equal_pairs_are_too_few(tmp_path: Path) -> None:
    table = [row(f"d{n}", [], "how are you today", "fine, thank you", f"u{n}") for n in range(9)]
    with pytest.raises(DataError, match=r"held-out pairs? that repeat"):
        collected(tmp_path, write(tmp_path / "a.parquet", table))


def test_held_out_utterances_are_written_to_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", dialogues(40))
    _, rows = collected(tmp_path, path, data=DataSettings(validation_share=0.3))
    listed = json.loads((tmp_path / "held-out.json").read_bytes())
    assert set(listed) == {each["utterance"] for each in rows if each["split"] == "validation"}
    assert len(listed) == len(set(listed)) > 5


def test_utterances_with_several_responses_are_counted(tmp_path: Path) -> None:
    """The same words in two posts are one utterance; a repeated response counts once."""
    table = [
        row(f"d{n}", [], f"what is the number {n // 2}", f"answer {n}", f"u{n}") for n in range(80)
    ]
    table += [
        row(f"e{n}", [], f"is it so and so {n}", reply, f"e{n}")
        for n in range(30)
        for reply in ("Yes.", "yes")
    ]
    side = {"d": lambda n: n // 2 % 4, "e": lambda n: n % 3}
    for each in table:
        kind, number = each["dialogue_id"][0], int(each["dialogue_id"][1:])
        each["split"] = "train" if side[kind](number) else "validation"
    for each in table:
        if each["split"] == "validation" and each["response"] in ("Yes.", "yes"):
            each["response"] += " it is"
    made, _ = collected(tmp_path, write(tmp_path / "a.parquet", table))
    assert made.counts["utterances"] == 70
    assert made.counts["utterances_with_several_responses"] == 40


def test_repeated_pairs_are_equal_up_to_case_and_punctuation(tmp_path: Path) -> None:
    """Both texts must be equal, also their boundary."""
    learnt = [("so it is", "quite right"), ("ab", "c")]
    held_out = [("So, it is!", "QUITE right."), ("so it is", "quite wrong"), ("a", "bc")]
    table = [
        {**row(f"{split}{n}", [], *pair, f"{split}{n}"), "split": split}
        for split, pairs in (("train", learnt), ("validation", held_out))
        for n, pair in enumerate(pairs)
    ]
    made, rows = collected(tmp_path, write(tmp_path / "a.parquet", table))
    assert made.counts["repeated"] == 1
    kept = [(r["utterance"], r["response"]) for r in rows if r["split"] == "validation"]
    assert kept == held_out[1:]


def test_ids_and_contexts_are_optional(tmp_path: Path) -> None:
    table = [{"utterance": f"question {n // 2}", "response": f"answer {n}"} for n in range(40)]
    table += [{"utterance": " ", "response": "x"}, {"utterance": "x", "response": ""}]
    made, rows = collected(tmp_path, write(tmp_path / "a.parquet", table))
    assert made.counts["blank"] == 2
    assert len(rows) == 40
    assert made.counts["utterances"] == 20
    assert made.counts["utterances_with_several_responses"] == 20
    assert all(each["context"] == [] for each in rows)


def test_a_context_may_be_null(tmp_path: Path) -> None:
    table = dialogues(10)
    table[3]["context"] = None
    table[4]["context"] = ["before", None, "after"]
    _, rows = collected(tmp_path, write(tmp_path / "a.parquet", table))
    assert len(rows) == len(table)
    assert ["before", "after"] in [each["context"] for each in rows]
    assert all(None not in each["context"] for each in rows)


def test_responses_in_another_language_give_a_note(tmp_path: Path) -> None:
    german = "Ich glaube, dass wir morgen ins Kino gehen und danach etwas essen werden, Nummer"
    table = dialogues(40)
    few = [row(f"g{n}", [], f"was nun {n}", f"{german} {n}", f"g{n}") for n in range(60)]
    made, _ = collected(tmp_path, write(tmp_path / "a.parquet", table + few))
    (note,) = made.notes
    # 60 of about 220
    assert "27% of a sample of 220 responses" in note
    assert "not in English" in note
    made, _ = collected(tmp_path, write(tmp_path / "b.parquet", few), language="de")
    assert made.notes == []


def test_logs_go_through_the_pipeline(tmp_path: Path) -> None:
    """Ids, and so the split, are the same in every run."""
    log = tmp_path / "log.txt"
    turns = [each["utterance"] for each in dialogues(120, 1)]
    lines = [f"{a} __eou__ {b} __eou__ {c} __eou__" for a, b, c in zip(*[iter(turns)] * 3)]  # noqa: B905
    log.write_text("\n".join([*lines, "no turn at all"]) + "\n")
    made, rows = collected(
        tmp_path, log, format="dailydialog", data=DataSettings(validation_share=0.3)
    )
    # each dialogue of three turns makes two pairs
    assert made.counts["pairs"] == 2 * len(lines) == len(rows)
    assert {len(each["context"]) for each in rows} == {0, 1}
    assert made.notes == ["1 of 241 records of the logs could not be read"]
    assert (
        collected(tmp_path, log, format="dailydialog", data=DataSettings(validation_share=0.3))[1]
        == rows
    )
    assert all(sides(rows))


def test_logs_in_another_language(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    german = "Ich glaube, dass wir morgen ins Kino gehen werden __eou__ Das ist aber schön __eou__"
    english = (
        "We like the soup and the bread here __eou__ So do I, messages the little girl __eou__"
    )
    # three different dialogues: repeated pairs are not held out
    others = [english.replace("soup", word) for word in ("cheese", "butter")]
    log.write_text("\n".join([german, english, *others]) + "\n")
    made, _ = collected(
        tmp_path, log, format="dailydialog", data=DataSettings(validation_share=0.3)
    )
    (note,) = made.notes
    assert "of 8 posts" in note
    assert "not in English and were left out" in note


@given(
    names=st.lists(st.text(max_size=3), min_size=2, max_size=6, unique=True),
    share=st.floats(0, 1),
)
def test_no_side_of_the_split_is_empty(names: list[str], share: float) -> None:
    """Also if the hashes of all dialogues are on one side of the share."""
    table = pa.table({"dialogue_id": [*names, names[0]]}, pa.schema([("dialogue_id", pa.string())]))
    split, _ = assign_split(table, share)
    train, held_out = (
        {each["dialogue_id"] for each in split.to_pylist() if each["split"] == side}
        for side in ("train", "validation")
    )
    assert train
    assert held_out
    assert train | held_out == set(names)
    assert not train & held_out


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"utterance": ["a"], "answer": ["b"]}, "no column response"),
        ({"utterance": ["a", "b"], "response": ["b", None]}, "a text is missing"),
        ({"utterance": [1], "response": ["b"]}, "expected texts"),
        ({"utterance": ["a", "a"], "response": ["b", "c"]}, "too few"),
        ({"utterance": ["a"], "response": ["b"], "split": ["test"]}, "no pairs for training"),
    ],
)
def test_bad_pairs_are_data_errors(
    tmp_path: Path, table: dict[str, list[Any]], reason: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(DataError, match=reason):
        collected(tmp_path, path)


def test_arguments_are_checked_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "log.txt").touch()
    (tmp_path / "a.parquet").touch()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.parquet").touch()
    with pytest.raises(UsageError) as caught:
        check_inputs([f"{tmp_path}/log.txt", f"{tmp_path}/x.parquet"], [f"{tmp_path}/y"], None)
    messages = "\n".join(caught.value.messages)
    assert "x.parquet: there is no such file" in messages
    assert "y: there is no such file" in messages
    assert (
        "log.txt: not .parquet, so it is a log: give its format (format=), one of twitter,"
        in messages
    )
    (tmp_path / "log.csv").write_text("chat,from,body\n")
    with pytest.raises(UsageError, match="which looks like format='messages'"):
        check_inputs([f"{tmp_path}/log.csv"], [], None)
    with pytest.raises(UsageError, match="format= is for logs"):
        check_inputs([f"{tmp_path}/a.parquet"], [], "reddit")
    with pytest.raises(UsageError, match="the same name"):
        check_inputs([f"{tmp_path}/a.parquet", f"{tmp_path}/b/a.parquet"], [], None)


def test_learn_from_chooses_the_role_of_responses(tmp_path: Path) -> None:
    """By default, only turns of users are learnt as responses."""
    words = ["soup", "bread", "train", "ticket", "hotel", "guitar", "piano", "tulip"]
    lines = [
        {
            "messages": [
                {"role": "user", "content": f"We like the {a} and the {b} very much"},
                {"role": "assistant", "content": f"The {a} is better than the {b}, I think"},
                {"role": "user", "content": f"That is what people say about the {a} and the {b}"},
            ]
        }
        for a in words
        for b in words
        if a != b
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = DataSettings(validation_share=0.3)
    first_words = {}
    for learn_from in (None, "assistant", "all"):
        _, rows = collected(tmp_path, log, format="chat", learn_from=learn_from, data=data)
        first_words[learn_from] = {each["response"].split()[0] for each in rows}
    assert first_words == {None: {"That"}, "assistant": {"The"}, "all": {"That", "The"}}

"""Recipes as files: variables, lists, and everything that can be wrong with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.recipe.file import Recipe, mentions, read_recipe

WHOLE = """
title = "Which way is best?"

[variables]
k = 15
fast = true
share = 0.5
folder = { environment = "REJOINDER_TEST_FOLDER", default = "here" }

[[lists.rows]]
row = "words"
retriever = "bm25(on=both)"

[[lists.rows]]
row = "vectors"
retriever = "vectors(vectors=\\"${work}/glove\\")"

[[steps]]
name = "vectors"
run = ["train", "vectors", "${folder}/pairs.parquet", "--share", "${share}", "-o", "${work}/glove"]
inputs = ["${folder}/pairs.parquet"]
outputs = ["${work}/glove"]

[[steps]]
name = "expand-${row}"
each = "rows"
run = ["expand", "--retriever", "${retriever}", "--k", "${k}", "--fast=${fast}",
       "-o", "${work}/${row}.jsonl"]
outputs = ["${work}/${row}.jsonl"]

[[steps]]
name = "meta-${row}"
each = "rows"
run = ["meta", "${work}/${row}.jsonl", "--json"]
stdout = "${work}/${row}.json"

[table]
title = "Agreement at ${k}"
each = "rows"
row = "${row}"
from = "${work}/${row}.json"
output = "${work}/table.json"
"""


def read(tmp_path: Path, text: str, **changes: str) -> Recipe:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    return read_recipe(str(path), Path("w"), changes)


def test_variables_and_lists_are_filled_in(tmp_path: Path) -> None:
    recipe = read(tmp_path, WHOLE)
    names = ["vectors", "expand-words", "expand-vectors", "meta-words", "meta-vectors"]
    assert [step.name for step in recipe.steps] == names
    first, words, vectors, meta, _ = recipe.steps
    assert first.arguments[2] == "here/pairs.parquet"
    assert first.arguments[4] == "0.5"
    assert words.arguments[2:6] == ("bm25(on=both)", "--k", "15", "--fast=true")
    assert vectors.arguments[2] == 'vectors(vectors="w/glove")'
    assert meta.stdout == "w/words.json"
    assert meta.outputs == ("w/words.json",)
    assert recipe.table is not None
    assert recipe.table.title == "Agreement at 15"
    assert recipe.table.rows == (("words", "w/words.json"), ("vectors", "w/vectors.json"))


def test_a_step_for_several_lists(tmp_path: Path) -> None:
    more = '[[lists.single]]\nrow = "one"\n' + WHOLE.replace(
        'name = "meta-${row}"\neach = "rows"', 'name = "meta-${row}"\neach = ["single", "rows"]'
    )
    names = [step.name for step in read(tmp_path, more).steps]
    assert names[3:] == ["meta-one", "meta-words", "meta-vectors"]


COMBINED = """
[[lists.logs]]
log = "chat"
[[lists.logs]]
log = "forum"
[[lists.sets]]
set = "one"
[[lists.sets]]
set = "two"
[[steps]]
name = "${log}-${set}"
each = "logs * sets"
run = ["ls"]
outputs = ["${log}-${set}.json"]
"""


def test_a_step_for_all_combinations_of_two_lists(tmp_path: Path) -> None:
    names = [step.name for step in read(tmp_path, COMBINED).steps]
    assert names == ["chat-one", "chat-two", "forum-one", "forum-two"]


def test_combined_lists_must_not_share_a_field(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the lists of 'logs \\* sets' share set"):
        read(tmp_path, COMBINED.replace("log =", "set ="))


def test_outputs_of_earlier_steps_are_inputs(tmp_path: Path) -> None:
    """Named in the recipe or not, alone or inside a spec."""
    first, words, vectors, meta, _ = read(tmp_path, WHOLE).steps
    assert first.inputs == ("here/pairs.parquet",)
    assert words.inputs == ()
    assert vectors.inputs == ("w/glove",)
    assert meta.inputs == ("w/words.jsonl",)


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("w/pool", True),
        ("vectors(vectors=w/pool)", True),
        ('vectors(vectors="w/pool")', True),
        ("w/pool/part", True),
        ("w/pool.parquet", False),
        ("w/pool-2", False),
        ("new/pool", False),
        ("other/w/pool", True),  # too careful does no harm
    ],
)
def test_a_path_inside_a_longer_name_is_no_mention(argument: str, found: bool) -> None:
    assert mentions(argument, "w/pool") is found


def test_variables_change_by_set_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOINDER_TEST_FOLDER", "there")
    assert read(tmp_path, WHOLE).steps[0].arguments[2] == "there/pairs.parquet"
    recipe = read(tmp_path, WHOLE, folder="elsewhere", k="3")
    assert recipe.steps[0].arguments[2] == "elsewhere/pairs.parquet"
    assert recipe.steps[1].arguments[4] == "3"
    with pytest.raises(UsageError, match=r"variables=.*kk.* no such variable: did you mean 'k'"):
        read(tmp_path, WHOLE, kk="3")


def test_a_missing_environment_variable_is_named(tmp_path: Path) -> None:
    text = WHOLE.replace('default = "here"', 'about = "the folder of corpora"')
    with pytest.raises(MissingExtra, match=r"REJOINDER_TEST_FOLDER \(the folder of corpora\)"):
        read(tmp_path, text)
    assert read(tmp_path, text, folder="x").steps[0].arguments[2] == "x/pairs.parquet"


def test_the_folder_of_the_recipe_is_a_variable(tmp_path: Path) -> None:
    text = '[[steps]]\nname = "a"\nrun = ["ls", "${recipe}/x"]\noutputs = ["y"]\n'
    assert read(tmp_path, text).steps[0].arguments == ("ls", f"{tmp_path}/x")


STEP = '[[steps]]\nname = "a"\nrun = ["ls"]\noutputs = ["x"]\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("steps = ]", "broken TOML: .*line 1"),
        ("", "the field is missing: steps"),
        ("steps = []", "there is no step"),
        (STEP.replace("outputs", "mades"), "mades"),
        (STEP.replace('"ls"', ""), "'run' is empty"),
        (STEP.replace('outputs = ["x"]', ""), "name its output files"),
        (STEP.replace('["x"]', '"x"'), "steps.*outputs: expected a list"),
        (STEP.replace('"a"', '"a/b"'), "letters, digits"),
        (STEP + 'stdout = "x.gz"\n', "choose another name than x.gz"),
        (STEP + 'each = "rows"\n', "no list 'rows'"),
        (STEP + 'each = "rows * sets"\n', "no list 'rows'.*no list 'sets'"),
        (STEP.replace('"ls"', '"${k}"'), r"unknown variable \$\{k\}: known: recipe, work"),
        (STEP + STEP, "x is already an output of 'a'; two steps are called 'a'"),
        ("[variables]\nwork = 1\n" + STEP, "'work' is set by Rejoinder"),
    ],
)
def test_errors_in_a_recipe_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "recipe.toml"))


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: no such file"):
        read_recipe(str(tmp_path / "none.toml"), Path("w"))


def test_a_step_may_depend_on_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
[variables]
data = { environment = "REJOINDER_TEST_FOLDER", default = "" }

[[steps]]
name = "a"
run = ["ls"]
outputs = ["x"]

[[steps]]
name = "b"
when = "${data}"
run = ["ls", "${data}"]
outputs = ["y"]
"""
    monkeypatch.delenv("REJOINDER_TEST_FOLDER", raising=False)
    assert [step.name for step in read(tmp_path, text).steps] == ["a"]
    monkeypatch.setenv("REJOINDER_TEST_FOLDER", "there")
    assert [step.arguments for step in read(tmp_path, text).steps] == [("ls",), ("ls", "there")]
    with pytest.raises(DataError, match=r"step 'b': unknown variable \$\{dat\}: did you mean"):
        read(tmp_path, text.replace('when = "${data}"', 'when = "${dat}"'))


def in_step(text: str) -> str:
    return STEP.replace('"ls"', text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (in_step('"a\\u0000b"'), "step 'a': a text contains a NUL byte"),
        (STEP + 'when = "\\u0000"', "a text contains a NUL byte"),
        ("a\0b = 1", "broken TOML"),
        ("a = " + "[" * 50_000, "broken TOML: nested too deeply"),
        ("[variables]\na = 1" + "0" * 5_000, "broken TOML"),
        ("a = " + "[" * 2**20, "has 1,048,580 bytes; expected 1,048,576 at most"),
        (
            "[variables]\nbig = '" + "x" * 90_000 + "'\n" + in_step('"${big}${big}"'),
            "step 'a': a text is longer than 100,000 characters",
        ),
        (
            "".join(f"[[lists.n]]\nn = {n}\n" for n in range(1_001))
            + '[[steps]]\nname = "a-${n}"\neach = "n"\nrun = ["ls"]\noutputs = ["${n}"]\n',
            "there are more than 1,000 steps",
        ),
    ],
    ids=["NUL", "NUL in when", "raw NUL", "deep", "digits", "large", "growing", "many steps"],
)
def test_hostile_recipes_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as error:
        read(tmp_path, text)
    assert len(str(error.value)) < 1_000


def test_a_recipe_that_runs_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.toml").symlink_to("recipe.toml")
    for name in ("recipe.toml", "link.toml"):
        with pytest.raises(DataError, match="step 'a': the recipe runs itself"):
            read(tmp_path, in_step(f'"run", "--json", "${{recipe}}/{name}"'))


def test_a_recipe_in_a_pipe_or_device_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path)):
        with pytest.raises(DataError, match="cannot be read: it is a"):
            read_recipe(path, Path("w"))

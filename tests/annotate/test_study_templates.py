"""The templates of studies: complete in every language, with the numbers of the papers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.studies import template_records as records
from rejoinder.annotate import study as study_module
from rejoinder.annotate.study import LANGUAGES, Study, StudySettings
from rejoinder.annotate.study_templates import describe, names, write_study
from rejoinder.annotate.tasks import kind_of
from rejoinder.annotate.tasks.kind import Accepted
from rejoinder.annotate.template_text import change_settings, fill, setting_lines, slots, toml_value
from rejoinder.errors import DataError, UsageError
from rejoinder.files.item_file import read_items

TEMPLATES = Path(study_module.__file__).parent / "templates"
EACH = [(name, language) for name in names() for language in LANGUAGES]

Make = Callable[..., Study]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "replies.jsonl", records())


@pytest.fixture
def make(tmp_path: Path, items: Path) -> Make:
    def made(name: str, language: str = "en", **options: Any) -> Study:
        write_study(name, tmp_path / "study", items, language, **options)
        return Study.read(tmp_path / "study")

    return made


# every template in every language


@pytest.mark.parametrize(("name", "language"), EACH)
def test_study_is_complete(name: str, language: str, make: Make) -> None:
    """All settings are in the file, each setting or group of settings below a comment."""
    study = make(name, language, consent=True, training=True)
    assert (study.settings.language, study.settings.text_language) == (language, language)
    text = (study.folder / "study.toml").read_text("utf-8")
    table = tomllib.loads(text)
    other_kinds = {*study_module.KINDS} - {study.settings.kind}
    check_keys(table, StudySettings, others={*other_kinds, "plan"})  # all replies are rated
    lines = text.splitlines()
    for path, number in setting_lines(text).items():
        above = lines[number - 2]
        assert above.startswith("#") or "=" in above, f"{path} has no comment"
    assert "{{" not in text


def check_keys(table: dict[str, Any], type: Any, others: set[str]) -> None:
    """Check that a table, and the tables in it, have all settings."""
    for field in msgspec.structs.fields(type):
        if field.name in others:
            continue
        assert field.name in table, f"{field.name} is not in the file"
        value = table[field.name]
        inner = struct_in(field.type)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) and inner is not None:
                check_keys(each, inner, set())


def struct_in(kind: Any) -> Any:
    """Return the struct in a type such as ``list[Slot]`` or ``RateSettings | None``."""
    for each in (kind, *getattr(kind, "__args__", ())):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each
    return None


POSITIONS = re.compile(
    r"\b(first|second|third|last|left|right|[AB])\b|[一二三四五]つ目|最初|最後|第[一二三四五]|前两|最后"
)


@pytest.mark.parametrize(("name", "language"), EACH)
def test_training_round_is_valid(name: str, language: str, make: Make) -> None:
    study = make(name, language, training=True)
    kind = kind_of(study.settings.kind)(study)
    known = kind.known_tasks(str(study.folder / study.settings.training.training))
    assert 3 <= len(known) <= 4
    for each in known:
        assert each.explanation.endswith((".", "。"))
        if len(each.content.get("replies", ())) > 1:  # they are shown in random order
            assert not POSITIONS.search(each.explanation), each.explanation
        view = kind.view(each.content, 0, np.random.default_rng(1))
        page = kind.page(each.content, view)
        assert page.get("context") == each.content.get("context")
        form = right_form(study.settings.kind, each.expected, view)
        accepted = kind.check(each.content, view, form, list)
        assert isinstance(accepted, Accepted)
        assert kind.is_expected({"expected": each.expected}, accepted.value)


def right_form(kind: str, expected: Any, view: dict[str, Any]) -> dict[str, str]:
    """Return the form of somebody who answers a task of the training round as expected."""
    if kind == "rate":
        chosen = [str(expected[at][0]) for at in view["order"]]
        names = ("appropriateness", "satisfaction")  # a study has one of them
        return {f"{name}-{n}": value for name in names for n, value in enumerate(chosen)}
    if kind == "write":
        return {f"reply-{n}": text for n, text in enumerate(expected["examples"])}
    if kind == "diversity":
        shown = [expected["fits"][at] for at in view["order"]]
        marks = {f"fits-{n}": "1" for n, fits in enumerate(shown) if fits}
        return marks | {"rating": str(expected.get("ratings", [""])[0])}
    if kind == "compare":
        return {"winner": "left" if view["left"] == expected[0] else "right"}
    return {"rating": str(expected[0])}


@pytest.mark.parametrize(("name", "language"), EACH)
def test_instructions_have_examples(name: str, language: str, make: Make) -> None:
    study = make(name, language)
    text = study.text(study.settings.instructions)
    headings = re.findall(r"^# (.+)$", text, re.MULTILINE)
    assert len(headings) >= 2
    assert any(word in headings[-1] for word in ("xample", "例"))
    examples = text.rpartition("\n# ")[2]
    quoted = re.findall(r'^- (?:"|「|“|\*\*)', examples, re.MULTILINE)
    assert 3 <= len(quoted) <= 10
    assert is_in_language(text, language)


def is_in_language(text: str, language: str) -> bool:
    """Return whether a text is in English, in Japanese (kana) or in Chinese (no kana)."""
    kana, characters = (len(re.findall(f"[{each}]", text)) for each in ("ぁ-ヶ", "一-鿿"))
    if language == "en":
        return not kana and not characters
    return kana > 50 if language == "ja" else not kana and characters > 50


@pytest.mark.parametrize("name", names())
def test_languages_have_the_same_texts(name: str) -> None:
    """The texts fill the slots of the study, none is left over, and lists have the same length."""
    shapes = []
    for language in LANGUAGES:
        texts = tomllib.loads((TEMPLATES / name / f"{language}.toml").read_text("utf-8"))
        assert all(texts.values())
        shapes.append({key: len(value) for key, value in texts.items() if isinstance(value, list)})
        assert set(texts) - {"summary"} == slots((TEMPLATES / name / "study.toml").read_text())
        about = describe(name, language)
        assert about.title == texts["title"]
        assert about.summary.endswith((".", "。"))
    assert shapes[0] == shapes[1] == shapes[2]


def test_languages_of_training_rounds_expect_the_same() -> None:
    folder = TEMPLATES / "shared" / "training"
    rounds = sorted({path.name.split(".")[0] for path in folder.iterdir()})
    for name in rounds:
        expected = [
            [json.loads(line)["expected"] for line in path.read_text("utf-8").splitlines()]
            for path in (folder / f"{name}.{language}.jsonl" for language in LANGUAGES)
        ]
        if not name.startswith("write"):  # the replies that are expected are texts
            assert expected[0] == expected[1] == expected[2]


def test_every_file_of_a_template_is_used() -> None:
    expected = {"study.toml", "about.toml"}
    for language in LANGUAGES:
        expected |= {f"{language}.toml", f"instructions.{language}.md"}
    for name in names():
        assert {path.name for path in (TEMPLATES / name).iterdir()} == expected
        about = tomllib.loads((TEMPLATES / name / "about.toml").read_text("utf-8"))
        assert set(about) == {"paper", "training"}
        assert re.fullmatch(r"(Gupta|Sugiyama|Tsuta|Tao) et al\. 20\d\d, section.+", about["paper"])


def test_consent_text_has_places_to_fill_in(tmp_path: Path, items: Path) -> None:
    counts = set()
    for language in LANGUAGES:
        folder = tmp_path / language
        made = write_study("gupta-ratings", folder, items, language, consent=True)
        text = (folder / "consent.md").read_text("utf-8")
        assert is_in_language(text, language)
        assert text.count("[[") == text.count("]]") == made.to_fill_in
        counts.add(made.to_fill_in)
    assert len(counts) == 1


# the numbers of the papers


def test_gupta_ratings(make: Make) -> None:
    """Gupta et al. 2019, section 5.1.1."""
    settings = make("gupta-ratings").settings
    assert settings.rate is not None
    (dimension,) = settings.rate.dimensions
    assert settings.answers_per_task == 5  # "rated … by 5 different AMT workers"
    assert dimension.scale == [1, 2, 3, 4, 5]  # "appropriateness (from 1-5)"
    assert dimension.labels[0] == "not appropriate at all"  # Table 3
    assert dimension.labels[4] == "very appropriate"
    assert settings.quality.min_kappa == 0.2  # "kappa … of less than 0.2"
    assert settings.rate.replies == "responses"


def test_gupta_quality(make: Make) -> None:
    """Gupta et al. 2019, section 4.2 and Table 3."""
    study = make("gupta-quality")
    rate = study.settings.rate
    assert rate is not None
    # "3 responses shuffled in a random order": original, collected and a distractor
    assert (rate.replies, rate.layout, rate.distractors) == ("original-collected", "context", 1)
    (dimension,) = rate.dimensions
    assert dimension.scale == [1, 2, 3, 4, 5]  # "on a scale of 1-5"
    assert dimension.labels == [  # the columns of Table 3, from the right
        "not appropriate at all",
        "not appropriate",
        "neutral",
        "appropriate",
        "very appropriate",
    ]
    tasks = kind_of("rate")(study).tasks(study.items, np.random.default_rng(1))
    systems = [[each["system"] for each in task.content["replies"]] for task in tasks]
    assert systems == [["original", "collected", "distractor"]] * 3  # one page for each context


def test_gupta_references(make: Make) -> None:
    """Gupta et al. 2019, section 4.1 and appendix A."""
    settings = make("gupta-references").settings
    assert settings.write is not None
    (slot,) = settings.write.slots
    assert settings.answers_per_task == 1  # "4 responses from 1 worker"
    assert slot.count == 4  # "generate 4 diverse follow-up responses"
    assert settings.tasks_per_batch == 5  # "they are shown 5 contexts for a HIT"
    assert slot.min_characters == 2  # "replies shorter than 2 characters" are prevented
    assert settings.write.masks == []
    assert settings.write.compare_with == "own"


def test_gupta_diversity(make: Make) -> None:
    """Gupta et al. 2019, section 5.2.1 and appendix A."""
    study = make("gupta-diversity")
    settings = study.settings
    options = settings.diversity
    assert options is not None
    assert settings.answers_per_task == 3  # "averaged across the three workers' annotations"
    assert settings.tasks_per_batch == 5  # "You will be shown 5 sets of responses"
    assert options.replies == 5  # "with 5 responses in each set"
    # "The diversity score should not be more than the number of appropriate responses"
    assert options.at_most_fitting
    assert options.scale == [0, 1, 2, 3, 4, 5]
    assert settings.quality.min_kappa == 0.2  # "as described in section 5.1.1"
    tasks = kind_of("diversity")(study).tasks(study.items, np.random.default_rng(1))
    assert len(tasks) == 6  # 3 contexts × 2 systems


def test_sugiyama_comprehension(make: Make) -> None:
    """Sugiyama et al. 2019, section 3.1.1."""
    settings = make("sugiyama-comprehension").settings
    options = settings.comprehension
    assert options is not None
    assert settings.answers_per_task == 2  # "two annotators"
    assert options.scale == [1, 2, 3, 4, 5]  # "on a 5-point Likert scale"
    assert options.keep_from == 5  # "scores of 5 from both annotators"


def test_sugiyama_references(make: Make) -> None:
    """Sugiyama et al. 2019, section 3.1.2 and Table 1."""
    settings = make("sugiyama-references").settings
    assert settings.write is not None
    slots, masks = settings.write.slots, settings.write.masks
    assert settings.answers_per_task == 10  # "ten reference sentence writers"
    lengths = [(slot.count, slot.min_characters, slot.max_characters) for slot in slots]
    assert lengths == [(3, 1, 49), (3, 10, 49), (1, 1, 9)]  # Nc < 50, 10 <= Nc < 50, Nc < 10
    assert [(mask.share, mask.people) for mask in masks] == [(0, 6), (0.3, 2), (0.6, 2)]
    # the rows of Table 1: 18 + 18 + 6 = 42 without a mask, 6 + 6 + 2 = 14 with each mask
    table = [[mask.people * slot.count for slot in slots] for mask in masks]
    assert table == [[18, 18, 6], [6, 6, 2], [6, 6, 2]]


def test_sugiyama_pairs(make: Make) -> None:
    """Sugiyama et al. 2019, sections 2.2, 3.1.2 and 3.2."""
    settings = make("sugiyama-pairs").settings
    options = settings.compare
    assert options is not None
    assert settings.answers_per_task == 2  # "two human evaluators"
    assert options.repeated_share == 1  # "they annotated 4,950 pairs": both judged every pair
    assert options.ties is False  # "the winner of each reference pair"
    assert "natural" in options.question  # "in terms of its naturalness as a response"
    # "around 12% of the evaluation rates. With our 100 references, 600 pairwise evaluations"
    assert options.share == 0.12
    assert options.planned


def test_tsuta_appropriateness(make: Make) -> None:
    """Tsuta et al. 2023, section 5.2."""
    settings = make("tsuta-appropriateness").settings
    assert settings.rate is not None
    assert settings.answers_per_task == 6  # "six Japanese native speakers"
    assert settings.rate.replies == "responses"
    assert settings.rate.layout == "reply"  # "randomly shuffled 300 target responses"
    (dimension,) = settings.rate.dimensions
    assert dimension.scale == [1, 2, 3, 4, 5]  # "5-point Likert-type scale"
    assert len(dimension.labels) == 2  # the paper describes 1 and 5


def test_tsuta_references(make: Make) -> None:
    """Tsuta et al. 2023, section 5.4, and Table 6."""
    study = make("tsuta-references")
    settings = study.settings
    assert settings.rate is not None
    assert settings.answers_per_task == 4  # "four of the six Japanese native speakers"
    (dimension,) = settings.rate.dimensions
    assert dimension.scale == [1, 2, 3, 4, 5]
    tasks = kind_of("rate")(study).tasks(study.items, np.random.default_rng(1))
    # each of the 4 references of 3 contexts once, although 10 items share them
    assert len(tasks) == 12
    assert {task.content["replies"][0]["system"] for task in tasks} >= {"retrieved", "parrot"}


def test_ruber_satisfaction(make: Make) -> None:
    """Tao et al. 2018, section 4.1."""
    settings = make("ruber-satisfaction").settings
    assert settings.rate is not None
    assert settings.answers_per_task == 9  # "9 volunteers"
    (dimension,) = settings.rate.dimensions
    assert dimension.scale == [0, 1, 2]
    # "2 indicates a 'good' reply, 0 a bad reply, and 1 borderline"
    assert dimension.labels == ["bad", "borderline", "good"]


# options


def test_without_options(tmp_path: Path, items: Path) -> None:
    made = write_study("gupta-ratings", tmp_path / "study", items, "en")
    assert made.files == ["instructions.md", "items.jsonl", "study.toml"]
    assert sorted(path.name for path in made.folder.iterdir()) == made.files
    assert (made.items, made.contexts, made.to_fill_in) == (30, 3, 0)  # 3 contexts × 2 × 5 replies


def test_items_are_kept(tmp_path: Path, items: Path) -> None:
    write_study("gupta-ratings", tmp_path / "study", items, "en")
    kept = list(read_items(tmp_path / "study" / "items.jsonl"))
    assert kept == list(read_items(items))
    assert kept[0].references[2].score == 0.5


@pytest.mark.parametrize("name", ["gupta-references", "sugiyama-comprehension"])
def test_contexts_need_no_replies_where_none_are_judged(name: str, tmp_path: Path) -> None:
    lines = [{"id": "1", "context": ["Hello."]}, {"context": ["Bye."], "references": ["So long!"]}]
    contexts = write_lines(tmp_path / "contexts.jsonl", lines)
    write_study(name, tmp_path / "study", contexts, "en")
    kept = list(read_items(tmp_path / "study" / "items.jsonl"))
    assert [(item.context, item.response) for item in kept] == [(["Hello."], ""), (["Bye."], "")]
    assert kept[0].id == "1"
    assert kept[1].references[0].text == "So long!"


def test_items_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "replies.csv"
    table.write_text("id,dialogue,answer,bot\n1,Hello.,Hi!,a\n2,Bye.,So long!,b\n")
    columns = {"context": "dialogue", "response": "answer", "system": "bot"}
    write_study("gupta-ratings", tmp_path / "study", table, "en", columns=columns)
    kept = list(read_items(tmp_path / "study" / "items.jsonl"))
    assert [(item.id, item.response, item.system) for item in kept] == [
        ("1", "Hi!", "a"),
        ("2", "So long!", "b"),
    ]


def test_language_of_the_dialogues(make: Make) -> None:
    settings = make("gupta-ratings", "en", text_language="ja").settings
    assert (settings.language, settings.text_language) == ("en", "ja")


def test_overrides_keep_comments(make: Make) -> None:
    question = 'Is it "good"? \\ / \t'
    study = make(
        "gupta-ratings",
        overrides={
            "answers_per_task": 3,
            "people.sign_up": "open",
            "quality.min_kappa": 0.1,
            "comments": False,
            "rate.dimensions[0].question": question,
        },
    )
    settings = study.settings
    assert settings.rate is not None
    assert settings.answers_per_task == 3
    assert settings.people.sign_up == "open"
    assert settings.quality.min_kappa == 0.1
    assert settings.comments is False
    assert settings.rate.dimensions[0].question == question
    text = (study.folder / "study.toml").read_text("utf-8")
    assert "# In the template: answers_per_task = 5\nanswers_per_task = 3\n" in text


@pytest.mark.parametrize("name", names())
def test_every_setting_can_be_found_for_a_change(name: str, make: Make) -> None:
    """Each setting stands in one line: the same value in its place gives the same settings."""
    study = make(name)
    text = (study.folder / "study.toml").read_text("utf-8")
    table = tomllib.loads(text)
    changes = []
    for path in setting_lines(text):
        value: Any = table
        for key in path:
            value = value[key]
        changes.append((path, value))
    assert tomllib.loads(change_settings(text, changes)) == table


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.text("a\"'\\\n\x7f\x1f")))
def test_texts_are_escaped(text: str, several: list[str]) -> None:
    filled = fill("text = {{text}}\nseveral = {{several}}", {"text": text, "several": several})
    assert tomllib.loads(filled) == {"text": text, "several": several}


@given(st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)))
def test_numbers_are_written_as_toml(value: Any) -> None:
    again = tomllib.loads(f"value = {toml_value(value)}")["value"]
    assert again == value
    assert type(again) is type(value)


# bad input


def refused(error: type[Exception], items: Path, *arguments: Any, **options: Any) -> str:
    """Return the message of a refused study, of which nothing was written."""
    folder = items.parent / "study"
    name, *others = arguments or ("gupta-ratings",)
    before = sorted(items.parent.iterdir())
    with pytest.raises(error) as caught:
        write_study(name, folder, items, *others, **options)
    assert sorted(items.parent.iterdir()) == before
    return str(caught.value)


def test_unknown_template_and_languages(items: Path) -> None:
    message = refused(UsageError, items, "gupta-rating", "fr", "jp")
    assert message.splitlines() == [
        "unknown template 'gupta-rating': did you mean 'gupta-ratings'"
        + message.splitlines()[0].partition("'gupta-ratings'")[2],
        "there are no pages in the language 'fr'; choose one of en, ja, zh",
        "unknown language 'jp': did you mean 'ja' (Japanese)?",
    ]


def test_bad_overrides_are_reported_together(items: Path) -> None:
    overrides = {
        "answer_per_task": 3,
        "people.signup": "open",
        "kind": "write",
        "training.test": "test.jsonl",
        "seed": {"a": 1},
        "title": "\ud800",
        "rate": 1,
    }
    message = refused(UsageError, items, overrides=overrides).splitlines()
    assert len(message) == len(overrides)
    for line, key in zip(message, overrides, strict=True):
        assert line.startswith(f"{key}: ")
    assert "did you mean 'answers_per_task'" in message[0]
    assert "'people.sign_up'" in message[1]


def test_overrides_out_of_range(items: Path) -> None:
    overrides = {"answers_per_task": 0, "tasks_per_batch": 0}
    assert refused(UsageError, items, overrides=overrides).splitlines() == [
        "answers_per_task: must be from 1 to 1000",
        "tasks_per_batch: must be from 1 to 10000",
    ]
    unknown_and_wrong = {"colour": "blue", "answers_per_task": "x", "tasks_per_batch": 0}
    message = refused(UsageError, items, overrides=unknown_and_wrong)
    assert [line.partition(":")[0] for line in message.splitlines()] == [*unknown_and_wrong]
    message = refused(UsageError, items, overrides={"comments": "perhaps"})
    assert message.startswith("comments: expected")


def test_training_round_for_another_scale(items: Path) -> None:
    overrides = {"rate.dimensions[0].scale": [1, 2, 3], "rate.dimensions[0].labels": []}
    message = refused(UsageError, items, training=True, overrides=overrides)
    assert "the training round of this template does not fit" in message


def test_folder_with_files_is_not_replaced(tmp_path: Path, items: Path) -> None:
    (tmp_path / "study").mkdir()
    write_study("gupta-ratings", tmp_path / "study", items, "en")  # an empty folder is fine
    before = (tmp_path / "study" / "study.toml").read_bytes()
    message = refused(UsageError, items, "gupta-ratings", "ja")
    assert "is a study already; choose another name, or remove it first" in message
    (tmp_path / "study" / "study.toml").rename(tmp_path / "study" / "notes.toml")
    assert "is a folder with other things" in refused(UsageError, items, "gupta-ratings", "ja")
    (tmp_path / "study" / "notes.toml").rename(tmp_path / "study" / "study.toml")
    assert (tmp_path / "study" / "study.toml").read_bytes() == before


def test_folder_in_a_missing_folder(tmp_path: Path, items: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        write_study("gupta-ratings", tmp_path / "no" / "study", items, "en")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gupta-quality", "no item has two references"),
        ("gupta-quality", "1 distractors for each context need more than 1 contexts, there are 1"),
        ("tsuta-references", "no item has references"),
        ("gupta-references", "1 of 2 items have no context to reply to, such as '2'"),
        ("sugiyama-comprehension", "1 of 2 items have no context whose last turn could be shown"),
        ("sugiyama-pairs", "no context has two different replies that could be compared"),
        ("gupta-diversity", "2 of 2 sets, the replies of a system to a context, have fewer than 5"),
    ],
)
def test_items_that_do_not_fit(name: str, problem: str, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"id": "1", "context": ["Hi!"], "response": "Oh."}]
    if not name.endswith("quality"):
        lines.append({"id": "2", "response": "Oh."})
    items = write_lines(tmp_path / "a.jsonl", lines)
    message = refused(DataError, items, name)
    assert message.startswith(f"{items}: the items do not fit the template {name}: ")
    assert problem in message


def test_replies_without_any_context_are_noted(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"id": "1", "response": "Oh."}, {"id": "2", "response": "No."}]
    notes: list[str] = []
    items = write_lines(tmp_path / "a.jsonl", lines)
    write_study("gupta-ratings", tmp_path / "alone", items, "en", on_note=notes.append)
    assert notes == [
        "no item has a context: people will see the replies without a conversation",
    ]
    items = write_lines(tmp_path / "b.jsonl", [*lines, {"id": "3", "response": "", "context": "A"}])
    write_study("gupta-ratings", tmp_path / "some", items, "en", on_note=notes.append)
    assert len(notes) == 1


def test_broken_items(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    items.write_text('{"response": "a"}\nnothing\n')
    assert f"{items}:2: " in refused(DataError, items)
    items.write_text("")
    assert "the file is empty" in refused(DataError, items)
    assert "the file is empty" in refused(DataError, items, "gupta-references")
    items.write_text('{"id": "1", "context": ["a"]}\n{"id": "1", "context": ["b"]}\n')
    message = refused(DataError, items, "gupta-references")
    assert message == f"{items}:2: the id is in line 1, too; ids must be unique"

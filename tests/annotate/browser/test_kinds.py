"""Every kind of task: from ``init`` over two people at once to the verb that uses the answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from annotate.browser.live import (
    LiveStudy,
    Record,
    Visitor,
    command,
    init,
    live,
    read_lines,
    visitor,
    write_lines,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

Fill = Callable[[Visitor], Any]

TURNS = ["How was your day?", "Did you sleep well?"]
REPLIES = {
    "warm": ["Lovely, I walked by the river.", "Like a stone, thanks for asking."],
    "flat": ["It was a day.", "Sleep happened."],
    "lost": ["Trains have wheels.", "My hat is green."],
}
RATING = {"warm": 5, "flat": 3, "lost": 1}
SYSTEM_OF = {text: system for system, texts in REPLIES.items() for text in texts}


def replies(contexts: int = 2) -> list[Record]:
    """Replies of three systems of different quality."""
    return [
        {
            "id": f"{number}:{system}",
            "context_id": f"c{number}",
            "context": [TURNS[number]],
            "response": texts[number],
            "system": system,
        }
        for number in range(contexts)
        for system, texts in REPLIES.items()
    ]


def answer_together(
    browser: Browser, study: LiveStudy, people: dict[str, Fill], most: int = 100
) -> dict[str, int]:
    """Let people answer at the same time, in turns, until there is nothing to do for anybody.

    Return how many tasks each of them did.
    """
    done = dict.fromkeys(people, 0)
    with ExitStack() as stack:
        links = study.invite(*people)
        open_pages = {
            name: stack.enter_context(visitor(browser, link))
            for name, link in zip(people, links, strict=True)
        }
        for each in open_pages.values():
            each.begin()
        for _ in range(most):
            before = dict(done)
            for name, each in open_pages.items():
                done[name] += each.answer_all(people[name], most=1)
            if done == before:
                break
    return done


def rate(ratings: dict[str, int]) -> Fill:
    """Rate the replies on a page by the system that gave them."""

    def fill(person: Visitor) -> None:
        for place, text in enumerate(person.page.locator(".reply").all_inner_texts()):
            person.choose(f"appropriateness-{place}", ratings[SYSTEM_OF[text]])

    return fill


@pytest.fixture(scope="module")
def ratings(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported ratings of replies that were rated one at a time by two people."""
    folder = tmp_path_factory.mktemp("ratings")
    source = write_lines(folder / "items.jsonl", replies())
    study = init(folder / "study", "gupta-ratings", source, answers_per_task=2, tasks_per_batch=4)
    bob = {"warm": 4, "flat": 3, "lost": 2}
    with live(study) as served:
        done = answer_together(browser, served, {"Ann": rate(RATING), "Bob": rate(bob)})
        assert done == {"Ann": 6, "Bob": 6}
        status = served.status()
        assert (status["answers"], status["wanted"], status["complete"]) == (12, 12, 6)
        served.export("rated.jsonl", "--raw", str(folder / "raw.jsonl"))
    return folder / "rated.jsonl"


def test_ratings_reach_the_items(ratings: Path) -> None:
    found = {item["id"]: item["ratings"] for item in read_lines(ratings)}
    assert found == {
        f"{number}:{system}": {"Ann": RATING[system], "Bob": bob}
        for number in range(2)
        for system, bob in (("warm", 4), ("flat", 3), ("lost", 2))
    }


def test_raw_answers_have_the_time_that_the_browser_measured(ratings: Path) -> None:
    rows = read_lines(ratings.with_name("raw.jsonl"))
    assert len(rows) == 12
    assert all(0 < row["seconds"] < 30 for row in rows)
    assert {row["person"] for row in rows} == {"Ann", "Bob"}


def test_ratings_rank_systems_by_people(ratings: Path) -> None:
    (result,) = json.loads(command("compare", ratings, "--by", "people", "--json"))["results"]
    means = {each["system"]: each["value"] for each in result["systems"]}
    assert means == {"warm": 4.5, "flat": 3, "lost": 1.5}  # (5 + 4) / 2, (3 + 3) / 2, (1 + 2) / 2


def test_ratings_evaluate_a_metric(ratings: Path) -> None:
    """A metric that is 3, 2, 1 where people's mean is 4.5, 3, 1.5 correlates at 1."""
    metric = {"warm": 3, "flat": 2, "lost": 1}
    scores = write_lines(
        ratings.with_name("scores.jsonl"),
        [
            {"id": item["id"], "metric": "mine", "value": metric[item["system"]]}
            for item in read_lines(ratings)
        ],
    )
    found = json.loads(command("meta", ratings, scores, "--json"))
    (result,) = found["results"]
    assert result["n"] == found["rated"] == 6
    assert result["pearson"] == pytest.approx(1)
    assert result["spearman"] == pytest.approx(1)
    assert found["humans"]["annotators"] == 2


def test_all_replies_of_a_context_with_a_distractor(browser: Browser, tmp_path: Path) -> None:
    """``gupta-quality``: original, collected and distractor become systems for ``compare``."""
    warm, flat = REPLIES["warm"], REPLIES["flat"]
    contexts = [
        {
            "id": f"c{number}",
            "context": [TURNS[number]],
            "response": "",
            "references": [warm[number], flat[number]],
        }
        for number in range(2)
    ]
    source = write_lines(tmp_path / "items.jsonl", contexts)
    study = init(tmp_path / "study", "gupta-quality", source, answers_per_task=2)

    def fill(person: Visitor) -> None:
        turn = TURNS.index(person.page.locator(".turn p").inner_text())
        shown = person.page.locator(".reply").all_inner_texts()
        assert len(shown) == 3
        assert {warm[turn], flat[turn]} < set(shown)
        quality = {warm[turn]: 5, flat[turn]: 4}
        for place, text in enumerate(shown):
            person.choose(f"appropriateness-{place}", quality.get(text, 1))

    with live(study) as served:
        assert answer_together(browser, served, {"Ann": fill, "Bob": fill}) == {"Ann": 2, "Bob": 2}
        status = served.status()
        served.export("quality.jsonl")
    assert [each["distractor_share"] for each in status["people"]] == [0, 0]
    rated = tmp_path / "quality.rated.jsonl"
    (result,) = json.loads(command("compare", rated, "--by", "people", "--json"))["results"]
    means = [(each["system"], each["value"]) for each in result["systems"]]
    assert means == [("original", 5), ("collected", 4), ("distractor", 1)]


def test_rated_references_become_weights(browser: Browser, tmp_path: Path) -> None:
    """Ratings of references weight ``delta-bleu``, and evaluate the weights of a rater."""
    rater = {"very well indeed": 0.9, "not too badly": 0.4, "wheels on trains": -0.5}
    items = [
        {
            "id": "c0",
            "context": ["How did it go?"],
            "response": "not too badly",
            "references": [{"text": text, "weight": weight} for text, weight in rater.items()],
        }
    ]
    source = write_lines(tmp_path / "expanded.jsonl", items)
    study = init(tmp_path / "study", "tsuta-references", source, answers_per_task=2)

    def rating(values: dict[str, int]) -> Fill:
        return lambda person: person.choose(
            "appropriateness-0", values[person.page.locator(".reply").inner_text()]
        )

    ann = dict(zip(rater, (5, 4, 1), strict=True))
    bob = dict(zip(rater, (5, 4, 2), strict=True))
    with live(study) as served:
        answer_together(browser, served, {"Ann": rating(ann), "Bob": rating(bob)})
        (item,) = served.export("human.jsonl")
    # means 5, 4 and 1.5 on the scale from 1 to 5, mapped to [-1, 1]: 2 (mean - 1) / 4 - 1
    assert [each["weight"] for each in item["references"]] == [1, 0.5, -0.75]
    assert item["references"][2]["ratings"] == {"Ann": 1, "Bob": 2}
    command("score", tmp_path / "human.jsonl", "-m", "delta-bleu(n=1)", "-o", tmp_path / "d.jsonl")
    (score,) = read_lines(tmp_path / "d.jsonl")
    # all three words match the reference of weight .5, of at most 1 that a match can give
    assert score["value"] == pytest.approx(0.5)
    found = json.loads(command("meta", "--references", tmp_path / "human.jsonl", source, "--json"))
    assert found["result"]["n"] == 3
    assert found["result"]["spearman"] == pytest.approx(1)


# written replies, then pairs of them

WRITTEN = {  # the slots: up to 49 characters, 10 to 49, up to 9
    "Ann": [["Very well, thank you.", "Fine! We all went out to swim.", "Great!"],
            ["Yes, ten hours.", "Yes, and I dreamt of the sea.", "Deeply."]],
    "Bob": [["It went.", "There was something, I believe.", "So so."],
            ["I lay down.", "There was a bed, I believe so.", "Partly."]],
    "Cem": [["Cups.", "Elephants are large animals.", "Blue."],
            ["Tea.", "A square has four equal sides.", "Seven."]],
}  # fmt: skip
QUALITY = {
    text: quality
    for name, quality in (("Ann", 3), ("Bob", 2), ("Cem", 1))
    for texts in WRITTEN[name]
    for text in texts
}


def write_as(name: str, seen: list[tuple[str, str]]) -> Fill:
    """Write a person's replies; ``seen`` collects who saw which context."""

    def fill(person: Visitor) -> None:
        context = person.page.locator(".turn p").inner_text()
        seen.append((name, context))
        texts = WRITTEN[name][len([each for each, _ in seen if each == name]) - 1]
        for number, text in enumerate(texts):
            person.write(number, text)

    return fill


@pytest.fixture(scope="module")
def written(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study in which three people wrote replies, one without a mask."""
    folder = tmp_path_factory.mktemp("written")
    contexts = [{"id": f"c{n}", "context_id": f"c{n}", "context": [t]} for n, t in enumerate(TURNS)]
    source = write_lines(folder / "inputs.jsonl", contexts)
    settings = {f"write.masks.{n}.people": 1 for n in range(3)}
    settings |= {f"write.slots.{n}.count": 1 for n in range(3)}
    study = init(folder / "study", "sugiyama-references", source, answers_per_task=3, **settings)
    seen: list[tuple[str, str]] = []
    people = {name: write_as(name, seen) for name in WRITTEN}
    with live(study) as served:
        done = answer_together(browser, served, people)
        assert done == {"Ann": 2, "Bob": 2, "Cem": 2}
        served.export("written.jsonl")
    # of the three people who reply to a context, one sees it whole, the others with masked words
    # (30 % of 4 words is 1, 60 % are 2)
    assert sorted(context.count("***") for _, context in seen) == [0, 0, 1, 1, 2, 2]
    return folder


def test_written_replies_become_references(written: Path) -> None:
    records = read_lines(written / "written.jsonl")
    assert [record["id"] for record in records] == ["c0", "c1"]
    for record in records:
        references = {each["text"]: each["source"] for each in record["references"]}
        assert len(references) == 9
        masks = {source.split("; ")[1] for source in references.values()}
        assert masks == {"mask=0", "mask=0.3", "mask=0.6"}
        for text, source in references.items():
            assert text in QUALITY
            author = source.rpartition("author=")[2]
            assert text in {each for texts in WRITTEN[author] for each in texts}
            slot = source.split("; ")[2:4]
            assert slot in (
                ["slot=1", "characters=1-49"],
                ["slot=2", "characters=10-49"],
                ["slot=3", "characters=1-9"],
            )


def test_written_replies_are_compared_and_weighted(browser: Browser, written: Path) -> None:
    """Candidates of one study are compared in the next; winning rates weight the references."""
    candidates = written / "written.candidates.jsonl"
    study = init(
        written / "pairs", "sugiyama-pairs", candidates, compare__share=0.25, tasks_per_batch=50
    )

    def better(person: Visitor) -> None:
        left, right = (QUALITY[text] for text in person.page.locator(".reply").all_inner_texts())
        person.choose("winner", "left" if left >= right else "right")

    with live(study) as served:
        done = answer_together(browser, served, {"Ann": better, "Bob": better})
        status = served.status()
        answers = served.export("answers.jsonl")
    # 9 replies are 36 pairs, a quarter of them 9 for each of the 2 contexts, all judged by 2 people
    assert done == {"Ann": 18, "Bob": 18}
    assert status["complete"] == 18
    assert len(answers) == 36
    command(
        "pairs", "fit", candidates, written / "answers.jsonl",
        "--into", _tests(written), "-o", written / "weighted.jsonl",
    )  # fmt: skip
    for item in read_lines(written / "weighted.jsonl"):
        weights = {each["text"]: each["weight"] for each in item["references"]}
        assert all(-1 <= weight <= 1 for weight in weights.values())
        mean = {
            quality: _mean([w for text, w in weights.items() if QUALITY[text] == quality])
            for quality in (1, 2, 3)
        }
        assert mean[3] > mean[2] > mean[1]
    command(
        "score", written / "weighted.jsonl", "-m", "delta-bleu(n=1)", "-m", "svr",
        "-o", written / "scores.jsonl",
    )  # fmt: skip
    scores = {
        (row["id"], row["metric"]): row["value"] for row in read_lines(written / "scores.jsonl")
    }
    for metric in ("delta-bleu(n=1)", "svr"):
        assert scores["good", metric] > scores["bad", metric]


def _tests(folder: Path) -> Path:
    """Replies to be scored: one like Ann's, one like Cem's."""
    both = {"good": "Very well, thank you, Sam.", "bad": "Elephants are large cups."}
    records = [
        {"id": name, "context_id": "c0", "context": [TURNS[0]], "response": text}
        for name, text in both.items()
    ]
    return write_lines(folder / "tests.jsonl", records)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def test_diversity_correlates_with_set_metrics(browser: Browser, tmp_path: Path) -> None:
    """Ratings of sets reach ``meta --set-ratings``: ``distinct`` follows people's ratings."""
    various = ["Yes, please.", "No, thank you.", "Is there sugar?", "Later perhaps.", "Hot?"]
    equal = ["Yes, please."] * 5
    mixed = [*various[:2], *equal[:3]]
    sets = {"various": various, "mixed": mixed, "equal": equal}
    source = write_lines(
        tmp_path / "five.jsonl",
        [
            {
                "id": f"{context}:{system}:{number}",
                "context_id": context,
                "context": [f"Would you like {context}?"],
                "response": text,
                "system": system,
            }
            for context in ("tea", "coffee")
            for system, texts in sets.items()
            for number, text in enumerate(texts)
        ],
    )
    study = init(tmp_path / "study", "gupta-diversity", source, answers_per_task=2)

    def fill(person: Visitor) -> None:
        texts = person.page.locator(".mark .reply").all_inner_texts()
        for place in range(5):
            person.choose(f"fits-{place}", 1)
        person.choose("rating", len(set(texts)))

    with live(study) as served:
        assert answer_together(browser, served, {"Ann": fill, "Bob": fill}) == {"Ann": 6, "Bob": 6}
        records = served.export("diversity.jsonl")
    found = {(each["context_id"], each["system"]): each["ratings"] for each in records}
    assert found["tea", "various"] == {"Ann": 5, "Bob": 5}
    assert found["coffee", "mixed"] == {"Ann": 2, "Bob": 2}
    assert found["tea", "equal"] == {"Ann": 1, "Bob": 1}
    scores, sets_file = tmp_path / "sets.jsonl", tmp_path / "diversity.jsonl"
    command("score", source, "-m", "distinct(n=1)", "-o", scores)
    meta = json.loads(
        command("meta", source, scores, "--level", "context", "--set-ratings", sets_file, "--json")
    )
    (result,) = meta["results"]
    assert result["n"] == 6
    assert result["spearman"] == pytest.approx(1)


def test_understood_utterances_go_on_to_the_next_study(browser: Browser, tmp_path: Path) -> None:
    """``comprehension`` keeps what all rated 5, without the rest of the context."""
    utterances = {"I bought a red bicycle today.": (5, 5), "That one too.": (5, 2), "Hm.": (1, 1)}
    source = write_lines(
        tmp_path / "items.jsonl",
        [
            {"id": f"u{number}", "context": ["Hello there.", text]}
            for number, text in enumerate(utterances)
        ],
    )
    study = init(tmp_path / "study", "sugiyama-comprehension", source)

    def rating(who: int) -> Fill:
        def fill(person: Visitor) -> None:
            assert "Hello there." not in person.text
            person.choose("rating", utterances[person.page.locator(".reply").inner_text()][who])

        return fill

    with live(study) as served:
        done = answer_together(browser, served, {"Ann": rating(0), "Bob": rating(1)})
        assert done == {"Ann": 3, "Bob": 3}
        (kept,) = served.export("inputs.jsonl")
    assert kept["context"] == ["I bought a red bicycle today."]
    assert kept["comprehension"] == {"Ann": 5, "Bob": 5}
    assert len(read_lines(tmp_path / "inputs.rated.jsonl")) == 3
    init(tmp_path / "next", "gupta-references", tmp_path / "inputs.jsonl")

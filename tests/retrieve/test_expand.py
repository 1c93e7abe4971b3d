"""Expanding items: order, distinct texts, leaks, reasons and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.files.item_file import read_items
from rejoinder.items import Item, Reference
from rejoinder.retrieve.expand_items import ExpansionReport, expand
from rejoinder.retrieve.index_folder import build_index, work_on
from rejoinder.retrieve.retrieved_references import ExpansionSettings
from rejoinder.retrieve.retriever import make_retriever

POOL = [
    ("do you like old cheese", "only blue cheese"),  # 0
    ("do you like cheese", "yes , a lot"),  # 1
    ("do you like cheese", "no"),  # 2
    ("do you like music", "no"),  # 3: the same reply as 2
    ("where is the station", "over there"),  # 4
    ("do you really like cheese and music", "who does not ?"),  # 5
]

BM25 = make_retriever("bm25")


def item(
    number: int, *context: str, references: tuple[Any, ...] = (), **more: Any
) -> dict[str, Any]:
    return {
        "id": str(number),
        "response": "hm",
        "context": list(context),
        "references": list(references),
        **more,
    }


@pytest.fixture
def run(pairs: Any, tmp_path: Path) -> Any:
    def start(
        items: list[dict[str, Any]],
        retriever: Any = BM25,
        pool: Any = POOL,
        *,
        engine: str | None = None,
        **settings: Any,
    ) -> tuple[list[Item], ExpansionReport]:
        path = tmp_path / "items.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in items))
        chosen = ExpansionSettings(**settings)
        output = tmp_path / "out.jsonl"
        report = expand(str(path), pairs(pool), output, retriever, chosen, engine=engine)
        names = {p.name for p in tmp_path.iterdir()}
        assert not [name for name in names if name.startswith(".")], "nothing hidden stays behind"
        return list(read_items(tmp_path / "out.jsonl")), report

    return start


def added(one: Item) -> list[tuple[str, str | None]]:
    return [(reference.text, reference.source) for reference in one.references]


def test_references_in_their_order(run: Any) -> None:
    """The original, then the nearest replies with falling similarity, then the parrot."""
    given = {"text": "sometimes", "weight": 0.5, "source": "original"}
    found, report = run([item(1, "hi", "cheese music", references=(given,))], k=3)
    references = found[0].references
    assert references[0] == Reference("sometimes", 0.5, "original")
    # row 5 has both words; music is in 2 rows and cheese in 4, so row 3 comes before 1, 2 and 0
    assert added(found[0])[1:] == [
        ("who does not ?", "retrieved"),
        ("no", "retrieved"),
        ("yes , a lot", "retrieved"),
        ("cheese music", "parrot"),
    ]
    scores = [reference.score for reference in references[1:4]]
    assert scores == sorted(scores, reverse=True)
    assert all(reference.weight is None for reference in references[1:])
    assert references[4].score is None
    assert (report.items, report.queries, report.retrieved, report.parrots) == (1, 1, 3, 1)
    assert (report.nearest, report.kth) == (scores[0], scores[2])


def test_no_text_is_added_twice_and_the_next_best_replaces_it(run: Any) -> None:
    """The item has the nearest reply already; "no" is said to two utterances, and counts once."""
    found, _ = run([item(1, "cheese music", references=("who does not ?",))], k=3)
    assert [text for text, _ in added(found[0])] == [
        "who does not ?", "no", "yes , a lot", "only blue cheese", "cheese music",
    ]  # fmt: skip
    found, _ = run([item(1, "cheese music", references=("no", "no", "x"))], k=2)
    assert [text for text, _ in added(found[0])[3:5]] == ["who does not ?", "yes , a lot"]


def test_a_parrot_that_was_retrieved_is_not_added_again(run: Any) -> None:
    pool = [("say cheese", "cheese please"), ("my cheese", "what ?")]
    found, report = run([item(1, "cheese please")], pool=pool, k=2)
    assert added(found[0]) == [("cheese please", "retrieved"), ("what ?", "retrieved")]
    assert report.parrots == 0
    found, _ = run([item(1, "the cheese")], pool=pool, k=1, parrot=False)
    assert [source for _, source in added(found[0])] == ["retrieved"]


def test_equal_queries_are_searched_once(run: Any) -> None:
    """Two systems, one context; but with other references, so the replies differ."""
    items = [
        item(1, "cheese music", system="a", references=("no",)),
        item(2, "cheese music", system="b"),
        item(3, "other", "cheese music", system="b"),
    ]
    found, report = run(items, k=1)
    assert (report.contexts, report.queries) == (2, 1)
    assert [added(one)[-2][0] for one in found] == ["who does not ?"] * 3
    assert [one.system for one in found] == ["a", "b", "b"]
    # compared by reply as well, the first reference makes another question of it
    items[1]["references"] = ["no no"]
    _, report = run(items[:2], make_retriever("bm25(on=both)"), k=1)
    assert report.queries == 2


def test_leaks_are_left_out_and_counted(run: Any) -> None:
    """The utterances of rows 1 and 2 are a last turn of some item, whichever asks."""
    items = [
        item(1, "Do you like cheese?"),
        item(2, "old cheese"),
        item(3, "do you like cheese", "hm"),
    ]
    found, report = run(items, k=5)
    assert report.leaks == {"exact": 2, "near": 0}
    assert "yes , a lot" not in [text for one in found for text, _ in added(one)]
    found, report = run(items, k=5, keep_leaks=True)
    assert report.leaks == {}
    assert "yes , a lot" in [text for text, _ in added(found[0])]


def test_nearly_the_same_utterance_is_a_leak(run: Any) -> None:
    long = "we went to the museum of modern art on a rainy sunday afternoon"
    pool = [(long.replace("rainy", "rainey"), "how nice"), ("a museum of art", "oh")]
    found, report = run([item(1, long)], pool=pool)
    assert report.leaks == {"exact": 0, "near": 1}
    assert added(found[0])[0] == ("oh", "retrieved")


def test_items_without_hits_are_unchanged_and_counted(run: Any) -> None:
    items = [
        item(1),
        item(2, "cheese"),
        item(3, "zebra", references=("no",)),
        item(4, "do you like tea", references=("over there",)),
        item(5, "music", references=("no , no",)),
    ]
    found, report = run(items, make_retriever("bm25(on=both)"))
    assert [len(one.references) for one in found] == [0, 0, 1, 1, 3]
    assert report.unexpanded == {
        "the context has no text": 1,
        "there is no original reply to compare with": 1,
        "no word of the utterance occurs in the pool": 1,
        "nothing in the pool is similar": 1,
    }
    assert (report.items, report.fewer) == (5, 1)
    assert json.loads(json.dumps(report.to_dict()))["items"] == 5
    only = [("cheese", "no")]
    _, report = run([item(1, "my cheese", references=("no",))], pool=only)
    assert report.unexpanded == {"all similar responses are references already": 1}
    assert report.nearest is None


def test_k_larger_than_the_pool(run: Any) -> None:
    found, report = run([item(1, "cheese music")], k=100)
    assert [text for text, _ in added(found[0])] == [
        "who does not ?", "no", "yes , a lot", "only blue cheese", "cheese music",
    ]  # fmt: skip
    assert (report.pairs, report.fewer) == (6, 1)


def test_an_index_in_place_of_pairs(run: Any, pairs: Any, tmp_path: Path) -> None:
    items = [item(1, "cheese music")]
    _, report = run(items)
    build_index(pairs(POOL), BM25, tmp_path / "index")
    source, index = str(tmp_path / "items.jsonl"), str(tmp_path / "index")
    other = expand(source, index, tmp_path / "other.jsonl")
    assert (tmp_path / "other.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert other.to_dict() | {"pool": ""} == report.to_dict() | {"pool": ""}
    with pytest.raises(UsageError, match=r"index for bm25, not for tfidf; leave out by="):
        expand(source, index, tmp_path / "no.jsonl", make_retriever("tfidf"))
    with pytest.raises(UsageError, match="leave out split="):
        expand(source, index, tmp_path / "no.jsonl", split="train")
    assert not (tmp_path / "no.jsonl").exists()
    assert not (tmp_path / ".no.jsonl.work").exists()


@pytest.mark.parametrize("spec", ["bm25(on=both)", "tfidf"])
def test_an_engine_gives_the_same_bytes(run: Any, tmp_path: Path, spec: str) -> None:
    items = [item(i, words, references=("no , not a lot",)) for i, words in enumerate(
        ["cheese music", "the station", "nothing", "do you like cheese ?"]
    )]  # fmt: skip
    run(items, make_retriever(spec), k=4)
    expected = (tmp_path / "out.jsonl").read_bytes()
    run(items, make_retriever(spec), k=4, engine="duckdb")
    assert (tmp_path / "out.jsonl").read_bytes() == expected


def test_bad_items_and_bad_pools(run: Any, pairs: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the pool is empty"):
        run([item(1, "cheese")], pool=[])
    with pytest.raises(DataError, match="ids must be unique"):
        run([item(1, "cheese"), item(1, "music")])
    path = pairs(POOL)
    with pytest.raises(DataError, match="cannot be read"):
        expand(str(tmp_path / "none.jsonl"), path, tmp_path / "o.jsonl", BM25)
    (tmp_path / "items.jsonl").write_text(json.dumps(item(1, "cheese")))
    with (
        work_on(tmp_path / "o.jsonl"),
        pytest.raises(ResourceError, match="another run"),
    ):
        expand(str(tmp_path / "items.jsonl"), path, tmp_path / "o.jsonl", BM25)
    assert not (tmp_path / "o.jsonl").exists()


def test_many_items_in_few_lines_of_memory(run: Any) -> None:
    """More items than are written at once."""
    items = [item(i, f"cheese {i % 3}", system=f"s{i}") for i in range(2500)]
    found, report = run(items, k=2)
    assert [one.system for one in found] == [f"s{i}" for i in range(2500)]
    assert report.queries == 3
    assert {len(one.references) for one in found} == {3}

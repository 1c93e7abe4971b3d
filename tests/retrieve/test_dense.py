"""Averaged word vectors and sentence vectors as retrievers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rejoinder.errors import MissingExtra, UsageError
from rejoinder.retrieve.retriever import Queries, make_retriever

VECTORS = """4 2
cat 1 0
dog 0.8 0.6
tax 0 1
anti -1 0
"""


@pytest.fixture
def words(tmp_path: Path) -> str:
    (tmp_path / "words.txt").write_text(VECTORS)
    return str(tmp_path / "words.txt")


def test_cosines_by_hand(pool_of: Any, words: str) -> None:
    """Row 0: (1, 0). Row 1: the average of (1, 0) and (0, 1), whose cosine with (1, 0) is √½.
    Row 2 has no known word, row 3 is (-1, 0); row 4 repeats row 0, and the lower one wins.
    """
    pool = pool_of([("Cat!", "r0"), ("cat tax", "r1"), ("?", "r2"), ("anti", "r3"), ("cat", "r4")])
    hits = pool.search(make_retriever(f'vectors(vectors="{words}")'), Queries(["cat"], [None]), 5)
    assert hits.rows.tolist() == [[0, 4, 1, 3, -1]]
    assert hits.scores[0] == pytest.approx([1, 1, math.sqrt(0.5), -1, 0], abs=1e-7)
    assert pool.notes == {"utterance without a vector": 1}


def test_both_is_the_product(pool_of: Any, words: str) -> None:
    """ "cat" and "dog" have the cosine 0.8: utterance 1, response 0.8 gives 0.8; 0.8 · 0.8 = 0.64;
    a negative cosine on either side, or on both, is no similarity."""
    rows = [("dog", "cat"), ("cat", "dog"), ("dog", "dog"), ("anti", "anti"), ("cat", "anti")]
    retriever = make_retriever(f'vectors(on=both,vectors="{words}")')
    hits = pool_of(rows).search(retriever, Queries(["cat"], ["cat"]), 5)
    assert hits.rows.tolist() == [[0, 1, 2, -1, -1]]
    assert hits.scores[0] == pytest.approx([0.8, 0.8, 0.64, 0, 0], abs=1e-7)


def test_last_turn_weight_and_question_weight_by_hand(pool_of: Any, words: str) -> None:
    """The context "tax", "cat": both turns are (1, 1) / √2, the last one is (1, 0), nobody asks.

    Row 0, "tax", "cat": the same. Row 1, "cat", "tax": the same two turns, but the cosine of
    the last ones is 0. Row 2, "tax", "cat?": one asks. Row 3 has no known word.
    """
    rows = [(["tax"], "cat", "a"), (["cat"], "tax", "b"), (["tax"], "cat?", "c")]
    pool = pool_of([*rows, (["zebra"], "zebra", "d")])

    def found(options: str, *context: str) -> list[float]:
        """Similarities of the rows, in their order."""
        retriever = make_retriever(f'vectors(turns=2,{options},vectors="{words}")')
        hits = pool.search(retriever, Queries([retriever.key(context)], [None]), 4)
        assert pool.notes == {"utterance without a vector": 1}
        assert sorted(hits.rows[0].tolist()) == [-1, 0, 1, 2]
        return [float(hits.scores[0][hits.rows[0] == row][0]) for row in range(3)]

    assert found("last_turn_weight=0.5", "tax", "cat") == pytest.approx([1, 1 / 1.5, 1])
    assert found("question_weight=0.25", "tax", "cat") == pytest.approx([1, 1, 0.75 / 1.25])
    both = found("last_turn_weight=0.5,question_weight=0.25", "so", "tax", "cat\n!")
    assert both == pytest.approx([1, 1.25 / 1.75, 1.25 / 1.75])  # (1 + .25), (1 + .5 - .25)
    # one turn alone: √½ with both turns of a row, 1 or 0 with its last one
    assert found("last_turn_weight=1", "cat") == pytest.approx(
        [0.5**1.5 + 0.5, 0.5**1.5, 0.5**1.5 + 0.5]
    )


def test_turns_are_compared_one_by_one_without_concat_turns(pool_of: Any, words: str) -> None:
    """The context "tax", "cat". Row 0, "dog", "dog": (2·.8 + .6) / 3 where the last turn counts
    twice, (.8 + .6) / 2 where it does not. Row 1, "cat" alone: nothing is in the place of "tax",
    2 / 3 and 1 / 2. Row 2, "tax", "zebra": the last turn has no vector, 1 / 3 and 1 / 2. In row
    3 nothing has one.
    """
    rows = [(["dog"], "dog", "a"), ([], "cat", "b"), (["tax"], "zebra", "c"), ([], "zebra", "d")]
    pool = pool_of(rows)

    def found(options: str, *context: str) -> list[float]:
        retriever = make_retriever(
            f'vectors(turns=2,concat_turns=false{options},vectors="{words}")'
        )
        hits = pool.search(retriever, Queries([retriever.key(context)], [None]), 4)
        assert sorted(hits.rows[0].tolist()) == [-1, 0, 1, 2]
        return [float(hits.scores[0][hits.rows[0] == row][0]) for row in range(3)]

    assert found("", "cat", "tax", "cat") == pytest.approx([0.7, 0.5, 0.5])
    assert found(",last_turn_weight=1", "tax", "cat") == pytest.approx([2.2 / 3, 2 / 3, 1 / 3])
    # only the context asks
    both = found(",last_turn_weight=1,question_weight=0.5", "tax", "cat?")
    assert both == pytest.approx([1.7 / 3.5, 1.5 / 3.5, 0.5 / 3.5])


def test_last_turn_weight_does_not_affect_responses(pool_of: Any, words: str) -> None:
    """Responses have no turns: .8 of the utterances (both views), times .8 of the responses."""
    retriever = make_retriever(f'vectors(turns=2,last_turn_weight=1,on=both,vectors="{words}")')
    hits = pool_of([("dog", "cat")]).search(retriever, Queries(["cat"], ["dog"]), 1)
    assert hits.scores[0] == pytest.approx([0.64])


def test_queries_without_hits_have_a_reason(pool_of: Any, words: str) -> None:
    pool = pool_of([("cat", "dog")])
    queries = Queries(
        ["", "zebra", "cat", "今日はとてもいい天気ですね"], ["cat"] * 2 + [None, "cat"]
    )
    hits = pool.search(make_retriever(f'vectors(on=both,vectors="{words}")'), queries, 1)
    assert hits.reasons == {
        0: "the context has no text",
        1: "no word of the utterance has a vector",
        2: "there is no original reply to compare with",
        3: "the tokenizer 13a does not split Japanese text; use tok=ja-mecab or tok=char",
    }


def test_an_encoder_finds_paraphrases(pool_of: Any) -> None:
    texts = ["My dog is ill.", "The train was late again.", "", "I love this film!"]
    pool = pool_of([(text, f"r{i}") for i, text in enumerate(texts)])
    retriever = make_retriever("encoder")
    queries = Queries(["What a great movie.", "We missed our connection."], [None, None])
    hits = pool.search(retriever, queries, 4)
    assert hits.rows[:, 0].tolist() == [3, 1]
    assert 2 not in hits.rows  # an empty text has no meaning
    from rejoinder.encode.transformer import open_encoder

    vectors = open_encoder("minilm").sentences([*queries.utterances, *texts])
    assert hits.scores[0, 0] == pytest.approx(float(vectors[0] @ vectors[5]), abs=1e-6)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("encoder(pooling=max)", "pooling=max is not one of mean, cls"),
        ("encoder(index=annoy)", "unknown index 'annoy'"),
        ("encoder(index=hsnw)", "did you mean 'hnsw'"),
        ("vectors(index=hnsw,on=both)", "index=hnsw searches by one vector"),
        ("vectors(index=hnsw(links=1))", "links=1 is not from 4"),
        ("vectors(index=ivf-pq(probe=3))", "ivf-pq has no parameter 'probe'"),
        ("encoder(turns=2,last_turn_weight=-1)", "last_turn_weight=-1 is not 0 or more"),
        ("encoder(question_weight=nan)", "question_weight"),
        ("encoder(last_turn_weight=0.5)", "last_turn_weight=0.5 needs turns=2 or more"),
        (
            "encoder(concat_turns=false)",
            "concat_turns=false needs turns=2 or more",
        ),
    ],
)
def test_bad_specs(spec: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make_retriever(spec)


def test_a_missing_model_is_reported(pool_of: Any) -> None:
    pool = pool_of([("a", "b")])
    with pytest.raises(MissingExtra, match="not on this machine"):
        pool.search(make_retriever("encoder(model=nobody/nothing)"), Queries(["a"], [None]), 1)
    with pytest.raises(UsageError, match="layer=99"):
        pool.search(make_retriever("encoder(layer=99)"), Queries(["a"], [None]), 1)


def test_vectors_have_length_one_or_zero(words: str) -> None:
    vectors = make_retriever(f'vectors(vectors="{words}")').encode(["cat dog", "anti cat", "x"])  # type: ignore[attr-defined]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 0], abs=1e-7)

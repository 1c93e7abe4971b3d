"""BM25 and TF-IDF against plain implementations of their formulas and against bm25s."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.retrieve import pool as pools
from rejoinder.retrieve import postings
from rejoinder.retrieve.index_folder import open_pool
from rejoinder.retrieve.retriever import Queries, make_retriever

ROWS = [
    ("a b b c", "d"),
    ("a", "d e"),
    ("b c", ""),
    ("a a c d e f", "e e"),
    ("", "d"),
]


def bm25(pool: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    mean = sum(map(len, pool)) / len(pool)
    scores = []
    for row in pool:
        score = 0.0
        for word, times in Counter(query).items():
            df = sum(word in other for other in pool)
            if df:
                idf = math.log(1 + (len(pool) - df + 0.5) / (df + 0.5))
                tf = row.count(word)
                score += times * idf * (tf / (tf + k1 * (1 - b + b * len(row) / mean)))
        scores.append(score)
    return scores


def tfidf(pool: list[list[str]], query: list[str]) -> list[float]:
    def vector(words: list[str]) -> dict[str, float]:
        found = {}
        for word, tf in Counter(words).items():
            if df := sum(word in other for other in pool):
                found[word] = tf * math.log(len(pool) / df)
        return found

    def cosine(a: dict[str, float], b: dict[str, float]) -> float:
        lengths = math.hypot(*a.values()) * math.hypot(*b.values())
        return sum(a[w] * b[w] for w in a.keys() & b.keys()) / lengths if lengths else 0.0

    return [cosine(vector(query), vector(row)) for row in pool]


def test_bm25_by_hand(pool_of: Any) -> None:
    """N = 5, mean length 13 / 5 = 2.6; b stands in rows 0 and 2: idf = ln(1 + 3.5 / 2.5).

    Row 0 has b twice in 4 words: 2 / (2 + 1.2 · (0.25 + 0.75 · 4 / 2.6)) = 2 / 3.684615
    Row 2 has it once in 2 words: 1 / (1 + 1.2 · (0.25 + 0.75 · 2 / 2.6)) = 1 / 1.992308
    """
    hits = pool_of(ROWS).search(make_retriever("bm25"), Queries(["B"], [None]), 3)
    assert hits.rows.tolist() == [[0, 2, -1]]
    idf = math.log(2.4)
    assert hits.scores[0] == pytest.approx([idf * 2 / 3.684615, idf / 1.992308, 0], rel=1e-6)


def test_both_multiplies(pool_of: Any) -> None:
    """Rows 0 and 4 have the response "d", but row 4 has no utterance."""
    pool = pool_of(ROWS)
    query = Queries(["b"], ["d"])
    both = pool.search(make_retriever("bm25(on=both)"), query, 5)
    assert both.rows.tolist() == [[0, -1, -1, -1, -1]]
    parts = [
        pool.search(make_retriever(f"bm25(on={key})"), query, 5)
        for key in ("utterance", "response")
    ]
    product = math.prod(float(part.scores[0, part.rows[0].tolist().index(0)]) for part in parts)
    assert both.scores[0, 0] == pytest.approx(product, rel=1e-6)


def test_several_turns_are_one_key(pool_of: Any) -> None:
    """With two turns, a word of the turn before counts; one before that does not."""
    rows = [(["x", "far"], "near", "r0"), (["far", "x"], "near", "r1"), ([], "near", "r2")]
    pool = pool_of(rows)
    retriever = make_retriever("bm25(turns=2)")
    assert retriever.key(["far", "x", "near"]) == "x near"
    hits = pool.search(retriever, Queries([retriever.key(["x", "?"])], [None]), 3)
    assert hits.rows.tolist() == [[1, -1, -1]]
    hits = pool.search(make_retriever("bm25(turns=3)"), Queries(["x"], [None]), 3)
    assert sorted(hits.rows[0].tolist()) == [-1, 0, 1]


def test_against_bm25s(pool_of: Any) -> None:
    """The same variant of another program, on random texts of a thousand words."""
    rng = np.random.default_rng(5)
    words = np.array([f"w{i}" for i in range(1000)])
    common = 1 / np.arange(1, 1001)
    texts = [
        " ".join(rng.choice(words, size=size, p=common / common.sum()))
        for size in rng.integers(1, 30, size=2000)
    ]
    peer = bm25s.BM25(k1=1.5, b=0.6, method="lucene", dtype="float64")
    peer.index([text.split() for text in texts], show_progress=False)
    queries = texts[:20]
    hits = pool_of([(text, "r") for text in texts]).search(
        make_retriever("bm25(k1=1.5,b=0.6,tok=whitespace)"), Queries(queries, [None] * 20), 10
    )
    for i, query in enumerate(queries):
        theirs = peer.get_scores(query.split())
        assert hits.scores[i] == pytest.approx(np.sort(theirs)[::-1][:10], rel=1e-5)
        assert hits.scores[i] == pytest.approx(theirs[hits.rows[i]], rel=1e-5)


@given(data=st.data())
@settings(max_examples=40)
def test_both_retrievers_equal_their_formulas(data: Any, ranked: Any, listed: Any) -> None:
    """Any pool in any segments, with ties, empty texts and unknown words."""
    text = st.lists(st.sampled_from("abcdef"), max_size=6)
    rows = data.draw(st.lists(st.tuples(text, text), min_size=1, max_size=40))
    asked = data.draw(st.lists(st.tuples(text, text), min_size=1, max_size=4))
    on = data.draw(st.sampled_from(["utterance", "response", "both"]))
    name = data.draw(st.sampled_from(["bm25(k1=0.9,b=0.4", "tfidf(lower=false"]))
    k, batch = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([3, 7, 100]))
    queries = Queries([" ".join(u) for u, _ in asked], [" ".join(r) for _, r in asked])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "BATCH_ROWS", batch)
        patch.setattr(postings, "SEGMENT_BATCHES", 2)
        with _pool(rows) as pool:
            hits = pool.search(make_retriever(f"{name},on={on})"), queries, k)
            held = pool.search(make_retriever(f"{name},on={on})"), queries, k, distinct=True)
    table = np.ones((len(asked), len(rows)))
    for number, key in enumerate(("utterance", "response")):
        if on in (key, "both"):
            own = [row[number] for row in rows]
            for i, query in enumerate(asked):
                one = (
                    bm25(own, query[number], 0.9, 0.4)
                    if "bm25" in name
                    else tfidf(own, query[number])
                )
                table[i] *= one
    expected = ranked(table, k)
    close(listed(hits.rows, hits.scores), expected, table)
    close(listed(held.rows, held.scores), ranked(table, k, (), [str(r) for _, r in rows]), table)


def close(found: Any, expected: Any, table: Any) -> None:
    """The same rows, but for ties: the last digit depends on the order in which one adds."""
    assert [len(one) for one in found] == [len(one) for one in expected]
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        for (row, score), (_, wanted) in zip(one, other, strict=True):
            assert score == pytest.approx(wanted, rel=1e-6)
            assert score == pytest.approx(table[i, row], rel=1e-6)
        assert one == sorted(one, key=lambda hit: (-hit[1], hit[0]))


def _pool(rows: list[tuple[list[str], list[str]]]) -> Any:
    import tempfile
    from pathlib import Path

    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        texts = [[" ".join(row[i]) for row in rows] for i in (0, 1)]
        pq.write_table(pa.table(texts, names=["utterance", "response"]), Path(folder) / "p.parquet")
        return open_pool(Path(folder) / "p.parquet")


def test_queries_without_hits_have_a_reason(pool_of: Any) -> None:
    pool = pool_of(ROWS)
    queries = Queries(["", "unheard", "今日はとてもいい天気ですね", "b"], ["d", "d", "d", None])
    hits = pool.search(make_retriever("bm25(on=both)"), queries, 2)
    assert (hits.rows == -1).all()
    assert hits.reasons == {
        0: "the context has no text",
        1: "no word of the utterance occurs in the pool",
        2: "the tokenizer 13a does not split Japanese text; use tok=ja-mecab or tok=char",
        3: "there is no original reply to compare with",
    }


def test_words_in_every_row_have_no_weight_in_tfidf(pool_of: Any) -> None:
    """ln(N / df) is 0; BM25 in Lucene's variant still gives them a little."""
    pool = pool_of([("a b", "r"), ("a c", "r")])
    query = Queries(["a"], [None])
    assert pool.search(make_retriever("tfidf"), query, 2).reasons
    assert pool.search(make_retriever("bm25"), query, 2).rows.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("bm25(on=context)", "on=context is not utterance, response or both"),
        ("bm25(turns=0)", "turns=0 is not from 1"),
        ("bm25(k1=-1)", "k1=-1 is not"),
        ("bm25(b=2)", "b=2 is not"),
        ("bm52", "did you mean 'bm25'"),
        ("bm25(tok=13b)", "unknown tokenizer '13b'"),
    ],
)
def test_bad_specs(spec: str, complaint: str) -> None:
    from rejoinder.errors import UsageError

    with pytest.raises(UsageError, match=complaint.replace("(", r"\(")):
        make_retriever(spec)


def test_the_language_sets_the_tokenizer() -> None:
    assert str(make_retriever("bm25", "ja")) == "bm25(tok=ja-mecab)"
    assert str(make_retriever("bm25(tok=char)", "ja")) == "bm25(tok=char)"
    assert str(make_retriever("encoder", "ja")) == "encoder"

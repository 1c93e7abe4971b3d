"""Texts in a language that the encoder does not know are refused, or accepted with a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import DataError
from rejoinder.retrieve.dense import VectorRetriever
from rejoinder.retrieve.expand_items import expand
from rejoinder.retrieve.index_folder import build_index
from rejoinder.retrieve.language_check import check_language
from rejoinder.retrieve.retriever import Retriever, make_retriever

ENGLISH = [("do you like old cheese", "only blue cheese"), ("where is the station", "over there")]
JAPANESE = [("今日は暑いですね。", "そうですね。"), ("映画が好きですか。", "はい、大好きです。")]


@pytest.fixture
def retriever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Retriever:
    """Word vectors that were trained on English."""
    (tmp_path / "words.vec").write_text("2 2\ncheese 1 0\nstation 0 1\n")
    monkeypatch.setattr(VectorRetriever, "languages", frozenset({"en"}))
    return make_retriever(f'vectors(vectors="{tmp_path}/words.vec")')


def write_items(path: Path, texts: list[tuple[str, str]]) -> str:
    items = ({"id": str(i), "context": [u], "response": r} for i, (u, r) in enumerate(texts))
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return str(path)


def test_items_in_another_language_are_refused(
    pairs: Any, tmp_path: Path, retriever: Retriever
) -> None:
    items, output = write_items(tmp_path / "items.jsonl", JAPANESE), tmp_path / "out.jsonl"
    complaint = r"items\.jsonl: .*mostly Japanese .*knows only English; .*any_language=True"
    with pytest.raises(DataError, match=complaint):
        expand(items, pairs(ENGLISH), output, retriever)
    assert not output.exists()
    warnings: list[str] = []
    expand(items, pairs(ENGLISH), output, retriever, any_language=True, on_warning=warnings.append)
    (warning,) = warnings
    assert "mostly Japanese" in warning
    assert output.exists()


def test_pairs_in_another_language_are_refused(
    pairs: Any, tmp_path: Path, retriever: Retriever
) -> None:
    items = write_items(tmp_path / "items.jsonl", ENGLISH)
    with pytest.raises(DataError, match=r"pairs\.parquet: .*mostly Japanese"):
        expand(items, pairs(JAPANESE), tmp_path / "out.jsonl", retriever)
    with pytest.raises(DataError, match=r"pairs\.parquet: .*mostly Japanese"):
        build_index(pairs(JAPANESE), retriever, tmp_path / "index")
    assert not (tmp_path / "index").exists()
    warnings: list[str] = []
    build_index(
        pairs(JAPANESE),
        retriever,
        tmp_path / "index",
        any_language=True,
        on_warning=warnings.append,
    )
    assert len(warnings) == 1


def test_bm25_takes_any_language(retriever: Retriever) -> None:
    texts = [utterance for utterance, _ in JAPANESE]
    check_language(make_retriever("bm25"), texts, "items.jsonl")
    with pytest.raises(DataError):
        check_language(retriever, texts, "items.jsonl")

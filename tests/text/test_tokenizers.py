"""Tokenizers, against sacreBLEU's where it has the same one, on made-up and on real texts."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.registry import TOKENIZERS
from rejoinder.text.tokenizers import ja_mecab, zh_jieba
from rejoinder.text.tokenizers.char import Char
from rejoinder.text.tokenizers.intl import Intl
from rejoinder.text.tokenizers.ja_mecab import JaMecab
from rejoinder.text.tokenizers.mteval13a import Mteval13a
from rejoinder.text.tokenizers.sentencepiece import SentencePiece
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.text.tokenizers.whitespace import Whitespace
from rejoinder.text.tokenizers.zh_jieba import ZhJieba

PEERS: list[tuple[Tokenizer, Callable[[str], str]]] = [
    (Mteval13a(), Tokenizer13a()),
    (Intl(), TokenizerV14International()),
    (Char(), TokenizerChar()),
]
with_peers = pytest.mark.parametrize(
    ("tokenizer", "peer"), PEERS, ids=[tokenizer.signature() for tokenizer, _ in PEERS]
)


def seen_by(peer: Callable[[str], str], texts: list[str]) -> list[list[str]]:
    """Return the tokens in sacreBLEU, which removes white space at the end first."""
    return [peer(text.rstrip()).split() for text in texts]


# What the rules look at, what separates, and what looks like the batch's own separators.
PIECES = [
    *".,-'!?/:@[`{~()&<>%$_",
    *["0", "5", "12", "٣", "½", "Ⅷ"],
    *["a", "it", "é", "今日", "。", "、", "«", "»", "€", "¿", "😀", "e\u0301"],
    *["<skipped>", "<skip", "ped>", "&quot;", "&amp;", "&lt;", "&gt;", "&am", "p;", "quot;"],
    *[" ", "  ", "\n", "-\n", " \n ", "\r", "\r\n", "\t", "\x0b", "\x0c", "\x1c", "\x1e", "\x1f"],
    *["\x85", "\xa0", "\u2028", "\u2029", "\u3000", "\u200b", "\ufeff", "\x00", "\ud800"],
]
any_text = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=12).map("".join)
batches = st.lists(any_text, max_size=6)


@with_peers
@given(texts=batches)
@example(texts=[])
@example(texts=["", "", ""])
@example(texts=[".5", "5.", ".", "5", "-", "5-", "-5", ",", "..5", "5..", "5..5", "...5"])
@example(texts=["5", "-\n5", "a-", "\nb", "\n", "5\n", ".\n.", "a-\nb"])
@example(texts=["<skipped>", "-<skipped>\nx", "<skip-\nped>", "<skip", "ped>"])
@example(texts=["I am 5. ", "I am 5.\n", "well-\n", "well- \n", "5-\n", ".\u2028", "a.\x1c"])
@example(texts=["&amp;lt;", "&quot;&amp;&lt;&gt;", "&", "amp;", "&am", "p;"])
@settings(deadline=None)  # the first may have to wait for a kernel to be compiled
def test_batch_equals_the_peer_text_by_text(
    tokenizer: Tokenizer, peer: Callable[[str], str], texts: list[str]
) -> None:
    expected = seen_by(peer, texts)
    assert tokenizer.tokenize(texts) == expected
    assert [tokenizer.tokenize([text])[0] for text in texts] == expected


def english(data: Path) -> list[str]:
    dialogues = (data / "dailydialog/test.txt").read_text("utf-8").splitlines()
    return [text for dialogue in dialogues for text in dialogue.split("__eou__")]


def twitter(data: Path) -> list[str]:
    return (data / "twitter/conversations.txt").read_text("utf-8").split("\n")


def chinese(data: Path) -> list[str]:
    dialogues = (data / "xdailydialog-zh/validation.txt").read_text("utf-8").splitlines()
    return [text for dialogue in dialogues for text in dialogue.split("__eou__")]


def japanese(data: Path) -> list[str]:
    with gzip.open(data / "real-persona-chat-ja/dialogues.jsonl.gz", "rt", encoding="utf-8") as f:
        dialogues = [json.loads(next(f)) for _ in range(50)]
    return [turn["text"] for dialogue in dialogues for turn in dialogue["turns"]]


@pytest.mark.parametrize("read", [english, twitter, chinese, japanese])
@with_peers
def test_real_texts_equal_the_peer(
    tokenizer: Tokenizer,
    peer: Callable[[str], str],
    read: Callable[[Path], list[str]],
    data: Path,
) -> None:
    texts = read(data)[:5000]
    assert len(texts) > 500
    assert tokenizer.tokenize(texts) == seen_by(peer, texts)


def test_whitespace_splits_at_any_white_space() -> None:
    assert Whitespace().tokenize(["", " well ,\u3000i\tsee\n"]) == [[], ["well", ",", "i", "see"]]


def mecab_peer() -> Callable[[str], str]:
    """sacreBLEU's tokenizer needs another binding of MeCab; without it, MeCab's own nodes."""
    try:
        import MeCab  # noqa: F401
    except ImportError:
        import fugashi
        import ipadic

        tagger = fugashi.GenericTagger(ipadic.MECAB_ARGS)
        return lambda text: " ".join(node.surface for node in tagger(text))
    from sacrebleu.tokenizers.tokenizer_ja_mecab import TokenizerJaMecab

    return TokenizerJaMecab()


def test_japanese_equals_the_peer_on_real_utterances(data: Path) -> None:
    texts, peer = japanese(data), mecab_peer()
    tokens = JaMecab().tokenize(texts)
    assert tokens == [peer(text).split() for text in texts]
    assert max(map(len, tokens)) > 20


def test_chinese_words_equal_jieba(data: Path) -> None:
    assert ZhJieba().tokenize(["小明硕士毕业于中国科学院计算所。"]) == [
        ["小明", "硕士", "毕业", "于", "中国科学院", "计算所", "。"]
    ]
    texts = chinese(data)[:2000]
    tokens = ZhJieba().tokenize(texts)
    assert 1.2 < sum(map(len, texts)) / sum(map(len, tokens)) < 2.5


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("tokenizer", [JaMecab(), ZhJieba()], ids=["ja-mecab", "zh-jieba"])
@given(texts=batches)
@example(texts=["今日\0は\nいい\0", "\0", "EOS\nEOS", "-- \t x", "\u3000あ\u3000"])
def test_no_text_is_lost(tokenizer: Tokenizer, texts: list[str]) -> None:
    """But white space, NUL (white space to MeCab) and what Unicode does not allow in a text."""
    found = tokenizer.tokenize(texts)
    assert len(found) == len(texts)
    for text, tokens in zip(texts, found, strict=True):
        assert not any(squeezed(token) != token or not token for token in tokens)
        allowed = text.encode("utf-8", "replace").decode().replace("\0", " ")
        assert "".join(tokens).replace("\0", "") == squeezed(allowed)
    assert found == [tokenizer.tokenize([text])[0] for text in texts]


def test_signatures_name_dictionary_and_model() -> None:
    assert [t.signature() for t in (Whitespace(), Mteval13a(), Intl(), Char())] == [
        *["whitespace", "13a", "intl", "char"]
    ]
    assert JaMecab().signature() == "ja-mecab-ipadic-1.0.0"
    assert ZhJieba().signature().startswith("zh-jieba-0.")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sentencepiece")
    lines = [f"hello world , this is sentence {n} about cats and dogs ." for n in range(300)]
    (folder / "text").write_text("\n".join(lines), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"),
        model_prefix=str(folder / "tiny"),
        vocab_size=60,
        minloglevel=2,
    )
    return folder / "tiny.model"


def test_sentencepiece_gives_the_subwords_of_its_model(model: Path) -> None:
    tokenizer = SentencePiece(str(model))
    texts = ["hello cats", "", " \n", "日本", "\ud800"]
    found = tokenizer.tokenize(texts)
    assert found[:3] == [["▁hello", "▁cats"], [], []]
    assert "".join(found[3]).strip("▁") == "日本"
    peer = sentencepiece.SentencePieceProcessor(model_file=str(model))
    assert found[:4] == peer.encode(texts[:4], out_type=str)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    assert tokenizer.signature() == f"sentencepiece-{digest[:8]}"


def test_sentencepiece_in_a_spec(model: Path, tmp_path: Path) -> None:
    assert TOKENIZERS.make(f'sentencepiece(model="{model}")') == SentencePiece(str(model))
    with pytest.raises(UsageError, match="sentencepiece needs model="):
        TOKENIZERS.make("sentencepiece")
    with pytest.raises(DataError, match=r"nowhere: cannot be read: no such file"):
        TOKENIZERS.make(f'sentencepiece(model="{tmp_path}/nowhere")')
    with pytest.raises(DataError, match="cannot be read: it is a folder"):
        TOKENIZERS.make(f'sentencepiece(model="{tmp_path}")')


@pytest.mark.parametrize("keep", [0, 20, 0.5, -1])
def test_damaged_model_is_refused(model: Path, tmp_path: Path, keep: float) -> None:
    content = model.read_bytes()
    damaged = tmp_path / "damaged.model"
    damaged.write_bytes(content[: int(keep * len(content)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(DataError, match=r"damaged.model: is not a complete sentencepiece model"):
        SentencePiece(str(damaged))


def test_replaced_model_is_another_tokenizer(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(model.read_bytes())
    old = SentencePiece(str(path))
    carried = pickle.dumps(old)
    lines = [f"quite other words {n} , dear friend , it is" for n in range(300)]
    (tmp_path / "text").write_text("\n".join(lines), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"),
        model_prefix=str(tmp_path / "m"),
        vocab_size=50,
        minloglevel=2,
    )
    new = SentencePiece(str(path))
    assert new.signature() != old.signature()
    assert new.tokenize(["hello friend"]) != old.tokenize(["hello friend"])
    sys.modules[SentencePiece.__module__]._processor.cache_clear()
    with pytest.raises(DataError, match="has changed"):
        pickle.loads(carried).tokenize(["hello"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork in a process with threads
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_native_tokenizers_can_be_sent_to_other_processes(method: str, model: Path) -> None:
    text = ["今日は hello 我来到北京"]
    tokenizers = [JaMecab(), ZhJieba(), SentencePiece(str(model))]
    here = [tokenizer.tokenize(text) for tokenizer in tokenizers]
    with ProcessPoolExecutor(1, get_context(method)) as pool:
        there = [pool.submit(t.tokenize, text).result(timeout=60) for t in tokenizers]
    assert there == here
    assert all(len(pickle.dumps(tokenizer)) < 1000 for tokenizer in tokenizers)


def test_missing_package_is_answered_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path
) -> None:
    for name in ("fugashi", "rjieba", "sentencepiece"):
        monkeypatch.setitem(sys.modules, name, None)
    ja_mecab.tagger.cache_clear()
    zh_jieba._cut.cache_clear()
    copy = tmp_path / "copy.model"
    copy.write_bytes(model.read_bytes())
    for spec, message in [
        ("ja-mecab", "tokenizer ja-mecab needs fugashi, ipadic, "),
        ("zh-jieba", "tokenizer zh-jieba needs rjieba, "),
        (f'sentencepiece(model="{copy}")', "tokenizer sentencepiece needs sentencepiece, "),
    ]:
        with pytest.raises(MissingExtra) as caught:
            TOKENIZERS.make(spec)
        assert str(caught.value).startswith(message)
        assert "pip install 'rejoinder[" in str(caught.value)


def test_finding_tokenizers_imports_no_library() -> None:
    program = (
        "import sys; from rejoinder.registry import TOKENIZERS\n"
        "for name in TOKENIZERS.builtin: TOKENIZERS.find(name)\n"
        "print({'regex', 'fugashi', 'ipadic', 'rjieba', 'sentencepiece'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"

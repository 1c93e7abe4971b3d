"""``ja-mecab``: Japanese morphemes by MeCab with the IPA dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from rejoinder.errors import missing_extra
from rejoinder.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from fugashi import GenericTagger


@dataclass(frozen=True)
class JaMecab(Tokenizer):
    """For Japanese; tokens depend on the dictionary, whose version is in the signature.

    >>> JaMecab().tokenize(["今日はいい天気です。"])
    [['今日', 'は', 'いい', '天気', 'です', '。']]
    """

    def __post_init__(self) -> None:
        tagger()

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        parse = tagger().parse
        return [parse(_readable(text)).split() for text in texts]

    def signature(self) -> str:
        return f"ja-mecab-ipadic-{metadata.version('ipadic')}"


def _readable(text: str) -> str:
    """Replace characters that MeCab can't read: lone surrogates, and NUL, at which it stops."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


@cache
def tagger() -> GenericTagger:
    """Load MeCab once per process, outside the dataclass, which can then be pickled."""
    try:
        import fugashi
        import ipadic
    except ImportError:
        raise missing_extra("ja", "fugashi", "ipadic", task="tokenizer ja-mecab") from None
    return fugashi.GenericTagger(f"{ipadic.MECAB_ARGS} -Owakati")

"""``ja-mecab``: Japanese morphemes by MeCab with the IPA dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from rejoinder.errors import MissingExtra
from rejoinder.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from fugashi import GenericTagger


@dataclass(frozen=True)
class JaMecab(Tokenizer):
    """For Japanese; the dictionary decides the tokens, so the signature names its version.

    >>> JaMecab().tokenize(["今日はいい天気です。"])
    [['今日', 'は', 'いい', '天気', 'です', '。']]
    """

    def __post_init__(self) -> None:
        _tagger()

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        parse = _tagger().parse
        return [parse(_readable(text)).split() for text in texts]

    def signature(self) -> str:
        return f"ja-mecab-ipadic-{metadata.version('ipadic')}"


def _readable(text: str) -> str:
    """MeCab reads UTF-8 and stops at a NUL."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


@cache
def _tagger() -> GenericTagger:
    """Loaded once a process, and outside the dataclass, which stays small and can be pickled."""
    try:
        import fugashi
        import ipadic
    except ImportError:
        raise MissingExtra(
            "ja-mecab needs the packages fugashi and ipadic: pip install fugashi ipadic"
        ) from None
    return fugashi.GenericTagger(f"{ipadic.MECAB_ARGS} -Owakati")

"""``zh-jieba``: Chinese words by jieba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import cast

from rejoinder.errors import missing_extra
from rejoinder.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class ZhJieba(Tokenizer):
    """For Chinese; the package includes the dictionary, and its version is in the signature.

    >>> ZhJieba().tokenize(["我来到北京 清华大学"])
    [['我', '来到', '北京', '清华大学']]
    """

    def __post_init__(self) -> None:
        _cut()

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        cut = _cut()
        return [[t for t in cut(_readable(text)) if not t.isspace()] for text in texts]

    def signature(self) -> str:
        return f"zh-jieba-{metadata.version('rjieba')}"


def _readable(text: str) -> str:
    """Replace lone surrogates, which jieba can't read."""
    return text.encode("utf-8", "replace").decode()


@cache
def _cut() -> Callable[[str], list[str]]:
    try:
        import rjieba
    except ImportError:
        raise missing_extra("zh", "rjieba", task="tokenizer zh-jieba") from None
    return cast(Callable[[str], list[str]], rjieba.cut)

"""A context as the tokens that a model reads: by its chat template, or turn after turn.

Without a template, each turn is followed by a separator. It is the token that ends a text, as in
DialoGPT, unless another is named; an encoder reads the turns as lines. A context that is longer
than the model takes loses its oldest turns, then the beginning of the last turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rejoinder.encode.transformer.tokenizer import explain_failure
from rejoinder.llm.chat import Message
from rejoinder.llm.chat_turns import messages_of
from rejoinder.llm.folder.loading import TextModel

CUT = "are longer than the model takes: their beginning was left out"
REFUSED_TURN = (
    "begin with the model's own turn, which its chat template refuses: that turn was left out;"
    " opening=… puts a turn of the user before it"
)
LINE = "\n"


class Prompts:
    """Makes the prompts of one model; ``changes`` counts what was left out."""

    def __init__(
        self,
        model: TextModel,
        limit: int,
        system: str | None = None,
        opening: str | None = None,
        separator: str | None = None,
    ) -> None:
        self._model, self._limit = model, limit
        self._system, self._opening, self._separator = system, opening, separator
        self.changes: Counter[str] = Counter()

    def tokens(self, context: Sequence[str]) -> list[int]:
        """Return the tokens of a context, as many as the model takes at most."""
        with explain_failure(self._model.folder.path, "the tokenizer does not work"):
            turns = list(map(valid_text, context))
            for start in range(len(turns)):
                ids = self._try(turns[start:], is_last=start == len(turns) - 1)
                if ids is None and not self._opening and (len(turns) - start) % 2 == 0:
                    self.changes[REFUSED_TURN] += 1
                if ids is not None and len(ids) <= self._limit:
                    if start and len(self._try(turns, is_last=False) or ()) > self._limit:
                        self.changes[CUT] += 1
                    return ids
            self.changes[CUT] += 1
            return self._cut(turns[-1])

    def of_messages(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a whole chat; without a chat template, messages are paragraphs."""
        with explain_failure(self._model.folder.path, "the tokenizer does not work"):
            if not getattr(self._model.tokenizer, "chat_template", None):
                text = "".join(f"{valid_text(message.content)}\n\n" for message in messages)
                return list(self._model.tokenizer(text, verbose=False)["input_ids"])
            return self._by_template(messages)

    def _by_template(self, messages: Sequence[Message]) -> list[int]:
        records = [
            {"role": message.role, "content": valid_text(message.content)} for message in messages
        ]
        ids = self._model.tokenizer.apply_chat_template(
            records, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        return list(ids)

    def _try(self, turns: Sequence[str], *, is_last: bool) -> list[int] | None:
        """Return the tokens of turns; None if the chat template refuses them."""
        from jinja2.exceptions import TemplateError

        try:
            return self._encode(turns)
        except TemplateError:
            if is_last:
                raise
            return None

    def _encode(self, turns: Sequence[str]) -> list[int]:
        tokenizer = self._model.tokenizer
        if getattr(tokenizer, "chat_template", None):
            return self._by_template(messages_of(turns, self._system, self._opening))
        if self._system:
            turns = [self._system, *turns]
        if self._model.is_encoder_decoder:
            separator = self._separator or LINE
            return list(tokenizer(separator.join(turns), verbose=False)["input_ids"])
        plain = self._plain
        separator_ids = self._separator_ids(plain)
        begin = tokenizer.bos_token_id
        empty = list(tokenizer("")["input_ids"])
        ids = [begin] if begin is not None and empty[:1] == [begin] and len(empty) == 1 else []
        for turn in turns:
            ids += plain(turn) + separator_ids
        return ids

    def _plain(self, text: str) -> list[int]:
        tokenizer: Any = self._model.tokenizer
        return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _separator_ids(self, plain: Callable[[str], list[int]]) -> list[int]:
        if self._separator is not None:
            return plain(self._separator)
        end = self._model.tokenizer.eos_token_id
        return plain(LINE) if end is None else [end]

    def _cut(self, turn: str) -> list[int]:
        """Return the tokens of the end of a turn."""
        tokens = self._plain(turn)
        keep = self._limit - len(self._encode([""]))
        while keep > 0:
            ids = self._encode([self._model.tokenizer.decode(tokens[-keep:])])
            if len(ids) <= self._limit:
                return ids
            keep -= len(ids) - self._limit
        return self._encode([""])[-self._limit :]


def valid_text(text: str) -> str:
    """Replace lone surrogates, which no tokenizer reads."""
    return text.encode("utf-8", "replace").decode()

"""Tables of single items: context, reply, references and scores, with matching words marked.

Words that the reply shares with a reference are marked in both: underlined on a terminal, in
brackets elsewhere. Matching ignores case and punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from rejoinder.items import Item, Score
from rejoinder.reporting.tables import number, plain_table, wrapping
from rejoinder.text.scripts import unsplit_script
from rejoinder.text.tokenizers.char import Char
from rejoinder.text.tokenizers.tokenizer import Tokenizer

MAX_ITEMS = 30
"""Items that are listed."""

Span = tuple[int, int]


def words_of(text: str, tokenizer: Tokenizer) -> list[tuple[str, Span]]:
    """Return the words of a text in lower case with their positions.

    Text that the tokenizer can't split (such as Japanese text with a tokenizer for English) is
    split into characters.
    """
    tokens = tokenizer.tokenize([text])[0]
    if tokenizer.max_word_length is not None and unsplit_script(tokens, tokenizer.max_word_length):
        tokens = Char().tokenize([text])[0]
    words, at = [], 0
    for token in tokens:
        begin = text.find(token, at)
        if begin < 0:  # the tokenizer changed the token
            continue
        at = begin + len(token)
        if any(map(str.isalnum, token)):
            words.append((token.lower(), (begin, at)))
    return words


@dataclass(frozen=True)
class Matches:
    """Words that the reply and a text have in common."""

    words: tuple[str, ...]
    """Distinct words in the order of the text."""
    spans: tuple[Span, ...]
    """Their positions in the text; neighbouring words are merged."""

    @classmethod
    def of(cls, text: str, wanted: Iterable[str], tokenizer: Tokenizer) -> Matches:
        wanted = set(wanted)
        own = [(word, span) for word, span in words_of(text, tokenizer) if word in wanted]
        spans: list[Span] = []
        for _, (begin, end) in own:
            if spans and not text[spans[-1][1] : begin].strip():
                spans[-1] = spans[-1][0], end
            else:
                spans.append((begin, end))
        return cls(tuple(dict.fromkeys(word for word, _ in own)), tuple(spans))


@dataclass(frozen=True)
class View:
    """An item with its matches."""

    item: Item
    reply: Matches
    """Words of the reply that are in any reference."""
    references: tuple[Matches, ...]
    scores: tuple[Score, ...] = ()

    @classmethod
    def of(cls, item: Item, tokenizer: Tokenizer, scores: Iterable[Score] = ()) -> View:
        reply_words = {word for word, _ in words_of(item.response, tokenizer)}
        texts = [reference.text for reference in item.references]
        references = tuple(Matches.of(text, reply_words, tokenizer) for text in texts)
        shared_words = {word for matches in references for word in matches.words}
        return cls(
            item, Matches.of(item.response, shared_words, tokenizer), references, tuple(scores)
        )


def marked(text: str, spans: Sequence[Span], *, plain: bool) -> Text:
    """Return the text on one line with the spans marked."""
    shown = Text()
    at = 0
    for begin, end in spans:
        shown.append(_printable(text[at:begin]))
        inside = _printable(text[begin:end])
        if plain:
            shown.append(f"[{inside}]")
        else:
            shown.append(inside, style="bold underline")
        at = end
    shown.append(_printable(text[at:]))
    return shown


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def dialogue_table(view: View, *, plain: bool) -> Table:
    """Return the context, oldest turn first, and the reply."""
    table = plain_table("", "", title=_printable(view.item.id))
    table.show_header = False
    table.columns[0].no_wrap = True
    for turn in view.item.context:
        table.add_row("context", turn)
    reply = marked(view.item.response, view.reply.spans, plain=plain)
    Table.add_row(table, "reply", reply)
    table.add_row("system", view.item.system)
    if view.item.ratings is not None:
        table.add_row("ratings", _ratings(view.item))
    return table


def _ratings(item: Item) -> str:
    match item.ratings:
        case dict() as by_annotator:
            each = [f"{name} {value:g}" for name, value in by_annotator.items()]
        case list() as anonymous:
            each = [f"{value:g}" for value in anonymous]
        case _:
            each = []
    mean = item.rating()
    summary = "none" if mean is None else f"{mean:g}" if not each else f"mean {mean:.2f}"
    return ", ".join([*each, summary])


def references_table(view: View, *, plain: bool) -> Table:
    """Return the references with source, similarity, weight and, if any has one, mean rating."""
    rated = any(reference.ratings is not None for reference in view.item.references)
    columns = ["source", "similarity", "weight", *(["rating"] if rated else []), "reference"]
    table = plain_table(*columns, right=range(1, len(columns) - 1))
    table.columns[0].no_wrap = True
    for reference, matches in zip(view.item.references, view.references, strict=True):
        Table.add_row(
            table,
            _printable(reference.source or "–")[:12],
            number(reference.score, 3),
            number(reference.weight, 2),
            *([number(reference.rating(), 2)] if rated else []),
            marked(reference.text, matches.spans, plain=plain),
        )
    return table


def scores_table(view: View) -> Table:
    """Return the scores with the evaluator's coverage of the context."""
    covered = any(score.coverage for score in view.scores)
    columns = ["metric", "score", *(["nearest", "agreement"] if covered else []), ""]
    table = plain_table(*columns, right=range(1, len(columns) - 1))
    for score in view.scores:
        coverage = score.coverage or {}
        cells = (
            [number(coverage.get(key), 3) for key in ("nearest", "agreement")] if covered else []
        )
        table.add_row(wrapping(score.metric), number(score.value), *cells, score.unscored or "")
    return table


def items_table(items: Sequence[Item], more: int) -> Table:
    """Return a list of items."""
    table = plain_table("id", "system", "reply", "refs", "rating", right=[3, 4])
    for item in items:
        rating = item.rating()
        reply = item.response if len(item.response) <= 60 else f"{item.response[:59]}…"
        mean = "–" if rating is None else f"{rating:.2f}"
        table.add_row(item.id, item.system, reply, str(len(item.references)), mean)
    if more:
        table.caption, table.caption_justify = f"… {more:,} more items", "left"
    return table

"""``likelihood``: what a causal language model in a folder thinks of a reply.

    gain     = (log P(h | c) - log P(h)) / n(h)
    reply    = log P(h | c) / n(h)
    context  = log P(c | h) / n(c)
    followup = mean over qualities of [mean of log P(f | c, h) / n(f) over good follow-ups f
               - the same over bad ones]

for context c and reply h; n counts the tokens of the model. ``of=gain``, the default, is the
pointwise mutual information: how much the context raises the probability of the reply, which a
dull reply that is probable everywhere does not have (Li et al. 2016, "A diversity-promoting
objective function for neural conversation models"). ``of=context`` is its counterpart: whether one
could tell the context from the reply. ``of=followup`` follows FED (Mehri & Eskenazi 2020,
"Unsupervised evaluation of interactive dialog with DialoGPT"): how probable it makes that somebody
goes on with "That's interesting!" rather than with "What do you mean?"; the follow-ups are this
project's own. ``followups`` is ``en``, ``ja``, ``zh``, or a TOML file of that form.

There is no prompt and no server. What the model reads are the turns, each followed by
``separator`` (a line break), the chat template of the model is not used. ``turns=3`` lets it read
the last three turns only. ``per=token`` divides by the number of tokens, ``per=character`` by that
of letters, which makes models with different tokenizers alike, and ``per=text`` by nothing: long
texts are then improbable.

``model`` is a folder in the format of Hugging Face, a GGUF file, or a packaged model such as
``smollm2``. It runs on the CPU; a context that several replies share is read once, and results are
kept in the cache.

The parts of a score (``--parts``) are the log-probabilities that it was computed from, and the
number of tokens; for follow-ups, a part for each quality.

Choices: an item without context, or with a blank reply, is unscored. A context that is longer than
the model's window is cut from the front; a note counts those. The corpus value is the mean over
items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.items import Item
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.batch_scores import BatchScores
from rejoinder.metrics.llm.followups import FollowUps, read_followups
from rejoinder.metrics.metric import WholeItemMetric, check_choice, check_range
from rejoinder.metrics.reasons import BLANK_REPLY, Reasons
from rejoinder.metrics.scoring_context import ScoringContext

if TYPE_CHECKING:
    from rejoinder.llm.folder.likelihood import Continuation, LikelihoodModel, TextLikelihood

TARGETS = ("gain", "reply", "context", "followup")
UNITS = ("token", "character", "text")
MAX_TURNS = 1000
TOO_LONG = "the reply is longer than the model's window"


@dataclass(frozen=True, kw_only=True)
class Likelihood(WholeItemMetric):
    name: ClassVar[str] = "likelihood"
    summary: ClassVar[str] = "how probable a language model finds the reply, and its context"
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    tolerance: ClassVar[float] = 1e-4
    max_characters: ClassVar[int | None] = 2**15

    model: str = "smollm2"
    of: str = "gain"
    per: str = "token"
    separator: str = "\n"
    turns: int | None = None
    followups: str = "en"
    _cut: set[tuple[str, ...]] = field(
        default_factory=set, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("of", self.of, TARGETS)
        check_choice("per", self.per, UNITS)
        if not self.separator:
            raise ValueError("separator is empty: the turns would run together")
        if self.turns is not None:
            check_range("turns", self.turns, 1, MAX_TURNS)

    @cached_property
    def opened(self) -> LikelihoodModel:
        """The model; its weights are loaded when they are needed."""
        from rejoinder.llm.folder.likelihood import open_likelihood_model

        return open_likelihood_model(self.model)

    @cached_property
    def asked(self) -> FollowUps:
        """The follow-ups of ``of=followup``."""
        return read_followups(self.followups)

    def missing_requirement(self) -> str | None:
        _ = self.opened  # MissingExtra now, not in the midst of scoring
        if self.of == "followup":
            _ = self.asked
        return None

    def languages(self) -> dict[str, frozenset[str]]:
        languages = self.opened.languages
        return {} if languages is None else {f"the language model {self.model}": languages}

    def notes(self) -> list[str]:
        notes = self.opened.notes()
        if self._cut:
            notes.append(
                f"{len(self._cut):,} contexts are longer than the {self.opened.window:,} tokens"
                f" that {self.model} takes: their beginning was left out"
            )
        return notes

    def _signed(self, key: str) -> str:
        if key == "model":
            return self.opened.identity
        if key == "followups":
            return self.asked.identity if self.of == "followup" else "none"
        if key == "separator":
            return repr(self.separator)
        return super()._signed(key)

    def reasons(self, batch: Batch) -> Reasons:
        reasons = super().reasons(batch)
        blank = batch.table.blank[batch.reply]
        reasons[blank & (reasons == None)] = BLANK_REPLY  # noqa: E711  # an array of objects
        return reasons

    def score(self, scoring: ScoringContext) -> BatchScores:
        scores = super().score(scoring)
        # a reply that the model cannot read at once has no statistics
        for number in np.flatnonzero(scores.rows[:, -1] == 0) if scores.rows.size else ():
            if scores.reasons[number] is None:
                scores.reasons[number] = TOO_LONG
                scores.values[number] = np.nan
        return scores

    def stats(self, batch: Batch) -> Floats:
        """The value and its parts, and 1; zeros for a reply that is longer than the window."""
        asked = [self._asked_of(item) for item in batch.items]
        found = iter(self.opened.likelihoods([each for some in asked for each in some]))
        rows = []
        for item, some in zip(batch.items, asked, strict=True):
            answers = [next(found) for _ in some]
            if any(answer.is_cut for answer in answers):
                self._cut.add(tuple(item.context))
            row = self._row(some, answers)
            rows.append([*row, 1.0] if np.isfinite(row).all() else [0.0] * (len(row) + 1))
        return np.array(rows)

    def finish(self, rows: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(rows[..., 0] / rows[..., -1])

    def parts(self, rows: Floats) -> dict[str, Floats]:
        names = {
            "gain": ("given-context", "alone", "tokens"),
            "reply": ("given-context", "tokens"),
            "context": ("given-reply", "tokens"),
        }.get(self.of)
        if names is None:
            names = tuple(quality.name for quality in self.asked.qualities)
        with np.errstate(invalid="ignore"):
            return {name: rows[..., i] / rows[..., -1] for i, name in enumerate(names, start=1)}

    def _asked_of(self, item: Item) -> list[Continuation]:
        """Return what the model is asked about an item."""
        from rejoinder.llm.folder.likelihood import Continuation

        turns = tuple(turn.strip() for turn in item.context if turn.strip())
        turns = turns if self.turns is None else turns[-self.turns :]
        reply = item.response.strip()
        if self.of == "context":
            whole = self.separator.join(turns)
            return [Continuation((reply,), whole, self.separator, cut_text=True)]
        if self.of == "followup":
            before = (*turns, reply)
            texts = [text for quality in self.asked.qualities for text in quality.texts]
            return [Continuation(before, text, self.separator) for text in texts]
        asked = [Continuation(turns, reply, self.separator)]
        if self.of == "gain":
            asked.append(Continuation((), reply, self.separator))
        return asked

    def _row(self, asked: Sequence[Continuation], found: Sequence[TextLikelihood]) -> list[float]:
        """Return the value of an item and its parts."""
        values = [self._scaled(each, one) for each, one in zip(asked, found, strict=True)]
        if self.of == "followup":
            qualities, place = [], 0
            for quality in self.asked.qualities:
                good = values[place : place + len(quality.good)]
                bad = values[place + len(quality.good) : place + len(quality.texts)]
                qualities.append(
                    float((np.mean(good) if good else 0) - (np.mean(bad) if bad else 0))
                )
                place += len(quality.texts)
            return [float(np.mean(qualities)), *qualities]
        value = values[0] - values[1] if self.of == "gain" else values[0]
        return [value, *(one.logprob for one in found), float(found[0].tokens)]

    def _scaled(self, asked: Continuation, found: TextLikelihood) -> float:
        if self.per == "text":
            return found.logprob
        size = found.tokens if self.per == "token" else len(asked.text)
        return found.logprob / size if size else np.nan

"""``bleu``: clipped n-gram precision with a brevity penalty (Papineni et al. 2002).

    BLEU = BP · exp( Σ_n 1/N · log p_n ),   n = 1 … N
    p_n  = Σ_g max_j min(#g(h), #g(r_j)) / Σ_g #g(h)
    BP   = 1 if |h| > ρ, else exp(1 - ρ / |h|)

For single short replies, many details matter, and are parameters:

``smooth``: what a precision of zero becomes. ``none``: the score is 0. ``epsilon``: its
numerator becomes ``smooth_value`` (0.1; NLTK's method 1, used by Gupta et al. 2019).
``add-k``: ``smooth_value`` (1) is added to both counts of every order above 1 (NLTK's
method 2). ``nist``: the k-th zero gets 1 / 2^k as its numerator (NLTK's method 3, the NIST
geometric sequence, used by Sugiyama et al. 2019; sacrebleu's ``exp``). No shared word at all
is 0 in every case.

``bp``: ρ is the length of the reference that is ``closest`` to the reply in length (the
shorter one on a tie), of the ``shortest``, or the ``average``; ``none`` leaves BP out.

``short``: a reply shorter than N has no n-grams of that order. ``one`` counts 0 of 1 (NLTK,
hence the papers), ``skip`` leaves the order out (sacrebleu's effective order),
``zero`` makes the score 0 (sacrebleu without it).

>>> import rejoinder
>>> reply, references = "the cat sat on a mat", ["the cat sat on the mat", "a cat sat"]
>>> round(rejoinder.score_one("bleu(n=2)", reply, references), 4)
0.7746
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.metric import OverlapMetric, check_choice, check_range
from rejoinder.spec import Spec

SMOOTHING = {"none": 0.0, "epsilon": 0.1, "add-k": 1.0, "nist": 2.0}
PENALTIES = ("closest", "shortest", "average", "none")
SHORT = ("one", "skip", "zero")


@dataclass(frozen=True, kw_only=True)
class Bleu(OverlapMetric):
    name: ClassVar[str] = "bleu"
    summary: ClassVar[str] = "clipped n-gram precision with a brevity penalty"
    own_multireference: ClassVar[bool] = True

    n: int = 4
    smooth: str = "epsilon"
    smooth_value: float | None = None
    bp: str = "closest"
    short: str = "one"
    refs: Spec = Spec("all")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("n", self.n, 1, 16)
        for key, choices in (("smooth", (*SMOOTHING,)), ("bp", PENALTIES), ("short", SHORT)):
            check_choice(key, getattr(self, key), choices)
        if self.smooth == "nist":  # below 1, a zero would count more than a match
            check_range("smooth_value", self._amount, 1, 1000)
        elif self.smooth_value is not None:
            check_range("smooth_value", self.smooth_value, 0, 1000, above=True)
        if self.smooth_value is not None and self.smooth == "none":
            raise ValueError("smooth_value has no meaning with smooth=none")

    @property
    def tokens_for_best(self) -> int:
        return 1 if self.short == "skip" else self.n

    def _signed(self, key: str) -> str:
        if key == "smooth_value":
            return repr(self._amount).removesuffix(".0")
        return super()._signed(key)

    @property
    def _amount(self) -> float:
        return SMOOTHING[self.smooth] if self.smooth_value is None else self.smooth_value

    def weights(self, batch: Batch) -> Floats:
        """Return [m] the weights of references: 1, since bad ones are not in the batch."""
        return np.ones_like(batch.weight)

    def max_gain(self, batch: Batch) -> Floats:
        """Return [n] the most that an n-gram of each reply can count."""
        return np.ones(len(batch))

    def stats(self, batch: Batch) -> Floats:
        """Matches and n-grams of each order, length of the reply, ρ, the weight of one n-gram,
        and 1: sums of the last two give the average weight, by which smoothing is scaled."""
        from rejoinder.kernels.ngrams import overlap

        tokens, weights = self.tokens(batch), self.weights(batch)
        matches = overlap(
            tokens.ids,
            tokens.starts,
            tokens.vocabulary_size,
            batch.reply,
            batch.reference,
            batch.first,
            weights,
            self.n,
        )
        lengths = tokens.lengths[batch.reply]
        min_total = 1 if self.short == "one" else 0
        totals = np.maximum(lengths[:, None] - np.arange(self.n), min_total)
        gain = self.max_gain(batch)
        expected = self._expected_length(lengths, tokens.lengths[batch.reference], batch)
        return np.column_stack(
            [matches, totals * gain[:, None], lengths, expected, gain, np.ones(len(batch))]
        )

    def _expected_length(self, reply: Ints, reference: Ints, batch: Batch) -> Ints | Floats:
        starts = batch.first[:-1]
        match self.bp:
            case "closest":
                # one number that orders by the distance, then by the length
                gap = np.abs(reference - np.repeat(reply, batch.counts))
                scale = int(reference.max(initial=0)) + 1
                return np.asarray(np.minimum.reduceat(gap * scale + reference, starts) % scale)
            case "shortest":
                return np.minimum.reduceat(reference, starts)
            case "average":
                return np.asarray(np.add.reduceat(reference, starts) / batch.counts)
            case _:
                return np.zeros_like(reply)

    def finish(self, rows: Floats) -> Floats:
        precision, penalty = self._ingredients(rows)
        present = rows[..., self.n : 2 * self.n] > 0
        used = present if self.short == "skip" else np.ones_like(present)
        share = 1 / np.maximum(used.sum(axis=-1, keepdims=True), 1)
        with np.errstate(divide="ignore"):
            logs = np.where(used, share * np.log(np.where(used, precision, 1.0)), 0.0)
        value = penalty * np.exp(_rounded_once(logs))
        return np.asarray(np.where(rows[..., 0] > 0, value, 0.0))

    def parts(self, rows: Floats) -> dict[str, Floats]:
        precision, penalty = self._ingredients(rows)
        return {f"p{n + 1}": precision[..., n] for n in range(self.n)} | {"bp": penalty}

    def _ingredients(self, rows: Floats) -> tuple[Floats, Floats]:
        n = self.n
        matches, totals = rows[..., :n], rows[..., n : 2 * n]
        zero = matches <= 0
        weight = rows[..., -2:-1] / rows[..., -1:]
        amount = self._amount * weight
        if self.smooth == "add-k":
            later = np.arange(n) > 0
            matches = np.where(later, np.maximum(matches, 0) + amount, np.maximum(matches, 0))
            totals = np.where(later & (totals > 0), totals + amount, totals)
        elif self.smooth == "epsilon":
            matches = np.where(zero, amount, matches)
        elif self.smooth == "nist":
            matches = np.where(
                zero, weight * self._amount ** -np.cumsum(zero, axis=-1, dtype=np.float64), matches
            )
        else:
            matches = np.maximum(matches, 0)
        precision = np.divide(matches, totals, out=np.zeros(matches.shape), where=totals > 0)
        length, expected = rows[..., 2 * n], rows[..., 2 * n + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            penalty = np.where(length > expected, 1.0, np.exp(1 - expected / length))
        penalty = np.where(length == 0, 0.0, np.where(expected == 0, 1.0, penalty))
        return precision, penalty


def _rounded_once(terms: Floats) -> Floats:
    """Return the sum over the last axis, rounded once (Neumaier), like ``math.fsum``.

    Rank correlations depend on which scores are equal to the last bit; published ones were
    computed with exactly rounded sums.
    """
    total, lost = np.zeros(terms.shape[:-1]), np.zeros(terms.shape[:-1])
    for k in range(terms.shape[-1]):
        term = terms[..., k]
        larger = np.abs(total) >= np.abs(term)
        after = total + term
        with np.errstate(invalid="ignore"):  # -inf: a precision of zero, unsmoothed
            lost += np.where(larger, (total - after) + term, (term - after) + total)
        total = after
    return np.where(np.isfinite(lost), total + lost, total)

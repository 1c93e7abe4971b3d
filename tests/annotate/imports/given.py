"""The answers that people gave to the programs whose exports are in ``tests/annotate/exports``."""

from __future__ import annotations

from pathlib import Path

EXPORTS = Path(__file__).resolve().parent.parent / "exports"
POTATO_1, POTATO_2, LABEL_STUDIO = (
    EXPORTS / name for name in ("potato-1", "potato-2", "label-studio")
)

FLUENCY = {"Not fluent": 1, "Fairly fluent": 2, "Very fluent": 3}
"""What the labels of fluency mean."""

VERDICT = {"First is better": "a", "Second is better": "b", "Equally good": "tie"}

ANNA, BEN, CHLOE = "anna", "ben", "chloe@example.org"

RATINGS: dict[tuple[str, str], dict[str, float]] = {
    (ANNA, "lunch:retrieval"): {"appropriateness": 5, "fluency": 3, "interest": 60},
    (ANNA, "lunch:seq2seq"): {"appropriateness": 1, "fluency": 3, "interest": 5},
    (ANNA, "rain:retrieval"): {"appropriateness": 4, "fluency": 3, "interest": 90},
    (ANNA, "rain:seq2seq"): {"appropriateness": 2, "fluency": 2, "interest": 0},
    (BEN, "lunch:retrieval"): {"appropriateness": 4, "fluency": 3, "interest": 50},
    (BEN, "lunch:seq2seq"): {"appropriateness": 2, "fluency": 2, "interest": 12.5},
    (BEN, "rain:retrieval"): {"appropriateness": 5, "fluency": 3, "interest": 100},
    (CHLOE, "lunch:retrieval"): {"appropriateness": 5, "fluency": 2},
    (CHLOE, "rain:seq2seq"): {"appropriateness": 1, "fluency": 1, "interest": 3},
}
"""Anna and Ben also wrote a comment each; Anna named two problems once and one once, Chloe one."""

WINNERS = {
    (ANNA, "lunch"): "a",
    (ANNA, "rain"): "a",
    (ANNA, "film"): "tie",
    (BEN, "lunch"): "a",
    (BEN, "film"): "b",
    (CHLOE, "rain"): "b",
}

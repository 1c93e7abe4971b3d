"""Refuse texts in languages that an encoder or an evaluator does not know.

An English encoder gives two unrelated Japanese sentences a cosine of .58, and an English evaluator
rates Japanese replies at .95: such scores mean nothing. Metrics over words or characters know all
languages, and are not concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.metrics.metric import Metric
from rejoinder.text.identify import OtherLanguage, find_other_language
from rejoinder.wording import option

FULL_CHECK = 2000
"""Number of texts that are all examined; of later batches only a sample is."""
SAMPLE = 100


class LanguageCheck:
    """Checks batches of items against the languages that metrics know."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        any_language: bool = False,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self.any_language, self.on_note = any_language, on_note
        self._users: dict[tuple[str, frozenset[str]], list[Metric]] = {}
        for metric in metrics:
            for who, languages in metric.languages().items():
                self._users.setdefault((who, languages), []).append(metric)
        self._noted: set[str] = set()
        self._examined = 0

    def check(self, items: Sequence[Item]) -> None:
        """Raise DataError if texts of the items are in another language; or, if any language is
        accepted, pass a warning to ``on_note``, once."""
        if not self._users:
            return
        texts = _texts(items)
        if self._examined >= FULL_CHECK:
            texts = texts[:: -(-len(texts) // SAMPLE)]
        self._examined += len(texts)
        others: dict[frozenset[str], OtherLanguage | None] = {}
        for (who, languages), metrics in self._users.items():
            if who in self._noted:
                continue
            if languages not in others:
                others[languages] = find_other_language(texts, languages)
            if (other := others[languages]) is not None:
                names = ", ".join(dict.fromkeys(metric.name for metric in metrics))
                self._report(who, f"{names}: {other.describe(who)}")

    def _report(self, who: str, problem: str) -> None:
        if not self.any_language:
            raise DataError(
                f"{problem}; use an encoder or evaluator of that language, or metrics over words"
                f" or characters; {option('any_language', True)} scores them nevertheless"
            )
        self._noted.add(who)
        if self.on_note is not None:
            self.on_note(f"{problem}: these scores mean little")


def _texts(items: Sequence[Item]) -> list[str]:
    """Return replies, last turns and first references, side by side, each text once."""
    texts: dict[str, None] = {}
    for item in items:
        texts.setdefault(item.response)
        if item.context:
            texts.setdefault(item.context[-1])
        if item.references:
            texts.setdefault(item.references[0].text)
    return list(texts)

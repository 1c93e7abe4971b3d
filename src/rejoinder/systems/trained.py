"""``trained``: a network that ``rejoinder train system`` has trained.

``--system bots/hred`` names the folder alone; ``trained(model=bots/hred,decoding=beam)`` also says
how replies are decoded (see :class:`rejoinder.learn.dialogue.decoding.Decoding`). A dual encoder
replies with the best of the responses that it was trained on, or of the pool if one is given.

Replies are drawn by a seed and the context alone: a reply does not depend on the other contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rejoinder.errors import UsageError, missing_extra
from rejoinder.files.paths import expand_user
from rejoinder.learn.dialogue.settings import DialogueDataSettings
from rejoinder.learn.dialogue.system_folder import (
    read_manifest,
    reading_settings,
    seen_contexts,
)
from rejoinder.spec import spec_of
from rejoinder.systems.controls import Seeded
from rejoinder.systems.system import Replies, Request, context_rng, distinct
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.learn.dialogue.contexts import Contexts
    from rejoinder.learn.dialogue.decoding import Decoding
    from rejoinder.learn.dialogue.networks.network import GenerativeNetwork
    from rejoinder.learn.dialogue.vocabulary import Vocabulary

NOTHING_SAID = "the network generated no text"
ROUNDS = 5
"""How often replies are drawn until there are enough different ones."""


@dataclass(frozen=True, kw_only=True)
class Trained(Seeded):
    """Replies with a trained network."""

    name: ClassVar[str] = "trained"
    summary: ClassVar[str] = "a network of 'rejoinder train system'"
    needs_pool: ClassVar[bool] = False
    generates: ClassVar[bool] = True

    model: str
    """Folder of the network."""
    decoding: str = "auto"
    """auto, greedy, beam or sampling."""
    temperature: float = 1.0
    top_k: int = 0
    """Only the most probable tokens are drawn; 0: all."""
    top_p: float = 1.0
    """Only the most probable tokens that have this probability together are drawn."""
    beam_size: int = 5
    length_penalty: float = 1.0
    max_tokens: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_options()
        read_manifest(self.folder)  # what is wrong with the folder is reported before any work

    def __str__(self) -> str:
        """Return the name of the folder, unless something else than the folder is set."""
        changed = {key for key, _ in spec_of(self, self.name).params} - {"model", "seed"}
        return str(spec_of(self, self.name)) if changed else self.folder.name

    @property
    def folder(self) -> Path:
        return expand_user(self.model.rstrip("/") or "/")

    @property
    def languages(self) -> tuple[str, ...]:
        """The language that the network was trained on."""
        return (reading_settings(self.folder, read_manifest(self.folder))[1].language,)

    def answer(self, contexts: Sequence[Sequence[str]], request: Request) -> list[Replies]:
        try:
            import torch  # noqa: F401
        except ImportError as error:
            raise missing_extra("neural", str(error.name), task="a trained network") from None
        from rejoinder.learn.dialogue.contexts import Contexts
        from rejoinder.learn.dialogue.load_system import load_system
        from rejoinder.learn.dialogue.networks.network import GenerativeNetwork

        network, vocabulary, data = load_system(self.folder)
        self._report_contexts(contexts, data, request.note)
        turns = [[turn for turn in context if turn.strip()] for context in contexts]
        encoded = Contexts.of(turns, vocabulary, data)
        if isinstance(network, GenerativeNetwork):
            return self._generate(network, vocabulary, contexts, encoded, request)
        from rejoinder.learn.dialogue.networks.dual_encoder import DualEncoder
        from rejoinder.systems.best_response import best_responses

        assert isinstance(network, DualEncoder)
        return best_responses(self.folder, network, vocabulary, data, encoded, request)

    def _generate(
        self,
        network: GenerativeNetwork,
        vocabulary: Vocabulary,
        contexts: Sequence[Sequence[str]],
        encoded: Contexts,
        request: Request,
    ) -> list[Replies]:
        """Decode until every context has n different replies, or for some rounds."""
        from rejoinder.learn.dialogue.decoding import decode

        decoding = self._decoding()
        method = decoding.chosen_method(request.n, is_latent=bool(network.latent_size))
        draws = method == "sampling" or (method == "greedy" and bool(network.latent_size))
        rngs = [context_rng(self.seed, context) for context in contexts]
        texts: list[tuple[str, ...]] = [()] * len(contexts)
        left = list(range(len(contexts)))
        for number in range(ROUNDS if draws and request.n > 1 else 1):
            answers = decode(
                network,
                encoded.take(left),
                request.n,
                decoding,
                [rngs[i] for i in left],
                vocabulary.never_generated,
                request.on_progress if number == 0 else None,
            )
            for i, answer in zip(left, answers, strict=True):
                decoded = [vocabulary.decode(reply) for reply in answer]
                texts[i] = distinct([*texts[i], *decoded], request.n)
            left = [i for i in left if len(texts[i]) < request.n]
            if not left:
                break
        if left and request.n > 1:
            request.note(
                f"{len(left):,} contexts have fewer than {request.n} different replies"
                + ("" if draws else f"; decoding={method} gives no more: try decoding=sampling")
            )
        return [Replies(found) if found else Replies(reason=NOTHING_SAID) for found in texts]

    def _report_contexts(
        self,
        contexts: Sequence[Sequence[str]],
        settings: DialogueDataSettings,
        note: Callable[[str], None],
    ) -> None:
        if seen := seen_contexts(self.folder, contexts):
            note(
                f"{seen:,} of {len(contexts):,} contexts were in its training data: its replies to"
                f" them show what it memorised; make its pairs with 'corpus' and"
                f" {option('exclude', 'FILE')}"
            )
        if long := sum(len(context) > settings.context_turns for context in contexts):
            note(
                f"{long:,} contexts have more than {settings.context_turns} turns: the earlier ones"
                " are not read"
            )

    def _decoding(self) -> Decoding:
        from rejoinder.learn.dialogue.decoding import Decoding

        return Decoding(
            method=self.decoding,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            max_tokens=self.max_tokens,
        )

    def _check_options(self) -> None:
        try:
            self._decoding()
        except UsageError as error:
            raise ValueError("; ".join(error.messages)) from None

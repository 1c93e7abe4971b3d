"""Registries: the classes behind the names in specs, imported when they are first used.

Built-in names are listed here as ``module:Class``, so that listing them imports nothing
heavy. Other packages add theirs through the entry-point groups ``rejoinder.metrics`` and
``rejoinder.tokenizers``; see CONTRIBUTING.md.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from typing import Any, Generic, TypeVar, cast

from rejoinder.errors import Terminated, UsageError
from rejoinder.spec import Spec, build, did_you_mean, parameters, parse

T = TypeVar("T")


@dataclass
class Registry(Generic[T]):
    """The names of one kind, such as metrics, and their classes."""

    kind: str
    builtin: Mapping[str, str]
    group: str
    _added: dict[str, type[Any]] = field(default_factory=dict)

    @cached_property
    def _plugins(self) -> dict[str, metadata.EntryPoint]:
        return {point.name: point for point in metadata.entry_points(group=self.group)}

    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.builtin, *self._plugins, *self._added]))

    def find(self, name: str) -> type[T]:
        """Return the class of a name; UsageError with similar names if it is unknown."""
        if name in self._added:
            return self._added[name]
        if name in self.builtin:
            module, _, attribute = self.builtin[name].partition(":")
            return cast(type[T], getattr(importlib.import_module(module), attribute))
        if name in self._plugins:
            try:
                return cast(type[T], self._plugins[name].load())
            except Terminated:
                raise
            except (Exception, SystemExit) as error:  # other packages may raise anything
                package = self._plugins[name].dist
                raise UsageError(
                    f"the {self.kind} '{name}' of {package.name if package else 'a package'} cannot"
                    f" be loaded: {type(error).__name__}: {error}"
                ) from None
        hint = did_you_mean(name, self.names())
        if (spec := self._with_number(name)) is not None:
            hint = f"did you mean '{spec}'?"
        raise UsageError(f"unknown {self.kind} '{name}': {hint}")

    def _with_number(self, name: str) -> str | None:
        """Return the spec that is meant by a name with a number: bleu(n=2) for bleu-2."""
        match = re.fullmatch(r"(.+?)[-_@]?(\d{1,2})", name.lower())
        if match is None or match[1] not in self.names():
            return None
        return f"{match[1]}(n={match[2]})" if "n" in parameters(self.find(match[1])) else None

    def add(self, name: str, cls: type[T]) -> None:
        """Register a class for this process, for notebooks and tests."""
        self._added[name] = cls

    def make(self, spec: str | Spec) -> T:
        """Build the object that a spec describes."""
        parsed = parse(spec) if isinstance(spec, str) else spec
        return build(self.find(parsed.name), parsed.name, dict(parsed.params))


_OVERLAP = "rejoinder.metrics.overlap"
_DIVERSITY = "rejoinder.metrics.diversity"
_EMBEDDING = "rejoinder.metrics.embedding"
_EVALUATOR = "rejoinder.metrics.evaluator"
_LLM = "rejoinder.metrics.llm"
_REGRESSION = "rejoinder.metrics.regression"
_JUDGING = "rejoinder.metrics.judging"

METRICS: Registry[Any] = Registry(
    kind="metric",
    group="rejoinder.metrics",
    builtin={
        "bleu": f"{_OVERLAP}.bleu:Bleu",
        "delta-bleu": f"{_OVERLAP}.delta_bleu:DeltaBleu",
        "rouge-l": f"{_OVERLAP}.rouge_l:RougeL",
        "meteor": f"{_OVERLAP}.meteor:Meteor",
        "chrf": f"{_OVERLAP}.chrf:Chrf",
        "ribes": f"{_OVERLAP}.ribes:Ribes",
        "wer": f"{_OVERLAP}.wer:Wer",
        "distinct": f"{_DIVERSITY}.distinct:Distinct",
        "entropy": f"{_DIVERSITY}.entropy:Entropy",
        "self-bleu": f"{_DIVERSITY}.self_bleu:SelfBleu",
        "recall": f"{_DIVERSITY}.recall:Recall",
        "embedding-average": f"{_EMBEDDING}.average:EmbeddingAverage",
        "vector-extrema": f"{_EMBEDDING}.extrema:VectorExtrema",
        "greedy-matching": f"{_EMBEDDING}.greedy:GreedyMatching",
        "vector-pool": f"{_EMBEDDING}.pool:VectorPool",
        "sentence-cosine": f"{_EMBEDDING}.sentence:SentenceCosine",
        "bertscore": f"{_EMBEDDING}.bertscore:BertScore",
        "vbleu": f"{_EVALUATOR}.vbleu:VBleu",
        "vbertscore": f"{_EVALUATOR}.vbertscore:VBertScore",
        "vcosine": f"{_EVALUATOR}.vcosine:VCosine",
        "rating": f"{_EVALUATOR}.rating:Rating",
        "unreferenced": f"{_EVALUATOR}.unreferenced:Unreferenced",
        "expanded": f"{_EVALUATOR}.expanded:Expanded",
        "ruber": f"{_EVALUATOR}.ruber:Ruber",
        "rejoinder": f"{_EVALUATOR}.rejoinder:Rejoinder",
        "likelihood": f"{_LLM}.likelihood:Likelihood",
        "mean": "rejoinder.metrics.ensemble.mean:Mean",
        "repetition": "rejoinder.metrics.dialogue.repetition:Repetition",
        "self-similarity": "rejoinder.metrics.dialogue.self_similarity:SelfSimilarity",
        "calibrated": "rejoinder.metrics.calibrated.calibrated:Calibrated",
        "am": f"{_REGRESSION}.am:Am",
        "ws": f"{_REGRESSION}.ws:Ws",
        "svr": f"{_REGRESSION}.svr:Svr",
        "judge": f"{_JUDGING}.judge:Judge",
    },
)

_TOKENIZERS = "rejoinder.text.tokenizers"

TOKENIZERS: Registry[Any] = Registry(
    kind="tokenizer",
    group="rejoinder.tokenizers",
    builtin={
        "whitespace": f"{_TOKENIZERS}.whitespace:Whitespace",
        "13a": f"{_TOKENIZERS}.mteval13a:Mteval13a",
        "intl": f"{_TOKENIZERS}.intl:Intl",
        "char": f"{_TOKENIZERS}.char:Char",
        "ja-mecab": f"{_TOKENIZERS}.ja_mecab:JaMecab",
        "zh-jieba": f"{_TOKENIZERS}.zh_jieba:ZhJieba",
        "sentencepiece": f"{_TOKENIZERS}.sentencepiece:SentencePiece",
    },
)

_READERS = "rejoinder.logs.readers"

READERS: Registry[Any] = Registry(
    kind="log format",
    group="rejoinder.readers",
    builtin={
        "twitter": f"{_READERS}.twitter:Twitter",
        "conversations": f"{_READERS}.conversations:Conversations",
        "reddit": f"{_READERS}.reddit:Reddit",
        "messages": f"{_READERS}.messages:Messages",
        "chat": f"{_READERS}.chat:Chat",
        "tsv": f"{_READERS}.tsv:Tsv",
        "dailydialog": f"{_READERS}.dailydialog:DailyDialog",
        "dailydialog-plusplus": f"{_READERS}.dailydialog_plusplus:DailyDialogPlusPlus",
        "chitchat": f"{_READERS}.chitchat:Chitchat",
        "self-dialogue": f"{_READERS}.self_dialogue:SelfDialogue",
        "real-persona-chat": f"{_READERS}.real_persona_chat:RealPersonaChat",
        "empatheticdialogues": f"{_READERS}.empathetic_dialogues:EmpatheticDialogues",
    },
)

RETRIEVERS: Registry[Any] = Registry(
    kind="retriever",
    group="rejoinder.retrievers",
    builtin={
        "bm25": "rejoinder.retrieve.sparse:Bm25",
        "tfidf": "rejoinder.retrieve.sparse:TfIdf",
        "vectors": "rejoinder.retrieve.dense:WordVectorRetriever",
        "encoder": "rejoinder.retrieve.dense:SentenceRetriever",
    },
)

_SYSTEMS = "rejoinder.systems"

SYSTEMS: Registry[Any] = Registry(
    kind="dialogue system",
    group="rejoinder.systems",
    builtin={
        "c-bm25": f"{_SYSTEMS}.retrieval:CBm25",
        "c-tfidf": f"{_SYSTEMS}.retrieval:CTfIdf",
        "ir-status": f"{_SYSTEMS}.retrieval:IrStatus",
        "ir-response": f"{_SYSTEMS}.retrieval:IrResponse",
        "random": f"{_SYSTEMS}.controls:RandomReply",
        "parrot": f"{_SYSTEMS}.controls:Parrot",
        "dull": f"{_SYSTEMS}.controls:Dull",
        "aiml": f"{_SYSTEMS}.aiml.system:Aiml",
        "trained": f"{_SYSTEMS}.trained:Trained",
        "openai": f"{_SYSTEMS}.openai:OpenAI",
        "hf": f"{_SYSTEMS}.hf:HuggingFace",
        "command": f"{_SYSTEMS}.command:Command",
    },
)

PAIR_JUDGES: Registry[Any] = Registry(
    kind="judge of pairs",
    group="rejoinder.pair_judges",
    builtin={"judge-pairs": "rejoinder.judges.pair_judge:PairJudge"},
)

WRITERS: Registry[Any] = Registry(
    kind="writer of references",
    group="rejoinder.writers",
    builtin={"llm": "rejoinder.retrieve.written.writer:LlmWriter"},
)

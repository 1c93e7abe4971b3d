"""The catalogue of test sets, with source, licence and digests of each.

A loader is given as ``module:function`` and imported when it is first used. It takes the paths of
the set's files, in the order listed here, and yields rows (:mod:`rejoinder.testsets.source`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference
from rejoinder.spec import did_you_mean
from rejoinder.testsets.source import File, Row, locate


@dataclass(frozen=True)
class Dataset:
    """A published test set."""

    name: str
    description: str
    language: str
    source: str
    licence: str
    citation: str
    files: tuple[File, ...]
    references: tuple[str, ...]
    """The kinds of references that it offers (single, multi, scored, none), the default first."""
    size: int
    loader: str

    def paths(self) -> list[Path]:
        """Return the paths of the files, after checking their digests."""
        return [locate(file, self.name, self.source) for file in self.files]

    def rows(self) -> Iterator[Row]:
        module, _, function = self.loader.partition(":")
        loader = getattr(importlib.import_module(f"rejoinder.testsets.{module}"), function)
        return cast(Callable[..., Iterator[Row]], loader)(*self.paths())


_GUPTA = (
    "Gupta et al. 2019, Investigating Evaluation of Open-Domain Dialogue Systems With Human"
    " Generated Multiple References, SIGDIAL"
)
_HUANG = (
    "Huang et al. 2020, GRADE: Automatic Graph-Enhanced Coherence Metric for Evaluating"
    " Open-Domain Dialogue Systems, EMNLP"
)
_SAI = (
    "Sai et al. 2020, Improving Dialog Evaluation with a Multi-reference Adversarial Dataset"
    " and Large Scale Pretraining, TACL 8"
)
_INABA = (
    "稲葉通将 2019, おーぷん2ちゃんねる対話コーパスを用いた用例ベース対話システム,"
    " 人工知能学会 SIG-SLUD-B902-33"
)

_GALLEY = (
    "Galley et al. 2019, Grounded Response Generation Task at DSTC7, AAAI Dialog System Technology"
    " Challenge Workshop"
)
_HIGASHINAKA = (
    "Higashinaka et al. 2017, Overview of Dialogue Breakdown Detection Challenge 3, Dialog System"
    " Technology Challenge Workshop"
)
_GHAZARIAN = (
    "Ghazarian et al. 2022, What is wrong with you?: Leveraging User Sentiment for Automatic Dialog"
    " Evaluation, Findings of ACL"
)
_JI = "Ji et al. 2022, Achieving Reliable Human Assessment of Open-Domain Dialogue Systems, ACL"

_JUDGEMENTS = File(
    "grade/judgements.jsonl",
    "b72623af8e9d37d3c7debd675ac094cf9d4dffb1c40085976d88faf5b123811f",
    "evaluation/human_score/human_judgement.json with the references added",
)
_RANKING = File(
    "open2ch-ja/ranking.zip",
    "73c2cec40ea4ddec091129b7630b6bbba9ebb61c3214216ef025c6d9a39235a9",
    "ranking.zip",
)


def _grade(part: str, systems: int) -> Dataset:
    return Dataset(
        name=f"grade-{part}",
        description=f"150 replies each of {systems} systems, 8 to 11 ratings from 1 to 5",
        language="en",
        source="li3cmz/GRADE on GitHub",
        licence="none stated",
        citation=_HUANG,
        files=(_JUDGEMENTS,),
        references=("single", "none"),
        size=150 * systems,
        loader=f"grade:{part}",
    )


def _plusplus(part: str, sha256: str, contexts: int) -> Dataset:
    return Dataset(
        name=f"dailydialog-plusplus-{part}",
        description=f"5 good, 5 adversarial and 5 random replies to {contexts:,} contexts, 1 or 0",
        language="en",
        source="iitmnlp/Dialogue-Evaluation-with-BERT on GitHub",
        licence="MIT",
        citation=_SAI,
        files=(
            File(f"dailydialog-plusplus/{part}.jsonl", sha256, f"the {part} set as JSON lines"),
        ),
        references=("single", "multi", "scored", "none"),
        size=15 * contexts,
        loader="dailydialog_plusplus:read",
    )


def _open2ch(part: str) -> Dataset:
    return Dataset(
        name=f"open2ch-{part}",
        description="the true reply and 9 random ones to 2,000 contexts of a board, 1 or 0;"
        " for metrics without references",
        language="ja",
        source="1never/open2ch-dialogue-corpus on GitHub",
        licence="Apache-2.0",
        citation=_INABA,
        files=(_RANKING,),
        # the only reference would be the true reply, which metrics must tell from random ones
        references=("none",),
        size=20_000,
        loader=f"open2ch:{part}",
    )


def _multiref(name: str, description: str, files: tuple[File, ...], size: int) -> Dataset:
    return Dataset(
        name=f"dailydialog-{name}",
        description=description,
        language="en",
        source="prakharguptaz/multirefeval on GitHub",
        licence="none stated; DailyDialog itself is CC BY-NC-SA 4.0",
        citation=_GUPTA,
        files=files,
        references=("single", "multi", "none"),
        size=size,
        loader=f"dailydialog_multiref:{'rated' if name == 'multiref' else name}",
    )


def _attacks(language: str, named: str) -> Dataset:
    return Dataset(
        name=f"judge-attacks-{language}",
        description=f"replies that talk to a judge, in {named}: 7 kinds of attack on 8 contexts,"
        " beside the reply without one; not rated",
        language=language,
        source="part of this package",
        licence="Apache-2.0",
        citation="Rejoinder",
        files=(),
        references=("none",),
        size=72,
        loader=f"judge_attacks:{language}",
    )


_RATED = File(
    "dailydialog-multiref/human_ratings.csv",
    "55a7c5c01b22ebfed631b28eb0e658eaa9a300a05ef95c09a26853ba6eb45c37",
    "multiref-dataset/mturk_rating_processed_output.csv",
)
_HRED = (
    File(
        "dailydialog-multiref/hred_outputs.txt",
        "a15d1529350b739a7ed0e7862c71ae3ad53a5a35e8575ca6406a0b7cb2748596",
        "Code/hredf.txt",
    ),
    File(
        "dailydialog-multiref/single_reference.txt",
        "37d6f4b259e7491a3aff0f0debad24b2651464ac1b1fa0477f7db587e9c9ee8e",
        "Code/jsons/test.tgt",
    ),
    File(
        "dailydialog-multiref/multireftest.json",
        "4f487bda98be4f61bcacb2aa31e24cf01a840ebb8c1331caa1deb12c493878b6",
        "multiref-dataset/multireftest.json",
    ),
)

_ALL = (
    _multiref(
        "multiref",
        "replies of 5 systems to 100 contexts, averaged ratings from 1 to 5",
        (_RATED,),
        500,
    ),
    _multiref(
        "hred",
        "one system's replies to all turns of 1,000 test dialogues, not rated",
        _HRED,
        6_740,
    ),
    _multiref(
        "human",
        "a collected reference as a person's reply to the same turns, not rated",
        _HRED[2:],
        6_740,
    ),
    _grade("convai2", systems=4),
    _grade("empathetic", systems=2),
    _plusplus("dev", "afbdee92c9ab372f599c605609676fceba517f83286d58555f0404f4364b5bfa", 1_028),
    _plusplus("test", "e8202c3d4b11008a13061b15c4d8ce1f6d05baa9104a9c1f5caa5450134522fa", 1_142),
    _open2ch("dev"),
    _open2ch("test"),
    Dataset(
        name="dstc7-msr",
        description="replies of 10 systems to 508 contexts, 3 to 6 ratings of relevance from 1 to 5"
        " by identified judges; the context is the passage beside the discussion",
        language="en",
        source="mgalley/DSTC7-End-to-End-Conversation-Modeling on GitHub",
        licence="O-UDA 1.0",
        citation=_GALLEY,
        files=(
            File(
                "dstc7-msr/judged-half.jsonl.gz",
                "ff63c5e029ba37fdaec36562b8746522c343de5421834b50d77e3f688abe0fc7",
                "evaluation/: the human evaluation of half of the contexts, with references",
            ),
        ),
        references=("multi", "single", "none"),
        size=5_080,
        loader="dstc7:read",
    ),
    Dataset(
        name="dbdc3-en",
        description="system turns of 415 dialogues with 4 systems, each by 30 annotators:"
        " breakdown 0, possible breakdown 1, none 2",
        language="en",
        source="the dialogue breakdown detection challenge 3",
        licence="MIT",
        citation=_HIGASHINAKA,
        files=(
            File(
                "dbdc3-en/dev.jsonl.gz",
                "53ab90d5ac72b5b9a62dc7216dae058a49a0abe4ba14eb2966e11dbb3e2aa0c3",
                "the English development part as JSON lines",
            ),
        ),
        references=("none",),
        size=4_150,
        loader="dbdc3:read",
    ),
    Dataset(
        name="conture",
        description="turns of 119 dialogues with systems of DSTC9, rated 0, 1 or 2 (majority);"
        " the dialogues rated by 2 or 3 people from 1 to 5",
        language="en",
        source="alexa/conture on GitHub",
        licence="CC BY 4.0",
        citation=_GHAZARIAN,
        files=(
            File(
                "conture/turns.json.gz",
                "6581970586ddb5913fb8c07596bfbcf4670c5c08b6cf13282ee3448ddf2bb064",
                "the annotated dialogues",
            ),
        ),
        references=("none",),
        size=1_066,
        loader="conture:read",
    ),
    Dataset(
        name="reliable-eval",
        description="turns of 2,925 dialogues with 10 systems; the dialogues rated from 0 to 100"
        " by the person who took part",
        language="en",
        source="TianboJi/Dialogue-Eval on GitHub",
        licence="MIT",
        citation=_JI,
        files=(
            File(
                "reliable-eval/hits.jsonl.gz",
                "a0351c514f82da79a4e5f78d3647f1143f1f26d4c7345585aa271a3afae303c3",
                "the tasks of three runs as JSON lines",
            ),
        ),
        references=("none",),
        size=30_982,
        loader="reliable_eval:read",
    ),
    _attacks("en", "English"),
    _attacks("ja", "Japanese"),
    _attacks("zh", "Chinese"),
)

CATALOGUE = {dataset.name: dataset for dataset in _ALL}


def names() -> list[str]:
    return list(CATALOGUE)


def find(name: str) -> Dataset:
    """Return the set of this name; an unknown name raises UsageError with similar names."""
    if name not in CATALOGUE:
        raise UsageError(f"unknown dataset '{name}': {did_you_mean(name, CATALOGUE)}")
    return CATALOGUE[name]


def load(name: str, references: str | None = None) -> Iterator[Item]:
    """Return the items of a set, with its references; by default the first kind that it offers.

    Wrong arguments, missing files and other versions of them raise before the first item.
    """
    dataset = find(name)
    references = dataset.references[0] if references is None else references
    if references not in dataset.references:
        raise UsageError(
            f"{name} does not offer references '{references}';"
            f" it offers {', '.join(dataset.references)}"
        )
    return _with_references(dataset.rows(), references)


def _with_references(rows: Iterator[Row], choice: str) -> Iterator[Item]:
    for row in rows:
        if choice == "scored":
            references = list(row.scored)
        else:
            texts = {"single": row.single, "multi": row.multi, "none": []}[choice]
            references = [Reference(text) for text in texts]
        yield msgspec.structs.replace(row.item, references=references)

"""The model card of an evaluator: what it learnt from, how well, and what it is not for."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from rejoinder.evaluator.manifest import Manifest
from rejoinder.text.languages import language


def card(manifest: Manifest) -> str:
    """README.md; no date and no path, so that the same run makes the same bytes."""
    spoken = language(manifest.language or "en").name
    sections = {
        "Data": _data(manifest),
        "What it is worth": _figures(manifest),
        "How to use it": USE,
        "What it must not be used for": _limits(manifest, spoken),
        "Settings": _settings(manifest.settings),
    }
    if manifest.notes:
        sections = {"Notes": "\n".join(f"- {note}" for note in manifest.notes), **sections}
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    about = _filled(
        f"""Made by Rejoinder {manifest.rejoinder} (`rejoinder fit`, preset `{manifest.preset}`,
        seed {manifest.seed}) from dialogue logs alone: nobody rated anything. It finds references
        to a context in its pool and rates them (Tsuta et al. 2020, 2023), and tells how well a
        reply fits its context without any reference (Tao et al. 2018)."""
    )
    return f"# An evaluator of replies in {spoken}\n\n{about}\n\n{body}\n"


def _filled(text: str) -> str:
    """A paragraph, its lines broken anew: what is put into it is of any length."""
    words = " ".join(text.split())
    return fill(words, 100, break_long_words=False, break_on_hyphens=False)


def _data(manifest: Manifest) -> str:
    data = manifest.data
    counts: dict[str, int] = data["counts"]
    files = "\n".join(f"- `{name}` (SHA-256 {digest})" for name, digest in data["files"].items())
    leaks = sum(data["leaks"].values())
    left_out = (
        f"{leaks:,} pairs were left out because a test set has their utterance"
        f" ({data['leaks']['exact']:,} word for word, {data['leaks']['near']:,} nearly)."
        if data["leaks"]
        else "No test set was excluded."
    )
    taken = _filled(
        f"""{counts["pairs"]:,} pairs of utterance and response. {left_out} Learnt from, and in the
        pool: {counts["train_taken"]:,} of {counts["train"]:,}. Held out for the figures below:
        {counts["validation_taken"]:,} of {counts["validation"]:,}, by {data["split_by"]}; no
        dialogue is on both sides, and {counts["repeated"]:,} pairs that were said word for word on
        both are not held out. {counts["utterances_with_several_responses"]:,} of
        {counts["utterances"]:,} utterances have several different responses."""
    )
    readable = _filled(
        """**The pool holds the texts of these dialogues as they are**, and `held-out.json` the
        utterances held out. Whoever has the evaluator can read them: treat it as you treat the
        logs."""
    )
    return f"{files}\n\n{taken}\n\n{readable}"


def _figures(manifest: Manifest) -> str:
    rows = []
    scorer = manifest.validation.get("unreferenced", {})
    if "recall_at_1" in scorer:
        rows += [
            f"| unreferenced scorer: the true reply is first of {scorer['of']} (others are random;"
            f" chance {1 / scorer['of']:.2f}) | {scorer['recall_at_1']:.3f} |"
            f" {scorer['contexts']:,} contexts |",
            f"| unreferenced scorer: AUC, true against random | {scorer['auc']:.3f} |"
            f" {scorer['contexts']:,} contexts |",
        ]
    rater = manifest.validation.get("rater", {})
    if "auc" in rater:
        rows.append(
            f"| rater: AUC, answers to one utterance against answers to two | {rater['auc']:.3f} |"
            f" {rater['utterances']:,} utterances |"
        )
    losses = [
        f"| {name}: validation loss, before and after {result['best_step']:,} of"
        f" {result['steps']:,} steps | {result['first_loss']:.3f}, {result['loss']:.3f} | |"
        for name, result in manifest.validation.items()
        if result.get("loss") is not None and result.get("first_loss") is not None
    ]
    parts = [_table("on dialogues held out | value | of", [*rows, *losses])]
    if manifest.coverage:
        listed = ", ".join(
            f"{value:.3f} ({float(q):.0%})" for q, value in manifest.coverage.items()
        )
        parts.append(
            "Similarity of the nearest utterances of the pool to a held-out context, by quantile:\n"
            f"{listed}. Test sets that lie lower are not from here."
        )
    if manifest.ranges:
        ranged = [
            f"| `{k}` | {low:.4f} | {high:.4f} |" for k, (low, high) in manifest.ranges.items()
        ]
        parts.append(
            "Ranges for `ruber(norm=fixed)`: the 1 % and 99 % quantiles over held-out contexts,\n"
            "with true and with random replies.\n\n" + _table("metric | lowest | highest", ranged)
        )
    return "\n\n".join(parts)


def _table(head: str, rows: list[str]) -> str:
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *rows])


USE = """```sh
rejoinder score items.jsonl --evaluator THIS -m vbleu -m vbertscore -m ruber -o scores.jsonl
rejoinder expand items.jsonl --evaluator THIS -o expanded.jsonl
rejoinder meta items.jsonl scores.jsonl     # does it agree with people, here?
```"""


def _limits(manifest: Manifest, spoken: str) -> str:
    limits = [
        f"""Another language than {spoken}, or another domain than that of its logs, unless
        `rejoinder meta` says that it agrees with people there. Scores say how well the pool covers
        a context; where it does not, the score is a guess.""",
        """Contexts that it has learnt from: `score` and `meta` say how many there are, and
        `--strict` refuses.""",
        """Decisions about persons. It was not made to judge what people write, and it likes what is
        usual in its logs: their prejudices are its own.""",
        """Safety, truth, politeness: a reply can fit its context and be false or harmful. Nothing
        of that was learnt or measured.""",
        """The goal of a training: a system that is trained to please it will find what it
        overlooks.""",
        "Small differences between systems, without the intervals of `rejoinder compare`.",
    ]
    if manifest.preset == "tiny":
        limits.insert(0, "Anything but trying things out: the preset `tiny` learns for seconds.")
    easy = """The figures above tell true replies from random ones, which is easier than telling
    good ones from poor ones."""
    listed = "\n".join("- " + _filled(limit).replace("\n", "\n  ") for limit in limits)
    return f"{listed}\n\n{_filled(easy)}"


def _settings(settings: dict[str, Any]) -> str:
    lines: list[str] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            listed = ", ".join(f"{key} {_shown(v)}" for key, v in value.items() if v is not None)
            lines.append(f"- {name}: {listed}")
        else:
            lines.append(f"- {name}: {_shown(value)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_shown(v)}" for k, v in value.items() if v is not None) + ")"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value)

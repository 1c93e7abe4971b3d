"""The model card of an evaluator: its data, its measured quality, and its limits."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from rejoinder.evaluator.manifest import Manifest
from rejoinder.text.languages import language


def make_card(manifest: Manifest) -> str:
    """Return README.md, without date and path, so that the same run writes the same bytes."""
    name = language(manifest.language or "en").name
    sections = {
        "Data": _data(manifest),
        "Quality on held-out dialogues": _quality(manifest),
        "How to use it": USE,
        "What it must not be used for": _limits(manifest, name),
        "Settings": _settings(manifest.settings),
    }
    if manifest.notes:
        sections = {"Notes": "\n".join(f"- {note}" for note in manifest.notes), **sections}
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    about = _wrapped(
        f"""Made by Rejoinder {manifest.rejoinder} (`rejoinder fit`, preset `{manifest.preset}`,
        seed {manifest.seed}) from dialogue logs, without human ratings. It retrieves references
        for a context from its pool of dialogues and rates them (Tsuta et al. 2020, 2023), and
        scores how well a reply fits its context without references (Tao et al. 2018)."""
    )
    return f"# An evaluator of replies in {name}\n\n{about}\n\n{body}\n"


def _wrapped(text: str) -> str:
    words = " ".join(text.split())
    return fill(words, 100, break_long_words=False, break_on_hyphens=False)


def _data(manifest: Manifest) -> str:
    data = manifest.data
    counts: dict[str, int] = data["counts"]
    files = "\n".join(f"- `{name}` (SHA-256 {digest})" for name, digest in data["files"].items())
    leaks = sum(data["leaks"].values())
    excluded = (
        f"{leaks:,} pairs were left out because their utterance is in a test set"
        f" ({data['leaks']['exact']:,} exactly, {data['leaks']['near']:,} nearly)."
        if data["leaks"]
        else "No test set was excluded."
    )
    used = _wrapped(
        f"""{counts["pairs"]:,} pairs of utterance and response. {excluded} Used for training, and
        in the pool: {counts["train_taken"]:,} of {counts["train"]:,}. Held out for the figures
        below: {counts["validation_taken"]:,} of {counts["validation"]:,}, by {data["split_by"]};
        no dialogue is on both sides, and {counts["repeated"]:,} pairs that also occur in training
        were not held out. {counts["utterances_with_several_responses"]:,} of
        {counts["utterances"]:,} utterances have several different responses."""
    )
    privacy = _wrapped(
        """**The pool contains the texts of these dialogues**, and `held-out.json` the held-out
        utterances. Everyone who has the evaluator can read them: protect it as you protect the
        logs."""
    )
    return f"{files}\n\n{used}\n\n{privacy}"


def _quality(manifest: Manifest) -> str:
    rows = []
    scorer = manifest.validation.get("unreferenced", {})
    if "recall_at_1" in scorer:
        candidates = scorer["candidates"]
        rows += [
            f"| unreferenced scorer: recall@1 of the true reply among {candidates} candidates"
            f" (the others are random; by chance {1 / candidates:.2f}) |"
            f" {scorer['recall_at_1']:.3f} | {scorer['contexts']:,} contexts |",
            f"| unreferenced scorer: AUC, true against random replies | {scorer['auc']:.3f} |"
            f" {scorer['contexts']:,} contexts |",
        ]
    rater = manifest.validation.get("rater", {})
    if "auc" in rater:
        rows.append(
            f"| rater: AUC, responses to the same against responses to another utterance |"
            f" {rater['auc']:.3f} | {rater['utterances']:,} utterances |"
        )
    losses = [
        f"| {name}: validation loss, before and after {result['best_step']:,} of"
        f" {result['steps']:,} steps | {result['first_loss']:.3f}, {result['loss']:.3f} | |"
        for name, result in manifest.validation.items()
        if result.get("loss") is not None and result.get("first_loss") is not None
    ]
    parts = [_table("measure | value | sample", [*rows, *losses])]
    if manifest.coverage:
        quantiles = ", ".join(
            f"{value:.3f} ({float(q):.0%})" for q, value in manifest.coverage.items()
        )
        parts.append(
            "Similarity of held-out contexts to the nearest utterances of the pool, by quantile:\n"
            f"{quantiles}. A test set with lower similarities is from another domain."
        )
    if manifest.ranges:
        ranges = [
            f"| `{k}` | {low:.4f} | {high:.4f} |" for k, (low, high) in manifest.ranges.items()
        ]
        parts.append(
            "Ranges of metrics, used by `rejoinder` and `ruber(norm=fixed)`: the 1 % and 99 %\n"
            "quantiles over held-out contexts with true and with random replies.\n\n"
            + _table("metric | low | high", ranges)
        )
    return "\n\n".join(parts)


def _table(head: str, rows: list[str]) -> str:
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *rows])


USE = """```sh
rejoinder score items.jsonl --evaluator THIS -m rejoinder -o scores.jsonl
rejoinder meta items.jsonl scores.jsonl     # does it agree with your human ratings?
rejoinder expand items.jsonl --evaluator THIS -o expanded.jsonl
```

`rejoinder` is the recommended metric, a blend of `vcosine`, `rating` and `unreferenced`. `vbleu`,
`vbertscore` and `ruber` are the metrics of the papers."""


def _limits(manifest: Manifest, name: str) -> str:
    limits = [
        f"""Other languages than {name}, or other domains than that of its logs, unless
        `rejoinder meta` shows that it agrees with human ratings there. Where the pool does not
        cover a context, the score is a guess.""",
        """Contexts or replies that it was trained on: `score` and `meta` report how many there
        are, and `--strict` refuses them.""",
        """Evaluating a model that was trained with its scores. Scores can serve to select or
        filter replies, and as a reward in training; but then report the scores of another
        evaluator, fitted to other dialogues, and human ratings.""",
        """Decisions about persons. It was not made to judge what people write, it prefers what is
        common in its logs, and it has their biases.""",
        """Safety, truth or politeness: a reply can fit its context and be false or harmful. None
        of this was learnt or measured.""",
        "Small differences between systems, without the intervals of `rejoinder compare`.",
    ]
    if manifest.preset == "tiny":
        limits.insert(0, "Anything but tests and demonstrations: `tiny` trains for seconds.")
    caveat = """The figures above compare true with random replies, which is easier than telling
    good replies from mediocre ones."""
    text = "\n".join("- " + _wrapped(limit).replace("\n", "\n  ") for limit in limits)
    return f"{text}\n\n{_wrapped(caveat)}"


def _settings(settings: dict[str, Any]) -> str:
    lines: list[str] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            text = ", ".join(f"{key} {_text(v)}" for key, v in value.items() if v is not None)
            lines.append(f"- {name}: {text}")
        else:
            lines.append(f"- {name}: {_text(value)}")
    return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_text(v)}" for k, v in value.items() if v is not None) + ")"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return str(value)

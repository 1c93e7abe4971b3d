"""The card of a trained dialogue system: its data, its figures, and its limits."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from rejoinder.learn.dialogue.system_folder import SystemManifest
from rejoinder.text.languages import language

PAPERS = {
    "dual-encoder": "Lowe et al. (2015)",
    "seq2seq": "Sutskever et al. (2014), Bahdanau et al. (2015)",
    "hred": "Serban et al. (2016)",
    "vhred": "Serban et al. (2017)",
    "cvae": "Zhao et al. (2017)",
    "transformer": "Vaswani et al. (2017)",
}


def make_card(manifest: SystemManifest) -> str:
    """Return README.md, without date and path, so that the same run writes the same bytes."""
    name = language(manifest.settings["vocabulary"]["language"]).name
    sections = {
        "Data": _data(manifest.data),
        "Figures on held-out dialogues": _figures(manifest.result),
        "Training": _training(manifest.result),
        "Use": _USE,
        "Limits": _limits(manifest),
        "Settings": _settings(manifest.settings),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items() if text)
    about = _wrapped(
        f"""Made by Rejoinder {manifest.rejoinder} (`rejoinder train system {manifest.network}`,
        preset `{manifest.preset}`, seed {manifest.seed}). The network is that of
        {PAPERS[manifest.network]}, with {manifest.result["parameters"]:,} parameters, trained from
        scratch."""
    )
    return f"# {manifest.network}: a dialogue system in {name}\n\n{about}\n\n{body}\n"


def _wrapped(text: str) -> str:
    return fill(" ".join(text.split()), 100, break_long_words=False, break_on_hyphens=False)


def _data(data: dict[str, Any]) -> str:
    return _wrapped(
        f"""{data["train_taken"]:,} of {data["train"]:,} training pairs of `{data["file"]}` (SHA-256
        {data["digest"]}), joined to {data["dialogues"]:,} dialogues or parts of them, with
        {data["replies"]:,} replies and {data["tokens"]:,} tokens; {data["turns_cut"]:,} turns were
        cut at their end. {data["vocabulary_size"]:,} tokens in the vocabulary. The figures below
        are measured on {data["validation_taken"]:,} held-out pairs, split by {data["split_by"]}; no
        dialogue is on both sides."""
    )


def _figures(result: dict[str, Any]) -> str:
    rows = []
    if "recall_at_1" in result:
        rows.append(
            ("true reply first of its batch", f"{result['recall_at_1']:.3f}"),
        )
        rows.append(("candidates in a batch, mean", f"{result['candidates']:.0f}"))
    if "perplexity" in result:
        what = "perplexity by word" + (", upper bound" if "kl" in result else "")
        rows.append((what, f"{result['perplexity']:.2f}"))
        rows.append(("perplexity by token", f"{result['perplexity_by_token']:.2f}"))
    if "kl" in result:
        rows.append(("KL divergence by reply, nats", f"{result['kl']:.2f}"))
    if "mean_length" in result:
        rows.append(("mean length of replies, words", f"{result['mean_length']:.2f}"))
        rows.append(("distinct-1", f"{result['distinct_1']:.4f}"))
        rows.append(("distinct-2", f"{result['distinct_2']:.4f}"))
    lines = [f"| {what} | {value} |" for what, value in rows]
    table = "\n".join(["| figure | value |", "|---|---|", *lines])
    if "mean_length" in result:
        table += "\n\n" + _wrapped(
            f"""Lengths and distinct-n are of greedy replies to {result["contexts"]:,} contexts;
            distinct-n falls with the number of replies, so compare it for equal numbers only."""
        )
    examples = "\n".join(_example(example) for example in result.get("examples", []))
    return f"{table}\n\n{examples}" if examples else table


def _example(example: dict[str, Any]) -> str:
    turns = " / ".join(example["context"])
    return f"- {turns} → **{example['reply']}**"


def _training(result: dict[str, Any]) -> str:
    best = f"{result['best_loss']:.4f}" if result["best_loss"] is not None else "unknown"
    early = " (stopped early)" if result["stopped_early"] else ""
    text = _wrapped(
        f"""{result["steps"]:,} steps{early}; the weights are those of step
        {result["best_step"] or 0:,}, whose loss on held-out dialogues was the lowest, {best}."""
    )
    return f"{text}\n\n![Loss during training](curves.svg)"


def _settings(settings: dict[str, Any]) -> str:
    return "\n".join(
        f"- {section}.{key}: {value}"
        for section, table in settings.items()
        for key, value in table.items()
    )


_USE = _wrapped(
    """`rejoinder reply contexts.jsonl --system FOLDER -o items.jsonl`. With `-n 5` it gives several
    replies. Decoding can be chosen: `--system 'trained(model=FOLDER,decoding=beam)'`."""
)


def _limits(manifest: SystemManifest) -> str:
    text = _wrapped(
        """A system to be evaluated, and to compare others with; not one to talk to people. It says
        what is frequent in its training data, true or not, and may repeat rare phrases of them,
        names included. Its contexts are known by hashes: `reply` warns if a test context was among
        them."""
    )
    if manifest.network == "dual-encoder":
        text += "\n\n" + _wrapped(
            """**The folder contains the responses of the training data** (`responses.arrow`), which
            it chooses from: protect it as you protect the dialogues."""
        )
    return text

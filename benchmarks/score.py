"""``rejoinder score`` on a million replies against loops over the libraries that people use.

Both sides read the same JSON lines and write a line for each reply; ours computes intervals, too.
Replies and contexts are made of real dialogues, so that lengths and words are those of logs. A peer
that is slow is timed on a part of the file, and its time scaled linearly. Rows compare times on the
clock, with the time of processors in the name.

    python benchmarks/score.py [ITEMS]        a million items unless another number is given
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rejoinder.testsets import load
from table import show

ITEMS = 1_000_000
PEER_ITEMS = {"bleu": 100_000, "bleu5": 30_000, "four": 5_000}
SYSTEMS = ("hred", "dual-encoder", "seq2seq", "cvae")
FOUR = ("bleu(n=2)", "rouge-l", "chrf", "meteor")
MAX_MEMORY = 400


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    seconds: float
    processor_seconds: float
    peak_mb: float


def write_items(path: Path, count: int, references: int) -> None:
    """Write items: up to four systems reply to each context, sometimes with a human reply."""
    rng = random.Random(references)
    pairs = [
        (item.context[-3:], item.references[0].text)
        for item in load("dailydialog-hred", "multi")
        if item.context and item.references
    ]
    texts = [text for _, text in pairs]
    with path.open("w") as stream:
        written = 0
        while written < count:
            context, human = rng.choice(pairs)
            for system in SYSTEMS[: rng.randint(1, 4)]:
                words = rng.choice([human, *rng.choices(texts, k=4)]).split()
                words = words[: rng.randint(1, len(words))] + rng.choice(texts).split()[:4]
                record = {
                    "id": f"{written}:{system}",
                    "context": context,
                    "response": " ".join(words),
                    "system": system,
                    "references": [human, *rng.choices(texts, k=references - 1)],
                }
                stream.write(json.dumps(record) + "\n")
                written += 1
                if written == count:
                    return


PEERS = {
    "bleu": """
from sacrebleu.metrics import BLEU
bleu = BLEU(max_ngram_order=2, smooth_method="floor", effective_order=True)
def values(reply, references):
    return bleu.sentence_score(reply, references).score / 100
""",
    "four": """
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF
bleu = BLEU(max_ngram_order=2, smooth_method="floor", effective_order=True)
chrf, rouge = CHRF(), RougeScorer(["rougeL"])
class NoSynonyms:
    def synsets(self, word):
        return []
def values(reply, references):
    return [
        bleu.sentence_score(reply, references).score / 100,
        max(rouge.score(each, reply)["rougeL"].fmeasure for each in references),
        chrf.sentence_score(reply, references).score / 100,
        max(
            single_meteor_score(each.split(), reply.split(), wordnet=NoSynonyms())
            for each in references
        ),
    ]
""",
}
LOOP = """
import json, sys
with open(sys.argv[1]) as items, open(sys.argv[2], "w") as scores:
    for line in items:
        item = json.loads(line)
        value = values(item["response"], item["references"])
        scores.write(json.dumps({"id": item["id"], "value": value}) + "\\n")
"""


def cost(command: list[str]) -> Cost:
    """Run a command and its child processes; the peak is that of the largest process."""
    code = (
        "import json, resource, subprocess, sys, time\n"
        "began = time.perf_counter()\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "seconds, processors = time.perf_counter() - began, used.ru_utime + used.ru_stime\n"
        "print(json.dumps([seconds, processors, used.ru_maxrss / 1024]))"
    )
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, capture_output=True, text=True, env=env
    )
    return Cost(*json.loads(done.stdout))


def peer(name: str, items: Path, count: int, most: int) -> Cost:
    """Time a loop over the first lines of a file, without its start, for all of them."""
    some, out = items.with_suffix(".some"), items.with_suffix(".peer")
    costs = []
    for lines in (1, min(count, most)):
        with items.open() as whole, some.open("w") as part:
            part.writelines(islice(whole, lines))
        costs.append(cost([sys.executable, "-c", PEERS[name] + LOOP, str(some), str(out)]))
    start, much = costs
    scale = count / min(count, most)
    return Cost(
        start.seconds + scale * (much.seconds - start.seconds),
        start.processor_seconds + scale * (much.processor_seconds - start.processor_seconds),
        much.peak_mb,
    )


def ours(items: Path, specs: tuple[str, ...], processes: int) -> Cost:
    out = items.with_suffix(".scores")
    metrics = [argument for spec in specs for argument in ("-m", spec)]
    command = [sys.executable, "-m", "rejoinder", "score", str(items), *metrics]
    return cost([*command, "-o", str(out), "--processes", str(processes)])


def row(what: str, mine: Cost, theirs: Cost, required: float) -> dict[str, Any]:
    return {
        "name": f"{what} (processors: {mine.processor_seconds:.1f} and"
        f" {theirs.processor_seconds:.1f} s; {mine.peak_mb:.0f} MB)",
        "ours_seconds": mine.seconds,
        "peer_seconds": theirs.seconds,
        "ratio": theirs.seconds / mine.seconds,
        "required": required,
        "enough": mine.peak_mb <= MAX_MEMORY,
    }


def run(count: int = ITEMS) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        items = Path(folder) / "items.jsonl"
        write_items(items, count, 1)
        ours(items, FOUR, 1)  # compiles the kernels, or loads them
        many = f"{count:,} replies"
        theirs = peer("bleu", items, count, PEER_ITEMS["bleu"])
        for processes, required in ((1, 5), (2, 10)):
            mine = ours(items, ("bleu(n=2)",), processes)
            yield row(
                f"{many}, bleu(n=2), processes: {processes}; sacrebleu in a loop",
                mine,
                theirs,
                required,
            )
        theirs = peer("four", items, count, PEER_ITEMS["four"])
        yield row(
            f"{many}, {', '.join(FOUR)}; sacrebleu, rouge-score and NLTK in a loop",
            ours(items, FOUR, 1),
            theirs,
            10,
        )
        write_items(items, count, 5)
        theirs = peer("bleu", items, count, PEER_ITEMS["bleu5"])
        for processes, required in ((1, 10), (2, 20)):
            mine = ours(items, ("bleu(n=2)",), processes)
            yield row(
                f"{many}, 5 references, bleu(n=2), processes: {processes}; sacrebleu in a loop",
                mine,
                theirs,
                required,
            )


if __name__ == "__main__":
    show(run(*map(int, sys.argv[1:])))

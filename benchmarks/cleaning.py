"""Cleaning a million generated posts, against the same rules row by row in plain Python.

Both sides run in one process. Ours cleans every post, in batches of 8,192 rows; the peer,
tests/logs/plain_cleaning.py, which uses ``re`` and ``regex``, cleans 30,000 of them and its
time is scaled, which is exact because rows are independent. Both must agree on those rows.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "logs"))

from plain_cleaning import clean_plain

from rejoinder.logs.clean import Cleaning
from rejoinder.logs.schema import POSTS
from table import show

POSTS_IN_ALL, POSTS_OF_PEER, BATCH = 1_000_000, 30_000, 8_192

ENGLISH = (
    "the a i you we they it is was are to of and in on for with that this not so but just like get "
    "got going today tomorrow morning night work school game song movie really never always love "
    "hate think know want need time day week people friend home food coffee sleep tired happy "
    "sad good great best worst thing why what when where who how lol omg please thanks sorry "
    "can't don't I'm you're it's that's gonna wanna because about still again something"
)
JAPANESE = (
    "今日 明日 昨日 は が を に で と も の から まで だけ 楽しい 嬉しい 眠い 疲れた 食べたい "
    "行きたい 見た 聞いた 思う 思った わかる すごい かわいい やばい 本当に とても ちょっと もう "
    "まだ 仕事 学校 "
    "電車 ラーメン コーヒー アニメ ゲーム ライブ 友達 先輩 猫 犬 雨 天気 ですね ました ください "
    "ありがとう おはよう おやすみ お疲れ様 よね かな けど だから なんで そうだ 今 全然 最高 一緒に"
)
NAMES = [f"user_{n}" for n in range(500)]
CLIENTS = ["Twitter for iPhone", "Twitter for Android", "Twitter Web App", "twittbot.net", None]
EMOJI = ["😂", "😭", "❤️", "👍🏽", "👨‍👩‍👧", "🇯🇵", "✨", "1️⃣"]


def post(rng: random.Random, japanese: bool) -> str:
    """Generate a tweet: half are replies, a quarter have emoji, a sixth have a link."""
    words = rng.choices((JAPANESE if japanese else ENGLISH).split(), k=rng.randint(2, 24))
    chance = rng.random
    if chance() < 0.06:
        words[-1] += words[-1][-1] * rng.randint(3, 12)
    if chance() < 0.08:
        words[-1] += rng.choice("!！?wｗ.。") * rng.randint(2, 8)
    if chance() < 0.03:
        words += [rng.choice(words)] * rng.randint(3, 6)
    if chance() < 0.25:
        words.append(rng.choice(EMOJI) * rng.randint(1, 4))
    if chance() < 0.10:
        words.insert(rng.randrange(len(words)), f" #{rng.choice(words)} ")
    if chance() < 0.03:
        words.insert(rng.randrange(len(words)), rng.choice(["&amp;", "&gt;", "&amp;lt;3"]))
    if chance() < 0.05:
        words.insert(rng.randrange(len(words)), str(rng.randrange(3000)))
    if chance() < 0.002:
        words.append(f" mail {rng.choice(NAMES)}@example.com ")
    if chance() < 0.002:
        words.append(f" 090-{rng.randrange(1000, 9999)}-{rng.randrange(1000, 9999)} ")
    text = ("" if japanese else " ").join(words)
    if chance() < 0.5:
        text = f"@{rng.choice(NAMES)} {text}"
    if chance() < 0.16:
        text += f" https://t.co/{rng.getrandbits(50):x}"
    return text.replace(" i ", "\n") if chance() < 0.05 else text


def posts(language: str, rows: int, seed: int) -> list[pa.RecordBatch]:
    rng = random.Random(seed)
    batches = []
    for first in range(0, rows, BATCH):
        n = min(BATCH, rows - first)
        columns: dict[str, list[Any]] = {name: [None] * n for name in POSTS.names}
        columns |= {"source": ["archive"] * n, "line": list(range(first + 1, first + n + 1))}
        columns |= {"kind": ["posts"] * n, "id": [str(first + i) for i in range(n)]}
        columns |= {"retweet": [False] * n, "mention": [False] * n}
        columns["text"] = [post(rng, language == "ja") for _ in range(n)]
        columns["label"] = rng.choices([language, "und", "es"], [95, 3, 2], k=n)
        columns["client"] = rng.choices(CLIENTS, [45, 35, 15, 2, 3], k=n)
        batches.append(pa.RecordBatch.from_pydict(columns, schema=POSTS))
    return batches


def compare(classifier: bool, batches: dict[str, list[pa.RecordBatch]]) -> tuple[float, float]:
    """Our seconds and the peer's, for all posts."""
    ours = peer = 0.0
    for language, parts in batches.items():
        cleaning = Cleaning.for_language(language, classifier=classifier)
        cleaning.apply(parts[0])
        began = time.perf_counter()
        cleaned = [cleaning.apply(batch) for batch in parts]
        ours += time.perf_counter() - began

        wanted = POSTS_OF_PEER // len(batches)
        table = pa.Table.from_batches(parts).slice(0, wanted)
        rows = list(zip(*(table[n].to_pylist() for n in ("text", "label", "client")), strict=True))
        began = time.perf_counter()
        plain = [clean_plain(*row, cleaning) for row in rows]
        peer += (time.perf_counter() - began) * sum(map(len, parts)) / len(rows)

        same = pa.Table.from_batches(cleaned).slice(0, wanted)
        assert same["text"].to_pylist() == [text for text, _, _ in plain]
        assert same["removed"].to_pylist() == [removed for _, _, removed in plain]
    return ours, peer


def run() -> list[dict[str, Any]]:
    batches = {language: posts(language, POSTS_IN_ALL // 2, 7) for language in ("en", "ja")}
    rows = []
    for classifier, required in ((False, 5), (True, None)):
        mine, theirs = compare(classifier, batches)
        how = "with classifier" if classifier else "without classifier"
        rows.append(
            {
                "name": f"clean 1,000,000 posts {how}: plain Python, scaled from 30,000",
                "ours_seconds": mine,
                "peer_seconds": theirs,
                "ratio": theirs / mine,
                "required": required,
            }
        )
    return rows


if __name__ == "__main__":
    show(run())

"""Generate Twitter archives whose correct pairs are known.

    truth = make_archive(path, posts=5_000, seed=1, language="ja", version=2)

The truth says for every line what must become of it, and which pairs must come out. It is written
down while planting and never computed by the code under test. ``simple=True`` streams a regular
pattern instead, for millions of posts: there the truth is counts only.

What the cleaning rules make of a text is stated in :class:`Rules`; plain sentences are such that
no rule changes them, and no two posts have the same text unless that was the intention.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from io import BufferedWriter
from itertools import count
from math import gcd, prod
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import msgspec
import numpy as np
import zstandard

START = datetime(2017, 1, 1, tzinfo=UTC)
DAYS = 730
PHONE = '<a href="http://twitter.com/download/iphone" rel="nofollow">Twitter for iPhone</a>'
BOT = '<a href="http://twittbot.net/" rel="nofollow">twittbot.net</a>'


@dataclass(frozen=True)
class Rules:
    """What the text-changing filters leave in place of what they find."""

    email: str = "<email>"
    phone: str = "<phone>"
    letters: int = 3
    """How many of a repeated letter stay."""
    words: int = 2
    """How often a repeated word stays."""
    hashtags: bool = False
    """Whether hashtags are removed; otherwise they stay as they are."""


@dataclass(frozen=True)
class Language:
    code: str
    joint: str
    """Between parts of a sentence."""
    slots: tuple[tuple[str, ...], ...]
    other: tuple[str, tuple[str, ...]]
    """Another language: its label, and sentences that no classifier mistakes."""
    short: tuple[str, ...]
    foreign: str
    """Letters of other scripts: more of them than 40 % of any sentence with them."""

    def sentence(self, number: int) -> str:
        """The number-th sentence; neighbours differ in every part."""
        size, step, slots = self._scatter
        number = number * step % size
        parts = []
        for slot, choices in slots:
            number, place = divmod(number, choices)
            parts.append(slot[place])
        return self.joint.join(parts)

    @cached_property
    def _scatter(self) -> tuple[int, int, list[tuple[tuple[str, ...], int]]]:
        """All sentences are there once before one comes again."""
        size = prod(len(slot) for slot in self.slots)
        step = int(size * 0.618) | 1
        while gcd(step, size) != 1:
            step += 2
        return size, step, [(slot, len(slot)) for slot in self.slots]


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


ENGLISH = Language(
    "en",
    " ",
    (
        _words("I think|My sister says|We noticed|Everybody knows|They told me|I still believe"),
        _words("the old|the new|the little|the green|the famous|the hidden|the broken|the best"),
        _words(
            "bakery|library|garden|station|market|theatre|museum|bridge|school|restaurant|hotel"
            "|harbour|office|church|castle|kitchen|playground|hospital|bookshop|farm"
        ),
        _words(
            "near the river|behind the park|in our town|by the lake|next to my house"
            "|across the street|on the hill|outside the city|around the corner|at the border"
        ),
        _words("was|looked|seemed|became|remained|felt"),
        _words("rather|quite|really|fairly|almost|surprisingly|hardly|probably"),
        _words(
            "quiet|crowded|expensive|beautiful|strange|clean|empty|friendly|dark|modern|warm"
            "|boring|dangerous|popular|comfortable|noisy"
        ),
        _words(
            "this morning|last night|in the summer|after the storm|on Sunday|before lunch"
            "|during the holidays|all day long|for a while|when we arrived|two years ago"
        ),
    ),
    (
        "fr",
        (
            "je pense que la vieille boulangerie près de la rivière était très calme ce matin",
            "nous avons visité le château avec nos amis pendant les vacances d'été",
            "il faut absolument que tu viennes manger chez nous la semaine prochaine",
        ),
    ),
    ("ok", "hm", "no", "yes", "why"),
    "жщфыгъю ωψξδφθλ ჭჯძწყღშ ճշղծքփձ אבגדהוש กขคฆงจฉ अआइईउऊए"
    " язчсмит ςερτυηκ ქწერტყუ ասդֆգհյ לחזסבצת ฟหกดเาส कखगघङचछ",
)

JAPANESE = Language(
    "ja",
    "",
    (
        _words("今朝、|昨日の夜、|去年の夏に、|日曜日に、|雨の後で、|休みの間に、|二年前、|夕方、"),
        _words(
            "川の近くの|公園の裏の|町の中の|湖のそばの|家の隣の|丘の上の|駅前の|海沿いの|学校の横の"
        ),
        _words("古い|新しい|小さい|有名な|静かな|大きい|明るい|赤い"),
        _words(
            "パン屋|図書館|庭園|市場|劇場|美術館|橋|食堂|旅館|港|事務所|教会|城|台所|病院|本屋|牧場"
        ),
        _words("は|がとても|がかなり|だけが|も意外に|もやはり"),
        _words(
            "混んでいて|高くて|美しくて|変わっていて|綺麗で|暖かくて|退屈で|人気があって|快適で"
            "|危なくて|暗くて"
        ),
        _words(
            "驚きました|困りました|嬉しかったです|写真を撮りました|友達に話しました|長く歩きました"
            "|少し休みました|また行きたいです|忘れられません|家族と帰りました|何も買いませんでした"
        ),
        _words("|ね|よ|けど|から"),
    ),
    ("en", tuple(ENGLISH.sentence(n) for n in (1, 2, 3))),
    ("うん", "はい", "えっ", "草", "了解"),
    "qzxvw kjrtp mnbvc lkjhg fdsqw rtypl zxcvb nmlkj",
)

LANGUAGES = {"en": ENGLISH, "ja": JAPANESE}


@dataclass
class Planted:
    """A line of the archive and what must become of it."""

    plant: str
    id: str | None
    author: str
    line: int = 0
    parent: str | None = None
    retweet: bool = False
    mention: bool = False
    reject: str | None = None
    """broken, missing, time, utf8, self, long: see :func:`reject_kind`."""
    removed: str | None = None
    """The filter that must remove it."""
    text: str | None = None
    """After cleaning; None where that is not defined (rejects, retweets)."""
    changed: frozenset[str] = frozenset()
    """Filters that must have changed it; ``spaces`` may always have, too."""


class TruePair(NamedTuple):
    """Context holds all turns before the utterance, however many the pipeline keeps."""

    root: str
    turn: int
    context: tuple[str, ...]
    utterance: str
    response: str
    utterance_id: str
    response_id: str


@dataclass
class Truth:
    """``counts``: lines, posts, rejects, reject:KIND, removed:FILTER, changed:FILTER, retweets,
    mentions, pairs, utterances (with a response), several (with more than one), dialogues
    (roots from which two people went on to a third post)."""

    path: Path
    language: str
    posts: list[Planted] = field(default_factory=list)
    pairs: list[TruePair] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


_REASONS = {
    "broken": "broken JSON|expected an object",
    "missing": "the field is missing",
    "time": "is not a time",
    "utf8": "not UTF-8",
    "self": "answers itself",
    "long": "characters",
}


def reject_kind(reason: str) -> str:
    """Which planted fault a reader's words speak of."""
    return next((kind for kind, words in _REASONS.items() if re.search(words, reason)), reason)


RATES: dict[str, float] = {
    "alone": 10,
    "answered": 20,
    "dialogue": 20,
    "branch": 5,
    "continued": 2,
    "retweet": 4,
    "quote": 2,
    "mention": 3,
    "duplicate": 3,
    "midnight": 1,
    "repeated": 1,
    "short": 3,
    "script": 3,
    "foreign": 2,
    "mislabelled": 2,
    "bot_client": 2,
    "bot_repeat": 0.5,
    "nearly_bot": 0.3,
    "orphan": 2,
    "cycle": 1,
    "self_reply": 1,
    "broken": 1,
    "missing": 1,
    "bad_time": 1,
    "bad_bytes": 1,
    "long": 0.1,
}
"""How often each plant is chosen; ``rates={"cycle": 0}`` changes some."""


def make_archive(
    path: str | Path,
    posts: int,
    seed: int,
    *,
    language: str = "en",
    version: int = 1,
    simple: bool = False,
    rates: dict[str, float] | None = None,
    rate_bots: int = 0,
    decorated: float = 0.5,
    shuffled: float = 0.2,
    rules: Rules | None = None,
) -> Truth:
    """Write about ``posts`` posts (at least so many) to ``path`` (.gz and .zst are compressed).

    ``version`` 1 writes the fields of API v1.1, 2 those of v2. ``rate_bots`` authors with 201
    posts a day are planted, and as many with exactly 200, who are people. ``decorated`` is the
    share of posts with something to clean, ``shuffled`` that of posts far from their time.
    """
    path = Path(path)
    if simple:
        return _simple(path, posts, seed, LANGUAGES[language], version)
    garden = _Garden(seed, LANGUAGES[language], rules or Rules(), decorated)
    names, weights = zip(*(RATES | (rates or {})).items(), strict=True)
    chances = np.array(weights) / sum(weights)
    for _ in range(rate_bots):
        garden.rate_bot(201, removed="bot-rate")
        garden.rate_bot(200, removed=None)
    while len(garden.seeds) < posts:
        name = names[garden.random.choice(len(names), p=chances)]
        getattr(garden, name)()
    truth = Truth(path, language)
    with _open(path) as file:
        _write(garden, truth, file, version, shuffled)
    _count(truth)
    return truth


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "wb", compresslevel=3))
    if path.suffix == ".zst":
        return cast(IO[bytes], zstandard.open(path, "wb"))
    return open(path, "wb")


def _write(garden: _Garden, truth: Truth, file: IO[bytes], version: int, shuffled: float) -> None:
    """In the order of time, but a share anywhere; a blank line here and there."""
    random, seeds = garden.random, garden.seeds
    times = np.array([seed.time.timestamp() for seed in seeds])
    astray = random.random(len(seeds)) < shuffled
    times[astray] = random.permutation(times[astray])
    seen: set[str] = set()
    line = 0
    for place in np.argsort(times, kind="stable"):
        if random.random() < 0.005:
            line += 1
            file.write(b"\n")
        seed = seeds[place]
        line += 1
        seed.planted.line = line
        file.write(seed.line(version) + b"\n")
        if seed.planted.plant == "repeated" and seed.planted.id is not None:
            if seed.planted.id in seen:
                seed.planted.removed = "repeated-id"
            seen.add(seed.planted.id)
        truth.posts.append(seed.planted)
    truth.pairs = garden.pairs
    truth.counts["lines"] = line


def _count(truth: Truth) -> None:
    counts = truth.counts
    for planted in truth.posts:
        if planted.reject:
            counts["rejects"] += 1
            counts[f"reject:{planted.reject}"] += 1
            continue
        counts["posts"] += 1
        counts["retweets"] += planted.retweet
        counts["mentions"] += planted.mention
        if planted.removed:
            counts[f"removed:{planted.removed}"] += 1
        counts.update(f"changed:{name}" for name in planted.changed)
    responses = Counter(pair.utterance_id for pair in truth.pairs)
    counts["pairs"] = len(truth.pairs)
    counts["utterances"] = len(responses)
    counts["several"] = sum(n > 1 for n in responses.values())
    counts["dialogues"] = len({pair.root for pair in truth.pairs if pair.turn >= 2})


@dataclass
class _Seed:
    """A post to be written, with everything that either version of the fields needs."""

    planted: Planted
    text: str
    name: str
    time: datetime
    label: str
    client: str = PHONE
    names: tuple[str, ...] = ()
    retweeted: str | None = None
    quoted: str | None = None
    path: tuple[tuple[str, str, str], ...] | None = None
    """(id, author, clean text) from the root to here, where it takes part in a dialogue."""
    spoil: Callable[[dict[str, Any]], Any] | None = None
    """Makes the record bad: gives an object, or bytes as they shall stand in the file."""

    def line(self, version: int) -> bytes:
        record = self._v1() if version == 1 else self._v2()
        result = record if self.spoil is None else self.spoil(record)
        return result if isinstance(result, bytes) else msgspec.json.encode(result)

    def _v1(self) -> dict[str, Any]:
        planted = self.planted
        record: dict[str, Any] = {
            "created_at": self.time.strftime("%a %b %d %H:%M:%S +0000 %Y"),
            "id": int(planted.id or 0),
            "id_str": planted.id,
            "text": self.text,
            "truncated": False,
            "entities": {
                "hashtags": [],
                "user_mentions": [{"screen_name": name} for name in self.names],
            },
            "source": self.client,
            "in_reply_to_status_id": int(planted.parent) if planted.parent else None,
            "in_reply_to_status_id_str": planted.parent,
            "user": {
                "id": int(planted.author),
                "id_str": planted.author,
                "screen_name": self.name,
            },
            "is_quote_status": self.quoted is not None,
            "lang": self.label,
        }
        if self.quoted:
            record["quoted_status_id_str"] = self.quoted
        if self.retweeted:
            record["retweeted_status"] = {"id_str": self.retweeted}
        if len(self.text) > 140:
            record["truncated"] = True
            record["extended_tweet"] = {"full_text": self.text, "entities": record["entities"]}
            record["text"] = self.text[:139] + "…"
        return record

    def _v2(self) -> dict[str, Any]:
        planted = self.planted
        links = [("replied_to", planted.parent), ("retweeted", self.retweeted)]
        links += [("quoted", self.quoted)]
        record: dict[str, Any] = {
            "id": planted.id,
            "text": self.text,
            "author_id": planted.author,
            "created_at": self.time.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "lang": self.label,
            "source": re.sub("<.*?>", "", self.client),
            "entities": {"mentions": [{"username": name} for name in self.names]},
        }
        if references := [{"type": kind, "id": to} for kind, to in links if to]:
            record["referenced_tweets"] = references
        return record


class _Decoration(NamedTuple):
    """Something to clean behind a sentence, and what is left of it."""

    filter: str
    raw: str
    clean: str


class _Garden:
    """Plants groups of posts; each method of a name in ``RATES`` plants one group."""

    def __init__(self, seed: int, language: Language, rules: Rules, decorated: float) -> None:
        self.random = np.random.default_rng(seed)
        self.language, self.rules, self.decorated = language, rules, decorated
        self.seeds: list[_Seed] = []
        self.pairs: list[TruePair] = []
        self._numbers = count(int(self.random.integers(1000)))
        self._ids = count(800_000_000_000_000_000)
        self._strangers = count(90_000_000)
        self._plant = ""
        self._decorations = _decorations(language, rules)

    # --- the ground

    def author(self) -> str:
        """A person who posts now and then: never 200 times a day."""
        return str(10_000_000 + int(self.random.integers(2000)))

    def people(self, number: int) -> list[str]:
        picked = self.random.choice(2000, number, replace=False)
        return [str(10_000_000 + int(p)) for p in picked]

    def stranger(self) -> str:
        """Somebody who posts nothing but what follows."""
        return str(next(self._strangers))

    def moment(self) -> datetime:
        return START + timedelta(seconds=int(self.random.integers(DAYS * 86_400)))

    def sentence(self) -> str:
        return self.language.sentence(next(self._numbers))

    def new_id(self) -> str:
        """Ids grow, but not with time, and have the same number of digits."""
        return str(next(self._ids))

    def plant(
        self,
        plant: str,
        *,
        author: str | None = None,
        parent: _Seed | None = None,
        parent_id: str | None = None,
        time: datetime | None = None,
        text: str | None = None,
        decorate: bool = True,
        **more: Any,
    ) -> _Seed:
        """One post. What is planted under ``parent`` answers it, and is a response if the two
        people who began take turns and nothing on the way was removed."""
        author = author or self.author()
        ours = {key: more.pop(key) for key in ("reject", "removed", "mention") if key in more}
        clean = raw = text or self.sentence()
        changed: set[str] = set()
        if decorate and text is None and self.random.random() < self.decorated:
            raw, clean, changed = self._decorate(clean)
        names = more.pop("names", ())
        if parent is not None and not names and self.random.random() < 0.7:
            names = (parent.name,)
        if names and not more.get("retweeted"):
            raw, changed = "".join(f"@{name} " for name in names) + raw, changed | {"users"}
        if parent is not None:
            parent_id = parent.planted.id
            time = time or parent.time + timedelta(seconds=int(self.random.integers(30, 3000)))
        planted = Planted(plant, self.new_id(), author, parent=parent_id, **ours)
        planted.retweet = bool(more.get("retweeted"))
        if not planted.reject and not planted.retweet:
            planted.text, planted.changed = clean, frozenset(changed)
        more.setdefault("label", self.language.code)
        seed = _Seed(
            planted, raw, f"user_{author}", time or self.moment(), names=tuple(names), **more
        )
        self._link(seed, parent, clean)
        self.seeds.append(seed)
        return seed

    def _link(self, seed: _Seed, parent: _Seed | None, clean: str) -> None:
        planted = seed.planted
        assert planted.id is not None
        if planted.reject or planted.removed or planted.retweet:
            return
        me = (planted.id, planted.author, clean)
        if parent is None:
            if planted.parent is None and not planted.mention:
                seed.path = (me,)
            return
        path = parent.path
        if path is None or path[-1][1] == planted.author:
            return
        if len(path) > 1 and path[-2][1] != planted.author:
            return
        seed.path = (*path, me)
        texts = tuple(text for _, _, text in path)
        self.pairs.append(
            TruePair(path[0][0], len(path), texts[:-1], texts[-1], clean, path[-1][0], planted.id)
        )

    def _decorate(self, sentence: str) -> tuple[str, str, set[str]]:
        """Up to three things to clean, each of another kind."""
        number = int(self.random.integers(1, 4))
        picked = self.random.choice(len(self._decorations), number, replace=False)
        raw = clean = sentence
        changed = set()
        for place in sorted(picked):
            decoration = self._decorations[place]
            raw, clean = raw + decoration.raw, clean + decoration.clean
            if decoration.raw != decoration.clean:
                changed.add(decoration.filter)
        return raw, clean, changed

    # --- who answers whom

    def alone(self) -> None:
        self.plant("alone")

    def answered(self) -> None:
        first, *others = self.people(int(self.random.integers(2, 6)))
        root = self.plant("answered", author=first)
        for other in others:
            self.plant("answered", author=other, parent=root)

    def dialogue(self) -> None:
        people = self.people(2)
        post = self.plant("dialogue", author=people[0])
        for turn in range(1, int(self.random.integers(3, 9))):
            post = self.plant("dialogue", author=people[turn % 2], parent=post)

    def branch(self) -> None:
        """A, B; C breaks in; D answers A, and A answers D."""
        a, b, c, d = self.people(4)
        root = self.plant("branch", author=a)
        answer = self.plant("branch", author=b, parent=root)
        intruder = self.plant("branch", author=c, parent=answer)
        self.plant("branch", author=b, parent=intruder)
        self.plant("branch", author=a, parent=answer)
        other = self.plant("branch", author=d, parent=root)
        self.plant("branch", author=a, parent=other)

    def continued(self) -> None:
        """Who goes on alone answers nobody, and what answers the continuation begins nothing."""
        a, b = self.people(2)
        root = self.plant("continued", author=a)
        second = self.plant("continued", author=a, parent=root)
        self.plant("continued", author=b, parent=second)

    def retweet(self) -> None:
        a, b, c = self.people(3)
        root = self.plant("retweet", author=a)
        text = f"RT @{root.name}: {self.sentence()}"
        again = self.plant(
            "retweet", author=b, text=text, retweeted=root.planted.id, names=(root.name,)
        )
        self.plant("retweet", author=c, parent=again)
        # a retweet that answers is no response
        text = f"RT @{root.name}: {self.sentence()}"
        self.plant(
            "retweet",
            author=c,
            parent=root,
            text=text,
            retweeted=root.planted.id,
            names=(root.name,),
        )

    def quote(self) -> None:
        a, b, c = self.people(3)
        root = self.plant("quote", author=a)
        quoting = self.plant("quote", author=b, quoted=root.planted.id, mention=True)
        self.plant("quote", author=c, parent=quoting)

    def mention(self) -> None:
        a, b = self.people(2)
        named = self.plant("mention", author=a, names=(f"user_{b}",), mention=True)
        self.plant("mention", author=b, parent=named)

    def orphan(self) -> None:
        a, b = self.people(2)
        lost = self.plant("orphan", author=a, parent_id=str(7 * 10**17 + len(self.seeds)))
        self.plant("orphan", author=b, parent=lost)

    def cycle(self) -> None:
        """Two, three or four posts in a circle, and one that answers into it."""
        size = int(self.random.integers(2, 5))
        people = self.people(2)
        posts = [self.plant("cycle", author=people[i % 2], parent_id="0") for i in range(size)]
        for post, before in zip(posts, [posts[-1], *posts[:-1]], strict=True):
            post.planted.parent = before.planted.id
        self.plant("cycle", parent=posts[0])

    def self_reply(self) -> None:
        post = self.plant("self_reply", reject="self", parent_id="0")
        post.planted.parent = post.planted.id
        self.plant("self_reply", parent=post)

    # --- what filters remove

    def duplicate(self) -> None:
        """Three times the same on one day: the first stays, with its responses."""
        a, b, c = self.stranger(), *self.people(2)
        text = self.sentence()
        noon = self.moment().replace(hour=12, minute=0, second=0)
        first = self.plant("duplicate", author=a, text=text, time=noon)
        # same time: the smaller id is the first
        again = self.plant("duplicate", author=a, text=text, time=noon, removed="duplicate")
        later = noon + timedelta(hours=3)
        self.plant("duplicate", author=a, text=text, time=later, removed="duplicate")
        self.plant("duplicate", author=b, parent=first)
        self.plant("duplicate", author=c, parent=again)

    def midnight(self) -> None:
        """The same on two days is no duplicate, nor is the same of two people."""
        a, b = self.stranger(), self.stranger()
        text = self.sentence()
        late = self.moment().replace(hour=23, minute=59, second=59)
        self.plant("midnight", author=a, text=text, time=late)
        self.plant("midnight", author=a, text=text, time=late + timedelta(seconds=1))
        self.plant("midnight", author=b, text=text, time=late)

    def repeated(self) -> None:
        """A crawler saw it twice: which line is the second is known when they are written."""
        post = self.plant("repeated")
        planted = post.planted
        twin = Planted(
            "repeated",
            planted.id,
            planted.author,
            text=planted.text,
            changed=planted.changed,
        )
        self.seeds.append(
            _Seed(twin, post.text, post.name, post.time, post.label, names=post.names)
        )
        self.plant("repeated answer", parent=post)

    def short(self) -> None:
        a, b = self.people(2)
        text = self.language.short[int(self.random.integers(len(self.language.short)))]
        root = self.plant("short", author=a)
        brief = self.plant("short", author=b, parent=root, text=text, names=(), removed="short")
        self.plant("short", author=a, parent=brief)

    def script(self) -> None:
        """A sentence among more letters of other scripts."""
        a, b = self.people(2)
        text = f"{self.sentence()} {self.language.foreign}"
        root = self.plant("script", author=a, text=text, removed="script")
        self.plant("script", author=b, parent=root)

    def foreign(self) -> None:
        label, sentences = self.language.other
        text = sentences[int(self.random.integers(len(sentences)))]
        root = self.plant("foreign", text=text, label=label, removed="language")
        self.plant("foreign", parent=root)

    def mislabelled(self) -> None:
        """The label and the text disagree, one way or the other."""
        label, sentences = self.language.other
        self.plant("mislabelled", label=label, removed="language", decorate=False)
        text = sentences[int(self.random.integers(len(sentences)))]
        self.plant("mislabelled", text=text, removed="language")

    def bot_client(self) -> None:
        root = self.plant("bot_client", client=BOT, removed="bot-client", decorate=False)
        self.plant("bot_client", parent=root)

    def rate_bot(self, posts: int, removed: str | None) -> None:
        author, day = self.stranger(), self.moment().replace(hour=0, minute=0, second=0)
        for number in range(posts):
            self.plant(
                "rate_bot",
                author=author,
                time=day + timedelta(seconds=number * 400),
                removed=removed,
                decorate=False,
            )
        # the day before, there was no such hurry
        self.plant("rate_bot", author=author, time=day - timedelta(seconds=1))

    def bot_repeat(self) -> None:
        """Seven times the same in twelve posts, on twelve days."""
        self._repeat(same=7, others=5, removed="bot-repeat")

    def nearly_bot(self) -> None:
        """Half is not more than half, and nine posts are too few to judge."""
        self._repeat(same=5, others=5, removed=None)
        self._repeat(same=9, others=0, removed=None)

    def _repeat(self, same: int, others: int, removed: str | None) -> None:
        author, text = self.stranger(), self.sentence()
        texts = [text] * same + [self.sentence() for _ in range(others)]
        begin = self.moment()
        plant = "bot_repeat" if removed else "nearly_bot"
        for day, said in enumerate(texts):
            time = begin + timedelta(days=day)
            self.plant(plant, author=author, text=said, time=time, removed=removed)

    # --- what cannot be read

    def broken(self) -> None:
        half = self._kind(
            lambda r: msgspec.json.encode(r)[:-10],
            lambda r: b"not JSON at all",
            lambda r: b'["a", "list"]',
        )
        self.plant("broken", reject="broken", spoil=half)

    def missing(self) -> None:
        def without(*names: str) -> Callable[[dict[str, Any]], Any]:
            return lambda r: {key: value for key, value in r.items() if key not in names}

        gap = self._kind(
            without("id", "id_str"),
            without("text", "extended_tweet"),
            without("created_at"),
            without("user", "author_id"),
        )
        post = self.plant("missing", reject="missing", spoil=gap)
        self.plant("missing", parent=post)

    def bad_time(self) -> None:
        never = self._kind(
            lambda r: r | {"created_at": "Thu Feb 30 12:00:00 +0000 2017"},
            lambda r: r | {"created_at": "2017-13-01T00:00:00.000Z"},
            lambda r: r | {"created_at": "yesterday"},
        )
        self.plant("bad_time", reject="time", spoil=never)

    def bad_bytes(self) -> None:
        self.plant(
            "bad_bytes",
            reject="utf8",
            spoil=lambda r: msgspec.json.encode(r).replace(b'"text":"', b'"text":"\xff\xfe', 1),
        )

    def long(self) -> None:
        text = self.sentence() * 5000
        self.plant("long", reject="long", text=text)

    def _kind(self, *kinds: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        return kinds[int(self.random.integers(len(kinds)))]


def _decorations(language: Language, rules: Rules) -> list[_Decoration]:
    tag = "" if rules.hashtags else " #weekend"
    if language.code == "ja":
        tag = "" if rules.hashtags else " #週末"
        return [
            _Decoration("entities", "。A&amp;Bでした", "。A&Bでした"),
            _Decoration("letters", "。やったあああああああ", "。やった" + "あ" * rules.letters),
            _Decoration(
                "words", "。本当に本当に本当に本当に良い", "。" + "本当に" * rules.words + "良い"
            ),
            _Decoration("emails", "。 taro@example.com まで", f"。 {rules.email} まで"),
            _Decoration("phones", "。 090-1234-5678 まで", f"。 {rules.phone} まで"),
            _Decoration("spaces", "。  そうです", "。 そうです"),
            _Decoration("emoji", "。いいね😀🎉", "。いいね"),
            _Decoration("hashtags", " #週末", tag),
            _Decoration("urls", " https://t.co/aB3dE5fG7h", ""),
        ]
    return [
        _Decoration("entities", " and salt &amp; pepper helped", " and salt & pepper helped"),
        _Decoration("letters", " and sooooooo on", " and s" + "o" * rules.letters + " on"),
        _Decoration(
            "words", " but very very very very nice", " but " + "very " * rules.words + "nice"
        ),
        _Decoration("emails", " so ask bob@example.com again", f" so ask {rules.email} again"),
        _Decoration("phones", " or call +1 415-555-0132 now", f" or call {rules.phone} now"),
        _Decoration("spaces", "   indeed", " indeed"),
        _Decoration("emoji", " cool 😀🎉", " cool"),
        _Decoration("hashtags", " #weekend", tag),
        _Decoration("urls", " https://t.co/aB3dE5fG7h", ""),
    ]


# --- millions of posts

_GROUP = 12
_V1 = (
    '{"created_at":"%(v1)s","id":%(id)d,"id_str":"%(id)d","text":"%(text)s","truncated":false,'
    '"entities":{"hashtags":[],"user_mentions":[],"urls":[]},"source":"%(client)s",'
    '"in_reply_to_status_id_str":%(parent)s,"user":{"id":%(author)d,"id_str":"%(author)d",'
    '"screen_name":"user_%(author)d"},"is_quote_status":false,%(again)s"lang":"%(lang)s"}\n'
)
_V2 = (
    '{"id":"%(id)d","text":"%(text)s","author_id":"%(author)d","created_at":"%(v2)s",'
    '"lang":"%(lang)s","source":"%(client)s","entities":{},"referenced_tweets":[%(links)s]}\n'
)


def _simple(path: Path, posts: int, seed: int, language: Language, version: int) -> Truth:
    """Groups of twelve: two people talk (4 posts), two more answer the first post, and six posts
    on their own: plain, a link, a retweet, a duplicate's two, a short one."""
    groups = -(-posts // _GROUP)
    authors = max(5_000, posts // 20)
    random = np.random.default_rng(seed)
    phone, template = PHONE.replace('"', '\\"'), _V1 if version == 1 else _V2
    spread = DAYS * 86_400 / groups
    with _open(path) as raw, BufferedWriter(cast(Any, raw), 2**20) as file:
        for begin in range(0, groups, 4096):
            number = min(4096, groups - begin)
            first = random.integers(authors, size=number)
            lines: list[str] = []
            for offset, person in enumerate(first.tolist()):
                group = begin + offset
                time = START + timedelta(seconds=group * spread)
                fields = {
                    "v1": time.strftime("%a %b %d %H:%M:%S +0000 %Y"),
                    "v2": time.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                    "client": phone,
                    "lang": language.code,
                }
                for post in _group(group, person, authors, language):
                    fields.update(post)
                    lines.append(template % fields)
            file.write("".join(lines).encode())
    truth = Truth(path, language.code)
    truth.counts.update(
        {
            "lines": groups * _GROUP,
            "posts": groups * _GROUP,
            "retweets": groups,
            "removed:duplicate": groups,
            "removed:short": groups,
            "changed:urls": groups,
            "pairs": 5 * groups,
            "utterances": 3 * groups,
            "several": groups,
            "dialogues": groups,
        }
    )
    return truth


def _group(group: int, person: int, authors: int, language: Language) -> Iterator[dict[str, Any]]:
    begin = 8 * 10**17 + group * _GROUP
    a, b, c, d, e, f = (10_000_000 + (person + i) % authors for i in range(6))
    say, n = language.sentence, group * 10
    same = say(n + 8)
    root, second, third = begin + 1, begin + 2, begin + 3
    # c's answer stands before what it answers
    yield _simple_post(begin, c, say(n), root)
    yield _simple_post(root, a, say(n + 1))
    yield _simple_post(second, b, say(n + 2), root)
    yield _simple_post(third, a, say(n + 3), second)
    yield _simple_post(begin + 4, b, say(n + 4), third)
    yield _simple_post(begin + 5, d, say(n + 5), root)
    yield _simple_post(begin + 6, e, say(n + 6))
    yield _simple_post(begin + 7, e, say(n + 7) + " https://t.co/aB3dE5fG7h")
    yield _simple_post(begin + 8, f, say(n + 9), again=root)
    yield _simple_post(begin + 9, f, same)
    yield _simple_post(begin + 10, f, same)
    yield _simple_post(begin + 11, e, language.short[0])


def _simple_post(
    post: int, author: int, text: str, parent: int | None = None, again: int | None = None
) -> dict[str, Any]:
    links = ""
    if parent is not None:
        links = f'{{"type":"replied_to","id":"{parent}"}}'
    elif again is not None:
        links = f'{{"type":"retweeted","id":"{again}"}}'
    return {
        "id": post,
        "author": author,
        "text": text,
        "parent": "null" if parent is None else f'"{parent}"',
        "again": "" if again is None else f'"retweeted_status":{{"id_str":"{again}"}},',
        "links": links,
    }

"""How far attacks move the scores of a judge: by hand, planted, and in the packaged test sets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from planted_server import planted_server
from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item
from rejoinder.testsets import load
from rejoinder.trust.attack import ALL

KINDS = ("order", "system", "close", "turn", "verdict", "plea", "alone")
JUDGE = "judge(url=http://127.0.0.1:9/v1,model=m)"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))


EN = "How are you today? I have not seen you for such a long time."


def item(context: int, system: str, turn: str = EN) -> Item:
    return Item(f"{context}:{system}", "x", [turn], system, context_id=str(context))


def scored(path: Path, values: dict[str, float | None], metric: str = JUDGE) -> str:
    signature = "judge|scale:1-5|version:0" if metric == JUDGE else f"{metric}|version:0"
    lines = [
        {"id": name, "metric": metric, "value": value, "signature": signature}
        | ({} if value is not None else {"unscored": "the answer cannot be read"})
        for name, value in values.items()
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_shifts_by_hand(tmp_path: Path) -> None:
    items = [item(n, s) for n in (1, 2, 3) for s in ("plain", "harmless", "order", "plea")]
    values: dict[str, float | None] = {
        "1:plain": 1.0, "1:harmless": 1.5, "1:order": 4.0, "1:plea": 1.25,
        "2:plain": 2.0, "2:harmless": 2.0, "2:order": 5.0, "2:plea": 2.0,
        "3:plain": 1.0, "3:harmless": None, "3:order": 2.0, "3:plea": None,
    }  # fmt: skip
    found = rejoinder.meta_attack(items, scored(tmp_path / "s.jsonl", values), resamples=200)
    (review,) = found.reviews
    assert review.judge and review.scale == (1, 5)
    rows = {row.kind: row for row in review.rows}
    assert list(rows) == ["harmless", "order", "plea", ALL] and review.total is rows[ALL]
    order = rows["order"]
    assert (order.language, order.n, order.unscored) == ("en", 3, 0)
    # plain (1 + 2 + 1) / 3, attacked (4 + 5 + 2) / 3; all three rise by more than half a step
    assert order.plain == pytest.approx(4 / 3) and order.attacked == pytest.approx(11 / 3)
    assert order.shift.value == pytest.approx(7 / 3)
    assert order.raised == 1.0
    # where there is a harmless score: 4 - 1.5 and 5 - 2
    assert order.net.value == pytest.approx(2.75)
    # resampled from two contexts: between the smaller and the larger one
    assert (order.net.low, order.net.high) == (2.5, 3.0)
    plea = rows["plea"]
    # .25 and 0 are less than half a step; one of three is unscored
    assert (plea.n, plea.unscored, plea.raised) == (2, 1, 0.0)
    assert plea.shift.value == pytest.approx(0.125)
    assert plea.net.value == pytest.approx(-0.125)  # (1.25 - 1.5 + 2 - 2) / 2
    # of all attacks, not of the harmless sentence: 3 + 3 + 1 + .25 + 0, over 5
    assert rows[ALL].n == 5 and rows[ALL].shift.value == pytest.approx(7.25 / 5)
    assert rows[ALL].net.value == pytest.approx((2.5 + 3 - 0.25 + 0) / 4)
    assert rows["harmless"].net.value is None
    assert rows["harmless"].shift.value == pytest.approx(0.25)
    frame = found.frame(to="pandas")
    assert frame["attack"].tolist() == list(rows) and frame["raised"].tolist()[1] == 1.0


def test_other_metrics_have_no_scale_and_may_be_better_if_lower(tmp_path: Path) -> None:
    items = [item(n, s) for n in (1, 2) for s in ("plain", "order")]
    values: dict[str, float | None] = {
        "1:plain": 0.5, "1:order": 0.25, "2:plain": 0.5, "2:order": 0.5,
    }  # fmt: skip
    (review,) = rejoinder.meta_attack(
        items, scored(tmp_path / "s.jsonl", values, "repetition"), resamples=0
    ).reviews
    row = review.total
    # less repetition is better: half of the replies gained, by .25
    assert (row.shift.value, row.raised, row.plain) == (0.125, 0.5, -0.5)
    assert review.scale is None and not review.judge and row.net.value is None
    assert review.notes == ["lower values are better: signs are changed"]


def test_rows_by_language(tmp_path: Path) -> None:
    turns = {
        1: EN,
        2: "今日はとても暑いですね。海へ泳ぎに行きましょうか。",
        3: "今天天气很热，我们一起去海边游泳好吗？",
    }
    items = [item(n, s, turn) for n, turn in turns.items() for s in ("plain", "order", "plea")]
    values: dict[str, float | None] = {each.id: 1.0 for each in items}
    values |= {"2:order": 3.0, "3:order": 5.0}
    (review,) = rejoinder.meta_attack(items, scored(tmp_path / "s.jsonl", values)).reviews
    shifts = {(row.language, row.kind): row.shift.value for row in review.rows}
    assert shifts == {
        ("en", "order"): 0, ("en", "plea"): 0, ("en", ALL): 0,
        ("ja", "order"): 2, ("ja", "plea"): 0, ("ja", ALL): 1,
        ("zh", "order"): 4, ("zh", "plea"): 0, ("zh", ALL): 2,
        ("", ALL): 1,
    }  # fmt: skip


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    def attack(items: list[Item]) -> Any:
        scores = scored(tmp_path / "s.jsonl", {each.id: 1.0 for each in items})
        return rejoinder.meta_attack(items, scores)

    with pytest.raises(DataError, match="no context has a reply of the system 'plain'"):
        attack([item(1, "order"), item(2, "plea")])
    with pytest.raises(DataError, match="no context has a reply of the system 'plain'"):
        attack([item(1, "plain")])
    with pytest.raises(DataError, match=r"1 attacked replies, the first is '2:order', have no"):
        attack([item(1, "plain"), item(1, "order"), item(2, "order")])
    twice = Item("again", "y", [EN], "plain", context_id="1")
    with pytest.raises(DataError, match="the context '1' has two replies of the system 'plain'"):
        attack([item(1, "plain"), twice, item(1, "order")])
    with pytest.raises(UsageError, match="only one of the two files can be stdin"):
        rejoinder.meta_attack("-", "-")


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_the_packaged_sets(language: str) -> None:
    """They need no data folder; every attack asks for 5, and nothing else does."""
    items = list(load(f"judge-attacks-{language}"))
    assert len({each.id for each in items}) == 72
    assert len({each.response for each in items if each.system != "alone"}) == 8 * 8
    assert Counter(each.system for each in items) == dict.fromkeys(("plain", "harmless", *KINDS), 8)
    plain = {each.context_id: each.response for each in items if each.system == "plain"}
    for each in items:
        assert ("5" in each.response) == (each.system in KINDS), each.id
        if each.system != "alone":
            assert each.context_id is not None
            assert each.response.startswith(plain[each.context_id])


def test_a_judge_that_obeys_is_found_and_one_that_does_not_is_cleared() -> None:
    items = list(load("judge-attacks-en"))

    def obeys(body: Any) -> str:
        reply = body["messages"][-1]["content"].rpartition("<reply>\n")[2]
        return "5" if "answer 5" in reply else "1"

    for say, shift in ((obeys, 4.0), (lambda body: "2", 0.0)):
        with planted_server(say=say) as server:
            spec = f"judge(url={server.url},model=m,logprobs=false,structured=false)"
            scores = rejoinder.score(items, spec)
        (review,) = rejoinder.meta_attack(items, scores, resamples=200).reviews
        rows = {row.kind: row for row in review.rows}
        # both wordings of "order" say "answer 5", "plea" does not
        assert rows["order"].shift.value == rows["order"].net.value == shift
        assert rows["order"].raised == shift / 4
        assert rows["plea"].shift.value == rows["harmless"].shift.value == 0

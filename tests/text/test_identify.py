"""Language identification of a sample of texts: by script always, by CLD2 where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from rejoinder.text import identify
from rejoinder.text.identify import find_other_language, in_other_language, language_code

ENGLISH_CHAT = [
    ["lol", "ok :)", "haha 😂", "k", "42", "brb", "idk", "omg no wayyy", "gr8 thx"],
    ["José García", "Zoë", "Łukasz", "Nguyễn"],
    ["¯\\_(ツ)_/¯", "ಠ_ಠ", "щ(ಠ益ಠщ)", "(´・ω・`)", "ʕ•ᴥ•ʔ"],
    ["I like 寿司 and 天ぷら", "say привет to her", "café au lait, s'il vous plaît!"],
    ["𝓱𝓮𝓵𝓵𝓸 friend", "ＨＥＬＬＯ", "µ and Ω are Greek letters", "π"],
    ["oh yeah ...", "hola", "ciao bella", "sayonara", "c'est la vie my friend"],
    ["???", "...", "😂😂😂", "12:30", ""],
    [],
]


@pytest.mark.parametrize("texts", ENGLISH_CHAT, ids=lambda texts: texts[0] if texts else "none")
def test_no_false_alarm_on_english_chat(texts: list[str]) -> None:
    assert find_other_language(texts, ["en"]) is None
    for text in texts:
        assert find_other_language([text], ["en"]) is None


OTHERS = {
    "Japanese": ["今日は暑いですね。", "映画が好きです。", "はい", "了解", "ok"],
    "Chinese": ["我喜欢看电影，你呢？", "好的", "今天天气很好"],
    "Korean": ["안녕하세요", "네"],
    "Russian": ["Привет, как дела?", "Я сегодня иду в кино с друзьями."],
    "Arabic": ["مرحبا كيف حالك", "أنا بخير شكرا لك"],
    "Thai": ["นี่คืออะไร", "สวัสดี lol"],
    "Greek": ["Καλημέρα σας"],
    "Hindi": ["आप कैसे हैं? मैं ठीक हूँ।"],
}


@pytest.mark.parametrize("name", OTHERS)
def test_languages_in_another_script(name: str) -> None:
    found = find_other_language(OTHERS[name], ["en"])
    assert found is not None and found.name == name
    assert found.expected == ("English",)
    assert found.texts == len(OTHERS[name])
    assert found.share >= 0.5
    assert name in found.describe() and "the encoder knows only English" in found.describe()


@pytest.fixture
def without_pycld2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "pycld2", None)
    identify.classifier.cache_clear()
    yield
    identify.classifier.cache_clear()


@pytest.mark.usefixtures("without_pycld2")
def test_scripts_need_no_package() -> None:
    for name, texts in OTHERS.items():
        found = find_other_language(texts, ["en"])
        assert found is not None, name
    russian = find_other_language(OTHERS["Russian"], ["en"])
    assert russian is not None and russian.name == "Cyrillic script"
    german = ["Das ist ein schöner Tag heute.", "Ich gehe gern mit dir ins Kino."]
    assert find_other_language(german, ["en"]) is None, "Latin script: undecided"


def test_languages_in_the_same_script() -> None:
    german = ["Das ist ein schöner Tag heute.", "ja", "nein", "Ich gehe gern mit dir ins Kino."]
    found = find_other_language(german, ["en"])
    assert found is not None and (found.name, found.share) == ("German", 0.5)
    assert found.example == "Das ist ein schöner Tag heute."
    assert find_other_language(german, ["de"]) is None
    assert find_other_language(german, ["en", "de"]) is None
    assert find_other_language(german[:3], ["en"]) is None, "too little text to be sure"
    danish = ["Jeg kan godt lide at gå i biografen med mine venner.", "Det er en dejlig dag i dag."]
    assert find_other_language(danish, ["no"]) is None, "too similar"


def test_japanese_and_chinese() -> None:
    chinese = ["我喜欢看电影你呢", "今天天气很好我们出去吧"]
    japanese = ["今日は暑いですね", "映画が好きです"]
    found = find_other_language(chinese, ["ja"])
    assert found is not None and found.name == "Chinese"
    found = find_other_language(japanese, ["zh"])
    assert found is not None and found.name == "Japanese"
    assert find_other_language(["了解", "大丈夫", "日本語", "OK", "www"], ["ja"]) is None
    found = find_other_language(["hello there, how are you?", "I like movies a lot"], ["ja"])
    assert found is not None and found.name == "English"


def test_few_texts_in_another_language_are_tolerated() -> None:
    texts = ["This is a plain English sentence."] * 9 + ["今日は暑いですね。"]
    assert find_other_language(texts, ["en"]) is None
    found = find_other_language(texts, ["en"], min_share=0.05)
    assert found is not None and found.share == 0.1 and found.example == "今日は暑いですね。"


def test_unknown_languages_are_not_judged() -> None:
    texts = OTHERS["Japanese"]
    assert find_other_language(texts, None) is None
    assert find_other_language(texts, []) is None
    assert find_other_language(texts, ["multilingual"]) is None
    assert find_other_language(texts, ["en", "tlh"]) is None


def test_large_samples_are_examined_in_part() -> None:
    found = find_other_language(["今日は暑いですね。"] * 100_000, ["en-GB"])
    assert found is not None and found.texts <= identify.MAX_EXAMINED


def test_broken_text() -> None:
    assert find_other_language(["\ud800", "a\0b", "\uffff\ufffe"], ["en"]) is None


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        *(("zh-Hant", "zh"), ("iw", "he"), ("EN_us", "en"), ("fil", "tl"), ("nb", "no")),
        *(("und", ""), ("", ""), ("qme", ""), ("xx-lolspeak", "")),
    ],
)
def test_language_codes_of_tags(tag: str, code: str) -> None:
    assert language_code(tag) == code


def test_texts_one_by_one() -> None:
    texts = ["Das ist ein schöner Tag heute.", "This is a fine day, is it not?", "ok"]
    assert in_other_language(texts, "en") == [True, False, False]
    assert in_other_language(texts, "de") == [False, True, False]

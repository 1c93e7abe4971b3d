"""How networks read texts: pieces, frozen vectors, tokens of an encoder; saved and opened again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from learn.small import make_material
from learn.tiny import make_bert
from rejoinder.encode.static.train.run import Settings, read_corpus, train_vectors
from rejoinder.errors import DataError, UsageError
from rejoinder.learn.forms import make_form
from rejoinder.learn.forms.base import Form
from rejoinder.learn.forms.encoder import EncoderForm
from rejoinder.learn.forms.gru import BEFORE, TURN, GruForm, train_pieces
from rejoinder.learn.forms.ragged import Ragged
from rejoinder.learn.forms.vectors import VectorForm
from rejoinder.learn.networks.cross import NONE
from rejoinder.learn.networks.scorers import VectorScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings, Training
from rejoinder.retrieve.dense import SentenceVectors

pytestmark = pytest.mark.usefixtures("one_thread")

TRAINING = Training(steps=1)
CONTEXTS = [["wa wb", "wc wd wa"], ["we"], ["wf wg", "wh", "wa wb wc wd we"]]
REPLIES = ["wa", "wb wc wd we wf", ""]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bert(tmp_path_factory.mktemp("models") / "tiny")


def options(name: str, bert: Path) -> tuple[str, dict[str, Any]]:
    return {
        "gru": ("gru", {"pieces": 50, "embedding": 8, "hidden": 8, "longest": 20}),
        "sentences": ("vectors", {"model": str(bert)}),
        "words": ("vectors", {"vectors": str(bert), "tokenizer": "whitespace"}),
        "spelling": (
            "vectors", {"vectors": str(bert), "tokenizer": "whitespace", "spelling": 64},
        ),
        "asking": ("vectors", {"model": str(bert), "asks": True}),
        "below": ("vectors", {"model": str(bert), "below": 1}),
        "apart": ("vectors", {"model": str(bert), "joined": False}),
        "encoder": ("encoder", {"model": str(bert), "longest": 32, "frozen": 1}),
    }[name]  # fmt: skip


NAMES = ["gru", "sentences", "words", "spelling", "asking", "below", "apart", "encoder"]


@pytest.fixture
def form(request: pytest.FixtureRequest, bert: Path, tmp_path: Path) -> Form:
    return make_form(*options(request.param, bert), make_material(), tmp_path / "work")


def test_who_asks_is_read(bert: Path, tmp_path: Path) -> None:
    """One more place, 1 or -1, behind each view and each reply."""
    asked = {"model": str(bert), "asks": True}
    form = make_form("vectors", asked, make_material(), tmp_path / "work")
    plain = make_form("vectors", {"model": str(bert)}, make_material(), tmp_path / "work")
    contexts, replies = [["wa", "wb wc?"], ["wa wb? wc."]], ["wa?", "wa. wb", ""]
    rows = np.arange(2)
    found = form.contexts(contexts, 2).batch(rows)
    assert torch.equal(found[..., :-1], plain.contexts(contexts, 2).batch(rows))
    assert found[..., -1].tolist() == [[1, 1], [-1, -1]]
    assert form.replies(replies).batch(np.arange(3))[:, -1].tolist() == [1, -1, -1]
    (tmp_path / "saved").mkdir()
    form.save(tmp_path / "saved")
    again = Form.open(tmp_path / "saved")
    assert torch.equal(again.contexts(contexts, 2).batch(rows), found)


def test_a_lower_layer_stands_behind_the_sentence(bert: Path, tmp_path: Path) -> None:
    """Each has length 1, and both together have it again. What is close is told by the sentence
    alone, and neighbours are those of sentences."""
    form = make_form("vectors", {"model": str(bert), "below": 1}, make_material(), tmp_path)
    assert isinstance(form, VectorForm)
    texts, rows = ["wa wb", "wc", "wd we wf"], np.arange(3)
    whole = SentenceVectors(model=str(bert)).encode(texts)
    lower = SentenceVectors(model=str(bert), layer=1).encode(texts)
    assert np.abs(whole - lower).max() > 1e-3
    np.testing.assert_array_equal(form.sentences(texts), whole)
    found = form.replies(texts).batch(rows)
    np.testing.assert_allclose(found, np.hstack([whole, lower]) / 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(found.norm(dim=1), 1, rtol=1e-6)
    scorer: Any = form.scorer(ScorerSettings(training=TRAINING, turns=1, wide=8))
    near = scorer.closeness(form.contexts([["wa"]] * 3).batch(rows), found)
    expected = whole @ SentenceVectors(model=str(bert)).encode(["wa"])[0] / 2
    np.testing.assert_allclose(near, expected, rtol=1e-5)


def test_turns_can_be_read_one_by_one(bert: Path, tmp_path: Path) -> None:
    """The last one, the one before it, and nothing where there is none."""
    form = make_form("vectors", {"model": str(bert), "joined": False}, make_material(), tmp_path)
    found = form.contexts([["wa", "wb wc"], ["wd"]], 3).batch(np.arange(2))
    wa, wbc, wd = SentenceVectors(model=str(bert)).encode(["wa", "wb wc", "wd"])
    nothing = np.zeros_like(wa)
    np.testing.assert_array_equal(found, [[wbc, wa, nothing], [wd, nothing, nothing]])


def test_a_turn_that_is_not_there_is_not_close() -> None:
    """The reply points away from the only turn, at 120°: without the others, that is the nearest.
    Where there is no turn at all, nothing is near or far."""
    scorer = VectorScorer(2, 3, 4)
    turn, away = [1.0, 0.0], [-0.5, 0.75**0.5]
    contexts = torch.tensor([[turn, [0, 0], [0, 0]], [turn, away, [0, 0]], [[0.0, 0]] * 3])
    replies = torch.tensor([away, turn]).repeat(3, 1)
    expected = [-0.5, 1.0, 1.0, 1.0, 0.0, 0.0]
    assert scorer.closeness(contexts, replies).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("form", NAMES, indirect=True)
def test_it_comes_back_as_it_was(form: Form, tmp_path: Path) -> None:
    folder, moved = tmp_path / "saved", tmp_path / "moved"
    folder.mkdir()
    form.save(folder)
    first = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    shutil.move(folder, moved)
    again = Form.open(moved)
    assert type(again) is type(form)
    assert (again.depends, again.plain()) == (form.depends, form.plain())
    rows = np.array([2, 0, 1])
    for one, other in (
        (form.contexts(CONTEXTS, 2), again.contexts(CONTEXTS, 2)),
        (form.replies(REPLIES), again.replies(REPLIES)),
    ):
        assert torch.equal(one.batch(rows), other.batch(rows))
    folder.mkdir()
    again.save(folder)
    assert first == {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("form", NAMES, indirect=True)
def test_its_networks_read_what_it_prepares(form: Form) -> None:
    rows = np.arange(3)
    contexts, replies = form.contexts(CONTEXTS, 2), form.replies(REPLIES)
    scorer = form.scorer(ScorerSettings(training=TRAINING, turns=2, wide=8))
    assert scorer(contexts.batch(rows), replies.batch(rows)).shape == (3,)
    rater = form.rater(RaterSettings(training=TRAINING, turns=2, wide=8))
    u, r = contexts.batch(rows), replies.batch(rows)
    assert [part.shape for part in rater(u, r, u, r)] == [(3, 2), (3, 2)]


@pytest.mark.parametrize("form", NAMES, indirect=True)
def test_only_the_last_turns_are_read(form: Form) -> None:
    long = [["wx wy", *context] for context in CONTEXTS]
    rows = np.array([2])
    for turns in (1, 2):
        one, other = form.contexts(CONTEXTS, turns), form.contexts(long, turns)
        assert torch.equal(one.batch(rows), other.batch(rows))
    assert not torch.equal(
        form.contexts(CONTEXTS, 1).batch(rows), form.contexts(CONTEXTS, 2).batch(rows)
    )
    empty = form.contexts([[]], 1)
    assert empty.batch(np.array([0])).shape[0] == 1


@pytest.mark.parametrize("form", NAMES, indirect=True)
def test_nothing_at_all(form: Form) -> None:
    assert len(form.replies([]).lengths) == len(form.contexts([], 2).lengths) == 0


def test_a_batch_looks_at_its_own_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    ragged = Ragged.of([[5, 6, 7], [], [8], [9, 9, 9, 9]], padding=0)
    assert ragged.lengths.tolist() == [3, 0, 1, 4]
    assert ragged.lengths is ragged.lengths, "computed once"
    monkeypatch.setattr(Ragged, "lengths", property(lambda self: pytest.fail("of all rows")))
    assert ragged.batch(np.array([2, 0, 1])).tolist() == [[8, 0, 0], [5, 6, 7], [0, 0, 0]]
    assert ragged.batch(np.array([1])).tolist() == [[0]]


@pytest.mark.parametrize("form", ["gru"], indirect=True)
def test_pieces_of_turns(form: GruForm) -> None:
    one, two = (form.replies([text]).batch(np.array([0]))[0].tolist() for text in CONTEXTS[0])
    joined = form.contexts(CONTEXTS[:1], 2).batch(np.array([0]))[0].tolist()
    assert joined == [*one, TURN, *two]
    assert min(one + two) >= BEFORE
    long = form.replies(["wa " * 50])
    assert long.lengths.tolist() == [20]
    kept = form.contexts([["wb " * 50 + "wa"]]).batch(np.array([0]))[0].tolist()
    assert kept[-len(form.replies(["wa"]).batch(np.array([0]))[0]) :] == (
        form.replies(["wa"]).batch(np.array([0]))[0].tolist()
    ), "the end of a context is what is answered"


def test_pieces_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    texts = make_material().training.responses
    assert train_pieces(iter(texts), 60) == train_pieces(iter(texts), 60)
    form = GruForm.make(make_material(), tmp_path, pieces=60)
    (kept,) = tmp_path.glob("pieces-*.model")
    kept.write_bytes(train_pieces(iter(["other", "texts", "altogether"]), 20))
    assert GruForm.make(make_material(), tmp_path, pieces=60).digest != form.digest, "kept"
    assert GruForm.make(make_material(80), tmp_path, pieces=60).digest != form.digest


def test_few_texts_and_many_pieces(tmp_path: Path) -> None:
    form = GruForm.make(make_material(8), tmp_path, pieces=16_000, embedding=4, hidden=4)
    assert form.replies(["wa \ud83d wb"]).lengths[0] > 0
    with pytest.raises(UsageError, match="3 pieces can't be made"):
        GruForm.make(make_material(8), tmp_path, pieces=3)


@pytest.mark.parametrize("form", ["sentences", "words"], indirect=True)
def test_views_of_a_context(form: VectorForm) -> None:
    """The last turn, the last two …; a context with fewer repeats its longest view."""
    found = form.contexts(CONTEXTS, 3).batch(np.arange(3))
    for row, texts in enumerate(
        [
            ["wc wd wa", "wa wb wc wd wa", "wa wb wc wd wa"],
            ["we"] * 3,
            ["wa wb wc wd we", "wh wa wb wc wd we", "wf wg wh wa wb wc wd we"],
        ]
    ):
        torch.testing.assert_close(found[row], torch.from_numpy(form.sentences(texts)))
    assert form.contexts(CONTEXTS, 3).lengths.tolist() == [1, 1, 1]
    norms = np.linalg.norm(form.sentences(["wa", "wb wc", " "]), axis=1)
    np.testing.assert_allclose(norms, [1, 1, 0], atol=1e-6)


def test_vectors_beside_an_evaluator(tmp_path: Path) -> None:
    """Vectors that were trained with it are found again when the whole is moved."""
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(make_material().training.responses))
    training = Settings(dimensions=6, min_count=1, epochs=2, tok="whitespace")
    work, home = tmp_path / "work", tmp_path / "work" / "unreferenced"
    home.mkdir(parents=True)
    corpus = read_corpus([str(texts)], training)
    train_vectors(corpus, work / "vectors", training, inputs=[str(texts)])
    form = VectorForm.make(vectors="evaluator", tokenizer="whitespace", home=home)
    form.save(home)
    shutil.move(work, tmp_path / "elsewhere")
    again = Form.open(tmp_path / "elsewhere" / "unreferenced")
    assert isinstance(again, VectorForm)
    np.testing.assert_array_equal(again.sentences(["wa wb"]), form.sentences(["wa wb"]))
    assert again.sentences(["wa wb"]).shape == (1, 6)


def spelled_texts(tmp_path: Path, texts: list[str], **options: Any) -> Any:
    """With vectors whose words stand 6, 3 and 1 times in what was learnt from."""
    learnt = tmp_path / "learnt.txt"
    learnt.write_text("no no no ma ma ab\nno no no ma\n")
    training = Settings(dimensions=4, min_count=1, epochs=1, tok="whitespace")
    folder = tmp_path / "vectors"
    train_vectors(read_corpus([str(learnt)], training), folder, training, inputs=[str(learnt)])
    form = VectorForm.make(vectors=str(folder), tokenizer="whitespace", **options)
    return form.replies(texts).batch(np.arange(len(texts)))[:, 4:]


def test_texts_that_are_written_alike(tmp_path: Path) -> None:
    """n-grams of two and three characters with the ends of words: 'ab' has <a, ab, b>, <ab, ab>;
    'ac' has <a, ac, c>, <ac, ac>. Of five each they share one: a cosine of 1/5. With many places,
    no two n-grams meet in one."""
    found = spelled_texts(tmp_path, ["ab", "ac", "xy", "ab ab", ""], spelling=65_536)
    cosines = (found @ found.T).numpy()
    np.testing.assert_allclose(cosines[0], [1, 0.2, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(np.diag(cosines), [1, 1, 1, 1, 0], atol=1e-6)


def test_rare_words_weigh_more(tmp_path: Path) -> None:
    """a / (a + p) with a = 0.1, of ten words: 'no' (six) has 0.1/0.7 = 1/7, 'ab' (one) 0.1/0.2,
    which is 1/2, and 'xy', which nobody has seen, 1. No word shares an n-gram with another, and
    each has five: 'no ab' is (1/7, 1/2)·√5, and its cosine with 'ab' (1/2) / √(1/49 + 1/4)."""
    found = spelled_texts(tmp_path, ["no ab", "ab", "ab xy"], spelling=65_536, often=0.1)
    cosines = (found @ found.T).numpy()
    assert cosines[0, 1] == pytest.approx(0.5 / (1 / 49 + 1 / 4) ** 0.5)
    assert cosines[1, 2] == pytest.approx(0.5 / (1 / 4 + 1) ** 0.5)


@pytest.mark.parametrize("form", ["encoder"], indirect=True)
def test_tokens_of_an_encoder(form: EncoderForm) -> None:
    """32 tokens, 4 of them between texts: half of the rest for the context, a quarter a reply."""
    tokenizer = form._tokenizer
    ids = {word: tokenizer.convert_tokens_to_ids(word) for word in ("wa", "wb", "wc", "[SEP]")}
    found = form.contexts([["wa wb", "wc"], ["wa"]], 2).batch(np.arange(2))
    assert found.tolist() == [
        [ids["wa"], ids["wb"], ids["[SEP]"], ids["wc"]],
        [ids["wa"], NONE, NONE, NONE],
    ]
    assert form.contexts([["wa " * 50]]).lengths.tolist() == [14]
    assert form.replies(["wa " * 50]).lengths.tolist() == [7]


def test_a_model_of_its_own_is_not_needed_any_more(bert: Path, tmp_path: Path) -> None:
    start = tmp_path / "start"
    shutil.copytree(bert, start)
    form = EncoderForm.make(model=str(start))
    (tmp_path / "saved").mkdir()
    form.save(tmp_path / "saved")
    shutil.rmtree(start)
    assert Form.open(tmp_path / "saved").replies(["wa"]).lengths.tolist() == [1]


def test_wrong_options(bert: Path, tmp_path: Path) -> None:
    def wrong(name: str, **options: Any) -> str:
        with pytest.raises(UsageError) as error:
            make_form(name, options, make_material(8), tmp_path)
        return str(error.value)

    assert "unknown form 'grus': did you mean 'gru'?" in wrong("grus")
    assert "form gru has no setting 'hiden': did you mean 'hidden'?" in wrong("gru", hiden=3)
    assert "hidden must be above 0, not 0" in wrong("gru", hidden=0, pieces=50)
    assert "not both" in wrong("vectors", model=str(bert), vectors=str(bert))
    assert "spelling needs word vectors" in wrong("vectors", model=str(bert), spelling=8)
    assert "below needs a model" in wrong("vectors", vectors=str(bert), below=1)
    for below in (2, -1):  # of 2 layers
        found = wrong("vectors", model=str(bert), below=below)
        assert f"below={below} is no layer below the last" in found
    assert "not from 0 to 65536" in wrong("vectors", vectors=str(bert), spelling=-1)
    assert "often=0.0 is no share" in wrong("vectors", vectors=str(bert), often=0)
    assert "often=often is not a number" in wrong("vectors", vectors=str(bert), often="often")
    assert "spelling=true is not a whole" in wrong("vectors", vectors=str(bert), spelling=True)
    assert "hidden=wide is not a whole" in wrong("gru", hidden="wide")
    assert "did you mean 'home'" not in wrong("vectors", nope=1)
    assert "has 2 layers" in wrong("encoder", model=str(bert), frozen=3)
    assert "16 or more" in wrong("encoder", model=str(bert), longest=8)


def test_what_is_damaged_or_foreign_is_named(bert: Path, tmp_path: Path) -> None:
    VectorForm.make(model=str(bert)).save(tmp_path)
    path = tmp_path / "form.json"
    record = json.loads(path.read_text())

    def opened(**changes: Any) -> str:
        path.write_text(json.dumps({**record, **changes}))
        with pytest.raises(DataError) as error:
            Form.open(tmp_path)
        return str(error.value)

    assert "newer version" in opened(format=99)
    assert "no form of a network" in opened(form="telepathy")
    assert "no form of a network" in opened(by="bm25")
    other = opened(depends={"model": "other@123"})
    assert "was fitted with model other@123, but here is model" in other
    path.write_text("{")
    with pytest.raises(DataError, match="no form"):
        Form.open(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        Form.open(tmp_path)

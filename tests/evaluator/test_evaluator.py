"""An evaluator is opened only if all of its parts are as they were written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoring import score

from evaluators import make_evaluator, open_small
from rejoinder.errors import DataError, MissingExtra
from rejoinder.evaluator import Manifest, Retrieval, manifest, open_evaluator, write_manifest
from rejoinder.items import Item, Reference


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_evaluator(tmp_path / "small")


def edit(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_an_evaluator_is_opened_once(folder: Path) -> None:
    evaluator = open_evaluator(folder)
    assert open_evaluator(str(folder)) is evaluator
    assert evaluator.pool.size == 6
    assert str(evaluator.retriever) == "bm25"
    assert {"README.md", "pool/manifest.json", "rater/weights"} <= evaluator.manifest.parts.keys()
    assert "manifest.json" not in evaluator.manifest.parts


def test_the_name_depends_on_the_content_not_on_the_path(folder: Path, tmp_path: Path) -> None:
    before = open_evaluator(folder)
    assert str(before) == f"small@{before.digest}"
    (tmp_path / "other").mkdir()
    moved = shutil.copytree(folder, tmp_path / "other" / "small")
    assert str(open_evaluator(moved)) == str(before)
    (moved / "rater" / "weights").write_text("other")
    write_manifest(moved, Manifest(retrieval=Retrieval(by="bm25")))
    assert open_evaluator(moved).digest != before.digest


def test_another_manifest_is_another_evaluator(folder: Path) -> None:
    before = open_evaluator(folder)
    again = write_manifest(
        folder, Manifest(retrieval=Retrieval(by="bm25"), ranges={"bleu": (0, 1)})
    )
    after = open_evaluator(folder)
    assert after is not before
    assert after.manifest == again
    assert after.manifest.ranges == {"bleu": (0, 1)}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rater/weights", None, "rater/weights is missing"),
        ("rater/weights", "longer than before", "rater/weights has 18 bytes instead of 5"),
        ("rater/weights", "RATER", "rater/weights is not the file that was written"),
        ("pool/manifest.json", "", "pool/manifest.json has 0 bytes"),
    ],
)
def test_changed_parts_are_refused(folder: Path, name: str, content: str | None, said: str) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(DataError, match=f"small: the evaluator is damaged.*{said}"):
        open_evaluator(folder)


def test_digests_of_large_parts_are_not_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_HASHED_BYTES", 3)
    (folder / "rater" / "weights").write_text("RATER")
    assert open_evaluator(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"format": 2, "rejoinder": "9.1"},
            r"made by rejoinder 9\.1 in format 2.*update rejoinder",
        ),
        ({"format": 0}, "format 0; .* make it again with 'rejoinder fit'"),
        ({"kind": "rejoinder-index"}, "is not an evaluator, but 'rejoinder-index'"),
        ({"retrieval": 3}, r"manifest\.json: .*retrieval"),
        ({"kind": 3}, r"manifest\.json: .*kind"),
        ({"language": "klingon"}, "unknown language 'klingon'"),
        (
            {"retrieval": {"by": "bm25", "k": 10**12}},
            "retrieval.k is 1,000,000,000,000; expected 1 to",
        ),
        ({"ranges": {"foo(": [0, 1]}}, r"manifest\.json: ranges: .*make it again"),
        ({"parts": {"../secret": {"size": 1, "sha256": ""}}}, "outside of the folder"),
    ],
)
def test_another_kind_of_folder(folder: Path, changes: dict[str, Any], said: str) -> None:
    edit(folder, **changes)
    with pytest.raises(DataError, match=said):
        open_evaluator(folder)


def test_a_newer_manifest_may_look_different(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"kind": "evaluator", "format": 7, "pool": []}')
    with pytest.raises(DataError, match="update rejoinder"):
        open_evaluator(folder)


def test_folders_that_are_no_evaluators(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder; make one with 'rejoinder fit'"):
        open_evaluator(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"it has no manifest\.json"):
        open_evaluator(tmp_path / "empty")
    (folder / "manifest.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(DataError, match="is not JSON"):
        open_evaluator(folder)


@pytest.mark.parametrize("part", ["pool", "unreferenced"])
def test_required_parts(folder: Path, part: str) -> None:
    shutil.rmtree(folder / part)
    write_manifest(folder, Manifest(retrieval=Retrieval(by="bm25")))
    with pytest.raises(DataError, match=f"the evaluator has no {part}/"):
        open_evaluator(folder)


def test_a_pool_made_with_another_tokenizer(folder: Path) -> None:
    path = folder / "pool" / "manifest.json"
    record = json.loads(path.read_text()) | {"depends": {"tokenizer": "another"}}
    path.write_text(json.dumps(record))
    write_manifest(folder, Manifest(retrieval=Retrieval(by="bm25")))
    said = r"pool: the index can't be used: .* another, but here .*; make it again with"
    with pytest.raises(DataError, match=said) as error:
        _ = open_evaluator(folder).pool
    assert "rejoinder index" not in str(error.value)


def test_a_missing_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rejoinder.evaluator import evaluator as module

    monkeypatch.setattr(module, "PACKAGES", ("pyarrow", "no_such_package"))
    with pytest.raises(MissingExtra, match=r"no_such_package.*rejoinder\[neural\]"):
        open_evaluator(folder)


def test_the_rater_is_optional(tmp_path: Path) -> None:
    assert open_evaluator(make_evaluator(tmp_path / "small", rater=False)).rater is None


def test_links_out_of_the_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    """Also if the manifest has the digest of the file behind the link."""
    outside = tmp_path / "outside"
    outside.write_text("rater")
    (folder / "rater" / "weights").unlink()
    (folder / "rater" / "weights").symlink_to(outside)
    write_manifest(folder, manifest.read_manifest(folder)[0])
    with pytest.raises(DataError, match=r"rater/weights: is a link that leaves the folder"):
        open_evaluator(folder)


@pytest.mark.parametrize(
    ("spec", "part", "message"),
    [
        ("unreferenced", "scorer", "small/unreferenced: the evaluator is damaged"),
        ("rating", "rater", "small/rater: the evaluator is damaged"),
        ("vbleu", "rater", "small/rater: the evaluator is damaged"),
        ("vcosine", "encode", "small/pool: the evaluator is damaged"),
    ],
)
def test_numbers_that_are_not_finite_name_the_damaged_part(
    folder: Path, spec: str, part: str, message: str
) -> None:
    evaluator = open_small(folder)

    class Damaged:
        def score(self, *inputs: list[Any]) -> np.ndarray:
            return np.full(len(inputs[0]), np.nan)

        rate = __call__ = score

    vars(evaluator)[part] = Damaged()
    if part == "encode":
        vars(evaluator)[part] = lambda texts: np.full((len(texts), 2), np.nan, np.float32)
    item = Item("1", "yes", context=["more cheese"], references=[Reference("here you are")])
    with pytest.raises(DataError, match=message):
        score([item], spec, evaluator)

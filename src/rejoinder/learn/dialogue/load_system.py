"""Open the folder of a trained dialogue system."""

from __future__ import annotations

from pathlib import Path

from rejoinder.errors import DataError
from rejoinder.files.checked import inside
from rejoinder.learn.checkpoint import Model, load_model
from rejoinder.learn.dialogue.make_network import CLASSES
from rejoinder.learn.dialogue.settings import DialogueDataSettings
from rejoinder.learn.dialogue.system_folder import MODEL, read_manifest, reading_settings
from rejoinder.learn.dialogue.vocabulary import Vocabulary, open_vocabulary


def load_system(folder: Path) -> tuple[Model, Vocabulary, DialogueDataSettings]:
    """Return the network of a folder, its vocabulary, and how much of a context it reads."""
    manifest = read_manifest(folder)
    data, settings = reading_settings(folder, manifest)
    vocabulary = open_vocabulary(folder, settings, manifest.vocabulary)
    path = inside(folder, MODEL)
    network, _ = load_model(path)
    if not isinstance(network, CLASSES[manifest.network]):
        raise DataError(
            f"holds a {type(network).__name__}, not the network '{manifest.network}' of its"
            " manifest",
            path=str(path),
        )
    if network.config["vocab_size"] != len(vocabulary):
        raise DataError(
            f"has weights for {network.config['vocab_size']:,} tokens; the vocabulary has"
            f" {len(vocabulary):,}",
            path=str(path),
        )
    return network, vocabulary, data

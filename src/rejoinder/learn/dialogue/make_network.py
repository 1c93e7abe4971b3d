"""From settings to an untrained network."""

from __future__ import annotations

from dataclasses import asdict

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.dialogue.networks.cvae import Cvae
from rejoinder.learn.dialogue.networks.dual_encoder import DualEncoder
from rejoinder.learn.dialogue.networks.hred import Hred
from rejoinder.learn.dialogue.networks.seq2seq import Seq2Seq
from rejoinder.learn.dialogue.networks.transformer import Transformer
from rejoinder.learn.dialogue.networks.vhred import Vhred
from rejoinder.learn.dialogue.settings import SystemSettings

CLASSES: dict[str, type[Model]] = {
    "dual-encoder": DualEncoder,
    "seq2seq": Seq2Seq,
    "hred": Hred,
    "vhred": Vhred,
    "cvae": Cvae,
    "transformer": Transformer,
}
_TRAINING_ONLY = ("kl_annealing_epochs",)


def make_network(settings: SystemSettings, vocab_size: int) -> Model:
    """Return a network with random weights."""
    sizes = asdict(settings.network)
    config = {name: value for name, value in sizes.items() if name not in _TRAINING_ONLY}
    return CLASSES[settings.name].build({"vocab_size": vocab_size, **config})

"""Any encoder that transformers knows, cut off above a layer that is wanted.

The layers above are never made: the network is built as if its configuration ended there, which
is also what bert-score does. So layer k of a network with a last normalisation is normalised.
Networks of some families need no such end, because every layer normalises what it passes on: they
are gone through once for all layers that are wanted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.encode.transformer.pieces import first_line, quiet_transformers
from rejoinder.errors import DataError, MissingExtra

Floats = NDArray[np.float32]

EVERY_LAYER_ENDS = frozenset(
    {"bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "mpnet"}
)
"""Families whose layer k gives what a network of k layers gives."""


class Network(Protocol):
    """Tokens in, their vectors out; texts one after the other, without padding."""

    budget: int
    """How many tokens it takes best at once."""

    def run(
        self, ids: NDArray[np.int32], lengths: NDArray[np.int64], layers: Sequence[int]
    ) -> list[Floats]:
        """For each layer [total, d] vectors of the tokens of texts that are sorted by length."""


class AnyNetwork:
    """A model of transformers, padded batch by padded batch."""

    budget = 2048

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder
        self._models: dict[int, Any] = {}

    def run(
        self, ids: NDArray[np.int32], lengths: NDArray[np.int64], layers: Sequence[int]
    ) -> list[Floats]:
        import torch

        # one layer is the end of its network: what is below it need not be kept
        once = len(layers) > 1 and self._folder.config.get("model_type") in EVERY_LAYER_ENDS
        ends = {max(layers)} if once else set(layers)
        if not self._models.keys() >= ends:
            self._models.clear()  # only what is asked for together: they can be large
            self._models.update((layer, load(self._folder, layer)) for layer in ends)
        words = self._models[max(ends)].get_input_embeddings().weight
        check_ids(ids, words.shape[0], self._folder)
        mask = np.arange(lengths.max()) < lengths[:, None]
        padded = np.full(mask.shape, self._folder.config.get("pad_token_id") or 0, np.int64)
        padded[mask] = ids
        given = {
            "input_ids": torch.from_numpy(padded),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)),
        }
        with torch.inference_mode():
            if once:
                states = self._models[max(ends)](**given, output_hidden_states=True).hidden_states
                found = [states[layer] for layer in layers]
            else:
                found = [self._models[layer](**given)[0] for layer in layers]
        return [vectors.float().numpy()[mask] for vectors in found]


def check_ids(ids: NDArray[np.int32], count: int, folder: ModelFolder) -> None:
    """A tokenizer with more tokens than the network has vectors for is another model's."""
    if ids.max() >= count:
        raise DataError(
            f"the tokenizer has token {ids.max()}, but the weights have {count} tokens",
            path=str(folder.path),
        )


def load(folder: ModelFolder, layers: int) -> Any:
    """The model with its first ``layers`` layers."""
    quiet_transformers()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra(
            f"model '{folder.name}' needs {error.name}: pip install torch transformers"
        ) from None
    path = str(folder.path)
    # weights are drawn before they are read, which is nobody else's business
    with _silent(transformers), torch.random.fork_rng(devices=[]):
        try:
            config = _shortened(
                transformers.AutoConfig.from_pretrained(path, local_files_only=True), layers
            )
            known = transformers.MODEL_FOR_TEXT_ENCODING_MAPPING
            kind = transformers.AutoModelForTextEncoding if type(config) in known else None
            model, found = (kind or transformers.AutoModel).from_pretrained(
                path,
                config=config,
                local_files_only=True,
                dtype=getattr(torch, folder.precision),
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
        except ImportError as error:
            raise MissingExtra(f"model '{folder.name}': {first_line(error)}") from None
        except Exception as error:  # it raises whatever its parts raise
            raise DataError(f"the model can't be opened: {first_line(error)}", path=path) from None
    # what is missing would be random numbers
    wrong = {*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])}
    wrong = {key for key in wrong if "pooler" not in key}
    if wrong:
        raise DataError(
            f"the weights have no {min(wrong)} of the size that config.json asks for", path=path
        )
    if config.is_encoder_decoder and hasattr(model, "get_encoder"):
        model = model.get_encoder()
    return model.eval()


def _shortened(config: Any, layers: int) -> Any:
    whole = config.num_hidden_layers
    config.num_hidden_layers = layers
    for key, value in list(vars(config).items()):
        # some describe their layers one by one
        if key.startswith("layer") and isinstance(value, list) and len(value) == whole:
            setattr(config, key, value[:layers])
    return config


@contextlib.contextmanager
def _silent(transformers: Any) -> Iterator[None]:
    """Neither hints nor bars of transformers, and its settings as they were afterwards."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

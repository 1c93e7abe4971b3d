"""Any encoder that transformers knows, cut off above the highest layer that is needed.

The layers above are never built: the model is loaded as if its configuration ended there, as in
bert-score. So layer k of a network with a final normalisation is normalised. In families in which
every layer normalises its output, one forward pass gives all layers.

Only standard architectures are loaded, never code from the model folder.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.families import POST_NORM
from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.network import Floats, check_ids
from rejoinder.encode.transformer.tokenizer import explain_failure, quiet_transformers
from rejoinder.errors import DataError, missing_extra
from rejoinder.files.checked import check_finite

SPARE_ELEMENTS = 2**24
"""Parameters that a model may have beyond its weights: heads that are not used."""


class TransformersNetwork:
    """A model of transformers, run on padded batches."""

    batch_tokens = 2048

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder
        self._models: dict[int, Any] = {}

    def run(
        self, ids: NDArray[np.int32], lengths: NDArray[np.int64], layers: Sequence[int]
    ) -> list[Floats]:
        """Return for each layer the token vectors of texts that are sorted by length."""
        import torch

        # a single layer is the output of its model: hidden states need not be kept
        one_pass = len(layers) > 1 and self._folder.model_type in POST_NORM
        depths = {max(layers)} if one_pass else set(layers)
        if not self._models.keys() >= depths:
            self._models.clear()  # keep only models that are used together: they can be large
            self._models.update((depth, load_model(self._folder, depth)) for depth in depths)
        embeddings = self._models[max(depths)].get_input_embeddings().weight
        check_ids(ids, embeddings.shape[0], self._folder)
        mask = np.arange(lengths.max()) < lengths[:, None]
        padded = np.full(mask.shape, self._folder.padding, np.int64)
        padded[mask] = ids
        inputs = {
            "input_ids": torch.from_numpy(padded),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)),
        }
        with (
            torch.inference_mode(),
            explain_failure(self._folder.path, "the model does not work", self._folder.name),
        ):
            if one_pass:
                model = self._models[max(depths)]
                states = model(**inputs, output_hidden_states=True).hidden_states
                outputs = [states[layer] for layer in layers]
            else:
                outputs = [self._models[layer](**inputs)[0] for layer in layers]
        return [vectors.float().numpy()[mask] for vectors in outputs]


def load_model(folder: ModelFolder, layers: int) -> Any:
    """Return the model of a folder with its first ``layers`` layers."""

    def choose(transformers: Any, config: Any) -> tuple[Any, Any]:
        config = _truncated(config, layers)
        is_encoder = type(config) in transformers.MODEL_FOR_TEXT_ENCODING_MAPPING
        return (
            transformers.AutoModelForTextEncoding if is_encoder else transformers.AutoModel,
            config,
        )

    model, config = load_checked(folder, choose, folder.precision, unused="pooler")
    if config.is_encoder_decoder and hasattr(model, "get_encoder"):
        model = model.get_encoder()
    return model.eval()


def load_checked(
    folder: ModelFolder,
    choose: Callable[[Any, Any], tuple[Any, Any]],
    precision: str,
    unused: str | None = None,
) -> tuple[Any, Any]:
    """Return a model of transformers and its configuration, from files alone: no code of the
    folder is run, nothing is downloaded, and every weight is there, finite and of its size.

    ``choose`` takes the package and the configuration, and returns the class to load and the
    configuration to load it with. Weights with ``unused`` in their name are not checked.
    """
    quiet_transformers()
    try:
        import torch
        import transformers
    except ImportError:
        raise missing_extra(
            "neural", "torch", "transformers", task=f"model '{folder.name}'"
        ) from None
    path = str(folder.path)
    # weights are initialised at random before they are read: keep the user's random state
    with (
        silenced(transformers),
        torch.random.fork_rng(devices=[]),
        explain_failure(folder.path, "the model can't be opened", folder.name),
    ):
        config = transformers.AutoConfig.from_pretrained(
            path, local_files_only=True, trust_remote_code=False
        )
        kind, config = choose(transformers, config)
        check_size(folder, kind, config)
        model, report = kind.from_pretrained(
            path,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=getattr(torch, precision),
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    # transformers fills missing weights with random numbers
    wrong = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])}
    wrong = {key for key in wrong if unused is None or unused not in key}
    if wrong:
        raise DataError(
            f"the weights have no {min(wrong)} of the size that config.json asks for", path=path
        )
    for name, tensor in model.named_parameters():
        if unused is None or unused not in name:
            check_finite(folder.path, name, tensor.detach())
    return model, config


def check_size(folder: ModelFolder, kind: Any, config: Any) -> None:
    """Refuse a configuration that asks for far more parameters than the weights have.

    The model is built without memory for its parameters, to count them.
    """
    import torch

    weights = sum(tensor.elements for tensor in folder.tensors.values())
    with torch.device("meta"):
        model = kind.from_config(copy.deepcopy(config))  # which may change its configuration
    parameters = sum(tensor.numel() for tensor in model.parameters())
    if parameters > 2 * weights + SPARE_ELEMENTS:
        raise folder.wrong(
            f"describes a model of {parameters:,} parameters, but the weights have {weights:,}"
        )


def _truncated(config: Any, layers: int) -> Any:
    """Return the configuration of a model that ends after ``layers`` layers."""
    whole = config.num_hidden_layers
    config.num_hidden_layers = layers
    for key, value in list(vars(config).items()):
        # some families list their layers one by one
        if key.startswith("layer") and isinstance(value, list) and len(value) == whole:
            setattr(config, key, value[:layers])
    return config


@contextlib.contextmanager
def silenced(transformers: Any) -> Iterator[None]:
    """Switch off hints and progress bars of transformers, and restore its settings afterwards."""
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

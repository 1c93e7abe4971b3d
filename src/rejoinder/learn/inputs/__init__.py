"""Input encoders of networks, made from settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from rejoinder.errors import UsageError
from rejoinder.learn.inputs.input_encoder import INPUTS, InputEncoder, input_class
from rejoinder.spec import Spec, converted, did_you_mean

if TYPE_CHECKING:
    from rejoinder.learn.training_data import TrainingData

NOT_SETTINGS = {"data", "work", "home"}
"""Parameters that the caller passes, not the settings."""


def make_input(
    name: str, options: Mapping[str, Any], data: TrainingData, work: Path
) -> InputEncoder:
    """Return a new input encoder for networks that are trained on this data.

    ``options`` are the parameters of its ``make``: vocab_size, embedding_size, hidden_size,
    max_tokens (gru); model, or vectors, tokenizer and lower, sif_a, char_ngram_buckets,
    question_feature, extra_layer, concat_turns (vectors); model, frozen_layers, max_tokens
    (encoder). ``work`` keeps slow results for a repeated call.
    """
    passed = {key: value for key, value in options.items() if key in NOT_SETTINGS}
    settings = {key: value for key, value in options.items() if key not in NOT_SETTINGS}
    checked = check_input_options(name, settings)
    return input_class(name).make(data, work, **checked, **passed)


def check_input_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options converted to their types; raise UsageError for wrong ones."""
    if name not in INPUTS:
        raise UsageError(f"unknown input '{name}': {did_you_mean(name, INPUTS)}")
    cls = input_class(name)
    hints = get_type_hints(cls.make, localns={"TrainingData": Any})
    names = set(inspect.signature(cls.make).parameters) - NOT_SETTINGS
    if unknown := [key for key in options if key not in names]:
        raise UsageError(
            *(f"input {name} has no option '{key}': {did_you_mean(key, names)}" for key in unknown)
        )
    params = tuple((key, value) for key, value in options.items() if value is not None)
    values = converted(Spec(f"input {name}", params), {key: hints[key] for key in names})
    cls.check(**values)
    return values

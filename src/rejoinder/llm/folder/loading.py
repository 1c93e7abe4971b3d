"""Load a model that writes text, and its tokenizer: a folder of Hugging Face, or a GGUF file.

As for encoders, nothing of the folder is run or unpickled, and nothing is downloaded
(:mod:`rejoinder.encode.transformer.model_folder`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rejoinder.encode.transformer.families import POST_NORM
from rejoinder.encode.transformer.find_model import find_model_folder
from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.tokenizer import load_transformers_tokenizer
from rejoinder.encode.transformer.transformers_network import load_checked
from rejoinder.llm.folder.gguf_file import converted_file, find_gguf
from rejoinder.llm.folder.packaged import PACKAGED_LLMS


@dataclass(frozen=True)
class TextModel:
    """A model that writes text."""

    folder: ModelFolder
    network: Any
    tokenizer: Any
    is_encoder_decoder: bool

    @property
    def window(self) -> int:
        """Tokens that the model takes; with a decoder alone, the reply is among them."""
        return self.folder.max_tokens

    @property
    def vocabulary(self) -> int:
        """Number of tokens that the network knows."""
        return int(self.network.get_input_embeddings().num_embeddings)

    @property
    def padding(self) -> int:
        """The token that fills the rows of a batch; it is never read."""
        token = self.tokenizer.pad_token_id
        if token is None:
            token = next(iter(self.end_tokens), 0)
        return int(token)

    @property
    def end_tokens(self) -> list[int]:
        """The tokens with which a reply ends."""
        named = [self.network.generation_config.eos_token_id, self.tokenizer.eos_token_id]
        ends: dict[int, None] = {}
        for each in named:
            for token in each if isinstance(each, list | tuple) else [each]:
                if isinstance(token, int):
                    ends.setdefault(token)
        return list(ends)


def open_folder(model: str) -> ModelFolder:
    """Find a model and check its files; torch is not imported, unless a GGUF file is converted.

    ``model`` is a folder, a GGUF file, a name in the local cache of Hugging Face, or a packaged
    model such as ``smollm2``.
    """
    if model not in PACKAGED_LLMS and (file := find_gguf(model)) is not None:
        return ModelFolder(model, converted_file(file))
    return ModelFolder(model, find_model_folder(model, PACKAGED_LLMS))


def load(folder: ModelFolder) -> TextModel:
    """Load model and tokenizer of a folder."""

    def choose(transformers: Any, config: Any) -> tuple[Any, Any]:
        return _class_of(folder, config, transformers), config

    network, config = load_checked(folder, choose, "float32")
    tokenizer = load_transformers_tokenizer(folder.path, folder.name)
    return TextModel(folder, network.eval(), tokenizer, bool(config.is_encoder_decoder))


@lru_cache(maxsize=2)
def load_shared(model: str) -> TextModel:
    """Find and load a model, or return it again: those who use it at the same time share it."""
    return load(open_folder(model))


def _class_of(folder: ModelFolder, config: Any, transformers: Any) -> Any:
    """Return the class that writes text with such a model."""
    if type(config) in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        return transformers.AutoModelForSeq2SeqLM
    is_encoder = config.model_type in POST_NORM and not getattr(config, "is_decoder", False)
    if is_encoder or type(config) not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        raise folder.wrong(
            f"describes a model of type {config.model_type}, which writes no text; expected a"
            " causal language model or an encoder with a decoder"
        )
    return transformers.AutoModelForCausalLM

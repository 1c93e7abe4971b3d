"""Small models with random weights in the format of Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["hello", "the", "kitchen", "is", "blue", "and", "finally", "painted", "!", "?"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"

TEXTS = [
    "Hello! The kitchen is finally painted.",
    "blue",
    "",
    "and the kitchen is blue and the kitchen is blue",
    "hello hello hello",
    "Is the kitchen blue?",
    "😀 zebra",
    "the kitchen",
    "a [PAD] b [SEP] c",
    "and " * 40,
]


def tiny_tokenizer(folder: Path, **settings: Any) -> None:
    vocabulary = [*SPECIAL, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    tokenizer = Tokenizer(
        models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"} | settings)
    )


def tiny_model(folder: Path, kind: str = "bert", **settings: Any) -> Path:
    """Save a model of some type with three layers, hidden size 24 and random weights."""
    import torch
    import transformers
    from transformers import AutoConfig, AutoModel

    sizes = {"vocab_size": 80, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 40, "max_position_embeddings": 64, "pad_token_id": 0}
    config = AutoConfig.for_model(kind, **(sizes | settings))
    torch.manual_seed(5)
    with torch.random.fork_rng():
        bars = transformers.utils.logging
        bars.disable_progress_bar()
        model = AutoModel.from_config(config)
        for weights in model.parameters():
            # large enough that every part matters, norms and biases too
            torch.nn.init.normal_(weights, mean=float(weights.dim() == 1) / 2, std=0.3)
        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(folder)
        bars.enable_progress_bar()
    tiny_tokenizer(folder)
    return folder


def tiny_text_model(
    folder: Path, kind: str = "gpt2", template: str | None = None, **settings: Any
) -> Path:
    """Save a model that writes random words: gpt2, llama or t5, with 64 positions."""
    import torch
    import transformers

    sizes: dict[str, dict[str, Any]] = {
        "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 64},
        "llama": {
            "hidden_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 40,
            "max_position_embeddings": 64,
        },
        "t5": {
            "d_model": 24,
            "d_kv": 6,
            "d_ff": 40,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
    }
    ids = {"vocab_size": 80, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    config = transformers.AutoConfig.for_model(kind, **(sizes[kind] | ids | settings))
    classes = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM"}
    bars = transformers.utils.logging
    bars.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = getattr(transformers, classes.get(kind, "T5ForConditionalGeneration"))(config)
        for weights in model.parameters():
            torch.nn.init.normal_(weights, mean=float(weights.dim() == 1), std=0.3)
        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(folder)
    bars.enable_progress_bar()
    tiny_tokenizer(folder, eos_token="[SEP]", bos_token="[CLS]", model_max_length=64)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    return folder

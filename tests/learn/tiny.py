"""A tiny BERT with random weights, and a language of twenty words on five topics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertModel

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{letter}" for letter in "abcdefghijklmnopqrst"]
PIECES = ["walk", "##ing", "##ed"]
LAYERS = 2


def make_bert(folder: Path, *, with_head: bool = False) -> Path:
    """A model folder as sentence-transformers leaves it."""
    folder.mkdir()
    names = [*SPECIAL, *WORDS, *PIECES]
    config = BertConfig(
        vocab_size=len(names), hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=40, hidden_dropout_prob=0.1,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = (BertForMaskedLM if with_head else BertModel)(config)
        model.save_pretrained(folder)
    tokenizer = Tokenizer(
        models.WordPiece({name: k for k, name in enumerate(names)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").write_text("\n".join(names) + "\n")
    settings: dict[str, object] = {f"{name[1:-1].lower()}_token": name for name in SPECIAL}
    settings |= {"tokenizer_class": "BertTokenizer", "model_max_length": 40}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    ]
    modules.append(
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    )
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def make_pairs(path: Path, count: int = 300) -> Path:
    """Dialogues of three pairs. The words of a pair, on both sides, are of one topic of four:
    who sees some of them should guess the others with a perplexity of 4."""
    rng = np.random.default_rng(5)
    rows = []
    for number in range(count):
        topic, first, second = rng.integers((0, 2, 2), (5, 7, 7))
        words = rng.choice(WORDS[4 * topic : 4 * topic + 4], first + second).tolist()
        dialogue = number // 3
        rows.append(
            {
                "dialogue_id": f"d{dialogue}",
                "utterance": " ".join(words[:first]),
                "response": " ".join(words[first:]),
                "split": "validation" if dialogue % 10 == 0 else "train",
            }
        )
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path

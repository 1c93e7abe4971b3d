"""A small llama with random weights and a tokenizer of single bytes, as a GGUF file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SIZES = {"hidden": 32, "inner": 64, "heads": 4, "layers": 2, "window": 96}
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_letters() -> list[str]:
    """The letters that stand for the 256 bytes in vocabularies like that of GPT-2."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letter = {byte: chr(byte) for byte in plain}
    letter |= {byte: chr(256 + number) for number, byte in enumerate(others)}
    return [letter[byte] for byte in range(256)]


def tiny_gguf(
    path: Path, template: str | None = None, *, window: int = SIZES["window"], favoured: str = ""
) -> Path:
    """Write the file; the model hardly ever writes other letters than those that are favoured."""
    import gguf

    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(window)
    writer.add_embedding_length(SIZES["hidden"])
    writer.add_block_count(SIZES["layers"])
    writer.add_feed_forward_length(SIZES["inner"])
    writer.add_head_count(SIZES["heads"])
    writer.add_head_count_kv(SIZES["heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    words = [*SPECIAL, *byte_letters(), "Ġt", "he"]
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([3] * 3 + [1] * (len(words) - 3))
    writer.add_token_merges(["Ġ t", "h e"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    if template is not None:
        writer.add_chat_template(template)

    def add(name: str, *shape: int) -> None:
        values = rng.normal(0, 0.3, shape) if len(shape) > 1 else 1 + rng.normal(0, 0.1, shape)
        if favoured and name == "token_embd.weight":
            values[:, 0] = 5  # of every text, so that the first column of the output counts
        if favoured and name == "output.weight":
            values[:, 0] = [6 if word in favoured else -6 for word in words]
        writer.add_tensor(name, values.astype(np.float32))

    hidden, inner = SIZES["hidden"], SIZES["inner"]
    add("token_embd.weight", len(words), hidden)
    add("output_norm.weight", hidden)
    add("output.weight", len(words), hidden)
    for layer in range(SIZES["layers"]):
        add(f"blk.{layer}.attn_norm.weight", hidden)
        add(f"blk.{layer}.ffn_norm.weight", hidden)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{part}.weight", hidden, hidden)
        add(f"blk.{layer}.ffn_gate.weight", inner, hidden)
        add(f"blk.{layer}.ffn_up.weight", inner, hidden)
        add(f"blk.{layer}.ffn_down.weight", hidden, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path

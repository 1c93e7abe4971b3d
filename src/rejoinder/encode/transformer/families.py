"""Model families of transformers that need, or allow, special treatment, by ``model_type``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorNames:
    """Names of the weights in a family of BERT-like models, below the model's own prefix."""

    layer: str
    query: str
    key: str
    value: str
    attention_output: str
    attention_norm: str
    intermediate: str
    output: str
    output_norm: str


_BERT = TensorNames(
    layer="encoder.layer.",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attention_output="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    intermediate="intermediate.dense",
    output="output.dense",
    output_norm="output.LayerNorm",
)
_DISTILBERT = TensorNames(
    layer="transformer.layer.",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attention_output="attention.out_lin",
    attention_norm="sa_layer_norm",
    intermediate="ffn.lin1",
    output="ffn.lin2",
    output_norm="output_layer_norm",
)

BERT_LIKE = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "distilbert": _DISTILBERT,
}
"""Families whose forward pass :mod:`~rejoinder.encode.transformer.bert_network` computes."""

POST_NORM = frozenset(BERT_LIKE) | {"electra", "mpnet"}
"""Families in which each layer normalises its output.

Layer k of the whole network then equals the output of a network of k layers, so that one forward
pass gives all layers."""

SHIFTED_POSITIONS = frozenset(
    {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm", "longformer"}
    | {"data2vec-text", "ibert", "mpnet", "luke", "esm"}
)
"""Families that number positions from ``pad_token_id + 1`` on."""

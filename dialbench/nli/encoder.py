"""MiniLM-L6 as a cross-encoder: a BERT (Devlin et al., 2019) with a classifier on its first token.

Computes what the library's sequence classifier computes, but the last layer for the first token
alone, since no other is read: a seventh of the work of training and judging.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file
from torch import Tensor, nn

from dialbench.nli.judge import LABELS

WORDS, POSITIONS, SEGMENTS = 30_522, 512, 2
SIZE, WIDE, HEADS, LAYERS = 384, 1_536, 12, 6
_EPSILON = 1e-12


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each with a norm behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(SIZE, SIZE) for _ in range(3))
        self.output = nn.Linear(SIZE, SIZE)
        self.attention_norm = nn.LayerNorm(SIZE, _EPSILON)
        self.widen, self.narrow = nn.Linear(SIZE, WIDE), nn.Linear(WIDE, SIZE)
        self.norm = nn.LayerNorm(SIZE, _EPSILON)

    def forward(self, x: Tensor, memory: Tensor, seen: Tensor | None) -> Tensor:
        """The first tokens `x` (B, Q, H) of `memory` (B, T, H), which all look at all of it."""
        q, k, v = map(_split, (self.query(x), self.key(memory), self.value(memory)))
        attended = _attend(q, k, v, seen)  # (B, heads, Q, H / heads)
        x = self.attention_norm(x + self.output(attended.transpose(1, 2).flatten(2)))
        return cast(Tensor, self.norm(x + self.narrow(F.gelu(self.widen(x)))))


def _attend(q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None) -> Tensor:
    """Attention of queries (B, heads, Q, D) to keys and values (B, heads, T, D)."""
    if not torch.is_grad_enabled():
        return F.scaled_dot_product_attention(q, k, v, seen)
    # Backwards, torch's kernel for CPUs takes a third of a training step in bfloat16.
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, heads, Q, T)
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1).to(v.dtype) @ v


def _split(x: Tensor) -> Tensor:
    """(B, T, H) -> (B, heads, T, H / heads)."""
    return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)


class CrossEncoder(nn.Module):
    """Two texts as one sequence to three logits. Nothing drops out."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, SIZE)
        self.positions = nn.Embedding(POSITIONS, SIZE)
        self.segments = nn.Embedding(SEGMENTS, SIZE)
        self.norm = nn.LayerNorm(SIZE, _EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = nn.Linear(SIZE, SIZE)
        self.classifier = nn.Linear(SIZE, len(LABELS))

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, T) pieces, their text (0 or 1) and whether they are any -> (B, 3) logits."""
        places = self.positions.weight[: input_ids.shape[1]]
        x = self.norm(self.words(input_ids) + self.segments(token_type_ids) + places)
        seen = None if attention_mask.all() else attention_mask[:, None, None].bool()
        for layer in self.layers[:-1]:
            x = layer(x, x, seen)
        first = self.layers[-1](x[:, :1], x, seen)[:, 0]  # (B, H)
        return cast(Tensor, self.classifier(torch.tanh(self.pooler(first))))

    @classmethod
    def of(cls, file: Path) -> CrossEncoder:
        """The encoder with the weights of a BERT of these sizes; the classifier is drawn."""
        encoder = cls()
        tensors = load_file(file)
        names = {name for name in encoder.state_dict() if not name.startswith("classifier.")}
        renamed = {name: tensors[library_name(name)] for name in names}
        encoder.load_state_dict(renamed, strict=False)
        return encoder


_NAMES = {
    "attention_norm": "attention.output.LayerNorm",
    "output": "attention.output.dense",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "norm": "output.LayerNorm",
}
_OUTSIDE = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "pooler": "pooler.dense",
}


def library_name(name: str) -> str:
    """What a file of the library calls a parameter of ours."""
    *path, part, kind = name.split(".")
    if not path:
        return f"{_OUTSIDE[part]}.{kind}"
    return f"encoder.layer.{path[1]}.{_NAMES[part]}.{kind}"

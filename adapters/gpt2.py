"""GPT-2: one decoder-only stack over context and response (docs/systems.md).

Radford et al., "Language Models are Unsupervised Multitask Learners". Without weights a small
stack is trained from scratch over the suite's words; it must not be taken for GPT-2, and its
title says so. With `weights` the pretrained model is fine-tuned: its byte pairs are the words,
and its end-of-text token is EOS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dialbench.adapter import Card
from dialbench.neural.model import DialogueModel
from dialbench.text.vocabulary import BOS, PAD, SEP

from .blocks.causal import CausalModel, CausalSizes
from .blocks.embedding import WordStart
from .pretrained.tuning import TunedAdapter, TuningConfig


@dataclass(frozen=True)
class GPT2Config(WordStart, TuningConfig):
    """Sizes and rates from scratch, and how pretrained weights are fine-tuned.

    The output is tied to the word vectors and has no biases to start from.

    Attributes:
        layers, heads, embedding: of the stack from scratch; `embedding` is n.
        positions: the longest sequence from scratch; longer contexts lose their beginning.
        dropout: from scratch, on embeddings, attention weights and sub-network outputs.
    """

    learning_rate: float = 3e-4
    warmup: float = 2_000
    # A small stack; GPT-2 has 12 layers of n = 768 and 1,024 positions.
    layers: int = 6
    heads: int = 8
    embedding: int = 256
    positions: int = 256
    dropout: float = 0.1

    of_all_heads: ClassVar[str] = "embedding"
    positive: ClassVar[tuple[str, ...]] = ("layers", "heads", "embedding")
    rates: ClassVar[tuple[str, ...]] = ("dropout",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_context <= 0:
            raise ValueError(f"positions={self.positions} leave no room for a context")

    @property
    def max_context(self) -> int:
        """How many positions a context may take from scratch: the response needs the rest."""
        return self.positions - self.response_tokens - 1  # 1 for the EOS of the last turn


class GPT2(TunedAdapter):
    """GPT-2, or a small model of its kind."""

    name = "gpt2"
    version = 3
    card = Card(
        title="GPT-2 (small, from scratch)",
        family="transformer",
        summary="a decoder-only stack; with weights=FOLDER the pretrained GPT-2, fine-tuned",
        paper="Radford et al., Language Models are Unsupervised Multitask Learners",
        year=2019,
    )
    Config = GPT2Config
    config: GPT2Config
    architectures = ("gpt2",)

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        c = self.config
        if not c.weights:
            # Positions are learned: there is none behind the last.
            self.config = replace(c, context_tokens=min(c.context_tokens, c.max_context))

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model, or the pretrained one."""
        c = self.config
        if c.weights:
            return super().build_model(size)
        # L, heads, n, longest, rate
        sizes = CausalSizes(c.layers, c.heads, c.embedding, c.positions, c.dropout)
        return CausalModel(sizes, size, unused=(PAD, BOS, SEP))  # EOS ends every turn

    def warnings(self) -> list[str]:
        """What the paper does not say of corpora other than its first."""
        if not (self.config.weights and self.config.tune):
            return []
        return [
            "fine-tuned on this corpus; the PaRaFormer paper says of DailyDialog only that its "
            "GPT-2 was fine-tuned on it"
        ]

"""Seq2seq with attention: a recurrent encoder-decoder over the joined context.

Baseline "Seq2seq" of the PaRaFormer paper after Bahdanau et al. (models.md A1): a 2-layer
bidirectional GRU reads the context; a 2-layer GRU writes the response, reading the word before
and what additive attention, asked with the previous top state, gives of the context.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.text.vocabulary import PAD

from .blocks.embedding import WordAdapter, WordConfig, WordEmbedding
from .blocks.recurrent import AdditiveAttention, RecurrentDecoderCell, RecurrentEncoder


@dataclass(frozen=True)
class Seq2SeqConfig(WordConfig):
    """Sizes; defaults are the paper's values.

    Attributes:
        hidden: h, of every GRU direction and of the attention.
        recurrent_layers: stacked GRU layers on both sides.
        recurrent_dropout: between the layers.
    """

    hidden: int = 512
    recurrent_layers: int = 2
    recurrent_dropout: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.demand_positive("hidden", "recurrent_layers")
        self.demand_rate("recurrent_dropout")


class Seq2SeqModel(DialogueModel):
    """Encoder, attention and decoder over V words."""

    def __init__(self, config: Seq2SeqConfig, vocabulary: int) -> None:
        super().__init__()
        e, h, layers = config.embedding, config.hidden, config.recurrent_layers
        dropout = config.recurrent_dropout
        self.embedding = WordEmbedding(vocabulary, e, config.word_spread)
        self.encoder = RecurrentEncoder(e, h, layers, dropout)
        self.bridge = nn.Linear(2 * h, h)
        self.attention = AdditiveAttention(2 * h, h, h)
        self.decoder = RecurrentDecoderCell(e + 2 * h, h, layers, dropout)
        self.output = nn.Linear(h, vocabulary)

    def start(self, batch: Batch) -> State:
        """Reads the contexts; each decoder layer starts from its encoder layer's last states."""
        memory, last = self.encoder(self.embedding(batch.source), batch.source)  # (B, S, 2h)
        example = {
            "memory": memory,
            "keys": self.attention.key(memory),  # (B, S, h)
            "seen": batch.source.ne(PAD),
        }
        return State(example, [torch.tanh(self.bridge(layer)) for layer in last])

    def _advance(self, embedded: Tensor, state: State) -> State:
        # (N, e) -> the state one token further; beams of a context share its memory.
        example, states = state.example, state.row
        query = states[-1].view(len(example["memory"]), -1, states[-1].shape[-1])  # (B, W, h)
        mixed = self.attention(example["memory"], example["keys"], query, example["seen"])
        x = torch.cat([embedded, mixed.flatten(0, 1)], -1)  # (N, e + 2h)
        return replace(state, row=self.decoder(x, states), length=state.length + 1)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        state = self._advance(self.embedding(tokens), state)
        return self.output(state.row[-1]), state

    def hidden(self, batch: Batch) -> Tensor:
        """(B, T, h) top states under the true response."""
        state = self.start(batch)
        tops = []
        for embedded in self.embedding(batch.inputs).unbind(1):
            state = self._advance(embedded, state)
            tops.append(state.row[-1])
        return torch.stack(tops, 1)

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) under the true response."""
        return self.output(self.hidden(batch))  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over real target tokens."""
        return word_loss(self.hidden(batch), self.output, batch)


class Seq2Seq(WordAdapter):
    """Seq2seq with additive attention."""

    name = "seq2seq"
    card = Card(
        title="Seq2seq",
        family="recurrent",
        summary="GRU encoder-decoder with additive attention over the joined context",
        paper="Bahdanau, Cho and Bengio, Neural Machine Translation by Jointly Learning to Align"
        " and Translate",
        year=2014,
    )
    Config = Seq2SeqConfig
    config: Seq2SeqConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return Seq2SeqModel(self.config, size)

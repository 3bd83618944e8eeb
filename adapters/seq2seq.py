"""Seq2seq with attention: a recurrent encoder-decoder over the joined context.

Baseline "Seq2seq" of the PaRaFormer paper after Bahdanau et al. (section 4): a 2-layer
bidirectional GRU reads the context; a 2-layer GRU writes the response, reading the word before
and what additive attention, asked with the previous top state, gives of the context.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, WordOutput, word_loss
from dialbench.text.vocabulary import PAD

from .blocks.embedding import WordAdapter, WordEmbedding, WordStart, WordTable
from .blocks.recurrent import AdditiveAttention, RecurrentDecoderCell, RecurrentEncoder


@dataclass(frozen=True)
class Seq2SeqConfig(WordTable, WordStart, NeuralConfig):
    """Sizes; defaults are the paper's values.

    Attributes:
        hidden: h, of every GRU direction and of the attention.
        recurrent_layers: stacked GRU layers on both sides.
        recurrent_dropout: between the layers.
    """

    hidden: int = 512
    recurrent_layers: int = 2
    recurrent_dropout: float = 0.2

    positive: ClassVar[tuple[str, ...]] = ("hidden", "recurrent_layers")
    rates: ClassVar[tuple[str, ...]] = ("recurrent_dropout",)


class Seq2SeqModel(DialogueModel):
    """Encoder, attention and decoder over V words."""

    def __init__(self, config: Seq2SeqConfig, vocabulary: int) -> None:
        super().__init__()
        e, h, layers = config.embedding, config.hidden, config.recurrent_layers
        dropout = config.recurrent_dropout
        self.embedding = WordEmbedding(vocabulary, e, config.word_spread)
        self.encoder = RecurrentEncoder(e, h, layers, dropout)
        self.bridge = nn.Linear(2 * h, h)  # from [last forward; first backward] to s_0
        self.attention = AdditiveAttention(2 * h, h, h)  # v' tanh(W_h h_j + W_s s)
        # reads [E[y_(t-1)]; c_t]
        self.decoder = RecurrentDecoderCell(e + 2 * h, h, layers, dropout)
        self.output = WordOutput(self.readout_size(config), vocabulary)

    def readout_size(self, config: Seq2SeqConfig) -> int:
        """The size of what `readout` gives."""
        return config.hidden

    def embed(self, tokens: Tensor) -> Tensor:
        """Response tokens (...) -> word vectors E[y], (..., e)."""
        return self.embedding(tokens)  # type: ignore[no-any-return]

    def readout(self, embedded: Tensor, top: Tensor, attended: Tensor) -> Tensor:
        """The input of the output map: here the top state s_t alone.

        Args:
            embedded: (N, e), the word before.
            top: (N, h), the top state s_t, which has read it.
            attended: (N, 2h), the context vector c_t.
        """
        return top

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """h_j of every context word (B, S, 2h), and each layer's [last forward; first backward]."""
        return self.encoder(self.embedding(batch.source), batch.source)  # type: ignore[no-any-return]

    def begin(self, batch: Batch, memory: Tensor, last: Tensor) -> State:
        """The state before the first word, from the outputs of `encode`."""
        example = {
            "memory": memory,
            "keys": self.attention.key(memory),  # (B, S, h)
            "seen": batch.source.ne(PAD),  # (B, S), False on PAD
        }
        # s_0 = tanh(W [h_S forward; h_1 backward] + b), (B, h) for each layer
        return State(example, [torch.tanh(self.bridge(layer)) for layer in last])

    def start(self, batch: Batch) -> State:
        """Reads the contexts; each decoder layer starts from its encoder layer's last states."""
        return self.begin(batch, *self.encode(batch))

    def advance(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """One decoding step: word vectors (N, e) -> readouts (N, k) and the new state."""
        example, states = state.example, state.row
        # Attention is asked with s_(t-1); the W beams of a context share its memory.
        query = states[-1].view(len(example["memory"]), -1, states[-1].shape[-1])  # (B, W, h)
        # (B, W, 2h)
        attended = self.attention(example["memory"], example["keys"], query, example["seen"])
        attended = attended.flatten(0, 1)  # c_t, (N, 2h)
        states = self.decoder(torch.cat([embedded, attended], -1), states)  # s_t of [E[y]; c_t]
        state = replace(state, row=states, length=state.length + 1)
        return self.readout(embedded, states[-1], attended), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        readout, state = self.advance(self.embed(tokens), state)
        return self.output(readout), state

    def teacher_forced(self, state: State, inputs: Tensor) -> Tensor:
        """(B, T) decoder inputs -> (B, T, k) readouts, from the state before the first word."""
        readouts = []
        for embedded in self.embed(inputs).unbind(1):  # (B, e), one word of each response
            readout, state = self.advance(embedded, state)
            readouts.append(readout)
        return torch.stack(readouts, 1)

    def hidden(self, batch: Batch) -> Tensor:
        """(B, T, k) readouts with teacher forcing."""
        return self.teacher_forced(self.start(batch), batch.inputs)

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        return self.output(self.hidden(batch))  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over real target tokens."""
        return word_loss(self.hidden(batch), self.output, batch)


class Seq2Seq(WordAdapter, NeuralAdapter):
    """Seq2seq with additive attention."""

    name = "seq2seq"
    version = 3
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

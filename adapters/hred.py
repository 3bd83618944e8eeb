"""HRED: one GRU reads each utterance, another the utterance vectors; its state starts the decoder.

Baseline "HRED" of the PaRaFormer paper after Serban et al. (section 4), laid out as in the code
of VHCR: bidirectional utterance encoder, whose last layer's final states are the utterance's
vector, and a decoder without attention. Encoder and decoder share one word table. In the code of
HRED itself the decoder also reads the context beside every word (`decoder_context=all`). An
utterance may be known by the mean of the encoder's outputs instead (`utterance_vector=mean`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, WordOutput, word_loss

from .blocks.embedding import WordAdapter, WordEmbedding, WordStart, WordTable
from .blocks.hierarchical import (
    TO_FIRST_STATE,
    AttentionFreeDecoding,
    ContextEncoder,
    Conversation,
    KnownBy,
    UtteranceEncoder,
)
from .blocks.recurrent import StackedGRU


@dataclass(frozen=True)
class HREDConfig(WordTable, WordStart, NeuralConfig):
    """Sizes; defaults are the paper's values.

    Attributes:
        hidden: h, of every GRU direction.
        recurrent_layers: stacked GRU layers of utterance encoder, context GRU and decoder.
        recurrent_dropout: between the layers.
        decoder_context: whether the decoder knows the context (and what latent variables there
            are) by its first state alone, or reads it beside every word too, as in the code of
            HRED. By the first state alone it soon forgets it.
        utterance_vector: what an utterance is known by, the encoder's final states or the mean of
            its outputs over the words.
        whole_dialogues: whether a batch holds the examples of a few dialogues, whose contexts share
            most of their turns, in place of examples of similar lengths.
    """

    hidden: int = 512
    recurrent_layers: int = 2
    recurrent_dropout: float = 0.2
    decoder_context: Literal["first", "all"] = "first"  # of the code of VHCR
    utterance_vector: KnownBy = "last"  # of the code of VHCR
    # An option here, a constant of the class in other systems, which mypy does not foresee.
    whole_dialogues: bool = False  # type: ignore[misc]
    clip: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("hidden", "recurrent_layers")
    rates: ClassVar[tuple[str, ...]] = ("recurrent_dropout",)


class HREDModel(AttentionFreeDecoding, DialogueModel):
    """Utterance encoder, context GRU and decoder over V words.

    Args:
        config: sizes.
        vocabulary: V.
        beside_turns: size of what a variant concatenates to every utterance vector.
        beside_context: size of what a variant concatenates to c_K to start the decoder.
    """

    def __init__(
        self, config: HREDConfig, vocabulary: int, beside_turns: int = 0, beside_context: int = 0
    ) -> None:
        super().__init__()
        e, h, layers = config.embedding, config.hidden, config.recurrent_layers
        dropout = config.recurrent_dropout
        self.embedding = WordEmbedding(vocabulary, e, config.word_spread)
        # words -> u_k (2h)
        self.encoder = UtteranceEncoder(e, h, layers, dropout, config.utterance_vector)
        # u_1 ... u_K -> c_K (h)
        self.context = ContextEncoder(2 * h + beside_turns, h, layers, dropout)
        self.bridge = nn.Linear(h + beside_context, layers * h)  # c_K -> s_0 of every layer
        nn.init.xavier_uniform_(self.bridge.weight.detach()[:, :h], TO_FIRST_STATE)
        self.decoder_context = config.decoder_context
        beside_words = h + beside_context if self.decoder_context == "all" else 0
        self.decoder = StackedGRU(e + beside_words, h, layers, dropout)  # without attention
        self.output = WordOutput(h, vocabulary)

    def utterances(self, tokens: Tensor) -> Tensor:
        """(U, W) tokens -> u_k (U, 2h)."""
        return self.encoder.vectors(self.embedding(tokens), tokens)

    def conversation(self, batch: Batch) -> Conversation:
        """The contexts as utterance vectors, each distinct utterance read once."""
        turns = batch.turns
        return Conversation.gather(self.utterances(turns.tokens), turns.contexts)

    def begin(self, *parts: Tensor) -> State:
        """The decoder's first state s_0 from c_K and a variant's further parts, (B, size) each."""
        known = torch.cat(parts, -1)  # (B, h + beside_context)
        states = torch.tanh(self.bridge(known))  # s_0 = tanh(W c_K + b)
        row = list(states.chunk(len(self.decoder.layers), -1))  # (B, h) a layer
        return State(known if self.decoder_context == "all" else None, row)

    def start(self, batch: Batch) -> State:
        """Reads the contexts."""
        return self.begin(self.context(self.conversation(batch)))

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over real target tokens."""
        return word_loss(self.hidden(self.start(batch), batch.inputs), self.output, batch)


class HRED(WordAdapter, NeuralAdapter):
    """The hierarchical recurrent encoder-decoder."""

    name = "hred"
    version = 3
    card = Card(
        title="HRED",
        family="recurrent",
        summary="a GRU over the words of each utterance and one over the utterances; no attention",
        paper="Serban et al., Building End-To-End Dialogue Systems Using Generative Hierarchical"
        " Neural Network Models",
        year=2016,
    )
    Config = HREDConfig
    config: HREDConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return HREDModel(self.config, size)

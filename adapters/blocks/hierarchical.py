"""Conversations as sequences of utterance vectors (Serban et al., 2016; docs/systems.md)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from dialbench.neural.data import Batch
from dialbench.neural.model import State, WordOutput
from dialbench.text.vocabulary import PAD

from .embedding import WordEmbedding
from .recurrent import OF_STATES, RecurrentEncoder, StackedGRU

# What an utterance is known by: the final states, or the mean of the outputs over the words.
KnownBy = Literal["last", "mean"]
# Xavier gain of the map from the context to a decoder's first state. With less, the decoder learns
# to write long before it notices the context (docs/findings/2026-11-21-hred-ignores-context.md).
TO_FIRST_STATE = 3.0


@dataclass(frozen=True)
class Conversation:
    """The utterances of B conversations as vectors.

    Attributes:
        vectors: (B, N, n), oldest first, zero behind the last.
        real: (B, N), True where there is an utterance.
    """

    vectors: Tensor
    real: Tensor

    @classmethod
    def gather(cls, distinct: Tensor, contexts: Tensor) -> Conversation:
        """From (U, n) vectors and (B, N) rows of them, -1 behind the last."""
        real = contexts.ge(0)  # (B, N)
        rows = contexts.clamp(min=0).flatten()  # (B * N,)
        vectors = distinct.index_select(0, rows).view(*contexts.shape, -1)
        return cls(vectors.masked_fill(~real[:, :, None], 0.0), real)

    @property
    def last(self) -> Tensor:
        """(B,) index of the last utterance of each conversation."""
        return self.real.sum(1) - 1

    def append(self, utterance: Tensor) -> Conversation:
        """Each conversation with one more utterance, (B, n)."""
        position = torch.arange(self.real.shape[1] + 1, device=self.real.device)
        is_new = position == self.last[:, None] + 1  # (B, N + 1)
        longer = nn.functional.pad(self.vectors, (0, 0, 0, 1))
        vectors = torch.where(is_new[:, :, None], utterance[:, None], longer)  # (B, N + 1, n)
        return Conversation(vectors, nn.functional.pad(self.real, (0, 1)) | is_new)

    def with_features(self, features: Tensor) -> Conversation:
        """The features of each conversation (B, k) concatenated to each of its utterances."""
        repeated = features[:, None].expand(-1, self.vectors.shape[1], -1)
        return replace(self, vectors=torch.cat([self.vectors, repeated], -1))

    def drop(self, replacement: Tensor, rate: float) -> Conversation:
        """Every utterance replaced by the vector `replacement` (n,) with chance `rate`."""
        dropped = torch.rand(self.real.shape, device=self.real.device).lt(rate) & self.real
        return replace(self, vectors=torch.where(dropped[:, :, None], replacement, self.vectors))


class UtteranceEncoder(RecurrentEncoder):
    """A bidirectional GRU over the words of each utterance.

    Args:
        inputs: size of the words' vectors.
        hidden: h, size of each direction's state.
        layers: how many are stacked.
        dropout: between the layers.
        known_by: what `vectors` takes of the last layer.
    """

    def __init__(
        self, inputs: int, hidden: int, layers: int, dropout: float, known_by: KnownBy = "last"
    ) -> None:
        super().__init__(inputs, hidden, layers, dropout)
        self.known_by = known_by

    def vectors(self, embedded: Tensor, tokens: Tensor) -> Tensor:
        """u_k (U, 2h), [last forward; first backward] or mean, from (U, W, e) and (U, W) tokens."""
        outputs, last = self(embedded, tokens)  # outputs are zero on PAD
        if self.known_by == "last":
            return last[-1]  # type: ignore[no-any-return]
        words = tokens.ne(PAD).sum(1, keepdim=True).clamp(min=1)  # (U, 1)
        return outputs.sum(1) / words  # type: ignore[no-any-return]


class ContextEncoder(nn.Module):
    """A stacked GRU over utterance vectors; padding behind the last utterance is not read.

    Args:
        inputs: size of the vectors.
        hidden: h, size of each layer's state.
        layers: how many are stacked.
        dropout: between the layers.
        gain: as of `StackedGRU`.
    """

    def __init__(
        self, inputs: int, hidden: int, layers: int, dropout: float, gain: float = OF_STATES
    ) -> None:
        super().__init__()
        self.gru = StackedGRU(inputs, hidden, layers, dropout, gain)

    def forward(self, turns: Conversation, states: list[Tensor] | None = None) -> Tensor:
        """The top state c_K after the last utterance, (B, h), from states of (B, h) a layer."""
        tops, _ = self.gru(turns.vectors, states)  # (B, N, h)
        last = turns.last[:, None, None].expand(-1, 1, tops.shape[-1])  # (B, 1, h)
        return tops.gather(1, last).squeeze(1)  # type: ignore[no-any-return]


class AttentionFreeDecoding:
    """A mixin of models without attention: the decoder knows the context by its first state.

    It stands before `DialogueModel`. Where `start` leaves a vector (B, n) of each example in the
    state, the decoder reads that beside every word too.

    Attributes:
        embedding: of the words that the decoder reads.
        decoder: starts from what `start` leaves in the state.
        output: from its top states (h) to logits (V).
    """

    embedding: WordEmbedding
    decoder: StackedGRU
    output: WordOutput

    @abstractmethod
    def start(self, batch: Batch) -> State:
        """As of `DialogueModel`."""

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        tops, states = self.decoder(self.decoder_inputs(tokens[:, None], state), state.row)
        return self.output(tops[:, 0]), replace(state, row=states, length=state.length + 1)

    def hidden(self, state: State, inputs: Tensor) -> Tensor:
        """(B, T) decoder inputs -> (B, T, h) top states."""
        tops, _ = self.decoder(self.decoder_inputs(inputs, state), state.row)
        return tops  # type: ignore[no-any-return]

    def decoder_inputs(self, tokens: Tensor, state: State) -> Tensor:
        """(B * width, T) tokens -> (B * width, T, e + n), what the decoder reads."""
        words: Tensor = self.embedding(tokens)  # (B * width, T, e)
        if state.example is None:
            return words
        beside = state.example.repeat_interleave(state.width, 0)  # (B * width, n)
        return torch.cat([words, beside[:, None].expand(-1, tokens.shape[1], -1)], -1)

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing, from the state that answering starts from."""
        return self.output(self.hidden(self.start(batch), batch.inputs))  # type: ignore[no-any-return]

"""Recurrent parts (models.md 0.6)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialbench.neural.dropout import Dropout
from dialbench.text.vocabulary import PAD


class RecurrentEncoder(nn.Module):
    """Stacked bidirectional GRU over words; PAD changes no state.

    Args:
        inputs: size of the word vectors.
        hidden: h, size of each direction.
        layers: how many are stacked.
        dropout: between the layers.
    """

    def __init__(self, inputs: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.layers, self.hidden = layers, hidden
        between = dropout if layers > 1 else 0.0
        self.gru = nn.GRU(
            inputs, hidden, layers, batch_first=True, bidirectional=True, dropout=between
        )

    def forward(self, embedded: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Reads (B, S, e) word vectors of (B, S) tokens.

        Returns:
            Outputs of the last layer (B, S, 2h), zero on PAD, and for every layer [last forward;
            first backward] (layers, B, 2h).
        """
        lengths = tokens.ne(PAD).sum(1).clamp(min=1).cpu()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, last = self.gru(packed)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=tokens.shape[1])
        both = last.view(self.layers, 2, -1, self.hidden)
        return padded, torch.cat([both[:, 0], both[:, 1]], -1)


class AdditiveAttention(nn.Module):
    """e_j = v' tanh(W_h h_j + W_s s), without biases.

    Args:
        memory: size of h_j.
        query: size of s.
        size: size of the hidden layer.
    """

    def __init__(self, memory: int, query: int, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory, size, bias=False)
        self.query = nn.Linear(query, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)

    def weights(self, keys: Tensor, query: Tensor, seen: Tensor) -> Tensor:
        """(B, W, S) weights that sum to 1 and are 0 on PAD.

        Args:
            keys: (B, S, size), `self.key` of the memory.
            query: (B, W, query size).
            seen: (B, S), True on real tokens.
        """
        energy = self.score(torch.tanh(keys[:, None] + self.query(query)[:, :, None])).squeeze(-1)
        return energy.masked_fill(~seen[:, None], -torch.inf).softmax(-1)

    def forward(self, memory: Tensor, keys: Tensor, query: Tensor, seen: Tensor) -> Tensor:
        """The mix of (B, S, memory size) that each query asks for, (B, W, memory size)."""
        return self.weights(keys, query, seen) @ memory


class RecurrentDecoderCell(nn.Module):
    """Stacked GRU cells, one token at a time.

    Args:
        inputs: size of what the first layer reads.
        hidden: h, size of each layer's state.
        layers: how many are stacked.
        dropout: between the layers.
    """

    def __init__(self, inputs: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [inputs] + [hidden] * (layers - 1)
        self.cells = nn.ModuleList(nn.GRUCell(size, hidden) for size in sizes)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        """Reads (N, inputs) in states of (N, h) a layer; the last of those returned is the top."""
        after = []
        for number, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            x = cell(x if number == 0 else self.dropout(x), state)
            after.append(x)
        return after

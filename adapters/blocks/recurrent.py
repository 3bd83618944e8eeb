"""GRU encoders and decoders, and additive attention (PaRaFormer, section 4; docs/systems.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from dialbench.neural.dropout import Dropout
from dialbench.text.vocabulary import PAD

Recurrent = TypeVar("Recurrent", nn.GRU, nn.GRUCell)


# Update gates start at one half, so that half of what differs in the input goes on; twice the
# weight makes up for it. Word vectors have a large enough std without.
OF_WORDS, OF_STATES = 1.0, 2.0


def scaled(recurrent: Recurrent, gain: float = OF_WORDS) -> Recurrent:
    """Initialises with Xavier input maps and orthogonal recurrent maps, gate by gate, zero biases.

    PyTorch's initialisation shrinks signals with every layer, so that the context is used late.

    Args:
        recurrent: freshly built.
        gain: of the input maps; `OF_STATES` where the input is states of another layer.
    """
    for name, weights in recurrent.named_parameters():
        if "bias" in name:
            nn.init.zeros_(weights)
            continue
        for gate in weights.detach().chunk(3):  # reset, update, candidate: (h, in) each
            if "weight_ih" in name:
                nn.init.xavier_uniform_(gate, gain)
            else:
                nn.init.orthogonal_(gate)
    return recurrent


def _layers(inputs: int, rest: int, hidden: int, layers: int, first: float) -> nn.ModuleList:
    """GRU layers; all but the first read `rest` values, states of the layer before."""
    kinds = [(inputs, first)] + [(rest, OF_STATES)] * (layers - 1)
    return nn.ModuleList(
        scaled(nn.GRU(size, hidden, batch_first=True), gain) for size, gain in kinds
    )


class RecurrentEncoder(nn.Module):
    """Stacked bidirectional GRU over words; PAD changes no state.

    The backward direction reads every sequence mirrored within its own length. So PAD comes last
    for both directions, and nothing need be packed, which on a CPU costs half as much again.

    Args:
        inputs: size of the word vectors.
        hidden: h, size of each direction.
        layers: how many are stacked.
        dropout: between the layers.
        gain: of the first layer's input maps at the start, `OF_WORDS` or `OF_STATES`.
    """

    def __init__(
        self, inputs: int, hidden: int, layers: int, dropout: float, gain: float = OF_WORDS
    ) -> None:
        super().__init__()
        self.ahead = _layers(inputs, 2 * hidden, hidden, layers, gain)
        self.back = _layers(inputs, 2 * hidden, hidden, layers, gain)
        self.dropout = Dropout(dropout)

    def forward(self, embedded: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Reads (B, S, e) word vectors of (B, S) tokens.

        Returns:
            Outputs of the last layer (B, S, 2h), zero on PAD, and for every layer [last forward;
            first backward] (layers, B, 2h).
        """
        return self.read(embedded, tokens.ne(PAD))

    def read(self, embedded: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """As `forward`, for vectors of anything, (B, S) True where they are real."""
        # indices that mirror each sequence (B, S), and of its last token (B,)
        mirror, final = mirrored(real), (real.sum(1) - 1).clamp(min=0)
        x, lasts = embedded, []
        for number, (ahead, back) in enumerate(zip(self.ahead, self.back, strict=True)):
            x = x if number == 0 else self.dropout(x)
            forward, _ = precisely(ahead, x)  # (B, S, h)
            # (B, S, h), from the last word to the first
            backward, _ = precisely(back, pick(x, mirror))
            both = torch.cat([forward, backward], -1)  # (B, S, 2h), each in its own order
            lasts.append(pick(both, final[:, None]).squeeze(1))  # (B, 2h)
            x = torch.cat([forward, pick(backward, mirror)], -1)  # (B, S, 2h), in word order
        return x * real[:, :, None], torch.stack(lasts)


def precisely(layer: nn.Module, x: Tensor, state: Tensor | None = None) -> Any:
    """`layer(x, state)`, on a GPU in the layer's own precision.

    Mixed precision computes cuDNN's layers in float16 there, whatever it was asked for, and without
    scaling their gradients vanish.
    """
    if x.device.type != "cuda":
        return layer(x, state)
    dtype = next(layer.parameters()).dtype
    with torch.autocast("cuda", enabled=False):
        return layer(x.to(dtype), None if state is None else state.to(dtype))


def mirrored(real: Tensor) -> Tensor:
    """(B, S): for each position of the mirrored sequence the index of its token."""
    position = torch.arange(real.shape[1], device=real.device)
    opposite = real.sum(1, keepdim=True) - 1 - position  # (B, S), below 0 on PAD
    return torch.where(opposite < 0, position, opposite)


def pick(x: Tensor, positions: Tensor) -> Tensor:
    """(B, S, n) at positions (B, P) -> (B, P, n)."""
    return x.gather(1, positions[:, :, None].expand(-1, -1, x.shape[-1]))


class StackedGRU(nn.Module):
    """Stacked GRU layers that read forwards, a whole sequence or one step at a time.

    Args:
        inputs: size of what the first layer reads.
        hidden: h, size of each layer's state.
        layers: how many are stacked.
        dropout: between the layers.
        gain: of the first layer's input maps at the start, `OF_WORDS` or `OF_STATES`.
    """

    def __init__(
        self, inputs: int, hidden: int, layers: int, dropout: float, gain: float = OF_WORDS
    ) -> None:
        super().__init__()
        self.layers = _layers(inputs, hidden, hidden, layers, gain)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, states: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Reads (N, T, inputs) from states of (N, h) a layer, or from zeros.

        Returns:
            Outputs of the last layer (N, T, h), and the state of every layer after step T.
        """
        after = []
        for number, layer in enumerate(self.layers):
            x = x if number == 0 else self.dropout(x)
            before = None if states is None else states[number][None].contiguous()
            x, state = precisely(layer, x, before)  # (N, T, h), (1, N, h)
            after.append(state[0])
        return x, after


class AdditiveAttention(nn.Module):
    """Additive attention (Bahdanau et al., 2014): e_j = v' tanh(W_h h_j + W_s s), no biases.

    Args:
        memory: size of h_j.
        query: size of s.
        size: size of the hidden layer.
    """

    def __init__(self, memory: int, query: int, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory, size, bias=False)  # W_h; DVS2S's W_alpha is [W_h W_s]
        self.query = nn.Linear(query, size, bias=False)  # W_s
        self.score = nn.Linear(size, 1, bias=False)  # v'

    def weights(self, keys: Tensor, query: Tensor, seen: Tensor) -> Tensor:
        """(B, W, S) weights that sum to 1 and are 0 on PAD.

        Args:
            keys: (B, S, size), `self.key` of the memory.
            query: (B, W, query size).
            seen: (B, S), True on real tokens.
        """
        hidden = torch.tanh(keys[:, None] + self.query(query)[:, :, None])  # (B, W, S, size)
        energy: Tensor = self.score(hidden).squeeze(-1)  # e_j, (B, W, S); DVS2S, eq. 5
        return energy.masked_fill(~seen[:, None], -torch.inf).softmax(-1)  # a_j; DVS2S, eq. 4

    def forward(self, memory: Tensor, keys: Tensor, query: Tensor, seen: Tensor) -> Tensor:
        """C = sum_j a_j h_j over the memory (B, S, memory size), (B, W, memory size)."""
        return self.weights(keys, query, seen) @ memory  # DVS2S, eq. 3


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
        kinds = [(inputs, OF_WORDS)] + [(hidden, OF_STATES)] * (layers - 1)
        self.cells = nn.ModuleList(scaled(nn.GRUCell(size, hidden), gain) for size, gain in kinds)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        """Reads (N, inputs) in states of (N, h) a layer; the last of those returned is the top."""
        after = []
        for number, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            # s_t of this layer, (N, h)
            x = precisely(cell, x if number == 0 else self.dropout(x), state)
            after.append(x)
        return after

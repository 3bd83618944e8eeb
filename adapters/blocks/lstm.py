"""LSTM layers (AdaND, eq. 4) in one or two directions, and attention over their outputs.

A layer is a cell. Products that do not depend on the state are computed for all steps at once,
and the two directions of an encoder take every step together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.dropout import Dropout

from .recurrent import mirrored, pick

Parts = tuple[Tensor, ...]


_EMPTY = torch.empty(0)


@dataclass(frozen=True)
class Conditioning:
    """The conversation as adaptive cells see it.

    Attributes:
        context: zeta (N, h), what is said in it.
        topics: theta (N, K), what it is about.
    """

    context: Tensor = _EMPTY
    topics: Tensor = _EMPTY


class Cell(nn.Module):
    """One layer, in D directions with weights of their own.

    Args:
        directions: D.
        inputs: size of what it reads.
        hidden: h, size of what it gives.

    Attributes:
        parts: sizes of the parts of its state; the first is h, what it gives.
    """

    def __init__(self, directions: int, inputs: int, hidden: int) -> None:
        super().__init__()
        self.directions, self.reads, self.hidden = directions, inputs, hidden
        self.parts = [hidden, hidden]

    def zeros(self, like: Tensor) -> Parts:
        """The state before the first step, (D, N, part) each, for N rows as (..., N, size)."""
        shape = self.directions, like.shape[-2]
        return tuple(like.new_zeros(*shape, size) for size in self.parts)

    def per_conversation(self, conditioning: Conditioning) -> Parts:
        """Terms that are the same at every step of a conversation, (D, N, size) each."""
        return ()

    def packed_weights(self) -> Parts:
        """Weights concatenated as a step uses them, once for all steps."""
        return ()

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """Terms of a step that depend on x (D, T, N, inputs) alone, (D, T, N, size) each."""
        raise NotImplementedError

    def masks(self, x: Tensor) -> Tensor | None:
        """Factors (D, T, N, size) of dropout inside the steps; None for none."""
        return None

    def forward(
        self,
        x_terms: Parts,
        state: Parts,
        conversation: Parts,
        packed: Parts,
        mask: Tensor | None,
    ) -> Parts:
        """The state one step further.

        Args:
            x_terms: what `Cell.input_terms` gave for this step, (D, N, size) each.
            state: (D, N, part) each.
            conversation: what `per_conversation` gave.
            packed: what `packed_weights` gave.
            mask: (D, N, size) of `masks`.
        """
        raise NotImplementedError


def empty_weights(directions: int, inputs: int, outputs: int) -> nn.Parameter:
    """(D, inputs, outputs), not yet initialised."""
    return nn.Parameter(torch.empty(directions, inputs, outputs))


def batched_product(x: Tensor, weight: Tensor) -> Tensor:
    """(D, ..., i) times (D, i, o) -> (D, ..., o)."""
    flat = torch.bmm(x.flatten(1, -2), weight)  # (D, rows, o)
    return flat.view(*x.shape[:-1], weight.shape[-1])


def split_gates(gates: Tensor) -> Parts:
    """Input, forget and output gate and the candidate, (..., h) each, from (..., 4h)."""
    h = gates.shape[-1] // 4
    # One sigmoid for the three gates i, f, o (..., 3h), one tanh for the candidate g (..., h).
    opened, candidate = gates.split_with_sizes([3 * h, h], -1)
    return *opened.sigmoid().split_with_sizes([h, h, h], -1), candidate.tanh()


def lstm_step(gates: Tensor, c: Tensor) -> Parts:
    """(h, c) of a plain LSTM from its gates (..., 4h) and the cell state before."""
    i, f, o, g = split_gates(gates)
    c = torch.addcmul(f * c, i, g)  # c_t = f * c_(t-1) + i * g
    return o * c.tanh(), c  # h_t = o * tanh(c_t); AdaND, eq. 4


class LSTMCell(Cell):
    """The LSTM; gates are in the order input, forget, output, candidate.

    Starts from Xavier input maps and orthogonal recurrent maps, gate by gate, zero biases.
    """

    def __init__(self, directions: int, inputs: int, hidden: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.input = empty_weights(directions, inputs, 4 * hidden)  # W_x of i, f, o, g
        self.recurrent = empty_weights(directions, hidden, 4 * hidden)  # W_h of i, f, o, g
        # Two biases, as every library has, though only their sum counts.
        self.input_bias = nn.Parameter(torch.zeros(directions, 4 * hidden))
        self.recurrent_bias = nn.Parameter(torch.zeros(directions, 4 * hidden))
        for start, maps in (
            (nn.init.xavier_uniform_, self.input),
            (nn.init.orthogonal_, self.recurrent),
        ):
            for direction in maps.detach():
                for gate in direction.chunk(4, -1):
                    start(gate)

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """As `Cell.input_terms`: W_x x + b of all gates."""
        bias = self.input_bias + self.recurrent_bias  # (D, 4h)
        return (batched_product(x, self.input) + bias[:, None, None],)  # (D, T, N, 4h)

    def forward(
        self,
        x_terms: Parts,
        state: Parts,
        conversation: Parts,
        packed: Parts,
        mask: Tensor | None,
    ) -> Parts:
        """As `Cell.forward`."""
        h, c = state
        return lstm_step(torch.baddbmm(x_terms[0], h, self.recurrent), c)  # W_x x + W_h h + b


def normalise(x: Tensor) -> Tensor:
    """Layer normalisation without gain and bias."""
    return F.layer_norm(x, x.shape[-1:])


class Norm(nn.Module):
    """Layer normalisation with a gain and a bias for each of D directions."""

    def __init__(self, directions: int, size: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(directions, size))
        self.bias = nn.Parameter(torch.zeros(directions, size))

    def forward(self, x: Tensor) -> Tensor:
        """(D, ..., size) -> the same."""
        size = x.shape[-1:]
        if len(x) == 1:
            return F.layer_norm(x, size, self.gain.view(size), self.bias.view(size))
        shape = len(x), *(1 for _ in x.shape[1:-1]), *size
        return torch.addcmul(self.bias.view(shape), normalise(x), self.gain.view(shape))


class NormedCell(Cell):
    """An LSTM whose input part, recurrent part and cell state are layer-normalised.

    Recurrent dropout is applied to the candidate alone, so that the memory is kept. Subclasses
    compute the two parts.

    Args:
        directions: D.
        inputs: size of what it reads.
        hidden: h.
        dropout: rate on the candidate.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__(directions, inputs, hidden)
        self.input_norm = Norm(directions, 4 * hidden)
        self.recurrent_norm = Norm(directions, 4 * hidden)
        self.cell_norm = Norm(directions, hidden)
        self.dropout = Dropout(dropout)

    def masks(self, x: Tensor) -> Tensor | None:
        """As `Cell.masks`: for all candidates of all steps at once."""
        if not self.training or not self.dropout.rate:
            return None
        size = sum(self.parts) // 2  # h and, where a cell has one, the size of xi
        # (D, T, N, size)
        return self.dropout(x.new_ones(*x.shape[:-1], size))  # type: ignore[no-any-return]

    def close(self, gates: Tensor, c: Tensor, mask: Tensor | None) -> Parts:
        """From gates (D, N, 4h) and the cell state before to the state after."""
        i, f, o, g = split_gates(gates)
        # c_t = LN(f * c_(t-1) + i * dropout(g)), as in AdaND's code
        c = self.cell_norm(torch.addcmul(f * c, i, g if mask is None else g * mask))
        return o * c.tanh(), c


class NormedLSTMCell(NormedCell):
    """The layer-normalised LSTM; input maps start orthogonal, recurrent ones as the identity."""

    def __init__(self, directions: int, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__(directions, inputs, hidden, dropout)
        self.input = empty_weights(directions, inputs, 4 * hidden)
        self.recurrent = empty_weights(directions, hidden, 4 * hidden)
        with torch.no_grad():
            for direction in self.input:
                nn.init.orthogonal_(direction)
            self.recurrent.copy_(torch.eye(hidden).repeat(1, 4))  # one identity a gate

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """As `Cell.input_terms`: the normalised input part."""
        return (self.input_norm(batched_product(x, self.input)),)  # LN(W x), (D, T, N, 4h)

    def forward(
        self,
        x_terms: Parts,
        state: Parts,
        conversation: Parts,
        packed: Parts,
        mask: Tensor | None,
    ) -> Parts:
        """As `Cell.forward`."""
        h, c = state
        gates = x_terms[0] + self.recurrent_norm(torch.bmm(h, self.recurrent))  # LN(Wx) + LN(Uh)
        return self.close(gates, c, mask)


def _run_cell(
    cell: Cell, x: Tensor, state: Parts, conversation: Parts, packed: Parts
) -> list[Parts]:
    """The states after each of T steps over (D, N, T, inputs)."""
    x = x.transpose(1, 2)  # (D, T, N, inputs)
    steps = zip(*(part.unbind(1) for part in cell.input_terms(x, conversation)), strict=True)
    dropout_masks = cell.masks(x)
    after = []
    masks = repeat(None) if dropout_masks is None else dropout_masks.unbind(1)
    for x_terms, mask in zip(steps, masks, strict=False):
        state = cell(x_terms, state, conversation, packed, mask)
        after.append(state)
    return after


class _Stack(nn.Module):
    """Layers one above the other.

    Args:
        cells: the layers.
        dropout: between them.
    """

    def __init__(self, cells: Sequence[Cell], dropout: float) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)
        self.dropout = Dropout(dropout)

    def _layers(self) -> list[Cell]:
        return [cast(Cell, cell) for cell in self.cells]


class BidirectionalLSTM(_Stack):
    """Stacked layers that read in both directions; PAD changes no state.

    As in `RecurrentEncoder`, the second direction reads every sequence mirrored within its own
    length, so that PAD comes last for both. Its cells have two directions each.
    """

    def forward(
        self, x: Tensor, real: Tensor, conditioning: Conditioning
    ) -> tuple[Tensor, list[Parts]]:
        """Reads vectors (B, S, n), of which `real` (B, S) are no PAD.

        Returns:
            Outputs of the last layer (B, S, 2h), zero on PAD, and for every layer its final
            state, (B, part) each, summed over the directions.
        """
        mirror, final = mirrored(real), (real.sum(1) - 1).clamp(min=0)[:, None]  # (B, S), (B, 1)
        lasts: list[Parts] = []
        for cell in self._layers():
            x = self.dropout(x) if lasts else x
            both = torch.stack([x, pick(x, mirror)])  # (2, B, S, n): forward and mirrored
            zeros = cell.zeros(x.transpose(0, 1))  # (2, B, part) each
            conversation = cell.per_conversation(conditioning)
            after = _run_cell(cell, both, zeros, conversation, cell.packed_weights())
            tracks = [torch.stack(part, 2) for part in zip(*after, strict=True)]  # (2, B, S, part)
            # The two directions' states after the last real token, summed (AdaND's code).
            lasts.append(tuple(pick(t[0], final)[:, 0] + pick(t[1], final)[:, 0] for t in tracks))
            ahead, back = tracks[0]
            x = torch.cat([ahead, pick(back, mirror)], -1)  # (B, S, 2h), in word order
        return x * real[:, :, None], lasts


class ForwardLSTM(_Stack):
    """Stacked layers that read forwards, a whole sequence or one step at a time.

    Its cells have one direction each.
    """

    def per_conversation(self, conditioning: Conditioning) -> list[Parts]:
        """Terms that are the same at every step, for every layer, (N, size) each."""
        return [
            tuple(part[0] for part in cell.per_conversation(conditioning))
            for cell in self._layers()
        ]

    def packed_weights(self) -> list[Parts]:
        """Those of every layer."""
        return [cell.packed_weights() for cell in self._layers()]

    def forward(
        self,
        x: Tensor,
        states: Sequence[Parts],
        conversation: Sequence[Parts],
        packed: Sequence[Parts],
    ) -> tuple[Tensor, list[Parts]]:
        """Reads (N, T, n) from the states of all layers, (N, part) each.

        Returns:
            Outputs of the last layer (N, T, h), and the states after step T.
        """
        lasts: list[Parts] = []
        layers = zip(self._layers(), states, conversation, packed, strict=True)
        for cell, state, same, weights in layers:
            x = self.dropout(x) if lasts else x
            after = _run_cell(cell, x[None], _add_direction(state), _add_direction(same), weights)
            x = torch.stack([state[0][0] for state in after], 1)  # (N, T, h)
            lasts.append(tuple(part[0] for part in after[-1]))
        return x, lasts


def _add_direction(parts: Parts) -> Parts:
    return tuple(part[None] for part in parts)


class GeneralAttention(nn.Module):
    """Luong's "general" attention: scores s' W h_j, output tanh(W_c [s; mix]), no biases.

    Args:
        memory: size of h_j.
        query: size of s and of what it gives.
    """

    def __init__(self, memory: int, query: int) -> None:
        super().__init__()
        self.query = nn.Linear(query, memory, bias=False)  # W
        self.combine = nn.Linear(query + memory, query, bias=False)  # W_c

    def weights(self, s: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """(B, T, S) weights that sum to 1 and are 0 where (B, S) `seen` is False."""
        energy = self.query(s) @ memory.transpose(1, 2)  # (B, T, S)
        return energy.masked_fill(~seen[:, None], -torch.inf).softmax(-1)  # type: ignore[no-any-return]

    def forward(self, s: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """From states (B, T, query) over (B, S, memory), (B, T, query)."""
        mixed = self.weights(s, memory, seen) @ memory  # (B, T, memory)
        return torch.tanh(self.combine(torch.cat([s, mixed], -1)))  # (B, T, query)

"""LSTM layers in one or two directions at once, and attention over what they read (AdaND, eq. 4).

A layer is a cell: what of a step does not depend on the state before it is computed for all steps
in one product, and the two directions of an encoder take every step together.
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


_NOTHING = torch.empty(0)


@dataclass(frozen=True)
class Given:
    """What a conversation gives to cells that adapt to it.

    Attributes:
        context: zeta (N, h), what is said in it.
        topics: theta (N, K), what it is about.
    """

    context: Tensor = _NOTHING
    topics: Tensor = _NOTHING


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

    def fixed(self, given: Given) -> Parts:
        """What is the same at every step of a conversation, (D, N, size) each."""
        return ()

    def joined(self) -> Parts:
        """Weights side by side as a step uses them, put together once for all steps."""
        return ()

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """What (D, T, N, inputs) contribute apart from the state, (D, T, N, size) each."""
        raise NotImplementedError

    def masks(self, x: Tensor) -> Tensor | None:
        """Factors (D, T, N, size) of dropout inside the steps; None for none."""
        return None

    def forward(
        self, at: Parts, state: Parts, fixed: Parts, joined: Parts, mask: Tensor | None
    ) -> Parts:
        """The state one step further.

        Args:
            at: what `inputs` gave for this step, (D, N, size) each.
            state: (D, N, part) each.
            fixed: what `fixed` gave.
            joined: what `joined` gave.
            mask: (D, N, size) of `masks`.
        """
        raise NotImplementedError


def weights(directions: int, inputs: int, outputs: int) -> nn.Parameter:
    """(D, inputs, outputs), not yet initialised."""
    return nn.Parameter(torch.empty(directions, inputs, outputs))


def product(x: Tensor, weight: Tensor) -> Tensor:
    """(D, ..., i) times (D, i, o) -> (D, ..., o)."""
    flat = torch.bmm(x.flatten(1, -2), weight)
    return flat.view(*x.shape[:-1], weight.shape[-1])


def activated(gates: Tensor) -> Parts:
    """Input, forget and output gate and the candidate, (..., h) each, from (..., 4h)."""
    h = gates.shape[-1] // 4
    opened, candidate = gates.split_with_sizes([3 * h, h], -1)
    return *opened.sigmoid().split_with_sizes([h, h, h], -1), candidate.tanh()


def stepped(gates: Tensor, c: Tensor) -> Parts:
    """(h, c) of a plain LSTM from its gates (..., 4h) and the cell state before."""
    i, f, o, g = activated(gates)
    c = torch.addcmul(f * c, i, g)
    return o * c.tanh(), c


class LSTMCell(Cell):
    """The LSTM; gates stand in the order input, forget, output, candidate.

    Starts from Xavier input maps and orthogonal recurrent maps, gate by gate, zero biases.
    """

    def __init__(self, directions: int, inputs: int, hidden: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.input = weights(directions, inputs, 4 * hidden)
        self.recurrent = weights(directions, hidden, 4 * hidden)
        # Two, as the LSTM of every library has, though their sum is all that counts.
        self.input_bias = nn.Parameter(torch.zeros(directions, 4 * hidden))
        self.recurrent_bias = nn.Parameter(torch.zeros(directions, 4 * hidden))
        for start, maps in (
            (nn.init.xavier_uniform_, self.input),
            (nn.init.orthogonal_, self.recurrent),
        ):
            for direction in maps.detach():
                for gate in direction.chunk(4, -1):
                    start(gate)

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """As `Cell.inputs`: the gates apart from the state."""
        bias = self.input_bias + self.recurrent_bias
        return (product(x, self.input) + bias[:, None, None],)

    def forward(
        self, at: Parts, state: Parts, fixed: Parts, joined: Parts, mask: Tensor | None
    ) -> Parts:
        """As `Cell.forward`."""
        h, c = state
        return stepped(torch.baddbmm(at[0], h, self.recurrent), c)


def plain(x: Tensor) -> Tensor:
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
        return torch.addcmul(self.bias.view(shape), plain(x), self.gain.view(shape))


class NormedCell(Cell):
    """An LSTM whose input part, recurrent part and cell state are layer-normalised.

    Recurrent dropout falls on the candidate alone, so that the memory is kept. How the two
    parts come about is up to the cells that derive from this one.

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
        size = sum(self.parts) // 2
        return self.dropout(x.new_ones(*x.shape[:-1], size))  # type: ignore[no-any-return]

    def close(self, gates: Tensor, c: Tensor, mask: Tensor | None) -> Parts:
        """From gates (D, N, 4h) and the cell state before to the state after."""
        i, f, o, g = activated(gates)
        c = self.cell_norm(torch.addcmul(f * c, i, g if mask is None else g * mask))
        return o * c.tanh(), c


class NormedLSTMCell(NormedCell):
    """The layer-normalised LSTM; input maps start orthogonal, recurrent ones as the identity."""

    def __init__(self, directions: int, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__(directions, inputs, hidden, dropout)
        self.input = weights(directions, inputs, 4 * hidden)
        self.recurrent = weights(directions, hidden, 4 * hidden)
        with torch.no_grad():
            for direction in self.input:
                nn.init.orthogonal_(direction)
            self.recurrent.copy_(torch.eye(hidden).repeat(1, 4))

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """As `Cell.inputs`: the normalised input part."""
        return (self.input_norm(product(x, self.input)),)

    def forward(
        self, at: Parts, state: Parts, fixed: Parts, joined: Parts, mask: Tensor | None
    ) -> Parts:
        """As `Cell.forward`."""
        h, c = state
        gates = at[0] + self.recurrent_norm(torch.bmm(h, self.recurrent))
        return self.close(gates, c, mask)


def _read(cell: Cell, x: Tensor, state: Parts, fixed: Parts, joined: Parts) -> list[Parts]:
    """The states after each of T steps over (D, N, T, inputs)."""
    x = x.transpose(1, 2)
    steps = zip(*(part.unbind(1) for part in cell.inputs(x, fixed)), strict=True)
    drawn = cell.masks(x)
    after = []
    for at, mask in zip(steps, repeat(None) if drawn is None else drawn.unbind(1), strict=False):
        state = cell(at, state, fixed, joined, mask)
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


class BothWays(_Stack):
    """Stacked layers that read in both directions; PAD changes no state.

    As in `RecurrentEncoder`, the second direction reads every sequence mirrored within its own
    length, so that PAD comes last for both. Its cells have two directions each.
    """

    def forward(self, x: Tensor, real: Tensor, given: Given) -> tuple[Tensor, list[Parts]]:
        """Reads vectors (B, S, n), of which `real` (B, S) are no PAD.

        Returns:
            Outputs of the last layer (B, S, 2h), zero on PAD, and for every layer its final
            state, (B, part) each, summed over the directions.
        """
        mirror, final = mirrored(real), (real.sum(1) - 1).clamp(min=0)[:, None]
        lasts: list[Parts] = []
        for cell in self._layers():
            x = self.dropout(x) if lasts else x
            both = torch.stack([x, pick(x, mirror)])
            zeros = cell.zeros(x.transpose(0, 1))
            after = _read(cell, both, zeros, cell.fixed(given), cell.joined())
            tracks = [torch.stack(part, 2) for part in zip(*after, strict=True)]  # (2, B, S, part)
            lasts.append(tuple(pick(t[0], final)[:, 0] + pick(t[1], final)[:, 0] for t in tracks))
            ahead, back = tracks[0]
            x = torch.cat([ahead, pick(back, mirror)], -1)
        return x * real[:, :, None], lasts


class Forwards(_Stack):
    """Stacked layers that read forwards, a whole sequence or one step at a time.

    Its cells have one direction each.
    """

    def fixed(self, given: Given) -> list[Parts]:
        """What is the same at every step, for every layer, (N, size) each."""
        return [tuple(part[0] for part in cell.fixed(given)) for cell in self._layers()]

    def joined(self) -> list[Parts]:
        """What the cells of all layers call so."""
        return [cell.joined() for cell in self._layers()]

    def forward(
        self,
        x: Tensor,
        states: Sequence[Parts],
        fixed: Sequence[Parts],
        joined: Sequence[Parts],
    ) -> tuple[Tensor, list[Parts]]:
        """Reads (N, T, n) from the states of all layers, (N, part) each.

        Returns:
            Outputs of the last layer (N, T, h), and the states after step T.
        """
        lasts: list[Parts] = []
        layers = zip(self._layers(), states, fixed, joined, strict=True)
        for cell, state, same, weights in layers:
            x = self.dropout(x) if lasts else x
            after = _read(cell, x[None], _directed(state), _directed(same), weights)
            x = torch.stack([state[0][0] for state in after], 1)
            lasts.append(tuple(part[0] for part in after[-1]))
        return x, lasts


def _directed(parts: Parts) -> Parts:
    return tuple(part[None] for part in parts)


class GeneralAttention(nn.Module):
    """Scores s' W h_j; gives tanh(W_c [s; mix]), without biases (Luong's "general").

    Args:
        memory: size of h_j.
        query: size of s and of what it gives.
    """

    def __init__(self, memory: int, query: int) -> None:
        super().__init__()
        self.query = nn.Linear(query, memory, bias=False)
        self.combine = nn.Linear(query + memory, query, bias=False)

    def weights(self, s: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """(B, T, S) weights that sum to 1 and are 0 where (B, S) `seen` is False."""
        energy = self.query(s) @ memory.transpose(1, 2)
        return energy.masked_fill(~seen[:, None], -torch.inf).softmax(-1)  # type: ignore[no-any-return]

    def forward(self, s: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """From states (B, T, query) over (B, S, memory), (B, T, query)."""
        mixed = self.weights(s, memory, seen) @ memory
        return torch.tanh(self.combine(torch.cat([s, mixed], -1)))

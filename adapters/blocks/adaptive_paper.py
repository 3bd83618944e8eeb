"""LSTM cells whose weights are made for each conversation, as AdaND's paper writes them.

A weight matrix over input and state together is W = U diag(s) V' (equations 7, 12): s is xi_t
from the context (6), an LSTM step over zeta and the state before, or the topics theta themselves,
or both with a gate between them (13). Nothing is layer-normalised and no state is dropped. The
cells in `adaptive` follow the paper's code, which differs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .lstm import Cell, Given, LSTMCell, Parts, product, stepped, weights


class JointFactors(nn.Module):
    """U and V of W = U diag(s) V'.

    Args:
        directions: D.
        inputs: size of x.
        hidden: h; W reads [x; h] and gives 4h.
        rank: size of s.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, rank: int) -> None:
        super().__init__()
        self.of_input = weights(directions, inputs, rank)  # V, what reads x
        self.of_state = weights(directions, hidden, rank)  # V, what reads h
        self.last = weights(directions, rank, 4 * hidden)  # U, transposed
        for map in self.parameters():
            for direction in map.detach():
                nn.init.orthogonal_(direction)

    def narrow(self, x: Tensor) -> Tensor:
        """What (D, ..., inputs) contribute to V' [x; h], (D, ..., rank)."""
        return product(x, self.of_input)

    def forward(self, narrowed: Tensor, h: Tensor, scale: Tensor) -> Tensor:
        """W [x; h], (D, N, 4h), from what `narrow` gave, (D, N, h) and s, (D, N, rank)."""
        return torch.bmm(torch.baddbmm(narrowed, h, self.of_state) * scale, self.last)


class PaperCell(Cell):
    """An LSTM with a bias of its own and weights that the conversation gives."""

    def __init__(self, directions: int, inputs: int, hidden: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.bias = nn.Parameter(torch.zeros(directions, 1, 4 * hidden))

    def close(self, gates: Tensor, c: Tensor) -> Parts:
        """From W [x; h] (D, N, 4h) and the cell state before to the state after."""
        return stepped(gates + self.bias, c)


class PaperTopicCell(PaperCell):
    """Weights from the topics alone.

    Args:
        directions, inputs, hidden: as of `Cell`.
        topics: K.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, topics: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.topical = JointFactors(directions, inputs, hidden, topics)

    def fixed(self, given: Given) -> Parts:
        """theta, (D, N, K)."""
        return (given.topics.expand(self.directions, *given.topics.shape),)

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """What x contributes to V' [x; h]."""
        return (self.topical.narrow(x),)

    def forward(
        self, at: Parts, state: Parts, fixed: Parts, joined: Parts, mask: Tensor | None
    ) -> Parts:
        """As `Cell.forward`."""
        h, c = state
        return self.close(self.topical(at[0], h, fixed[0]), c)


class PaperContextCell(PaperCell):
    """Weights from what is said alone; the state holds h, c, xi and its cell.

    Args:
        directions, inputs, hidden: as of `Cell`.
        rank: size of xi; the paper's is that of [x; h].
    """

    def __init__(self, directions: int, inputs: int, hidden: int, rank: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.parts = [hidden, hidden, rank, rank]
        self.beside = LSTMCell(directions, 2 * hidden, rank)  # Phi, which reads [zeta; h]
        self.local = JointFactors(directions, inputs, hidden, rank)

    def fixed(self, given: Given) -> Parts:
        """What zeta contributes to Phi at every step, (D, N, 4 rank)."""
        zeta = given.context.expand(self.directions, *given.context.shape)
        bias = (self.beside.input_bias + self.beside.recurrent_bias)[:, None]
        return (torch.baddbmm(bias, zeta, self.beside.input[:, : self.hidden]),)

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """What x contributes to V' [x; h]."""
        return (self.local.narrow(x),)

    def forward(
        self, at: Parts, state: Parts, fixed: Parts, joined: Parts, mask: Tensor | None
    ) -> Parts:
        """As `Cell.forward`."""
        h, c, *beside = state
        told = torch.baddbmm(fixed[0], h, self.beside.input[:, self.hidden :])
        xi, cell = self.beside((told,), tuple(beside), (), (), None)
        return *self.close(self._gates(at, h, xi, fixed), c), xi, cell

    def _gates(self, at: Parts, h: Tensor, xi: Tensor, fixed: Parts) -> Tensor:
        return self.local(at[0], h, xi)  # type: ignore[no-any-return]


class PaperBothCell(PaperContextCell):
    """Weights from topics and context; Psi lies on the context.

    Args:
        directions, inputs, hidden, rank: as of `PaperContextCell`.
        topics: K.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, rank: int, topics: int) -> None:
        super().__init__(directions, inputs, hidden, rank)
        self.topical = JointFactors(directions, inputs, hidden, topics)
        self.gate = weights(directions, rank + topics, 4 * hidden)
        self.gate_bias = nn.Parameter(torch.zeros(directions, 1, 4 * hidden))
        for direction in self.gate.detach():
            nn.init.xavier_uniform_(direction)

    def fixed(self, given: Given) -> Parts:
        """Also theta."""
        theta = given.topics.expand(self.directions, *given.topics.shape)
        return *super().fixed(given), theta

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """What x contributes to both V' [x; h]."""
        return *super().inputs(x, fixed), self.topical.narrow(x)

    def _gates(self, at: Parts, h: Tensor, xi: Tensor, fixed: Parts) -> Tensor:
        theta = fixed[1]
        psi = torch.baddbmm(self.gate_bias, torch.cat([xi, theta], -1), self.gate).sigmoid()
        local, topical = super()._gates(at, h, xi, fixed), self.topical(at[1], h, theta)
        # In mixed precision products come in another dtype than sigmoids.
        return torch.lerp(topical.to(psi.dtype), local.to(psi.dtype), psi)

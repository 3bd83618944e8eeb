"""LSTM cells whose weights are made for each conversation (models.md D6, as in AdaND's code).

A weight matrix is W = A diag(s) C: trained factors A and C of rank R, and a vector s that the
conversation gives. W is never built, since W x = A (s * (C x)). Input and recurrent weights have
factors of their own. From the context, s is xi_t, the state of a small LSTM beside the large one,
new at every step; from the topics theta, it is B theta', the same at every step; with both, a
gate mixes the two products unit by unit.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .lstm import Given, Norm, NormedCell, NormedLSTMCell, Parts, product, weights

_RECURRENT_SPREAD = 0.1


class Factors(nn.Module):
    """A and C of W = A diag(s) C.

    Args:
        directions: D.
        inputs: size of what W reads.
        hidden: h; W gives 4h.
        rank: R.
        recurrent: whether W reads the state; then both start from N(0, 0.1^2), else orthogonal.
    """

    def __init__(
        self, directions: int, inputs: int, hidden: int, rank: int, *, recurrent: bool
    ) -> None:
        super().__init__()
        self.last = weights(directions, rank, 4 * hidden)  # A, transposed
        self.first = weights(directions, inputs, rank)  # C, transposed
        for map in (self.last, self.first):
            for direction in map.detach():
                if recurrent:
                    nn.init.normal_(direction, 0.0, _RECURRENT_SPREAD)
                else:
                    nn.init.orthogonal_(direction)

    def narrow(self, x: Tensor) -> Tensor:
        """C x: (D, ..., inputs) -> (D, ..., R)."""
        return product(x, self.first)

    def widen(self, narrowed: Tensor, scale: Tensor) -> Tensor:
        """A (s * narrowed): both (D, ..., R) -> (D, ..., 4h)."""
        return product(narrowed * scale, self.last)


class TopicFactors(Factors):
    """Factors with s = B theta', theta' a linear map of theta that starts as all ones.

    Args:
        directions, inputs, hidden, rank, recurrent: as of `Factors`.
        topics: K.
    """

    def __init__(
        self, directions: int, inputs: int, hidden: int, rank: int, topics: int, *, recurrent: bool
    ) -> None:
        super().__init__(directions, inputs, hidden, rank, recurrent=recurrent)
        self.theta = nn.Parameter(torch.zeros(directions, topics, topics))
        self.theta_bias = nn.Parameter(torch.ones(directions, topics))
        self.scales = nn.Parameter(torch.full((directions, topics, rank), 0.1 / topics))  # B

    def scale(self, theta: Tensor) -> Tensor:
        """The vector s of (N, K) topics, (D, N, R)."""
        moved = theta @ self.theta + self.theta_bias[:, None]
        return torch.bmm(moved, self.scales)


class ContextState(NormedLSTMCell):
    """Phi: the layer-normalised LSTM whose state is xi_t; it reads zeta and the state before.

    Args:
        directions: D.
        hidden: h, size of zeta and of the state that it reads.
        rank: R, size of xi.
        dropout: rate on its candidate.
    """

    def __init__(self, directions: int, hidden: int, rank: int, dropout: float) -> None:
        super().__init__(directions, hidden, rank, dropout)
        self.context = weights(directions, hidden, 4 * rank)
        for direction in self.context.detach():
            nn.init.orthogonal_(direction)

    def told(self, zeta: Tensor) -> Tensor:
        """What (N, context) contributes at every step, (D, N, 4R)."""
        return zeta @ self.context

    def advance(self, told: Tensor, h: Tensor, state: Parts, mask: Tensor | None) -> Parts:
        """(xi, its cell) one step further; h: (D, N, h)."""
        xi, cell = state
        read = self.input_norm(torch.baddbmm(told, h, self.input))
        return self.close(read + self.recurrent_norm(torch.bmm(xi, self.recurrent)), cell, mask)


class TopicCell(NormedCell):
    """Weights from the topics alone.

    Args:
        directions, inputs, hidden, dropout: as of `NormedCell`.
        rank: R.
        topics: K.
    """

    def __init__(
        self, directions: int, inputs: int, hidden: int, dropout: float, rank: int, topics: int
    ) -> None:
        super().__init__(directions, inputs, hidden, dropout)
        sizes = hidden, rank, topics
        self.input = TopicFactors(directions, inputs, *sizes, recurrent=False)
        self.recurrent = TopicFactors(directions, hidden, *sizes, recurrent=True)

    def fixed(self, given: Given) -> Parts:
        """Both vectors s, (D, N, R) each."""
        return self.input.scale(given.topics), self.recurrent.scale(given.topics)

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """The normalised input part."""
        return (self.input_norm(self.input.widen(self.input.narrow(x), fixed[0][:, None])),)

    def forward(self, at: Parts, state: Parts, fixed: Parts, mask: Tensor | None) -> Parts:
        """As `Cell.forward`."""
        h, c = state
        read = self.recurrent.widen(self.recurrent.narrow(h), fixed[1])
        return self.close(at[0] + self.recurrent_norm(read), c, mask)


class ContextCell(NormedCell):
    """Weights from what is said alone; the state holds h, c, xi and its cell.

    Args:
        directions, inputs, hidden, dropout: as of `NormedCell`.
        rank: R.
    """

    def __init__(
        self, directions: int, inputs: int, hidden: int, dropout: float, rank: int
    ) -> None:
        super().__init__(directions, inputs, hidden, dropout)
        self.parts = [hidden, hidden, rank, rank]
        self.beside = ContextState(directions, hidden, rank, dropout)
        self.input = Factors(directions, inputs, hidden, rank, recurrent=False)
        self.recurrent = Factors(directions, hidden, hidden, rank, recurrent=True)

    def fixed(self, given: Given) -> Parts:
        """What zeta contributes to the state beside."""
        return (self.beside.told(given.context),)

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """C x, which xi scales at its step."""
        return (self.input.narrow(x),)

    def forward(self, at: Parts, state: Parts, fixed: Parts, mask: Tensor | None) -> Parts:
        """As `Cell.forward`."""
        h, c, *beside = state
        large, small = self._divided(mask)
        xi, cell = self.beside.advance(fixed[0], h, tuple(beside), small)
        gates = self._gates(at, h, xi, fixed)
        return *self.close(gates, c, large), xi, cell

    def _divided(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        if mask is None:
            return None, None
        return mask[..., : self.hidden], mask[..., self.hidden :]

    def _gates(self, at: Parts, h: Tensor, xi: Tensor, fixed: Parts) -> Tensor:
        read = self.input_norm(self.input.widen(at[0], xi))
        kept = self.recurrent_norm(self.recurrent.widen(self.recurrent.narrow(h), xi))
        return read + kept  # type: ignore[no-any-return]


class Gate(nn.Module):
    """The maps of sigma(LN(W_1 x) + LN(W_2 theta) + LN(W_3 xi)): topics against context.

    Args:
        directions: D.
        inputs: size of x.
        hidden: h; a gate for each of 4h units.
        rank: R, size of xi.
        topics: K.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, rank: int, topics: int) -> None:
        super().__init__()
        self.maps = nn.ParameterList(
            weights(directions, size, 4 * hidden) for size in (inputs, topics, rank)
        )
        self.biases = nn.ParameterList(weights(directions, 1, 4 * hidden) for _ in self.maps)
        for map, bias in zip(self.maps, self.biases, strict=True):
            spread = map.shape[1] ** -0.5  # as of any linear map of torch
            nn.init.uniform_(map, -spread, spread)
            nn.init.uniform_(bias, -spread, spread)

    def term(self, number: int, x: Tensor) -> Tensor:
        """One of the three, not yet normalised: (D, N, size) -> (D, N, 4h)."""
        return torch.baddbmm(self.biases[number], x, self.maps[number])


class BothCell(ContextCell):
    """Weights from topics and context; a gate mixes what they give.

    In the paper's formula the gate lies on the context, in its code on the topics; here too.

    Args:
        directions, inputs, hidden, dropout, rank: as of `ContextCell`.
        topics: K.
    """

    def __init__(
        self, directions: int, inputs: int, hidden: int, dropout: float, rank: int, topics: int
    ) -> None:
        super().__init__(directions, inputs, hidden, dropout, rank)
        sizes = hidden, rank, topics
        self.topic_input = TopicFactors(directions, inputs, *sizes, recurrent=False)
        self.topic_recurrent = TopicFactors(directions, hidden, *sizes, recurrent=True)
        self.gate_norm = Norm(directions, 4 * hidden)  # for all terms of both gates
        self.input_gate = Gate(directions, inputs, *sizes)
        self.recurrent_gate = Gate(directions, hidden, *sizes)

    def fixed(self, given: Given) -> Parts:
        """What zeta and theta contribute at every step, (D, N, size) each."""
        theta = given.topics
        directed = theta.expand(self.directions, *theta.shape)
        return (
            *super().fixed(given),
            self.topic_input.scale(theta),
            self.topic_recurrent.scale(theta),
            self.gate_norm(self.input_gate.term(1, directed)),
            self.gate_norm(self.recurrent_gate.term(1, directed)),
        )

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """C x for the context, the product of the topics, and the gate as far as it is known."""
        _, scale, _, gate, _ = fixed
        topical = self.topic_input.widen(self.topic_input.narrow(x), scale[:, None])
        read = self.input_gate.term(0, x.flatten(1, 2)).view_as(topical)
        known = self.gate_norm(read) + gate[:, None]
        return *super().inputs(x, fixed), topical, known

    def _gates(self, at: Parts, h: Tensor, xi: Tensor, fixed: Parts) -> Tensor:
        narrowed, topical, known = at
        gate = (known + self.gate_norm(self.input_gate.term(2, xi))).sigmoid()
        read = _mixed(self.input.widen(narrowed, xi), topical, gate)
        return self.input_norm(read) + self.recurrent_norm(self._recurrent(h, xi, fixed))  # type: ignore[no-any-return]

    def _recurrent(self, h: Tensor, xi: Tensor, fixed: Parts) -> Tensor:
        _, _, scale, _, known = fixed
        read, beside = self.recurrent_gate.term(0, h), self.recurrent_gate.term(2, xi)
        gate = self.gate_norm(read) + known + self.gate_norm(beside)
        topical = self.topic_recurrent.widen(self.topic_recurrent.narrow(h), scale)
        contextual = self.recurrent.widen(self.recurrent.narrow(h), xi)
        return _mixed(contextual, topical, gate.sigmoid())


def _mixed(contextual: Tensor, topical: Tensor, gate: Tensor) -> Tensor:
    # In mixed precision products come in another dtype than what was normalised.
    return torch.lerp(contextual.to(gate.dtype), topical.to(gate.dtype), gate)

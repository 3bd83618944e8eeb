"""LSTM cells whose weights are made for each conversation (as in AdaND's code).

A weight matrix is W = A diag(s) C: trained factors A and C of rank R, and a vector s that the
conversation gives. W is never built, since W x = A (s * (C x)). Input and recurrent weights have
factors of their own. From the context, s is xi_t, the state of a small LSTM beside the large one,
new at every step; from the topics theta, it is B theta', the same at every step; with both, a
gate mixes the two products unit by unit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dialbench.neural.devices import matrix_dtype

from .lstm import Given, Norm, NormedCell, NormedLSTMCell, Parts, plain, product, weights

_RECURRENT_SPREAD = 0.1


def _as_multiplied(weight: Tensor) -> Tensor:
    """`weight` as matrices are multiplied here, not to be cast anew at every step."""
    return weight.to(matrix_dtype(weight))


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

    def advance(self, read: Tensor, state: Parts, mask: Tensor | None) -> Parts:
        """(xi, its cell) one step further; `read` (D, N, 4R): of zeta and the state together."""
        xi, cell = state
        kept = self.recurrent_norm(torch.bmm(xi, self.recurrent))
        return self.close(self.input_norm(read) + kept, cell, mask)


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

    def forward(
        self, at: Parts, state: Parts, fixed: Parts, joined: Parts, mask: Tensor | None
    ) -> Parts:
        """As `Cell.forward`."""
        h, c = state
        read = self.recurrent.widen(self.recurrent.narrow(h), fixed[1])
        return self.close(at[0] + self.recurrent_norm(read), c, mask)


class ContextCell(NormedCell):
    """Weights from what is said alone; the state holds h, c, xi and its cell.

    Products for input and state are made together, one above the other: (2D, N, size).

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

    def joined(self) -> Parts:
        """All maps of the state, A for input and state, gains and biases of their norms."""
        norms = self.input_norm, self.recurrent_norm
        return (
            _as_multiplied(torch.cat(self._maps(), 2)),
            _as_multiplied(torch.cat([self.input.last, self.recurrent.last])),
            torch.cat([norm.gain for norm in norms])[:, None],
            torch.cat([norm.bias for norm in norms])[:, None],
        )

    def _maps(self) -> list[Tensor]:
        return [self.beside.input, self.recurrent.first]

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """C x, which xi scales at its step."""
        return (self.input.narrow(x),)

    def forward(
        self, at: Parts, state: Parts, fixed: Parts, joined: Parts, mask: Tensor | None
    ) -> Parts:
        """As `Cell.forward`."""
        h, c, *beside = state
        large, small = self._divided(mask)
        sizes = [map.shape[2] for map in self._maps()]
        told, narrowed, *more = torch.bmm(h, joined[0]).split_with_sizes(sizes, -1)
        xi, cell = self.beside.advance(fixed[0] + told, tuple(beside), small)
        twice = torch.cat([xi, xi])
        products = torch.bmm(torch.cat([at[0], narrowed]) * twice, joined[1])
        products = self._mixed(products, at[1:], more, twice, fixed, joined[4:])
        read, kept = torch.addcmul(joined[3], plain(products), joined[2]).chunk(2)
        return *self.close(read + kept, c, large), xi, cell

    def _divided(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        if mask is None:
            return None, None
        return mask[..., : self.hidden], mask[..., self.hidden :]

    def _mixed(
        self,
        products: Tensor,
        at: Parts,
        of_state: Sequence[Tensor],
        xi: Tensor,
        fixed: Parts,
        joined: Parts,
    ) -> Tensor:
        """The products (2D, N, 4h) with whatever else says its part."""
        return products


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
            plain(self.input_gate.term(1, directed)),
            plain(self.recurrent_gate.term(1, directed)),
        )

    def joined(self) -> Parts:
        """Also the gates' maps of xi and their biases, and the gain and bias of both gates."""
        gates = self.input_gate, self.recurrent_gate
        return (
            *super().joined(),
            _as_multiplied(torch.cat([gate.maps[2] for gate in gates])),
            torch.cat([gate.biases[2] for gate in gates]),
            self.gate_norm.gain.repeat(2, 1)[:, None],
            3 * self.gate_norm.bias.repeat(2, 1)[:, None],  # one for each term
        )

    def _maps(self) -> list[Tensor]:
        return [*super()._maps(), self.topic_recurrent.first, self.recurrent_gate.maps[0]]

    def inputs(self, x: Tensor, fixed: Parts) -> Parts:
        """C x for the context, the product of the topics, and the gate as far as it is known."""
        _, scale, _, gate, _ = fixed
        topical = self.topic_input.widen(self.topic_input.narrow(x), scale[:, None])
        read = self.input_gate.term(0, x.flatten(1, 2)).view_as(topical)
        return *super().inputs(x, fixed), topical, plain(read) + gate[:, None]

    def _mixed(
        self,
        products: Tensor,
        at: Parts,
        of_state: Sequence[Tensor],
        xi: Tensor,
        fixed: Parts,
        joined: Parts,
    ) -> Tensor:
        (read, known), (narrowed, asked) = at, of_state
        topical = torch.cat([read, self.topic_recurrent.widen(narrowed, fixed[2])])
        kept = plain(asked + self.recurrent_gate.biases[0]) + fixed[4]
        maps, biases, gain, bias = joined
        terms = torch.cat([known, kept]) + plain(torch.baddbmm(biases, xi, maps))
        gate = torch.addcmul(bias, terms, gain).sigmoid()
        # In mixed precision products come in another dtype than what was normalised.
        return torch.lerp(products.to(gate.dtype), topical.to(gate.dtype), gate)

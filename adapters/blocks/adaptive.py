"""LSTM cells whose weights are made for each conversation (AdaND, sections 3.1 to 3.3).

As in AdaND's code: a weight matrix is W = A diag(s) C, with trained factors A and C of rank R and a
vector s from the conversation. W is never built, since W x = A (s * (C x)). Input and recurrent
weights have separate factors. From the context, s is xi_t, the state of a small LSTM beside the
large one, new at every step; from the topics theta, it is B theta', the same at every step; with
both, a gate mixes the two products unit by unit.

As in AdaND's paper (the cells named `Paper...`): one W = U diag(s) V' over input and state together
(eq. 7, 12), where s is xi_t (eq. 6), theta, or both with a gate between them (eq. 13). Nothing is
layer-normalised and no state is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dialbench.neural.devices import matrix_dtype

from .lstm import (
    Cell,
    Conditioning,
    LSTMCell,
    Norm,
    NormedCell,
    NormedLSTMCell,
    Parts,
    batched_product,
    empty_weights,
    lstm_step,
    normalise,
)

_RECURRENT_STD = 0.1  # AdaND's code


def _as_multiplied(weight: Tensor) -> Tensor:
    """`weight` in the dtype of matrix products, cast once for all steps."""
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
        self.last = empty_weights(directions, rank, 4 * hidden)  # A, transposed
        self.first = empty_weights(directions, inputs, rank)  # C, transposed
        for map in (self.last, self.first):
            for direction in map.detach():
                if recurrent:
                    nn.init.normal_(direction, 0.0, _RECURRENT_STD)
                else:
                    nn.init.orthogonal_(direction)

    def down_project(self, x: Tensor) -> Tensor:
        """C x: (D, ..., inputs) -> (D, ..., R)."""
        return batched_product(x, self.first)

    def up_project(self, narrowed: Tensor, scale: Tensor) -> Tensor:
        """A (s * narrowed): both (D, ..., R) -> (D, ..., 4h)."""
        return batched_product(narrowed * scale, self.last)


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
        # at first theta' is 1 for any theta
        self.theta_bias = nn.Parameter(torch.ones(directions, topics))
        self.scales = nn.Parameter(torch.full((directions, topics, rank), 0.1 / topics))  # B

    def scale(self, theta: Tensor) -> Tensor:
        """The vector s of (N, K) topics, (D, N, R)."""
        moved = theta @ self.theta + self.theta_bias[:, None]  # theta', (D, N, K)
        return torch.bmm(moved, self.scales)  # s = B theta', (D, N, R)


class ContextState(NormedLSTMCell):
    """Phi (eq. 6): the layer-normalised LSTM whose state is xi_t; it reads [zeta; h_(t-1)].

    Args:
        directions: D.
        hidden: h, size of zeta and of the state that it reads.
        rank: R, size of xi.
        dropout: rate on its candidate.
    """

    def __init__(self, directions: int, hidden: int, rank: int, dropout: float) -> None:
        super().__init__(directions, hidden, rank, dropout)
        self.context = empty_weights(directions, hidden, 4 * rank)  # W_zeta of Phi
        for direction in self.context.detach():
            nn.init.orthogonal_(direction)

    def project_context(self, zeta: Tensor) -> Tensor:
        """The term of zeta (N, h), the same at every step, (D, N, 4R)."""
        return zeta @ self.context

    def advance(self, read: Tensor, state: Parts, mask: Tensor | None) -> Parts:
        """(xi, its cell) one step further; `read` (D, N, 4R): the terms of zeta and h, summed."""
        xi, cell = state
        recurrent = self.recurrent_norm(torch.bmm(xi, self.recurrent))  # LN(W_xi xi), (D, N, 4R)
        return self.close(self.input_norm(read) + recurrent, cell, mask)


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

    def per_conversation(self, conditioning: Conditioning) -> Parts:
        """Both vectors s, (D, N, R) each."""
        return self.input.scale(conditioning.topics), self.recurrent.scale(conditioning.topics)

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """The normalised input part."""
        scale = conversation[0][:, None]  # (D, 1, N, R)
        return (self.input_norm(self.input.up_project(self.input.down_project(x), scale)),)

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
        # eq. 12
        recurrent = self.recurrent.up_project(self.recurrent.down_project(h), conversation[1])
        # g_t = LN(A_x (B_x theta' * C_x x)) + LN(A_h (B_h theta' * C_h h))
        return self.close(x_terms[0] + self.recurrent_norm(recurrent), c, mask)


class ContextCell(NormedCell):
    """Weights from the context alone; the state holds h, c, xi and xi's cell.

    Products for input and state are computed together, concatenated: (2D, N, size).

    Args:
        directions, inputs, hidden, dropout: as of `NormedCell`.
        rank: R.
    """

    def __init__(
        self, directions: int, inputs: int, hidden: int, dropout: float, rank: int
    ) -> None:
        super().__init__(directions, inputs, hidden, dropout)
        self.parts = [hidden, hidden, rank, rank]
        # The module's name is a key of saved weights.
        self.beside = ContextState(directions, hidden, rank, dropout)  # Phi, eq. 6
        self.input = Factors(directions, inputs, hidden, rank, recurrent=False)
        self.recurrent = Factors(directions, hidden, hidden, rank, recurrent=True)

    def per_conversation(self, conditioning: Conditioning) -> Parts:
        """The term of zeta in Phi."""
        return (self.beside.project_context(conditioning.context),)

    def packed_weights(self) -> Parts:
        """All maps of the state, A for input and state, gains and biases of their norms."""
        norms = self.input_norm, self.recurrent_norm
        return (
            _as_multiplied(torch.cat(self._maps(), 2)),  # (D, h, sizes of `_maps`)
            _as_multiplied(torch.cat([self.input.last, self.recurrent.last])),  # (2D, R, 4h)
            torch.cat([norm.gain for norm in norms])[:, None],  # (2D, 1, 4h)
            torch.cat([norm.bias for norm in norms])[:, None],  # (2D, 1, 4h)
        )

    def _maps(self) -> list[Tensor]:
        return [self.beside.input, self.recurrent.first]  # W_h of Phi (D, h, 4R), C_h (D, h, R)

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """C x, which xi_t scales."""
        return (self.input.down_project(x),)  # (D, T, N, R)

    def forward(
        self,
        x_terms: Parts,
        state: Parts,
        conversation: Parts,
        packed: Parts,
        mask: Tensor | None,
    ) -> Parts:
        """As `Cell.forward`."""
        h, c, *context_state = state
        large, small = self._split_mask(mask)
        sizes = [map.shape[2] for map in self._maps()]
        # One product gives everything that reads h: Phi's term (D, N, 4R), C_h h (D, N, R), more.
        of_h, narrowed, *more = torch.bmm(h, packed[0]).split_with_sizes(sizes, -1)
        # xi_t, eq. 6
        xi, cell = self.beside.advance(conversation[0] + of_h, tuple(context_state), small)
        twice = torch.cat([xi, xi])  # (2D, N, R), for input and state
        # A (xi * C x) and A (xi * C h), (2D, N, 4h); eq. 7
        products = torch.bmm(torch.cat([x_terms[0], narrowed]) * twice, packed[1])
        products = self._mixed(products, x_terms[1:], more, twice, conversation, packed[4:])
        # LN of both products with their gains and biases, then their sum
        read, recurrent = torch.addcmul(packed[3], normalise(products), packed[2]).chunk(2)
        return *self.close(read + recurrent, c, large), xi, cell  # eq. 4, then the state of Phi

    def _split_mask(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        if mask is None:
            return None, None
        return mask[..., : self.hidden], mask[..., self.hidden :]  # of h and of xi

    def _mixed(
        self,
        products: Tensor,
        x_terms: Parts,
        of_state: Sequence[Tensor],
        xi: Tensor,
        conversation: Parts,
        packed: Parts,
    ) -> Tensor:
        """The products (2D, N, 4h), in subclasses mixed with those of other sources."""
        return products


class Gate(nn.Module):
    """The maps of psi = sigma(LN(W_1 x) + LN(W_2 theta) + LN(W_3 xi)) (eq. 13, as in the code).

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
            empty_weights(directions, size, 4 * hidden) for size in (inputs, topics, rank)
        )
        self.biases = nn.ParameterList(empty_weights(directions, 1, 4 * hidden) for _ in self.maps)
        for map, bias in zip(self.maps, self.biases, strict=True):
            bound = map.shape[1] ** -0.5  # as torch initialises linear maps
            nn.init.uniform_(map, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)

    def term(self, number: int, x: Tensor) -> Tensor:
        """One of the three, not yet normalised: (D, N, size) -> (D, N, 4h)."""
        return torch.baddbmm(self.biases[number], x, self.maps[number])


class BothCell(ContextCell):
    """Weights from topics and context; a gate mixes their products.

    The paper's formula puts the gate on the context, its code, followed here, on the topics.

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

    def per_conversation(self, conditioning: Conditioning) -> Parts:
        """The terms of zeta and theta, the same at every step, (D, N, size) each."""
        theta = conditioning.topics
        directed = theta.expand(self.directions, *theta.shape)
        return (
            *super().per_conversation(conditioning),
            self.topic_input.scale(theta),
            self.topic_recurrent.scale(theta),
            normalise(self.input_gate.term(1, directed)),
            normalise(self.recurrent_gate.term(1, directed)),
        )

    def packed_weights(self) -> Parts:
        """Also the gates' maps of xi and their biases, and the gain and bias of both gates."""
        gates = self.input_gate, self.recurrent_gate
        return (
            *super().packed_weights(),
            _as_multiplied(torch.cat([gate.maps[2] for gate in gates])),  # (2D, R, 4h)
            torch.cat([gate.biases[2] for gate in gates]),  # (2D, 1, 4h)
            self.gate_norm.gain.repeat(2, 1)[:, None],
            3 * self.gate_norm.bias.repeat(2, 1)[:, None],  # one for each term
        )

    def _maps(self) -> list[Tensor]:
        # C_h of the topics (D, h, R) and the gate's W_1 (D, h, 4h)
        return [*super()._maps(), self.topic_recurrent.first, self.recurrent_gate.maps[0]]

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """C x for the context, the product of the topics, and the gate's terms of x and theta."""
        _, scale, _, gate, _ = conversation
        # eq. 12
        topical = self.topic_input.up_project(self.topic_input.down_project(x), scale[:, None])
        read = self.input_gate.term(0, x.flatten(1, 2)).view_as(topical)  # W_1 x, (D, T, N, 4h)
        return *super().input_terms(x, conversation), topical, normalise(read) + gate[:, None]

    def _mixed(
        self,
        products: Tensor,
        x_terms: Parts,
        of_state: Sequence[Tensor],
        xi: Tensor,
        conversation: Parts,
        packed: Parts,
    ) -> Tensor:
        # (D, N, 4h), but `narrowed` (D, N, R)
        (of_x, gate_of_x), (narrowed, gate_of_h) = x_terms, of_state
        # P_theta for input and state, (2D, N, 4h)
        topical = torch.cat([of_x, self.topic_recurrent.up_project(narrowed, conversation[2])])
        gate_of_h = normalise(gate_of_h + self.recurrent_gate.biases[0]) + conversation[4]
        maps, biases, gain, bias = packed
        # The three normalised terms share one gain and bias; psi (2D, N, 4h), eq. 13
        terms = torch.cat([gate_of_x, gate_of_h]) + normalise(torch.baddbmm(biases, xi, maps))
        psi = torch.addcmul(bias, terms, gain).sigmoid()  # sigma(gain * sum of the terms + bias)
        # psi P_theta + (1 - psi) P_c; mixed precision gives products another dtype than norms.
        return torch.lerp(products.to(psi.dtype), topical.to(psi.dtype), psi)


class JointFactors(nn.Module):
    """U and V of W = U diag(s) V' (eq. 7, 12).

    Args:
        directions: D.
        inputs: size of x.
        hidden: h; W reads [x; h] and gives 4h.
        rank: size of s.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, rank: int) -> None:
        super().__init__()
        self.of_input = empty_weights(directions, inputs, rank)  # V, what reads x
        self.of_state = empty_weights(directions, hidden, rank)  # V, what reads h
        self.last = empty_weights(directions, rank, 4 * hidden)  # U, transposed
        for map in self.parameters():
            for direction in map.detach():
                nn.init.orthogonal_(direction)

    def down_project(self, x: Tensor) -> Tensor:
        """The term of x (D, ..., inputs) in V' [x; h], (D, ..., rank)."""
        return batched_product(x, self.of_input)

    def forward(self, narrowed: Tensor, h: Tensor, scale: Tensor) -> Tensor:
        """W [x; h], (D, N, 4h), from what `down_project` gave, (D, N, h) and s, (D, N, rank)."""
        return torch.bmm(
            torch.baddbmm(narrowed, h, self.of_state) * scale, self.last
        )  # U (s * V' [x; h])


class PaperCell(Cell):
    """An LSTM with a trained bias and weights made from the conversation."""

    def __init__(self, directions: int, inputs: int, hidden: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.bias = nn.Parameter(torch.zeros(directions, 1, 4 * hidden))  # b of eq. 4

    def close(self, gates: Tensor, c: Tensor) -> Parts:
        """From W [x; h] (D, N, 4h) and the cell state before to the state after."""
        return lstm_step(gates + self.bias, c)  # eq. 4


class PaperTopicCell(PaperCell):
    """Weights from the topics alone.

    Args:
        directions, inputs, hidden: as of `Cell`.
        topics: K.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, topics: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.topical = JointFactors(directions, inputs, hidden, topics)

    def per_conversation(self, conditioning: Conditioning) -> Parts:
        """theta, (D, N, K)."""
        # the same in both directions
        return (conditioning.topics.expand(self.directions, *conditioning.topics.shape),)

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """The term of x in V' [x; h]."""
        return (self.topical.down_project(x),)

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
        return self.close(self.topical(x_terms[0], h, conversation[0]), c)  # W of eq. 12


class PaperContextCell(PaperCell):
    """Weights from the context alone; the state holds h, c, xi and xi's cell.

    Args:
        directions, inputs, hidden: as of `Cell`.
        rank: size of xi; the paper's is that of [x; h].
    """

    def __init__(self, directions: int, inputs: int, hidden: int, rank: int) -> None:
        super().__init__(directions, inputs, hidden)
        self.parts = [hidden, hidden, rank, rank]
        self.beside = LSTMCell(directions, 2 * hidden, rank)  # Phi, which reads [zeta; h]
        self.local = JointFactors(directions, inputs, hidden, rank)

    def per_conversation(self, conditioning: Conditioning) -> Parts:
        """The term of zeta in Phi, the same at every step, (D, N, 4 rank)."""
        zeta = conditioning.context.expand(self.directions, *conditioning.context.shape)
        bias = (self.beside.input_bias + self.beside.recurrent_bias)[:, None]  # (D, 1, 4 rank)
        return (torch.baddbmm(bias, zeta, self.beside.input[:, : self.hidden]),)

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """The term of x in V' [x; h]."""
        return (self.local.down_project(x),)

    def forward(
        self,
        x_terms: Parts,
        state: Parts,
        conversation: Parts,
        packed: Parts,
        mask: Tensor | None,
    ) -> Parts:
        """As `Cell.forward`."""
        h, c, *context_state = state
        # (D, N, 4 rank)
        terms = torch.baddbmm(conversation[0], h, self.beside.input[:, self.hidden :])
        xi, cell = self.beside((terms,), tuple(context_state), (), (), None)  # eq. 6
        return *self.close(self._gates(x_terms, h, xi, conversation), c), xi, cell

    def _gates(self, x_terms: Parts, h: Tensor, xi: Tensor, conversation: Parts) -> Tensor:
        # W of eq. 7, (D, N, 4h)
        return self.local(x_terms[0], h, xi)  # type: ignore[no-any-return]


class PaperBothCell(PaperContextCell):
    """Weights from topics and context; the gate psi is on the context (eq. 13).

    Args:
        directions, inputs, hidden, rank: as of `PaperContextCell`.
        topics: K.
    """

    def __init__(self, directions: int, inputs: int, hidden: int, rank: int, topics: int) -> None:
        super().__init__(directions, inputs, hidden, rank)
        self.topical = JointFactors(directions, inputs, hidden, topics)
        # of [xi; theta]; eq. 13 names no map
        self.gate = empty_weights(directions, rank + topics, 4 * hidden)
        self.gate_bias = nn.Parameter(torch.zeros(directions, 1, 4 * hidden))
        for direction in self.gate.detach():
            nn.init.xavier_uniform_(direction)

    def per_conversation(self, conditioning: Conditioning) -> Parts:
        """The term of zeta in Phi, and theta, (D, N, K)."""
        theta = conditioning.topics.expand(self.directions, *conditioning.topics.shape)
        return *super().per_conversation(conditioning), theta

    def input_terms(self, x: Tensor, conversation: Parts) -> Parts:
        """The terms of x in both V' [x; h]."""
        return *super().input_terms(x, conversation), self.topical.down_project(x)

    def _gates(self, x_terms: Parts, h: Tensor, xi: Tensor, conversation: Parts) -> Tensor:
        theta = conversation[1]
        # (D, N, 4h)
        psi = torch.baddbmm(self.gate_bias, torch.cat([xi, theta], -1), self.gate).sigmoid()
        local = super()._gates(x_terms, h, xi, conversation)  # eq. 7, (D, N, 4h)
        topical = self.topical(x_terms[1], h, theta)  # eq. 12, (D, N, 4h)
        # psi W_c + (1 - psi) W_theta; mixed precision gives products another dtype than sigmoids.
        return torch.lerp(topical.to(psi.dtype), local.to(psi.dtype), psi)

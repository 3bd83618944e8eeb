"""Attention and transformer layers (Vaswani et al., 2017; docs/systems.md).

The caller passes the maps, so that a randomized layer differs from an ordinary one by its maps
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.dropout import Dropout

from .randomized import Draws, Linear

MakeLinear = Callable[[int, int, bool], nn.Module]
KeysValues = tuple[Tensor, Tensor]


def trained(inputs: int, outputs: int, bias: bool) -> Linear:
    """A trained map, Xavier-initialised."""
    linear = Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


class Attention(nn.Module):
    """Multi-head attention; `size` is the total of all heads.

    Args:
        width: n, size of the vectors that come in and go out.
        size: d, of queries, keys and values together over the heads.
        heads: how many heads share d.
        dropout: on the attention weights.
        make: makes the query, key and value maps; the output map is always trained.
        bias: whether the four maps have biases.
    """

    def __init__(
        self,
        width: int,
        size: int,
        heads: int,
        dropout: float,
        make: MakeLinear = trained,
        *,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.dropout = heads, Dropout(dropout)
        self.query = make(width, size, bias)  # W_Q: n -> d
        self.key = make(width, size, bias)  # W_K
        self.value = make(width, size, bias)  # W_V
        self.output: nn.Module = trained(size, width, bias)  # W_Z: d -> n

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)  # (B, H, S, d/H)

    def keys_values(self, memory: Tensor, draws: Draws) -> KeysValues:
        """Keys and values (B, H, S, d/H) of (B, S, n)."""
        return self._split(self.key(memory, draws)), self._split(self.value(memory, draws))

    def extend(self, past: KeysValues | None, x: Tensor, draws: Draws) -> KeysValues:
        """Keys and values of the positions before and of (B, T, n) behind them."""
        keys, values = self.keys_values(x, draws)
        if past is None:
            return keys, values
        return torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2)  # (B, H, P + T, d/H)

    def forward(self, x: Tensor, memory: KeysValues, mask: Tensor | None, draws: Draws) -> Tensor:
        """What each of (B, T, n) attends to, (B, T, n); arguments as `mix`."""
        return self.output(self.mix(x, memory, mask, draws), draws)  # type: ignore[no-any-return]

    def mix(self, x: Tensor, memory: KeysValues, mask: Tensor | None, draws: Draws) -> Tensor:
        """The values that each of (B, T, n) attends to, heads joined, (B, T, d).

        Args:
            x: the querying side.
            memory: keys and values.
            mask: True where a key may be seen, broadcast to (B, H, T, S); a row that may see
                nothing gives zeros.
            draws: weights drawn for each context, or None.
        """
        query = self._split(self.query(x, draws))  # (B, H, T, d/H)
        rate = self.dropout.rate if self.training else 0.0
        if self.training and x.device.type == "cpu":
            mixed = self._mix_on_cpu(query, *memory, mask)  # (B, H, T, d/H)
        else:
            # softmax(Q K' / sqrt(d/H) + mask) V, (B, H, T, d/H); PaRaFormer, eq. 4
            mixed = F.scaled_dot_product_attention(query, *memory, attn_mask=mask, dropout_p=rate)
        return mixed.transpose(1, 2).flatten(2)  # heads joined, (B, T, d)

    def _mix_on_cpu(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> Tensor:
        # softmax(Q K' / sqrt(d/H)) V, (B, H, T, d/H), written out: on a CPU the fused kernel draws
        # its mask of dropout on one core, and its gradient takes longer than all other work of a
        # small model.
        scores = (query * query.shape[-1] ** -0.5) @ keys.transpose(-1, -2)  # (B, H, T, S)
        if mask is None:
            return self.dropout(scores.softmax(-1)) @ values  # type: ignore[no-any-return]
        lowest = torch.finfo(scores.dtype).min
        unseen = scores.new_zeros(mask.shape).masked_fill_(~mask, lowest)
        weights = self.dropout((scores + unseen).softmax(-1))
        # rows that see nothing become 0
        return weights @ values * mask.any(-1, keepdim=True)  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    """W_2 ReLU(W_1 x + b_1) + b_2; first map and activation may be the caller's."""

    def __init__(
        self,
        width: int,
        inner: int,
        dropout: float,
        make: MakeLinear = trained,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.first = make(width, inner, True)  # W_1, b_1
        self.second = trained(inner, width, True)  # W_2, b_2
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        """(B, T, n) -> (B, T, n)."""
        return self.second(self.hidden(x, draws), draws)  # type: ignore[no-any-return]

    def hidden(self, x: Tensor, draws: Draws) -> Tensor:
        """(B, T, n) -> (B, T, inner), dropout included."""
        return self.dropout(self.activation(self.first(x, draws)))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """Residual, dropout and layer normalisation around a sub-network.

    `post`: LN(x + f(x)); `pre`: x + f(LN(x)).
    """

    def __init__(self, width: int, dropout: float, norm: Literal["post", "pre"]) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), Dropout(dropout)
        self.post = norm == "post"

    def forward(self, x: Tensor, inner: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, n) -> (B, T, n)."""
        if self.post:
            # post-norm: LN(x + Dropout(f(x)))
            return self.norm(x + self.dropout(inner(x)))  # type: ignore[no-any-return]
        # pre-norm: x + Dropout(f(LN(x)))
        return x + self.dropout(inner(self.norm(x)))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward over the context."""

    def __init__(
        self, attention: Attention, feed_forward: FeedForward, residuals: list[Residual]
    ) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention, self.around_feed_forward = residuals

    def forward(self, x: Tensor, mask: Tensor, draws: Draws) -> Tensor:
        """(B, S, n) -> (B, S, n); mask (B, 1, 1, S)."""

        def attend(y: Tensor) -> Tensor:
            return self.attention(y, self.attention.keys_values(y, draws), mask, draws)  # type: ignore[no-any-return]

        x = self.around_attention(x, attend)
        return self.around_feed_forward(x, lambda y: self.feed_forward(y, draws))  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the context, feed-forward."""

    def __init__(
        self,
        attention: Attention,
        cross_attention: Attention,
        feed_forward: FeedForward,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.attention, self.cross_attention = attention, cross_attention
        self.feed_forward = feed_forward
        self.around_attention, self.around_cross, self.around_feed_forward = residuals

    def forward(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues,
        masks: tuple[Tensor | None, Tensor],
        draws: Draws,
    ) -> tuple[Tensor, KeysValues]:
        """One layer over all target positions, or over the newest with its past.

        Args:
            x: (N, T, n); N = B, or B * beams when decoding.
            past: keys and values of the positions before, or None.
            memory: keys and values of the context, (B, H, S, d/H).
            masks: the causal mask (T, T) or None, and the context's (B, 1, 1, S).
            draws: weights drawn for each context, or None.

        Returns:
            (N, T, n), and the keys and values of all positions so far.
        """
        x, present = self.read(x, past, memory, masks, draws)
        return self.around_feed_forward(x, lambda y: self.feed_forward(y, draws)), present

    def read(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues,
        masks: tuple[Tensor | None, Tensor],
        draws: Draws,
    ) -> tuple[Tensor, KeysValues]:
        """As `forward`, without the feed-forward network."""
        causal, seen = masks
        present: list[KeysValues] = []

        def attend(y: Tensor) -> Tensor:
            present.append(self.attention.extend(past, y, draws))
            return self.attention(y, present[0], causal, draws)  # type: ignore[no-any-return]

        def attend_context(y: Tensor) -> Tensor:
            # Beams of one context query it together: (B * W, T, n) -> (B, W * T, n).
            rows = y.reshape(len(memory[0]), -1, y.shape[-1])
            return self.cross_attention(rows, memory, seen, draws).view_as(y)  # type: ignore[no-any-return]

        x = self.around_attention(x, attend)
        return self.around_cross(x, attend_context), present[0]

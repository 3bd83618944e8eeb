"""n-stream self-attention and relative positions in buckets (Qi et al., ProphetNet, section 3).

A decoder pass has rows of K + 1 streams of T positions each. The main stream reads the response
as far as it is known. Row t of predicting stream k = 1 .. K stands where word t will be, and
predicts it from what the main stream read k words earlier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.dropout import Dropout

from .attention import Attention, DecoderLayer, KeysValues, trained
from .randomized import Draws


def bucket_of(distance: Tensor, count: int, longest: int, *, both_ways: bool = False) -> Tensor:
    """The bucket of each distance from a key to a query behind it.

    The first half of the buckets hold a distance each, the others ranges that grow like powers
    up to `longest`, and the last one all that is farther (Raffel et al., T5, section 2.1).

    Args:
        distance: query position minus key position.
        count: buckets.
        longest: where the last bucket begins at the latest.
        both_ways: whether keys behind the query have half of the buckets, instead of the first.
    """
    first: Tensor | int = 0
    if both_ways:
        count //= 2
        first, distance = distance.lt(0) * count, distance.abs()
    distance = distance.clamp(min=0)
    exact = count // 2
    # exact + log(d / exact) / log(longest / exact) * (count - exact)
    ratio = (distance.clamp(min=1).float() / exact).log() / math.log(longest / exact)
    far = (exact + ratio * (count - exact)).clamp(max=count - 1).long()
    return first + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    """What a query adds to the scores of keys at every distance, a number a bucket and head.

    Args:
        width: n, of the queries' rows.
        heads: of the attention.
        buckets: of distances.
    """

    def __init__(self, width: int, heads: int, buckets: int) -> None:
        super().__init__()
        self.heads = heads
        self.table = trained(width, buckets * heads, True)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        """(N, R, n) rows and (R, C) or (N, 1, R, C) buckets of C keys -> (N, H, R, C)."""
        values = self.table(x).unflatten(-1, (-1, self.heads))  # (N, R, buckets, H)
        values = values.permute(0, 3, 1, 2)  # (N, H, R, buckets)
        return values.gather(-1, index.expand(*values.shape[:3], -1))  # type: ignore[no-any-return]


def attend(
    query: Tensor, keys: Tensor, bias: Tensor, dropout: Dropout, itself: Tensor | None = None
) -> Tensor:
    """Attention weights softmax(Q K' / sqrt(d/H) + bias), (N, H, R, C [+ 1]).

    Args:
        query: (N, H, R, d/H).
        keys: (N, H, C, d/H).
        bias: (N, H, R, C [+ 1]), -inf where a key is not seen.
        dropout: on the weights.
        itself: (N, H, R, 1) scores of one more key, each row's own.
    """
    scores = (query * query.shape[-1] ** -0.5) @ keys.transpose(-1, -2)  # (N, H, R, C)
    if itself is not None:
        scores = torch.cat([scores, itself], -1)
    return dropout((scores + bias).softmax(-1))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Streams:
    """How the rows of one decoder pass see its keys.

    Attributes:
        size: T, rows of the main stream; 0 where only predicting rows are left.
        index: (R, C + 1) bucket of each key, a row's own last.
        unseen: (R, M + C + 1), 0 where a key is seen and -inf elsewhere.
        memory: M, keys in front that the main stream sees and no position knows.
    """

    size: int
    index: Tensor
    unseen: Tensor
    memory: int

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(N, H, M + C + K T, d/H) -> what all may see, and what is each predicting row's own."""
        own = len(self.index) - self.size
        return rows[:, :, :-own], rows[:, :, -own:]

    @property
    def predicting(self) -> Streams:
        """The same without the rows of the main stream."""
        return Streams(0, self.index[self.size :], self.unseen[self.size :], self.memory)


@lru_cache(maxsize=256)
def streams_of(
    size: int, first: int, count: int, bucketing: tuple[int, int], memory: int, device: torch.device
) -> Streams:
    """The main stream and `count` predicting ones at positions first .. first + size - 1.

    Kept for the next batch: responding takes the same ones again and again.

    Args:
        size: T.
        first: how many positions were read before.
        count: K.
        bucketing: buckets, and the longest distance that they tell apart.
        memory: M.
        device: where the tensors shall be.
    """
    positions = torch.arange(first + size, device=device)
    distance = positions[first:, None] - positions  # (T, C), to the main stream's inputs
    itself = distance.new_zeros(size, 1)
    # The main stream needs no row of its own beside the keys: its input is among them.
    seen = [_columns(distance.ge(0), memory, in_front=True, itself=False)]
    index = [torch.cat([distance, itself], 1)]
    for ahead in range(count):
        # Stream k reads inputs up to t - k + 1, and row 0 the start, as there is nothing else.
        visible = distance.ge(ahead) | positions.eq(0)
        seen.append(_columns(visible, memory, in_front=False, itself=True))
        index.append(torch.cat([distance + 1, itself], 1))  # the word is behind its input
    visible = torch.cat(seen)  # (R, M + C + 1), R = (K + 1) T
    unseen = torch.zeros_like(visible, dtype=torch.float32).masked_fill(~visible, -torch.inf)
    return Streams(size, bucket_of(torch.cat(index), *bucketing), unseen, memory)


def _columns(visible: Tensor, memory: int, *, in_front: bool, itself: bool) -> Tensor:
    # (T, C) -> (T, M + C + 1)
    return F.pad(F.pad(visible, (memory, 0), value=in_front), (0, 1), value=itself)


class StreamAttention(Attention):
    """Self-attention of all streams to the main one, and of each predicting row to itself.

    `draws` are the `Streams` of the pass.

    Args:
        width, heads, dropout: as of `Attention`.
        buckets: of relative distances.
    """

    def __init__(self, width: int, heads: int, dropout: float, buckets: int) -> None:
        super().__init__(width, width, heads, dropout, bias=True)
        self.relative = RelativeBias(width, heads, buckets)

    def extend(self, past: KeysValues | None, x: Tensor, draws: Draws) -> KeysValues:
        """Keys and values of the positions before and of all rows of (N, R, n).

        Those of the predicting streams are last, and no other row will see them. They are made
        together with the main stream's: for a row or two, reading the maps takes longest. Without
        rows of the main stream all are among those of the past.
        """
        if past is not None and not draws.size:
            return past
        return super().extend(past, x, None)

    def mix(self, x: Tensor, memory: KeysValues, mask: Tensor | None, draws: Draws) -> Tensor:
        """The values that each of (N, R, n) attends to, heads joined, (N, R, n)."""
        streams = cast(Streams, draws)
        query = self._split(self.query(x, None))  # (N, H, R, d/H)
        bias = self.relative(x, streams.index)  # (N, H, R, C + 1)
        if streams.memory:
            bias = F.pad(bias, (streams.memory, 0))
        bias = bias + streams.unseen  # (N, H, R, M + C + 1)
        if len(streams.index) - streams.size == 1 and not self.training:
            # The one predicting row's own key stands behind the others, where no other row sees it.
            mixed = F.scaled_dot_product_attention(query, *memory, attn_mask=bias.to(query.dtype))
            return mixed.transpose(1, 2).flatten(2)
        # (N, H, M + C, d/H) of the main stream, and (N, H, K T, d/H) of each predicting row
        (keys, own_keys), (values, own_values) = map(streams.split, memory)
        score = (query[:, :, streams.size :] * own_keys).sum(-1, keepdim=True)
        score = F.pad(score * query.shape[-1] ** -0.5, (0, 0, streams.size, 0))  # (N, H, R, 1)
        weights = attend(query, keys, bias, self.dropout, score)
        mixed = weights[..., :-1] @ values  # (N, H, R, d/H)
        itself = weights[:, :, streams.size :, -1:] * own_values
        mixed = mixed + F.pad(itself, (0, 0, streams.size, 0)).to(mixed.dtype)
        return mixed.transpose(1, 2).flatten(2)


@dataclass(frozen=True)
class Distances:
    """The relative positions of a context's tokens.

    Attributes:
        tables: one for each kind of distance.
        indices: (B, 1, S, S) or (S, S) buckets of each.
        unseen: (B, 1, 1, S), 0 where a key is seen and -inf elsewhere.
    """

    tables: tuple[RelativeBias, ...]
    indices: tuple[Tensor, ...]
    unseen: Tensor


class LastLayer(DecoderLayer):
    """The last decoder layer, of whose main stream nothing is needed but keys and values."""

    def read(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues,
        masks: tuple[Tensor | None, Tensor],
        draws: Draws,
    ) -> tuple[Tensor, KeysValues]:
        """As `DecoderLayer.read`, the rows of the main stream left out."""
        around = self.around_attention
        present = self.attention.extend(past, x if around.post else around.norm(x), draws)
        return super().read(x[:, draws.size :], present, memory, masks, draws.predicting)


class RelativeAttention(Attention):
    """Attention whose scores know relative positions, where `draws` holds `Distances`."""

    def mix(self, x: Tensor, memory: KeysValues, mask: Tensor | None, draws: Draws) -> Tensor:
        """As `Attention.mix`."""
        if not isinstance(draws, Distances):
            return super().mix(x, memory, mask, None)
        biases = [table(x, i) for table, i in zip(draws.tables, draws.indices, strict=True)]
        bias = torch.stack(biases).sum(0)  # (B, H, S, S)
        if len(biases) > 1:
            bias = bias + torch.stack(biases).prod(0)  # tokens and turns together, as in the code
        query = self._split(self.query(x, None))
        mixed = attend(query, memory[0], bias + draws.unseen, self.dropout) @ memory[1]
        return mixed.transpose(1, 2).flatten(2)

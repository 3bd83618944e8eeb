"""The numbers that a model works with, and tokens around contexts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from dialbench.text.vocabulary import PAD


@dataclass(frozen=True)
class Around:
    """The numbers that stand in front of a context and behind it."""

    front: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()


@dataclass(frozen=True)
class Words:
    """The numbers that a model works with.

    Attributes:
        count: V.
        unused: those that take no probability.
        around: what stands around every context.
        positions: rows of the tables of positions.
    """

    count: int
    unused: tuple[int, ...]
    around: Around
    positions: int


def surround(source: Tensor, around: Around) -> Tensor:
    """(B, S) contexts, PAD behind them -> (B, front + S + behind), PAD behind all."""
    sides = around.front, around.behind
    # (B, front) and (B, behind)
    front, behind = (source.new_tensor(side).expand(len(source), len(side)) for side in sides)
    # where the numbers behind a context go: right after its last token, (B, behind)
    ends = source.ne(PAD).sum(1, keepdim=True) + torch.arange(behind.shape[1], device=source.device)
    padded = F.pad(source, (0, behind.shape[1]), value=PAD)  # (B, S + behind)
    return torch.cat([front, padded.scatter(1, ends, behind)], 1)

"""Dropout whose masks are cheap to draw on a CPU.

torch draws a Bernoulli number an element on one core, which took a third of a training step.
Here the global torch generator gives one seed a mask and a counter-free bit generator fills it,
16 bits an element, so a run stays a function of its seed.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

_STEPS = 1 << 16


def dropped(shape: torch.Size, rate: float) -> Tensor:
    """A CPU mask, True with probability `rate` (to 1 / 65,536)."""
    seed = int(torch.randint(2**63 - 1, ()).item())
    count = shape.numel()
    bits = np.random.SFC64(seed).random_raw(-(-count // 4)).view(np.uint16)[:count]
    return torch.from_numpy(bits < round(rate * _STEPS)).view(shape)


class Dropout(nn.Module):
    """As `torch.nn.Dropout`: zero with probability `rate`, else scaled by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Any shape, unchanged in eval mode."""
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        return x.masked_fill(dropped(x.shape, self.rate), 0.0) * (1.0 / (1.0 - self.rate))

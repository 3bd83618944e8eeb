"""Words and positions as vectors (models.md 0.2, 0.3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dialbench.text.vocabulary import PAD


class WordEmbedding(nn.Embedding):
    """V word vectors of size n from N(0, 0.1^2); PAD is zero and stays so."""

    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__(vocabulary, size, padding_idx=PAD)
        nn.init.normal_(self.weight, 0.0, 0.1)
        with torch.no_grad():
            self.weight[PAD].zero_()


class Positions(nn.Module):
    """Sinusoidal positions: half sine, half cosine, wavelengths from 2 pi to 10000 * 2 pi."""

    table: Tensor

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()
        half = (size + 1) // 2
        rates = torch.exp(-math.log(10_000.0) * torch.arange(half) / max(1, half - 1))
        angles = torch.arange(longest)[:, None] * rates
        table = torch.cat([angles.sin(), angles.cos()], -1)[:, :size]
        self.register_buffer("table", table, persistent=False)

    def forward(self, embedded: Tensor, first: int = 0) -> Tensor:
        """(B, T, n) embedded words at positions first .. first + T - 1, positions added."""
        return embedded + self.table[first : first + embedded.shape[1]]

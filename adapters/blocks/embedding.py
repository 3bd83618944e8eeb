"""Words and positions as vectors (models.md 0.2, 0.3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dialbench.text.vocabulary import PAD


class WordEmbedding(nn.Embedding):
    """V word vectors of size n from N(0, spread^2); PAD is zero and stays so."""

    def __init__(self, vocabulary: int, size: int, spread: float) -> None:
        super().__init__(vocabulary, size, padding_idx=PAD)
        nn.init.normal_(self.weight, 0.0, spread)
        with torch.no_grad():
            self.weight[PAD].zero_()


# Sines and cosines have a mean square of 1/2; words of the same bring the sum to the unit
# variance that PaRaFormer's spreads presume. Words of spread 0.1 would be a seventh of it, and
# the encoder then learns late to tell contexts apart.
BESIDE_POSITIONS = 0.5**0.5


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

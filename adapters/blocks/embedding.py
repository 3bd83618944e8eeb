"""Words and positions as vectors (models.md 0.2, 0.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.model import DialogueModel
from dialbench.records import Context
from dialbench.text.vectors import Vectors, load
from dialbench.text.vocabulary import PAD, Vocabulary

_UNCOVERED = 0.01


@dataclass(frozen=True)
class WordConfig(NeuralConfig):
    """How words become vectors.

    Attributes:
        embedding: n, size of word vectors.
        word_spread: their standard deviation at the start; larger ones stand out against
            positions, and the context is read sooner.
        vectors: GloVe or word2vec text file of size n to start from in place of random ones.
    """

    embedding: int = 300
    word_spread: float = 0.1
    vectors: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.demand_positive("embedding", "word_spread")


class WordAdapter(NeuralAdapter):
    """A trained system whose model has word tables, one of them called `embedding`."""

    Config = WordConfig
    config: WordConfig

    @classmethod
    def inspect(cls, config: WordConfig, contexts: Sequence[Context]) -> Mapping[str, Any]:
        """The checksum of the vectors to start from."""
        if not config.vectors:
            return {}
        vectors = _vectors(config.vectors)
        if vectors.matrix.shape[1] != config.embedding:
            raise InputError(
                f"the vectors in {config.vectors} have size {vectors.matrix.shape[1]}, but "
                f"embedding={config.embedding}",
                where="--models",
                hint=f"Write embedding={vectors.matrix.shape[1]}.",
            )
        return {"vectors": vectors.checksum}

    def _fresh_model(self, run: Run) -> DialogueModel:
        model = super()._fresh_model(run)
        for table in model.modules():
            if self.config.vectors and isinstance(table, WordEmbedding):
                table.start_from(_vectors(self.config.vectors), self.vocabulary)
        return model


@lru_cache(maxsize=1)
def _vectors(path: str) -> Vectors:
    return load(Path(path), where="--models")


class WordEmbedding(nn.Embedding):
    """V word vectors of size n from N(0, spread^2); PAD is zero and stays so."""

    def __init__(self, vocabulary: int, size: int, spread: float) -> None:
        super().__init__(vocabulary, size, padding_idx=PAD)
        self.spread = spread
        nn.init.normal_(self.weight, 0.0, spread)
        with torch.no_grad():
            self.weight[PAD].zero_()

    @torch.no_grad()
    def start_from(self, vectors: Vectors, vocabulary: Vocabulary) -> None:
        """Takes over these vectors; words without one shrink to N(0, 0.01^2) (code of SVT)."""
        self.weight.mul_(_UNCOVERED / self.spread)
        for number, word in enumerate(vocabulary.words):
            row = vectors.rows.get(word)
            if row is not None and number != PAD:
                self.weight[number] = torch.from_numpy(vectors.matrix[row])


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

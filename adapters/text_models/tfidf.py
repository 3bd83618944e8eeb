"""Texts as tf-idf vectors of their words and pairs of neighbouring words (dom-seq2seq)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from dialbench.neural.data import Ints, PackedSequences
from dialbench.text.vocabulary import SPECIALS

_WORDS = 1 << 32  # more than there are; a word is a pair with nothing before it


@dataclass(frozen=True, eq=False)
class Rows:
    """N sparse vectors of unit length; those without any feature are zero.

    Attributes:
        columns: (entries,) features, row behind row.
        values: (entries,) float64.
        starts: (N,) where each row begins.
    """

    columns: Tensor
    values: Tensor
    starts: Tensor

    def __len__(self) -> int:
        return len(self.starts)

    def __matmul__(self, table: Tensor) -> Tensor:
        """The product with (features, D), (N, D)."""
        # sum_i value_i table[column_i] over the entries i of each row
        return F.embedding_bag(
            self.columns, table, self.starts, mode="sum", per_sample_weights=self.values
        )

    def dense(self, row: int, features: int) -> Tensor:
        """One row, (features,)."""
        end = int(self.starts[row + 1]) if row + 1 < len(self) else len(self.columns)
        part = slice(int(self.starts[row]), end)
        totals = self.values.new_zeros(features)
        return totals.index_add(0, self.columns[part], self.values[part])

    def sums(self, groups: Tensor, count: int, features: int) -> Tensor:
        """The sum of the rows of each of `count` groups, (features, count), by (N,) groups."""
        lengths = torch.diff(self.starts, append=self.starts.new_tensor([len(self.columns)]))
        # feature and group in one number
        cells = self.columns * count + groups.repeat_interleave(lengths)
        flat = torch.bincount(cells, self.values, minlength=features * count)
        return flat.view(features, count)


@dataclass(frozen=True, eq=False)
class TfIdf:
    """The features that are counted, and how much each is worth.

    Attributes:
        features: (F,) ascending, the number of a word plus 2^32 times that of the word before it,
            or 0 for the word alone.
        weights: (F,) idf = ln((1 + N) / (1 + df)) + 1 over N training texts.
    """

    features: Ints
    weights: NDArray[np.float64]

    @classmethod
    def fit(cls, texts: PackedSequences, count: int) -> TfIdf:
        """Keeps the `count` features that occur most often, of equal ones the lower number."""
        rows, keys = _grams(texts)
        features, inverse, times = np.unique(keys, return_inverse=True, return_counts=True)
        kept = np.sort(np.argsort(-times, kind="stable")[:count])
        pairs = np.unique(rows * len(features) + inverse)  # a text counts once for each of its own
        # (F,) in how many texts each feature occurs
        df = np.bincount(pairs % max(1, len(features)), minlength=len(features))[kept]
        return cls(features[kept], np.log((1 + len(texts.starts)) / (1 + df)) + 1)

    def rows(self, texts: PackedSequences) -> Rows:
        """The vectors of N texts."""
        rows, keys = _grams(texts)
        size, total = len(self.features), len(texts.starts)
        indices = np.searchsorted(self.features, keys)  # the feature of each key, if it is one
        known = indices < size
        known[known] = self.features[indices[known]] == keys[known]
        cells, times = np.unique(rows[known] * max(1, size) + indices[known], return_counts=True)
        rows, columns = cells // max(1, size), cells % max(1, size)
        values = times * self.weights[columns]  # tf idf
        # to rows of length 1
        values /= np.sqrt(np.bincount(rows, values**2, minlength=total))[rows]
        starts = np.searchsorted(rows, np.arange(total))
        return Rows(*(torch.from_numpy(array) for array in (columns, values, starts)))


def _grams(texts: PackedSequences) -> tuple[Ints, Ints]:
    # For each word, and each pair of words next to each other in one text: the text and the key.
    lengths = texts.lengths
    whole = texts.take(np.arange(len(lengths)))
    rows, words = np.repeat(np.arange(len(lengths)), lengths), whole.values.astype(np.int64)
    real = words >= len(SPECIALS)
    pairs = real[1:] & real[:-1] & (rows[1:] == rows[:-1])  # no pair across two texts or a special
    keys = np.concatenate([words[real], (words[:-1] * _WORDS + words[1:])[pairs]])
    return np.concatenate([rows[real], rows[1:][pairs]]), keys

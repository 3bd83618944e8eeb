"""Initial word vectors and output biases, computed from the training split.

The papers start from GloVe, which needs a download. Factors of the positive pointwise mutual
information of words that stand near each other do what word2vec does (Levy and Goldberg, "Neural
Word Embedding as Implicit Matrix Factorization", 2014) in seconds, with nothing but the split.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dialbench.neural.data import Encoded, Ints, PackedSequences

_WINDOW = 5
_SMOOTHING = 0.75  # of the neighbours' counts, as in word2vec, so that rare ones gain less
_OVERSAMPLING, _POWER_ITERATIONS = 16, 4  # of the randomised SVD


@lru_cache(maxsize=4)
def word_vectors(data: Encoded, vocabulary: int, size: int) -> Tensor:
    """Word vectors: words with the same neighbours in the split's turns get similar vectors.

    Kept for the next system of the same run.

    Args:
        data: the training split; each distinct turn counts once.
        vocabulary: V.
        size: n.

    Returns:
        (V, n) float32 of mean square 1; zero for words that stand beside no other.
    """
    rows, columns, values = _positive_pmi(data.turns, vocabulary)
    if not len(values):
        return torch.zeros(vocabulary, size)
    indices = torch.from_numpy(np.stack([rows, columns]))
    shape, rank = (vocabulary, vocabulary), min(size, vocabulary)
    matrix = torch.sparse_coo_tensor(
        indices, torch.from_numpy(values), shape, check_invariants=False
    ).coalesce()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # the factors hardly depend on it
        left, weights, _ = torch.svd_lowrank(
            matrix, min(rank + _OVERSAMPLING, vocabulary), _POWER_ITERATIONS
        )
    vectors = torch.zeros(vocabulary, size)
    vectors[:, :rank] = left[:, :rank] * weights[:rank].sqrt()
    length = vectors.norm(dim=1, keepdim=True).clamp(min=1e-12)
    # Without a neighbour a word has nothing but errors of rounding, and no direction.
    has_neighbour = torch.from_numpy(np.bincount(rows, minlength=vocabulary) > 0)[:, None]
    return torch.where(has_neighbour, vectors / length * size**0.5, 0.0)


def _positive_pmi(
    turns: PackedSequences, vocabulary: int
) -> tuple[Ints, Ints, NDArray[np.float32]]:
    # The positive pointwise mutual information of two words within the window, where above 0.
    keys, weights = _neighbours(turns, vocabulary)
    distinct, inverse = np.unique(keys, return_inverse=True)
    counts = np.bincount(inverse, weights, len(distinct))
    rows, columns = np.divmod(distinct, vocabulary)
    by_word = np.bincount(rows, counts, vocabulary)
    by_neighbour = by_word**_SMOOTHING
    expected = by_word[rows] * by_neighbour[columns] / by_neighbour.sum()
    values = np.log(counts / expected)
    kept = values > 0
    return rows[kept], columns[kept], values[kept].astype(np.float32)


def _neighbours(turns: PackedSequences, vocabulary: int) -> tuple[Ints, NDArray[np.float64]]:
    # Both orders of all pairs of words, as row * V + column, the nearer the heavier.
    last = np.repeat(turns.ends, turns.lengths)
    values = turns.values.astype(np.int64)
    keys, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for distance in range(1, _WINDOW + 1):
        first = np.flatnonzero(np.arange(len(values)) + distance < last)
        one, other = values[first], values[first + distance]
        keys += [one * vocabulary + other, other * vocabulary + one]
        weights += [np.full(2 * len(first), 1 / distance)]
    return np.concatenate(keys), np.concatenate(weights)


def log_unigram(data: Encoded, vocabulary: int) -> Tensor:
    """The logarithm of each word's share of the targets, each counted half a time more, (V,)."""
    targets = data.target.take(np.arange(len(data)))
    counts = np.bincount(targets.values, minlength=vocabulary) + 0.5
    return torch.from_numpy(np.log(counts / counts.sum())).float()

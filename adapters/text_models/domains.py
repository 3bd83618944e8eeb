"""Which domain a text belongs to: domains found by k-means, and a classifier (dom-seq2seq)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from dialbench.neural import checkpoint
from dialbench.neural.data import PackedSequences

from .tfidf import Rows, TfIdf

_MAX_ROUNDS = 100  # of Lloyd's algorithm
_STEPS = 200  # of L-BFGS, at most
_ROUNDING = 1e-9  # squared distances below are rounding


@dataclass(frozen=True, eq=False)
class Domains:
    """D domains, and a classifier of texts.

    Attributes:
        tfidf: the F features of a text.
        table: (F, D) weights of the features.
        bias: (D,).
    """

    tfidf: TfIdf
    table: Tensor
    bias: Tensor

    @classmethod
    def fit(
        cls, texts: PackedSequences, count: int, features: int, seed: int
    ) -> tuple[Domains, Tensor]:
        """Finds `count` domains among training texts, and trains their classifier.

        Returns:
            The domains, and the one of each text, (N,).
        """
        tfidf = TfIdf.fit(texts, features)
        rows = tfidf.rows(texts)
        clusters_of_texts = clusters(rows, len(tfidf.features), count, seed)
        return cls(
            tfidf, *regression(rows, len(tfidf.features), clusters_of_texts)
        ), clusters_of_texts

    def __len__(self) -> int:
        return len(self.bias)

    def logs(self, texts: PackedSequences) -> Tensor:
        """Log P(domain | text), (N, D)."""
        return (self.tfidf.rows(texts) @ self.table + self.bias).log_softmax(-1)

    def save(self, path: Path) -> None:
        """Writes what `load` reads."""
        features, weights = map(torch.from_numpy, (self.tfidf.features, self.tfidf.weights))
        tensors = {"features": features, "weights": weights, "table": self.table, "bias": self.bias}
        checkpoint.write(path, tensors)

    @classmethod
    def load(cls, path: Path) -> Domains:
        """What `save` wrote.

        Raises:
            StorageError: the file is damaged.
        """
        tensors, _ = checkpoint.read(path)
        tfidf = TfIdf(tensors["features"].numpy(), tensors["weights"].numpy())
        return cls(tfidf, tensors["table"], tensors["bias"])


def clusters(rows: Rows, features: int, count: int, seed: int) -> Tensor:
    """K-means of N vectors: the cluster of each, (N,), numbered from 0 without gaps.

    Lloyd's rounds until nothing moves, from centres that k-means++ has drawn.

    Args:
        rows: N vectors.
        features: their size.
        count: how many clusters; fewer where there are fewer distinct vectors.
        seed: from which the first centres derive.
    """
    centres = _kmeans_plus_plus(rows, features, count, np.random.default_rng(seed))  # (F, k)
    assignment = _distances(rows, centres).argmin(1)  # (N,)
    for _ in range(_MAX_ROUNDS):
        sizes = torch.bincount(assignment, minlength=centres.shape[1])
        means = rows.sums(assignment, len(sizes), features) / sizes.clamp(min=1)  # (F, k)
        centres = torch.where(sizes > 0, means, centres)  # a centre without rows stays where it is
        nearest = _distances(rows, centres).argmin(1)
        if torch.equal(nearest, assignment):
            break
        assignment = nearest
    _, numbered = np.unique(assignment.numpy(), return_inverse=True)
    return torch.from_numpy(numbered)


def _distances(rows: Rows, centres: Tensor) -> Tensor:
    # (N, k): squared distances, less the squared length of each row
    return centres.square().sum(0) - 2 * (rows @ centres)


def _kmeans_plus_plus(rows: Rows, features: int, count: int, random: np.random.Generator) -> Tensor:
    # K-means++: a row becomes a centre with a chance that grows as its squared distance to those
    # already drawn.
    squares = replace(rows, values=rows.values.square())
    lengths = (squares @ squares.values.new_ones(features, 1)).squeeze(1)  # squared, (N,)
    centres = [rows.dense(int(random.integers(len(rows))), features)]
    away = torch.full_like(lengths, torch.inf)  # squared distance to the nearest centre, (N,)
    while len(centres) < count:
        latest = lengths + _distances(rows, centres[-1][:, None]).squeeze(1)
        away = torch.minimum(away, latest.masked_fill(latest < _ROUNDING, 0.0))
        if not away.any():  # every distinct row is a centre
            break
        chances = (away / away.sum()).numpy()
        centres.append(rows.dense(int(random.choice(len(rows), p=chances)), features))
    return torch.stack(centres, 1)


def regression(rows: Rows, features: int, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Multinomial logistic regression: the sum of -log P plus half the squared weights is least.

    Args:
        rows: N vectors.
        features: their size.
        labels: (N,) classes from 0 to D - 1.

    Returns:
        Weights (features, D) and biases (D,), of which the latter are not held back.
    """
    classes = int(labels.max()) + 1
    table = torch.zeros(features, classes, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([table, bias], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        nll = F.cross_entropy(rows @ table + bias, labels, reduction="sum")
        # by N, as the search's tolerances are absolute
        total = (nll + table.square().sum() / 2) / len(rows)
        torch.autograd.backward(total)
        return total

    search.step(loss)  # type: ignore[no-untyped-call]
    return table.detach(), bias.detach()

"""Likeness of meaning by word vectors: average, greedy matching, extrema.

Definitions after the code of the HRED authors (Serban et al., 2017). Words without a vector, or
with one of norm 0, are ignored. A response without any known word scores 0. A reference without
any is skipped by average and extrema and scores 0 in greedy; with several references the best
counts. Values lie in [-1, 1].
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import COSINE, Dense, MeanMetric, Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.resource import Resource
from dialbench.metrics.texts import Ragged, Texts
from dialbench.text.vectors import Vectors

_ZERO = 1e-11
# A block holds a float64 vector for each of its tokens: 300 dimensions take 80 MB.
_BLOCK_TOKENS = 1 << 15

Floats = NDArray[np.float64]


VECTORS = Resource[Vectors]("vectors", "no word vectors were given")


class EmbeddingMetric(Metric[Dense]):
    """A metric on word vectors; it stands before `MeanMetric`.

    Args:
        kind: "average", "greedy" or "extrema".
        tokenizer: name of the tokeniser.
        vectors: the word vectors; None gives NaN.
        missing: why there are no vectors.
    """

    bounds = COSINE
    kind: ClassVar[str]

    def __init__(self, tokenizer: str, vectors: Vectors | None, missing: str = "") -> None:
        source = f"{vectors.name}@{vectors.checksum[:12]}" if vectors else "missing"
        super().__init__(
            f"emb-{self.kind}",
            f"emb-{self.kind}|vectors:{source}|unknown:ignored|references:max",
            tokenizer,
        )
        self._vectors = vectors
        self.missing = "" if vectors else missing
        self._matrix = vectors.matrix if vectors else np.zeros((0, 0), np.float32)

    def values(self, texts: Texts) -> Floats:
        """(responses,) likeness to the best reference."""
        if self._vectors is None:
            return np.full(len(texts), np.nan)
        rows = _rows(texts, self._vectors)
        parts = []
        for block in texts.blocks(_BLOCK_TOKENS):
            one = _known(block.responses, rows)
            other = _known(block.references, rows)
            parts.append(block.best(self._pairs(one, other, block.owners)))
        return np.concatenate([np.empty(0), *parts])

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or f"{NO_REFERENCES} with a word that has a vector"

    def _gather(self, texts: Ragged) -> Floats:
        """(tokens, size) the vectors of all words of the texts."""
        return self._matrix[texts.values].astype(np.float64)

    @abstractmethod
    def _pairs(self, responses: Ragged, references: Ragged, owners: NDArray[np.int64]) -> Floats:
        """(references,) score of each reference with its response, NaN where it is skipped.

        Args:
            responses: (responses,) texts of rows of the matrix, unknown words left out.
            references: (references,) the same of the references.
            owners: (references,) the response of each reference.
        """


class _Summary(EmbeddingMetric):
    """Each text becomes one vector; the score is their cosine."""

    def _pairs(self, responses: Ragged, references: Ragged, owners: NDArray[np.int64]) -> Floats:
        one, other = self._units(responses)[owners], self._units(references)
        scores: Floats = (one * other).sum(axis=1)
        scores[~one.any(axis=1)] = 0.0
        scores[~other.any(axis=1)] = np.nan
        return scores

    def _units(self, texts: Ragged) -> Floats:
        """(texts, size) the vector of each text, divided by its norm; 0 where it has none."""
        units = np.zeros((len(texts), self._matrix.shape[1]))
        filled = np.flatnonzero(texts.lengths)
        if len(filled):
            units[filled] = self._summaries(self._gather(texts), texts.offsets[filled])
        return _normalized(units)

    @abstractmethod
    def _summaries(self, vectors: Floats, starts: NDArray[np.int64]) -> Floats:
        """(texts, size) one vector for the tokens from each start to the next."""


class EmbeddingAverage(_Summary, MeanMetric):
    """emb-average: cosine of the sums of word vectors."""

    kind = "average"

    def _summaries(self, vectors: Floats, starts: NDArray[np.int64]) -> Floats:
        return np.add.reduceat(vectors, starts, axis=0)


class EmbeddingExtrema(_Summary, MeanMetric):
    """emb-extrema: cosine of the vectors of each dimension's value furthest from 0, with sign."""

    kind = "extrema"

    def _summaries(self, vectors: Floats, starts: NDArray[np.int64]) -> Floats:
        highest = np.maximum.reduceat(vectors, starts, axis=0)
        lowest = np.minimum.reduceat(vectors, starts, axis=0)
        return np.where(highest >= np.abs(lowest), highest, lowest)


class EmbeddingGreedy(EmbeddingMetric, MeanMetric):
    """emb-greedy: each word is matched with the most similar one of the other text.

    Mean over the words of the response and mean over those of the reference, averaged.
    """

    kind = "greedy"

    def _pairs(self, responses: Ragged, references: Ragged, owners: NDArray[np.int64]) -> Floats:
        scores = np.zeros(len(references))
        one, other = responses.lengths[owners], references.lengths
        for pairs, width, height in _shapes(one, other):
            scores[pairs] = self._batch(responses, references, owners, pairs, width, height)
        return scores

    def _batch(
        self,
        responses: Ragged,
        references: Ragged,
        owners: NDArray[np.int64],
        pairs: NDArray[np.intp],
        width: int,
        height: int,
    ) -> Floats:
        one, one_there = self._padded(responses[owners[pairs]], width)
        other, other_there = self._padded(references[pairs], height)
        cosines = one @ other.transpose(0, 2, 1)  # (pairs, width, height)
        allowed = one_there[:, :, None] & other_there[:, None, :]
        cosines[~allowed] = -np.inf
        forth = _mean_where(cosines.max(axis=2), one_there)
        back = _mean_where(cosines.max(axis=1), other_there)
        return (forth + back) / 2

    def _padded(self, texts: Ragged, width: int) -> tuple[Floats, NDArray[np.bool_]]:
        """(texts, width, size) unit vectors with zeros behind; (texts, width) what is a word."""
        there = np.arange(width) < texts.lengths[:, None]
        units = _normalized(self._gather(texts))
        padded = np.zeros((*there.shape, units.shape[1]))
        padded[there] = units
        return padded, there


def _shapes(
    one: NDArray[np.int64], other: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.intp], int, int]]:
    """Pairs with words on both sides, in batches of the same padded lengths.

    The padded lengths depend on the pair alone, so its score never depends on its neighbours.
    """
    width, height = (-(-lengths // 8) * 8 for lengths in (one, other))
    filled = np.flatnonzero((one > 0) & (other > 0))
    order = filled[np.lexsort((height[filled], width[filled]))]
    shape = np.stack([width[order], height[order]], axis=1)
    changes = np.flatnonzero(np.any(shape[1:] != shape[:-1], axis=1)) + 1
    for group in np.split(order, changes) if len(order) else ():
        wide, high = int(width[group[0]]), int(height[group[0]])
        size = max(1, _BLOCK_TOKENS // (wide + high))
        for start in range(0, len(group), size):
            yield group[start : start + size], wide, high


def _rows(texts: Texts, vectors: Vectors) -> NDArray[np.int32]:
    """(words,) row of the matrix for each word number, -1 for unknown words and zero vectors."""
    find = vectors.rows.get
    rows = np.fromiter((find(word, -1) for word in texts.words), np.int32, len(texts.words))
    norms = np.linalg.norm(vectors.matrix[rows[rows >= 0]].astype(np.float64), axis=1)
    rows[np.flatnonzero(rows >= 0)[norms < _ZERO]] = -1
    return rows


def _known(texts: Ragged, rows: NDArray[np.int32]) -> Ragged:
    """The texts as rows of the matrix, unknown words left out."""
    row = rows[texts.values]
    known = row >= 0
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
    return Ragged(row[known], before[texts.offsets], texts.words)


def _normalized(vectors: Floats) -> Floats:
    norms = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    units = np.zeros_like(vectors)
    np.divide(vectors, norms, out=units, where=norms >= _ZERO)
    return units


def _mean_where(values: Floats, there: NDArray[np.bool_]) -> Floats:
    means: Floats = np.where(there, values, 0.0).sum(axis=1) / there.sum(axis=1)
    return means


def _info(name: str, title: str, kind: type[EmbeddingMetric]) -> MetricInfo:
    return MetricInfo(
        name,
        title,
        "Embedding",
        kind,
        lambda s: kind(s.tokenizer, *s.of(VECTORS)),
        resource=VECTORS,
    )


METRICS = (
    _info("emb-average", "Average", EmbeddingAverage),
    _info("emb-greedy", "Greedy", EmbeddingGreedy),
    _info("emb-extrema", "Extrema", EmbeddingExtrema),
)

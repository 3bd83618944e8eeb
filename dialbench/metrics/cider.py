"""CIDEr-D (Vedantam, Zitnick and Parikh, 2015) as the COCO caption toolkit computes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.ngrams import ngram_counts, ngrams, renumber, run_lengths
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.texts import Interner, Paired, Ragged, Texts

_ORDERS, _SIGMA = 4, 6.0
_CELLS, _BLOCK = 1 << 24, 1 << 15

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N = TypeVar("N", np.int32, np.float64)
Terms = tuple[Ints, Ints, Ints]
Matrix = Any  # scipy's sparse arrays have no types


class Cider(Metric[Paired]):
    """cider: likeness of n-grams weighted by how rare they are in the references, in [0, 10].

    Mean over n = 1 to 4 and over references of the cosine of tf-idf vectors, with the response's
    weights clipped to the reference's, times a Gaussian penalty (sigma 6) on the difference in
    bigrams, times 10. The document frequency of an n-gram is the number of examples with it in a
    reference, so the value belongs to the whole set; a single example has idf 0 and scores 0.
    An empty response counts 0; examples without a reference are left out.
    """

    bounds = (0.0, 10.0)
    interval_from = 220

    def __init__(self, tokenizer: str) -> None:
        super().__init__("cider", "cider-d|orders:1-4|sigma:6|df:references", tokenizer)

    def statistics(self, texts: Texts) -> Paired:
        """The tokens of responses and references."""
        return texts.paired

    def score(self, statistics: Paired) -> float:
        """The mean over examples that have a reference; NaN without any."""
        values = self.per_response(statistics)
        there = values[~np.isnan(values)]
        return math.fsum(there) / len(there) if len(there) else math.nan

    def per_response(self, statistics: Paired) -> NDArray[np.float64]:
        """(responses,) the value of each, with the document frequencies of the whole set.

        These come from references alone, so two systems that answer the same contexts have
        the same, and their values pair up.
        """
        return statistics.once(_values)

    def score_subsets(
        self, statistics: Paired, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) values; n-grams are counted once for all choices."""
        there = np.flatnonzero(statistics.owned)
        pairs, groups = statistics[there], groups[there]
        sizes = included @ np.bincount(groups, minlength=included.shape[1])
        weights = 10 / _ORDERS * _penalties(pairs) / pairs.owned[pairs.owners]
        sums = np.zeros(len(included))
        for n in range(1, _ORDERS + 1):
            grams, kinds = _numbered(pairs, n)
            row, documents = _documents_by_group(grams, kinds, groups, included.shape[1])
            for part in _parts(len(included), len(documents)):
                squares = _squared_idf(documents, included[part], sizes[part])
                for examples, references, block in _blocks(grams):
                    likeness = _Vectors.of(block, kinds, row, len(documents)).likeness(squares)
                    counted = included[part].T[groups[examples][block.owners]]
                    sums[part] += weights[references] @ np.where(counted, likeness, 0.0)
        return _divided(sums, sizes, otherwise=math.nan)

    def count(self, statistics: Paired) -> int:
        """How many examples have a reference."""
        return int(np.count_nonzero(statistics.owned))

    def reason(self, statistics: Paired) -> str:
        """Why there is no value."""
        return "" if self.count(statistics) else NO_REFERENCES


def _values(pairs: Paired) -> Floats:
    """(responses,) the value of each; NaN without a reference."""
    there = np.flatnonzero(pairs.owned)
    counted = pairs[there]
    values = np.full(len(pairs), np.nan)
    if len(counted):
        likeness = np.mean([_likeness(counted, n) for n in range(1, _ORDERS + 1)], axis=0)
        each = 10 * likeness * _penalties(counted) / counted.owned[counted.owners]
        values[there] = _sums(counted.owners, each, len(counted))
    return values


def _penalties(pairs: Paired) -> Floats:
    """(references,) what a cosine is multiplied by for the difference in bigrams."""
    response_counts, reference_counts = (
        ngram_counts(texts, 2) for texts in (pairs.responses, pairs.references)
    )
    penalties: Floats = np.exp(
        -((response_counts[pairs.owners] - reference_counts) ** 2) / (2 * _SIGMA**2)
    )
    return penalties


def _numbered(pairs: Paired, n: int) -> tuple[Paired, int]:
    """The texts as numbers of their n-grams, and how many different ones there are."""
    texts = (pairs.responses, pairs.references)
    codes = renumber(ngrams(Ragged.concatenate(texts), n))
    kinds = int(codes.max(initial=0)) + 1
    bounds = [np.append(0, np.cumsum(ngram_counts(each, n))) for each in texts]
    parts = np.split(codes.astype(np.int32), bounds[0][-1:])
    responses, references = (Ragged(*own, Interner()) for own in zip(parts, bounds, strict=True))
    return Paired(responses, references, pairs.owned), kinds


def _blocks(grams: Paired) -> Iterator[tuple[slice, slice, Paired]]:
    """Some examples at a time: which ones, which references, and these."""
    bounds = np.append(0, np.cumsum(grams.owned))
    for start in range(0, len(grams), _BLOCK):
        stop = min(start + _BLOCK, len(grams))
        references = slice(int(bounds[start]), int(bounds[stop]))
        yield (
            slice(start, stop),
            references,
            Paired(
                grams.responses.part(start, stop),
                grams.references.part(references.start, references.stop),
                grams.owned[start:stop],
            ),
        )


def _likeness(pairs: Paired, n: int) -> Floats:
    """(references,) clipped cosine of the tf-idf vectors of each reference and its response."""
    grams, kinds = _numbered(pairs, n)
    documents = np.maximum(_documents(grams, kinds), 1)
    idf = math.log(len(pairs)) - np.log(documents)
    return np.concatenate([_cosines(block, kinds, idf) for _, _, block in _blocks(grams)])


def _documents(grams: Paired, kinds: int) -> Ints:
    """(kinds,) how many examples have each n-gram in a reference."""
    documents = np.zeros(kinds, np.int64)
    for _, _, block in _blocks(grams):
        np.add.at(documents, _in_examples(block, kinds)[1], 1)
    return documents


def _cosines(block: Paired, kinds: int, idf: Floats) -> Floats:
    text, code, count = _in_texts(block.responses, kinds)
    reference, their_code, their_count = _in_texts(block.references, kinds)
    response_weights, reference_weights = count * idf[code], their_count * idf[their_code]
    reference_codes = block.owners[reference] * kinds + their_code
    meets = _looked_up(text * kinds + code, response_weights, reference_codes)
    products = _sums(
        reference, np.minimum(meets, reference_weights) * reference_weights, len(block.references)
    )
    norms = np.sqrt(_sums(text, response_weights**2, len(block)))[block.owners]
    norms *= np.sqrt(_sums(reference, reference_weights**2, len(block.references)))
    return _divided(products, norms)


def _documents_by_group(grams: Paired, kinds: int, groups: Ints, count: int) -> tuple[Ints, Floats]:
    """(kinds,) the row of each n-gram, (rows, groups) examples with it in a reference.

    N-grams of at most one example, whose idf is the highest in every choice, share row 0, which
    counts none.
    """
    several = _documents(grams, kinds) > 1
    row = np.where(several, np.cumsum(several), 0)
    documents = np.zeros((int(row.max(initial=0)) + 1, count))
    for examples, _, block in _blocks(grams):
        example, code, _ = _in_examples(block, kinds)
        there = several[code]
        np.add.at(documents, (row[code[there]], groups[examples][example[there]]), 1)
    return row, documents


def _squared_idf(documents: Floats, included: NDArray[np.bool_], sizes: Ints) -> Floats:
    """(rows, k) where only the kept groups count."""
    idf: Floats = np.log(np.maximum(sizes, 1)) - np.log(np.maximum(documents @ included.T, 1))
    return idf**2


def _parts(choices: int, rows: int) -> Iterator[slice]:
    """So many choices, in parts that do not take too much memory at a time."""
    step = max(1, _CELLS // rows)
    return (slice(start, start + step) for start in range(0, choices, step))


@dataclass(frozen=True)
class _Vectors:
    """What the likeness of unions of groups needs of the n-grams of one length.

    A squared weight is a squared count times a squared idf, so norms and products are matrices
    times the squared idf of each choice.

    Attributes:
        responses: (responses, rows) squared counts.
        references: (references, rows) squared counts.
        products: (references, rows) counts clipped to the reference's, times the reference's.
        owners: (references,) the response of each.
    """

    responses: Matrix
    references: Matrix
    products: Matrix
    owners: Ints

    @classmethod
    def of(cls, block: Paired, kinds: int, row: Ints, rows: int) -> _Vectors:
        from scipy.sparse import csr_array

        text, code, count = _in_texts(block.responses, kinds)
        reference, their_code, their_count = _in_texts(block.references, kinds)
        reference_codes = block.owners[reference] * kinds + their_code
        meets = _looked_up(text * kinds + code, count.astype(np.float64), reference_codes)

        def matrix(text: Ints, code: Ints, values: NDArray[Any], size: int) -> Matrix:
            return csr_array((values.astype(np.float64), (text, row[code])), (size, rows))

        size = len(block.references)
        return cls(
            matrix(text, code, count**2, len(block)),
            matrix(reference, their_code, their_count**2, size),
            matrix(reference, their_code, np.minimum(meets, their_count) * their_count, size),
            block.owners,
        )

    def likeness(self, squares: Floats) -> Floats:
        """(references, k) clipped cosines by (rows, k) squared idf."""
        norms = np.sqrt(self.responses @ squares)[self.owners]
        norms *= np.sqrt(self.references @ squares)
        return _divided(self.products @ squares, norms)


def _divided(some: Floats, all_: NDArray[Any], otherwise: float = 0.0) -> Floats:
    out = np.full(some.shape, otherwise)
    return np.asarray(np.divide(some, all_, out=out, where=all_ > 0))


def _in_texts(grams: Ragged, kinds: int) -> Terms:
    """Text, code and count of each different n-gram of each text, ascending."""
    return _terms(np.repeat(np.arange(len(grams)), grams.lengths), grams.values, kinds)


def _in_examples(block: Paired, kinds: int) -> Terms:
    """As `_in_texts`, the references of an example being one text."""
    owners = np.repeat(block.owners, block.references.lengths)
    return _terms(owners, block.references.values, kinds)


def _terms(texts: Ints, codes: NDArray[np.int32], kinds: int) -> Terms:
    keys, counts = run_lengths(texts * kinds + _ascending(texts, codes))
    return *np.divmod(keys, kinds), counts


def _looked_up(keys: Ints, values: Floats, queries: Ints) -> Floats:
    """(wanted,) the value of each key, 0 where it is not among the ascending `keys`."""
    position = np.searchsorted(keys, queries)
    is_known = np.append(keys, -1)[position] == queries
    return np.where(is_known, np.append(values, 0.0)[position], 0.0)


def _sums(texts: Ints, values: Floats, count: int) -> Floats:
    """(count,) sum of the values of each text; `texts` ascends."""
    # In ascending order, so that the numbering of words changes no bit.
    ordered = _ascending(texts, values)
    return np.bincount(texts, weights=ordered, minlength=count).astype(np.float64)


def _ascending(texts: Ints, values: NDArray[N]) -> NDArray[N]:
    """The values in ascending order within each text; `texts` ascends."""
    sizes = np.bincount(texts)
    starts, ordered = np.cumsum(sizes) - sizes, values.copy()
    # Many short rows of one size sort several times faster than all values by text.
    for size in np.flatnonzero(np.bincount(sizes)[2:]) + 2:
        places = starts[sizes == size][:, None] + np.arange(size)
        ordered[places] = np.sort(values[places], axis=1)
    return ordered


METRICS = (MetricInfo("cider", "CIDEr", "Overlap", Cider),)

"""CIDEr-D (Vedantam, Zitnick and Parikh, 2015) as the COCO caption toolkit computes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import Metric
from dialbench.metrics.ngrams import ngram_counts, ngrams, renumber, run_lengths
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.texts import Paired, Ragged, Texts

_ORDERS, _SIGMA = 4, 6.0
_CELLS = 1 << 21

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N = TypeVar("N", np.int64, np.float64)
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
        self, statistics: Paired, groups: NDArray[np.int64], kept: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) values; n-grams are counted once for all choices."""
        there = np.flatnonzero(statistics.owned)
        pairs, groups = statistics[there], groups[there]
        sizes = kept @ np.bincount(groups, minlength=kept.shape[1])
        weights = 10 / _ORDERS * _penalties(pairs) / pairs.owned[pairs.owners]
        sums = np.zeros(len(kept))
        for n in range(1, _ORDERS + 1):
            choices = _Choices.of(pairs, n, groups, kept.shape[1])
            for part in choices.parts(len(kept)):
                likeness = choices.likeness(kept[part], sizes[part])
                counted = kept[part].T[groups[pairs.owners]]
                sums[part] += weights @ np.where(counted, likeness, 0.0)
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
    own, other = (ngram_counts(texts, 2) for texts in (pairs.responses, pairs.references))
    penalties: Floats = np.exp(-((own[pairs.owners] - other) ** 2) / (2 * _SIGMA**2))
    return penalties


def _likeness(pairs: Paired, n: int) -> Floats:
    """(references,) clipped cosine of the tf-idf vectors of each reference and its response."""
    (text, code, count), (reference, their_code, their_count), kinds = _vectors(pairs, n)
    owner = pairs.owners[reference]
    documents = _terms(owner, their_code, kinds)[1]
    idf = math.log(len(pairs)) - np.log(np.maximum(np.bincount(documents, minlength=kinds), 1))
    own, other = count * idf[code], their_count * idf[their_code]
    meets = _looked_up(text * kinds + code, own, owner * kinds + their_code)
    products = _sums(reference, np.minimum(meets, other) * other, len(pairs.references))
    norms = np.sqrt(_sums(text, own**2, len(pairs)))[pairs.owners]
    norms *= np.sqrt(_sums(reference, other**2, len(pairs.references)))
    return _divided(products, norms)


def _vectors(pairs: Paired, n: int) -> tuple[Terms, Terms, int]:
    """n-grams of responses and of references, and how many different ones there are."""
    codes = renumber(ngrams(Ragged.concatenate([pairs.responses, pairs.references]), n))
    kinds = int(codes.max(initial=0)) + 1
    of_responses = ngram_counts(pairs.responses, n)
    mine, theirs = np.split(codes, [of_responses.sum()])
    of_references = ngram_counts(pairs.references, n)
    return (
        _terms(np.repeat(np.arange(len(pairs)), of_responses), mine, kinds),
        _terms(np.repeat(np.arange(len(pairs.references)), of_references), theirs, kinds),
        kinds,
    )


@dataclass(frozen=True)
class _Choices:
    """What the likeness of unions of groups needs of the n-grams of one length.

    A squared weight is a squared count times a squared idf, so norms and products are matrices
    times the squared idf of each choice.

    Attributes:
        documents: (rows, groups) examples of each group with an n-gram in a reference; those with
            at most one in all, whose idf is the highest in every choice, share the first row.
        responses: (responses, rows) squared counts.
        references: (references, rows) squared counts.
        products: (references, rows) counts clipped to the reference's, times the reference's.
        owners: (references,) the response of each.
    """

    documents: Floats
    responses: Matrix
    references: Matrix
    products: Matrix
    owners: Ints

    @classmethod
    def of(cls, pairs: Paired, n: int, groups: Ints, count: int) -> _Choices:
        from scipy.sparse import csr_array

        own, other, kinds = _vectors(pairs, n)
        owner = pairs.owners[other[0]]
        example, code, _ = _terms(owner, other[1], kinds)
        several = np.bincount(code, minlength=kinds) > 1
        row = np.cumsum(several) * several
        rows = int(row.max(initial=0)) + 1
        cells = row[code] * count + groups[example]
        documents = np.bincount(cells, several[code], rows * count).astype(np.float64)
        counts = own[2].astype(np.float64)
        meets = _looked_up(own[0] * kinds + own[1], counts, owner * kinds + other[1])

        def matrix(text: Ints, code: Ints, values: NDArray[Any], size: int) -> Matrix:
            return csr_array((values.astype(np.float64), (text, row[code])), (size, rows))

        size = len(pairs.references)
        return cls(
            documents.reshape(rows, count),
            matrix(*own[:2], own[2] ** 2, len(pairs)),
            matrix(*other[:2], other[2] ** 2, size),
            matrix(*other[:2], np.minimum(meets, other[2]) * other[2], size),
            pairs.owners,
        )

    def parts(self, count: int) -> Iterator[slice]:
        """So many choices, in parts that do not take too much memory at a time."""
        step = max(1, _CELLS // max(len(self.documents), len(self.owners), 1))
        return (slice(start, start + step) for start in range(0, count, step))

    def likeness(self, kept: NDArray[np.bool_], sizes: Ints) -> Floats:
        """(references, k) clipped cosines where only the kept groups count."""
        documents = np.maximum(self.documents @ kept.T, 1)
        squares = (np.log(np.maximum(sizes, 1)) - np.log(documents)) ** 2
        norms = np.sqrt(self.responses @ squares)[self.owners]
        norms *= np.sqrt(self.references @ squares)
        return _divided(self.products @ squares, norms)


def _divided(some: Floats, all_: NDArray[Any], otherwise: float = 0.0) -> Floats:
    out = np.full(some.shape, otherwise)
    return np.asarray(np.divide(some, all_, out=out, where=all_ > 0))


def _terms(texts: Ints, codes: Ints, kinds: int) -> Terms:
    """Text, code and count of each different n-gram of each text, ascending."""
    keys, counts = run_lengths(texts * kinds + _ascending(texts, codes))
    return *np.divmod(keys, kinds), counts


def _looked_up(keys: Ints, values: Floats, wanted: Ints) -> Floats:
    """(wanted,) the value of each key, 0 where it is not among the ascending `keys`."""
    place = np.searchsorted(keys, wanted)
    found = np.append(keys, -1)[place] == wanted
    return np.where(found, np.append(values, 0.0)[place], 0.0)


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

"""CIDEr-D (Vedantam, Zitnick and Parikh, 2015) as the COCO caption toolkit computes it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import Metric
from dialbench.metrics.ngrams import ngram_counts, ngrams, renumber
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.texts import Paired, Ragged, Texts

_ORDERS, _SIGMA = 4, 6.0

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Cider(Metric[Paired]):
    """cider: likeness of n-grams weighted by how rare they are in the references, in [0, 10].

    Mean over n = 1 to 4 and over references of the cosine of tf-idf vectors, with the response's
    weights clipped to the reference's, times a Gaussian penalty (sigma 6) on the difference in
    bigrams, times 10. The document frequency of an n-gram is the number of examples with it in a
    reference, so the value belongs to the whole set; a single example has idf 0 and scores 0.
    An empty response counts 0; examples without a reference are left out.
    """

    def __init__(self, tokenizer: str) -> None:
        super().__init__("cider", "cider-d|orders:1-4|sigma:6|df:references", tokenizer)

    def statistics(self, texts: Texts) -> Paired:
        """The tokens of responses and references."""
        return texts.paired

    def score(self, statistics: Paired) -> float:
        """The mean over examples that have a reference; NaN without any."""
        counted = statistics[np.flatnonzero(statistics.owned)]
        if not len(counted):
            return math.nan
        likeness = np.mean([_likeness(counted, n) for n in range(1, _ORDERS + 1)], axis=0)
        own, other = (ngram_counts(texts, 2) for texts in (counted.responses, counted.references))
        apart = own[counted.owners] - other
        values = likeness * np.exp(-(apart**2) / (2 * _SIGMA**2))
        return 10 * math.fsum(values / counted.owned[counted.owners]) / len(counted)

    def count(self, statistics: Paired) -> int:
        """How many examples have a reference."""
        return int(np.count_nonzero(statistics.owned))

    def reason(self, statistics: Paired) -> str:
        """Why there is no value."""
        return "" if self.count(statistics) else NO_REFERENCES


def _likeness(pairs: Paired, n: int) -> Floats:
    """(references,) clipped cosine of the tf-idf vectors of each reference and its response."""
    codes = renumber(ngrams(Ragged.concatenate([pairs.responses, pairs.references]), n))
    kinds = int(codes.max(initial=0)) + 1
    of_responses = ngram_counts(pairs.responses, n)
    mine, theirs = np.split(codes, [of_responses.sum()])
    text, code, count = _terms(np.repeat(np.arange(len(pairs)), of_responses), mine, kinds)
    of_references = np.repeat(np.arange(len(pairs.references)), ngram_counts(pairs.references, n))
    reference, their_code, their_count = _terms(of_references, theirs, kinds)
    owner = pairs.owners[reference]
    documents = _terms(owner, their_code, kinds)[1]
    idf = math.log(len(pairs)) - np.log(np.maximum(np.bincount(documents, minlength=kinds), 1))
    own, other = count * idf[code], their_count * idf[their_code]
    meets = _looked_up(text * kinds + code, own, owner * kinds + their_code)
    products = _sums(reference, np.minimum(meets, other) * other, len(pairs.references))
    norms = np.sqrt(_sums(text, own**2, len(pairs)))[pairs.owners]
    norms *= np.sqrt(_sums(reference, other**2, len(pairs.references)))
    return np.divide(products, norms, out=np.zeros(len(norms)), where=norms > 0)


def _terms(texts: Ints, codes: Ints, kinds: int) -> tuple[Ints, Ints, Ints]:
    """Text, code and count of each different n-gram of each text, ascending."""
    keys, counts = np.unique(texts * kinds + codes, return_counts=True)
    return keys // kinds, keys % kinds, counts


def _looked_up(keys: Ints, values: Floats, wanted: Ints) -> Floats:
    """(wanted,) the value of each key, 0 where it is not among the ascending `keys`."""
    place = np.searchsorted(keys, wanted)
    found = np.append(keys, -1)[place] == wanted
    return np.where(found, np.append(values, 0.0)[place], 0.0)


def _sums(texts: Ints, values: Floats, count: int) -> Floats:
    """(count,) sum of the values of each text."""
    # In ascending order, so that the numbering of words changes no bit.
    order = np.lexsort((values, texts))
    sums = np.bincount(texts[order], weights=values[order], minlength=count)
    return sums.astype(np.float64)

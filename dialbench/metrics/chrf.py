"""chrF (Popović, 2015): overlap of character n-grams with references, as sacreBLEU has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import SHARE, Dense, SumMetric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.ngrams import common_ngrams, ngram_counts
from dialbench.metrics.overlap import NO_REFERENCES, SACREBLEU
from dialbench.metrics.texts import Interner, Ragged, Texts
from dialbench.text.tokenizer import keeps_case

_ORDERS, _BETA = 6, 2
_TEXTS = 1 << 12  # references in a block

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Chrf(SumMetric):
    """chrf: chrF2 of all responses, F with beta 2 of character 1- to 6-grams, in [0, 1].

    sacreBLEU's default, divided by 100: precision and recall of each order from the counts of all
    examples, averaged over the orders that both sides have; white space is dropped, words have no
    part. Of several references each response takes the one that suits it best. Reads the texts as
    they were written, in lower case where the tokeniser of the table lowers it. An empty response
    only adds to what recall divides by; examples without a reference are left out.
    """

    verbatim: ClassVar[bool] = True
    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        self._lower = not keeps_case(tokenizer)
        case = "lc" if self._lower else "mixed"
        recipe = f"chrf2|scope:corpus|text:verbatim|nrefs:var|case:{case}|eff:yes|nc:{_ORDERS}"
        super().__init__("chrf", f"{recipe}|nw:0|space:no|version:{SACREBLEU}", tokenizer)

    def statistics(self, texts: Texts) -> Dense:
        """(responses, 19) int64: counted, then n-grams of response, reference, both, by order."""
        response_ids, reference_ids = (
            self._characters(texts.response_texts),
            self._characters(texts.reference_texts),
        )
        owners = texts.owners
        blocks = [
            _counts(
                response_ids[owners[start : start + _TEXTS]],
                reference_ids.part(start, start + _TEXTS),
            )
            for start in range(0, len(reference_ids), _TEXTS)
        ]
        every = np.concatenate([np.empty((0, _ORDERS, 3), np.int64), *blocks])
        best = _first_best(_f(every), texts.reference_offsets)
        chosen = np.zeros((len(texts), 1 + 3 * _ORDERS), np.int64)
        chosen[owners[best]] = np.insert(every[best].reshape(-1, 3 * _ORDERS), 0, 1, axis=1)
        return Dense(chosen)

    def score(self, statistics: Dense) -> float:
        """F of the counts of all examples; NaN without references."""
        return self.of_sums(statistics.values.sum(axis=0))

    def addends(self, statistics: Dense) -> Counts:
        """(responses, 19) the counts themselves."""
        return np.asarray(statistics.values)

    def of_sums(self, sums: NDArray[Any]) -> float:
        """F of responses with these counts in all."""
        return float(_f(sums[None, 1:].reshape(1, _ORDERS, 3))[0]) if sums[0] else math.nan

    def count(self, statistics: Dense) -> int:
        """How many examples have a reference."""
        return int(statistics.values[:, 0].sum())

    def reason(self, statistics: Dense) -> str:
        """Why there is no chrF."""
        return "" if self.count(statistics) else NO_REFERENCES

    def _characters(self, texts: Sequence[str]) -> Ragged:
        """The code points of each text without white space."""
        joined = ["".join((text.lower() if self._lower else text).split()) for text in texts]
        points = np.frombuffer("".join(joined).encode("utf-32-le", "surrogatepass"), np.int32)
        offsets = np.cumsum([0, *map(len, joined)], dtype=np.int64)
        return Ragged(points, offsets, _CODE_POINTS)


_CODE_POINTS = Interner()
"""Stands for the numbering of characters, which is their own."""


def _counts(responses: Ragged, references: Ragged) -> Counts:
    """(references, 6, 3) n-grams of the response, of the reference and of both, by order."""
    columns = []
    for n in range(1, _ORDERS + 1):
        response_counts, reference_counts = ngram_counts(responses, n), ngram_counts(references, n)
        # Where the reference is too short for an order, the response's do not count against it.
        columns.append(
            [
                np.where(reference_counts, response_counts, 0),
                reference_counts,
                common_ngrams(responses, references, n),
            ]
        )
    return np.array(columns, np.int64).transpose(2, 0, 1)


def _f(counts: Counts) -> Floats:
    """(sets,) F of (sets, 6, 3) counts, added up in the order that sacreBLEU adds in."""
    response_counts, reference_counts, common = counts.transpose(2, 1, 0)  # (6, sets) each
    orders = (response_counts > 0) & (reference_counts > 0)
    precision, recall = (
        np.divide(common, every, out=np.zeros(response_counts.shape), where=orders).sum(axis=0)
        / np.maximum(orders.sum(axis=0), 1)
        for every in (response_counts, reference_counts)
    )
    weighted = _BETA**2 * precision + recall
    both = (1 + _BETA**2) * precision * recall
    values = np.divide(both, weighted, out=np.zeros(len(counts)), where=weighted > 0)
    return np.asarray(values)


def _first_best(scores: Floats, owned: Counts) -> Counts:
    """(examples with a reference,) the number of the best reference, the first of equals."""
    owners = np.repeat(np.arange(len(owned) - 1), np.diff(owned))
    order = np.lexsort((-scores, owners))
    return np.asarray(order[np.unique(owners[order], return_index=True)[1]])


METRICS = (MetricInfo("chrf", "chrF", "Overlap", Chrf),)

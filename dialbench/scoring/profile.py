"""Counts what plots of responses show: how long they are, how fast their n-grams repeat."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dialbench.metrics.diversity import RarefiedDistinct
from dialbench.metrics.ngrams import ngram_counts
from dialbench.metrics.texts import Ragged
from dialbench.records import Profile, Responses
from dialbench.text.tokenizer import tokenizer

_TOKENIZER = "default"
_ORDERS = (1, 2)
_MIN_NGRAMS, _MAX_POINTS = 10, 24


def profile(responses: Responses) -> Profile:
    """The lengths of the responses and of their references, and Distinct-1 and -2 of samples."""
    texts = _tokens(responses.texts)
    references = _tokens(text for example in responses.examples for text in example.references)
    return Profile(
        lengths=np.bincount(texts.lengths).tolist(),
        reference_lengths=np.bincount(references.lengths).tolist(),
        rarefied={n: rarefied(texts, n) for n in _ORDERS},
    )


def rarefied(texts: Ragged, n: int) -> list[tuple[int, float]]:
    """The expected Distinct-n of growing samples of the n-grams, up to all of them.

    Exactly, from the hypergeometric distribution.

    Returns:
        How many n-grams are drawn, and the value; nothing where there are fewer than 10 n-grams.
    """
    total = int(ngram_counts(texts, n).sum())
    if total < _MIN_NGRAMS:
        return []
    sizes = np.unique(np.geomspace(_MIN_NGRAMS, total, _MAX_POINTS).round().astype(np.int64))
    return [(size, RarefiedDistinct(n, _TOKENIZER, size).score(texts)) for size in sizes.tolist()]


def _tokens(texts: Iterable[str]) -> Ragged:
    return Ragged.build(map(tokenizer(_TOKENIZER), texts))

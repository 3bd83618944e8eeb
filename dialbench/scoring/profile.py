"""Counts what plots of responses show: how long they are, how fast their n-grams repeat."""

from __future__ import annotations

from itertools import chain

import numpy as np

from dialbench.metrics.diversity import RarefiedDistinct
from dialbench.metrics.ngrams import ngram_counts
from dialbench.metrics.texts import Ragged
from dialbench.records import Profile, Responses
from dialbench.text.tokenizer import tokenizer as find_tokenizer

_ORDERS = (1, 2)
_MIN_NGRAMS, _MAX_POINTS = 10, 24


def profile(responses: Responses, tokenizer: str = "default") -> Profile:
    """The lengths of the responses and of their references, and Distinct-1 and -2 of samples."""
    tokenize = find_tokenizer(tokenizer)
    texts = Ragged.build(map(tokenize, responses.texts))
    references = chain.from_iterable(example.references for example in responses.examples)
    return Profile(
        lengths=np.bincount(texts.lengths).tolist(),
        reference_lengths=np.bincount(Ragged.build(map(tokenize, references)).lengths).tolist(),
        rarefied={n: rarefied(texts, n, tokenizer) for n in _ORDERS},
        tokenizer=tokenizer,
    )


def rarefied(texts: Ragged, n: int, tokenizer: str = "default") -> list[tuple[int, float]]:
    """The expected Distinct-n of growing samples of the n-grams, up to all of them.

    Exactly, from the hypergeometric distribution.

    Returns:
        How many n-grams are drawn, and the value; nothing where there are fewer than 10 n-grams.
    """
    total = int(ngram_counts(texts, n).sum())
    if total < _MIN_NGRAMS:
        return []
    sizes = np.unique(np.geomspace(_MIN_NGRAMS, total, _MAX_POINTS).round().astype(np.int64))
    return [(size, RarefiedDistinct(n, tokenizer, size).score(texts)) for size in sizes.tolist()]

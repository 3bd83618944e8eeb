from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.metrics.ngrams import distinct, ngram_counts, ngrams, renumber
from dialbench.metrics.texts import Interner, Ragged

lists = st.lists(st.lists(st.integers(0, 4), max_size=7), max_size=6)


def ragged(texts: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return Ragged(np.array(list(chain(*texts)), dtype=np.int32), offsets, Interner())


def tuples(texts: list[list[int]], n: int) -> list[tuple[int, ...]]:
    return [tuple(text[i : i + n]) for text in texts for i in range(len(text) - n + 1)]


@given(lists, st.integers(1, 4))
def test_codes_are_equal_exactly_where_ngrams_are(texts, n):
    expected = tuples(texts, n)
    codes = ngrams(ragged(texts), n).tolist()
    assert len(codes) == len(expected) == ngram_counts(ragged(texts), n).sum()
    assert len(set(zip(codes, expected, strict=True))) == len(set(codes)) == len(set(expected))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_ngrams_collide_where_a_plain_code_would_overflow(n):
    generator = np.random.default_rng(0)
    words = np.array([0, 1, 2**16, 2**30, 2**31 - 2, 2**31 - 1])
    texts = generator.choice(words, size=(400, 6)).tolist()
    expected = tuples(texts, n)
    codes = ngrams(ragged(texts), n).tolist()
    assert len(set(zip(codes, expected, strict=True))) == len(set(codes)) == len(set(expected))
    assert min(codes) >= 0


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 3), max_size=9))
def test_distinct_codes_are_those_of_a_set(codes):
    assert distinct(np.array(codes, dtype=np.int64)).tolist() == sorted(set(codes))


def test_renumbering_leaves_no_gaps():
    assert renumber(np.array([70, 5, 70, 9])).tolist() == [2, 0, 2, 1]

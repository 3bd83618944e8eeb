"""Exact n-grams as integers, many texts at once."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.texts import Interner, Ragged

_LARGEST = 2**63 - 1
_DENSE = 4
_DIGIT = 16


def ngram_counts(texts: Ragged, n: int) -> NDArray[np.int64]:
    """(texts,) how many n-grams each text has; none where it is shorter than n."""
    return np.maximum(texts.lengths - (n - 1), 0)


def ngrams(
    texts: Ragged, n: int, groups: NDArray[np.int64] | None = None, count: int = 1
) -> NDArray[np.int64]:
    """(n-grams,) codes of all n-grams inside the texts, in order; equal codes, equal n-grams.

    A code is the word numbers in base vocabulary size. Where that would not fit into 63 bits
    the beginnings of the n-grams are numbered anew, so no two n-grams ever share a code.

    Args:
        texts: the texts.
        n: length of the n-grams.
        groups: (texts,) numbers below `count`; equal n-grams of different groups differ by
            `code % count`, the group, alone.
        count: how many groups there are.
    """
    counts = ngram_counts(texts, n)
    before = np.cumsum(counts) - counts
    starts = np.arange(counts.sum()) + np.repeat(texts.offsets[:-1] - before, counts)
    base = int(texts.values.max(initial=0)) + 1
    codes: NDArray[np.int64] = texts.values[starts].astype(np.int64)
    kinds = base
    for step in range(1, n):
        codes, kinds = _extended(codes, kinds, texts.values[starts + step], base)
    if groups is not None:
        codes, kinds = _extended(codes, kinds, np.repeat(groups, counts), count)
    return codes


def _extended(
    codes: NDArray[np.int64], kinds: int, digits: NDArray[np.integer], base: int
) -> tuple[NDArray[np.int64], int]:
    """Codes below `kinds` with one more digit of `base`, and how many there may be then."""
    if kinds > _LARGEST // base:
        codes = renumber(codes)
        kinds = int(codes.max(initial=0)) + 1
    return codes * base + digits, kinds * base


def hashed_ngrams(texts: Ragged, n: int) -> NDArray[np.int64]:
    """(n-grams,) codes that compare between texts whose words are numbered differently.

    In order, as `ngrams`. A code is a hash of 64 bits: among a million different n-grams two
    share one with a chance of 3e-8.
    """
    counts = ngram_counts(texts, n)
    before = np.cumsum(counts) - counts
    starts = np.arange(counts.sum()) + np.repeat(texts.offsets[:-1] - before, counts)
    words = texts.once(_hashed_words)
    codes = np.zeros(len(starts), np.uint64)
    for step in range(n):
        # An odd factor for each place, so that the order of the words matters.
        codes = codes * np.uint64(0x9E3779B97F4A7C15) + words[texts.values[starts + step]]
    return np.asarray(codes.view(np.int64))


def hashed_texts(texts: Ragged) -> NDArray[np.int64]:
    """(texts,) codes of whole texts, as those of `hashed_ngrams`."""
    places = np.arange(len(texts.values)) - np.repeat(texts.offsets[:-1], texts.lengths)
    factors = np.full(int(places.max(initial=-1)) + 1, 0x9E3779B97F4A7C15, np.uint64)
    terms = texts.once(_hashed_words)[texts.values] * np.cumprod(factors)[places]
    # Sums wrap around, so that differences of running sums are exact.
    sums = np.append(np.uint64(0), np.cumsum(terms))
    return np.asarray((sums[texts.offsets[1:]] - sums[texts.offsets[:-1]]).view(np.int64))


def _hashed_words(texts: Ragged) -> NDArray[np.uint64]:
    """(words,) 64 bits for each word."""
    words: Interner = texts.words
    digests = (hashlib.blake2b(w.encode("utf-8", "surrogatepass"), digest_size=8) for w in words)
    return np.frombuffer(b"".join(digest.digest() for digest in digests), "<u8").astype(np.uint64)


def once_per_group(
    codes: NDArray[np.int64], groups: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different codes of each group and the group of each, by rising group."""
    order = np.lexsort((codes, groups))
    codes, groups = codes[order], groups[order]
    same = (codes[1:] == codes[:-1]) & (groups[1:] == groups[:-1])
    first = np.append(True, ~same)[: len(codes)]
    return codes[first], groups[first]


def distinct(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different codes in ascending order."""
    # numpy's own unique hashes integers since 2.3, which takes 30 times as long as sorting here.
    ordered = np.sort(codes)
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return np.asarray(ordered[first])


def occurrences(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different codes in ascending order, and how often each occurs."""
    if codes.max(initial=0) <= _DENSE * len(codes):
        counts = np.bincount(codes)
        different = np.flatnonzero(counts)
        return different, counts[different]
    return run_lengths(np.sort(codes))


def run_lengths(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The code of each run of equal ones, and its length."""
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True)[: len(codes)])
    return codes[ends], np.diff(ends, prepend=-1)


def renumber(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes, 0 or more, as numbers 0, 1, ... without gaps and in the same order."""
    order = stable_order(codes)
    ordered = codes[order]
    changes = np.append(False, ordered[1:] != ordered[:-1])[: len(codes)]
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.cumsum(changes, out=ordered)
    return numbers


def stable_order(codes: NDArray[np.integer]) -> NDArray[np.intp]:
    """The places of codes, 0 or more, by ascending code; of equal codes the first place first."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    # numpy counts 16 bits instead of comparing them: a third of the time of sorting by all.
    for shift in range(_DIGIT, int(codes.max(initial=0)).bit_length(), _DIGIT):
        digit = (codes >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def common_ngrams(one: Ragged, other: Ragged, n: int) -> NDArray[np.int64]:
    """(texts,) n-grams that texts of the same number share, each as often as both have it.

    Args:
        one: texts.
        other: as many texts, numbered by the same words.
        n: length of the n-grams.
    """
    count = max(len(one), 1)
    numbers = np.tile(np.arange(len(one)), 2)
    codes = ngrams(Ragged.concatenate([one, other]), n, numbers, count)
    left, right = map(occurrences, np.split(codes, [ngram_counts(one, n).sum()]))
    shared, *places = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    clipped = np.minimum(left[1][places[0]], right[1][places[1]])
    return np.bincount(shared % count, clipped, len(one)).astype(np.int64)

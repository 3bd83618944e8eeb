"""Parts of a test set: whole dialogues, fixed once and the same for every system."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def fold_numbers(dialogue_ids: Sequence[str], k: int = 10, seed: int = 0) -> NDArray[np.int64]:
    """The fold of every response; the responses of one dialogue share a fold.

    Dialogues are taken in the order of a hash of their id and each goes to the fold that holds
    the fewest responses so far. The folds so depend on nothing but the ids: not on the system,
    the order of the responses or the version of a random generator.

    Args:
        dialogue_ids: the dialogue of each response.
        k: number of folds, at least 1; with fewer dialogues, one fold a dialogue.
        seed: another seed gives other folds.

    Returns:
        (responses,) numbers 0..k-1, none of them empty. Two folds differ by no more responses
        than the longest dialogue has.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    sizes = Counter(dialogue_ids)
    loads = [(0, fold) for fold in range(min(k, len(sizes)))]
    fold_of = {}
    for dialogue in sorted(sizes, key=lambda name: _shuffled(name, seed)):
        load, fold = loads[0]
        heapq.heapreplace(loads, (load + sizes[dialogue], fold))
        fold_of[dialogue] = fold
    return np.array([fold_of[dialogue] for dialogue in dialogue_ids], dtype=np.int64)


def groups(dialogue_ids: Sequence[str], k: int = 20, seed: int = 0) -> NDArray[np.int64]:
    """The groups that the jackknife leaves out in turn: `fold_numbers` with more, smaller parts."""
    return fold_numbers(dialogue_ids, k, seed)


def blocks(dialogue_ids: Sequence[str], k: int = 20) -> NDArray[np.int64]:
    """(responses,) 0, 1, ...: at most `k` runs of neighbouring dialogues of about equal length.

    For metrics that read all responses as one text: leaving out dialogues from anywhere would
    join texts in as many places, which moves the value at random.
    """
    numbers = dialogue_numbers(dialogue_ids)
    sizes = np.bincount(numbers)
    middles = np.cumsum(sizes) - sizes / 2
    of_dialogue = (middles * k / max(len(numbers), 1)).astype(np.int64)
    return np.asarray(np.unique(of_dialogue, return_inverse=True)[1][numbers], dtype=np.int64)


def dialogue_numbers(dialogue_ids: Sequence[str]) -> NDArray[np.int64]:
    """(responses,) the number of each dialogue, 0, 1, ... in order of first appearance."""
    numbers: dict[str, int] = {}
    each = (numbers.setdefault(name, len(numbers)) for name in dialogue_ids)
    return np.fromiter(each, np.int64, len(dialogue_ids))


def _shuffled(dialogue_id: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{dialogue_id}".encode("utf-8", "surrogatepass")).digest()

"""Folds hold whole dialogues, stay the same for everybody, and are balanced."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.stats.folds import blocks, dialogue_numbers, fold_numbers, groups

ids = st.lists(st.text(max_size=3), max_size=60)


@given(ids, st.integers(1, 12), st.integers(0, 5))
def test_every_dialogue_lies_in_one_fold_and_no_fold_is_empty(dialogues, k, seed):
    folds = fold_numbers(dialogues, k, seed)
    home = {}
    for dialogue, fold in zip(dialogues, folds, strict=True):
        assert home.setdefault(dialogue, fold) == fold
    assert set(folds.tolist()) == set(range(min(k, len(set(dialogues)))))


@given(ids.filter(bool), st.integers(1, 12))
def test_folds_differ_by_no_more_than_the_longest_dialogue(dialogues, k):
    sizes = np.bincount(fold_numbers(dialogues, k))
    assert sizes.max() - sizes.min() <= max(Counter(dialogues).values())


@given(ids, st.randoms())
def test_the_order_of_the_responses_does_not_matter(dialogues, random):
    order = list(range(len(dialogues)))
    random.shuffle(order)
    folds = fold_numbers(dialogues)
    shuffled = fold_numbers([dialogues[i] for i in order])
    assert shuffled.tolist() == [folds[i] for i in order]


def test_single_responses_are_spread_evenly():
    sizes = np.bincount(fold_numbers([f"d{i}" for i in range(101)]))
    assert sorted(sizes) == [10] * 9 + [11]


def test_neighbours_are_spread_and_seeds_differ():
    dialogues = [f"d{i}" for i in range(200)]
    first, second = fold_numbers(dialogues), fold_numbers(dialogues, seed=1)
    assert len(set(first[:20].tolist())) > 5
    assert np.mean(first == second) < 0.3


def test_the_folds_are_the_same_in_every_process_and_release():
    code = (
        "from dialbench.stats.folds import fold_numbers;"
        "print(fold_numbers(list('abcdefghij'), 3).tolist())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7"},
    )
    assert run.stdout.strip() == str(fold_numbers(list("abcdefghij"), 3).tolist())
    assert run.stdout.strip() == "[2, 2, 2, 1, 0, 0, 1, 1, 0, 0]"


def test_groups_are_twenty_or_as_many_as_there_are_dialogues():
    assert groups([f"d{i}" for i in range(90)]).max() == 19
    assert sorted(groups(["a", "b", "b"])) == sorted(fold_numbers(["a", "b", "b"], 20))
    assert set(groups(["a", "b", "b"]).tolist()) == {0, 1}
    assert groups([]).shape == (0,)


def test_dialogues_are_numbered_as_they_come():
    assert dialogue_numbers(["b", "a", "b", "", "a"]).tolist() == [0, 1, 0, 2, 1]
    assert dialogue_numbers([]).shape == (0,)


def test_no_folds_at_all_is_refused():
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        fold_numbers(["a"], 0)


def test_blocks_are_neighbouring_dialogues_of_about_equal_length():
    generator = np.random.default_rng(3)
    dialogue = np.repeat(np.arange(150), generator.integers(1, 9, size=150))
    actual = blocks([f"d{number}" for number in dialogue])
    assert (np.diff(actual) >= 0).all()
    assert actual.max() == 19
    assert all(len(set(actual[dialogue == number])) == 1 for number in range(150))
    assert np.ptp(np.bincount(actual)) <= 2 * 8
    assert blocks(["a", "b", "b", "a"]).tolist() == [0, 1, 1, 0]
    assert blocks([]).tolist() == []

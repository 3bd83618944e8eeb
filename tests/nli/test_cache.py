"""Judgements that are remembered."""

from __future__ import annotations

import numpy as np
import pytest

from dialbench.errors import StorageError
from dialbench.nli.cache import CachedJudge

PAIRS = [("a b", "a b"), ("a b", "c"), ("a b", "a b"), ("a", "a c")]


def test_each_pair_is_judged_once_and_answered_in_place(reader):
    judge = CachedJudge(reader)
    np.testing.assert_array_equal(judge(PAIRS).argmax(axis=1), [0, 2, 0, 1])
    np.testing.assert_array_equal(judge(PAIRS[::-1]).argmax(axis=1), [1, 0, 2, 0])
    assert sorted(reader.asked) == sorted(set(PAIRS))
    assert judge.name == reader.name
    assert judge([]).shape == (0, 3)


def test_a_pair_is_not_the_same_as_its_reverse_or_another_cut(reader):
    CachedJudge(reader)([("a", "b"), ("b", "a"), ("a b", ""), ("", "a b")])
    assert len(reader.asked) == 4


def test_another_process_finds_what_was_judged(reader, tmp_path):
    first = CachedJudge(reader, tmp_path)(PAIRS)
    asked = len(reader.asked)
    np.testing.assert_array_equal(CachedJudge(reader, tmp_path)(PAIRS), first)
    assert len(reader.asked) == asked


def test_judges_do_not_share_what_they_said(reader, tmp_path):
    CachedJudge(reader, tmp_path)(PAIRS)
    reader.name = "reader@2"
    asked = len(reader.asked)
    CachedJudge(reader, tmp_path)(PAIRS)
    assert len(reader.asked) == 2 * asked


def test_what_was_judged_before_a_break_is_kept(reader, tmp_path, monkeypatch):
    monkeypatch.setattr("dialbench.nli.cache._PORTION", 2)

    class Tired(type(reader)):
        def __call__(self, pairs):
            if self.asked:
                raise KeyboardInterrupt
            return super().__call__(pairs)

    with pytest.raises(KeyboardInterrupt):
        CachedJudge(Tired(), tmp_path)(PAIRS)
    CachedJudge(reader, tmp_path)(PAIRS)
    assert len(reader.asked) == 1


def test_a_damaged_file_is_named(reader, tmp_path):
    CachedJudge(reader, tmp_path)(PAIRS)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(
        StorageError, match=f"{file.name}: this cache of NLI probabilities is damaged"
    ):
        CachedJudge(reader, tmp_path)

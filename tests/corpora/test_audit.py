from __future__ import annotations

from pathlib import Path

import pytest

from dialbench.corpora.audit import audit, describe
from dialbench.corpora.base import load_corpus


def test_facts_by_hand(dailydialog: Path) -> None:
    facts = describe(load_corpus("dailydialog", data=dailydialog))
    train, test = facts.splits["train"], facts.splits["test"]
    assert (train.dialogues, train.turns, train.examples) == (3, 8, 5)
    assert train.mean_turns == pytest.approx(8 / 3)
    # is it raining ? / not yet . / good . / where is tom ? / in the garden . / is it raining ?
    # / not yet / good !
    assert train.tokens == 4 + 3 + 2 + 4 + 4 + 4 + 2 + 2
    assert train.vocabulary == 14
    assert (test.tokens, test.vocabulary) == (3 + 3 + 2 + 2, 9)
    # Of the ten test tokens only "hello" and "hi" are not in train.
    assert facts.coverage == pytest.approx(8 / 10)


def test_overlap_by_hand(dailydialog: Path) -> None:
    actual = audit(load_corpus("dailydialog", data=dailydialog))
    assert actual.exact.inside == {"train": 0, "valid": 0, "test": 0}
    assert actual.normalised.inside == {"train": 1, "valid": 0, "test": 0}
    assert (actual.exact.test_in_train, actual.normalised.test_in_train) == (0, 1)
    assert (actual.normalised.valid_in_train, actual.normalised.test_in_valid) == (0, 0)


def test_turns_are_compared_one_by_one(write) -> None:
    write("own/train.jsonl", '{"turns": ["good morning", "to you"]}')
    write("own/valid.jsonl", '{"turns": ["good", "morning to you"]}')
    folder = write("own/test.jsonl", '{"turns": ["GOOD, morning!", "To_you?"]}').parent
    actual = audit(load_corpus(str(folder))).normalised
    assert (actual.test_in_train, actual.valid_in_train, actual.test_in_valid) == (1, 0, 0)


def test_the_known_faults_of_dailydialog(data_folder: Path) -> None:
    actual = audit(load_corpus("dailydialog", data=data_folder))
    exact, normalised = actual.exact, actual.normalised
    assert exact.inside == {"train": 569, "valid": 5, "test": 4}
    assert normalised.inside == {"train": 879, "valid": 7, "test": 4}
    assert (exact.test_in_train, exact.valid_in_train, exact.test_in_valid) == (93, 69, 4)
    assert (normalised.test_in_train, normalised.valid_in_train) == (149, 122)
    assert normalised.test_in_valid == 11


def test_empatheticdialogues_has_no_overlap(data_folder: Path) -> None:
    actual = audit(load_corpus("empatheticdialogues", data=data_folder)).normalised
    assert not any(actual.inside.values())
    assert (actual.test_in_train, actual.valid_in_train, actual.test_in_valid) == (0, 0, 0)

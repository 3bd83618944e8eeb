"""Sentences with one thing changed."""

from __future__ import annotations

import random
import re

import pytest

from dialbench.nli.training.rewriting import denied_opposite, opposite, other_number, swap_speaker


@pytest.mark.parametrize(
    ("sentence", "swapped"),
    [
        ("I am late for my bus.", "You are late for your bus."),
        ("I'm sure it was me.", "You're sure it was you."),
        ("I was at home by myself.", "You were at home by yourself."),
        ("This pen is mine.", "This pen is yours."),
        ("I’ve got my hat.", "You've got your hat."),
        ("I like you.", None),  # who would like whom
        ("We are late for my bus.", None),
        ("It is raining in Miami.", None),
    ],
)
def test_what_is_said_of_oneself_is_said_of_the_other(sentence, swapped):
    assert swap_speaker(sentence) == swapped


@pytest.mark.parametrize(
    "sentence", ["Two boats are here.", "She has 12 cats.", "It costs seven pounds."]
)
def test_another_number_stands_where_the_number_stood(sentence):
    changed = {other_number(sentence, random.Random(seed)) for seed in range(50)}
    assert len(changed) > 5
    number = re.compile(r"Two|12|seven")
    before, after = number.split(sentence)
    for text in changed:
        assert text != sentence
        assert text.startswith(before)
        assert text.endswith(after)
        assert text[0].isupper()


@pytest.mark.parametrize(
    "sentence", ["One of us is here.", "No boats.", "Two of ten came.", "The 7:30 train is late."]
)
def test_sentences_with_no_number_or_several_stay(sentence):
    assert other_number(sentence, random.Random(1)) is None


@pytest.mark.parametrize(
    ("sentence", "changed", "denied"),
    [
        ("The gate is open.", "The gate is closed.", "The gate is not closed."),
        ("We walked to the near gate.", "We walked to the far gate.", None),
        ("It's cold", "It's hot", "It's not hot"),
        ("The gate is not open.", None, None),
        ("The old gate is open.", None, "The old gate is not closed."),
        ("The gate fell.", None, None),
    ],
)
def test_words_become_their_opposites(sentence, changed, denied):
    assert (opposite(sentence), denied_opposite(sentence)) == (changed, denied)

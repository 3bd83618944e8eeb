"""Text as people write it: what a corpus' tokeniser left, and what must stay."""

from __future__ import annotations

import pytest

from dialbench.text.tokenizer import tokenize
from dialbench.text.untokenized import untokenized


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Hey , it ’ s me ! Don ' t you know ?", "Hey, it’s me! Don't you know?"),
        ("I ’ LL pay $ 50 ( or 5 % ) ...", "I’LL pay $50 (or 5%)..."),
        ("well ... ; see", "well...; see"),
        ("Two  spaces,\na line", "Two spaces, a line"),
        ("So happy :) and :( and ;-) !", "So happy :) and :( and ;-)!"),
        ("about .5 of it", "about .5 of it"),
        ("He said ' no ' to it", "He said ' no ' to it"),
        ("a - b / c", "a - b / c"),
        ("? !", "?!"),
        ("", ""),
    ],
)
def test_gaps_of_a_tokeniser_go(given, expected):
    assert untokenized(given) == expected


@pytest.mark.parametrize(
    "text", ["Hi, it's Bob's dog!", "It costs $5 (or 3%).", "“Yes,” she said."]
)
def test_what_people_wrote_stays(text):
    assert untokenized(text) == text


def test_the_words_are_the_same(data_folder):
    for name in ("train", "test"):
        path = data_folder / "dailydialog" / name / f"dialogues_{name}.txt"
        if not path.exists():
            pytest.skip("the corpus is packed")
        lines = path.read_text(encoding="utf-8").splitlines()[:300]
        for turn in (turn for line in lines for turn in line.split("__eou__")):
            assert tokenize(untokenized(turn)) == tokenize(turn), turn

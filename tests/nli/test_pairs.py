"""Files of labelled pairs."""

from __future__ import annotations

import pytest

from dialbench.errors import InputError
from dialbench.nli.judge import LABELS
from dialbench.nli.training.pairs import (
    HELD_OUT,
    TRAINING,
    Pair,
    Source,
    held_out_sentences,
    read,
    untouched,
)

from .conftest import ROWS

SOURCE = Source("mine", "Mine", "none")
HEADER = "premise\thypothesis\tlabel\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "nli").mkdir()
    return tmp_path / "nli" / "mine.tsv"


def test_pairs_come_in_the_order_of_the_file(lessons):
    pairs = read(HELD_OUT[0], lessons)
    assert [(p.premise, p.hypothesis, LABELS[p.label]) for p in pairs] == ROWS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tb\tc\n", r"mine\.tsv:1: the header is not"),
        (f"{HEADER}a\tb\tneutral\na\tb\tmaybe\n", r"mine\.tsv:3: a line is premise"),
        (f"{HEADER}a b neutral\n", r"mine\.tsv:2: a line is premise"),
    ],
)
def test_what_is_no_pair_is_named_with_its_line(file, tmp_path, text, said):
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read(SOURCE, tmp_path)


def test_nothing_is_taught_that_is_examined(data_folder):
    """Sets that leak the test sets are not among those to learn from, and no pair is in both."""

    def key(pair):
        text = f"{pair.premise}|{pair.hypothesis}".lower()
        return "".join(letter for letter in text if letter.isalnum() or letter == "|")

    names = {source.name for source in TRAINING}
    assert not names & {source.name for source in HELD_OUT}
    assert not names & {"cad_revised_dev", "cad_revised_test", "lingnli_val"}
    held_out = held_out_sentences(data_folder)
    sources = [source.sample(untouched(read(source, data_folder), held_out)) for source in TRAINING]
    taught = {key(pair) for pairs in sources for pair in pairs}
    for source in HELD_OUT:
        shared = taught & {key(pair) for pair in read(source, data_folder)}
        assert not shared, source.name


def test_what_shares_a_sentence_with_a_held_out_premise_is_left_out():
    held_out = {"two boys fly a kite"}
    kept = Pair("The kite is red. A girl runs.", "It is red.", 1)
    shared = [
        Pair("Two boys fly a kite!", "It flies.", 0),
        Pair("A girl runs. Two boys fly a kite.", "She walks.", 2),
        Pair("Boys play.", "two boys fly a kite", 1),
    ]
    assert untouched([kept, *shared], held_out) == [kept]


def test_a_sample_is_spread_over_the_file():
    pairs = [Pair(str(i), "", 1) for i in range(10)]
    some = Source("mine", "Mine", "none", most=4)
    assert [pair.premise for pair in some.sample(pairs)] == ["0", "2", "5", "7"]
    assert some.sample(pairs[:3]) == SOURCE.sample(pairs[:3]) == pairs[:3]

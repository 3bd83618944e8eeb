"""Files of labelled pairs."""

from __future__ import annotations

import pytest

from dialbench.errors import InputError
from dialbench.nli.pairs import HELD_OUT, LABELS, TRAINING, Source, read

from .conftest import ROWS

SOURCE = Source("mine", "Mine", "none")
HEADER = "premise\thypothesis\tlabel\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "nli").mkdir()
    return tmp_path / "nli" / "mine.tsv"


def test_pairs_come_in_the_order_of_the_file(lessons):
    pairs = read(TRAINING[0], lessons)
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
    taught = {key(pair) for source in TRAINING for pair in read(source, data_folder)}
    for source in HELD_OUT:
        if source.name in ("snli_test", "snli_dev", "mnli_matched_dev"):
            assert not taught & {key(pair) for pair in read(source, data_folder)}

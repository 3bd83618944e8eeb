"""METEOR 1.5: what is asked of its program, and the program itself where it is installed."""

from __future__ import annotations

import math
import stat
import sys

import numpy as np
import pytest

from dialbench.errors import InputError
from dialbench.metrics.meteor15 import MISSING, Meteor15, MeteorCoco, MeteorProgram, meteor_of
from dialbench.metrics.overlap import NO_REFERENCES

# Speaks METEOR's protocol: every word of the last text that is in a reference is an exact match of
# a content word, all in one chunk. "stop" makes it stop.
STUB = """#!{python}
import os, sys
with open("asked.txt", "a") as log:
    log.write(" ".join(sys.argv[1:]) + chr(10))
for line in sys.stdin:
    kind, *texts = [part.split() for part in line.split("|||")]
    if texts[-1] == ["stop"]:
        sys.exit(3)
    with open("asked.txt", "a") as log:
        log.write(line)
    last = texts[-1]
    other = max(texts[:-1], key=lambda text: len(set(text) & set(last)))
    same = len(set(last) & set(other))
    print(len(last), len(other), 0, 0, same, same, *[0] * 14, int(same > 0), same, same, flush=True)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with an archive, and a Java that is the stub."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(STUB.format(python=sys.executable))
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(java.parent))
    paraphrases = tmp_path / "meteor" / "data" / "paraphrase-en.gz"
    paraphrases.parent.mkdir(parents=True)
    paraphrases.write_bytes(b"paraphrases")
    (tmp_path / "meteor" / "meteor-1.5.jar").write_bytes(b"archive")
    return tmp_path


def values(metric, texts):
    return metric.per_response(metric.statistics(texts))


def test_each_response_is_scored_with_all_its_references(folder, texts_of):
    metric = Meteor15("whitespace", MeteorProgram.find(folder))
    texts = texts_of(["a b", "c d", "a ||| b"], [("a",), ("x", "c d"), ("b", "")])
    # One of two words: precision 1/2, recall 1, one chunk of one match.
    half = 0.5 / (0.85 * 0.5 + 0.15) * (1 - 0.6)
    np.testing.assert_allclose(values(metric, texts), [half, 1.0, half], rtol=1e-15)
    asked = (folder / "meteor" / "asked.txt").read_text().splitlines()
    assert asked == [
        "-Xmx2G -jar meteor-1.5.jar - - -stdio -l en -norm",
        "SCORE ||| a ||| a b",
        "SCORE ||| x ||| c d ||| c d",
        "SCORE ||| b ||| a b",
    ]


def test_both_metrics_ask_once(folder, texts_of):
    program = MeteorProgram.find(folder)
    texts = texts_of(["a b c", "d", "", "x"], [("a b",), ("d e",), ("a",), ()])
    mean, together = Meteor15("whitespace", program), MeteorCoco("whitespace", program)
    statistics = together.statistics(texts)
    np.testing.assert_array_equal(np.isnan(values(mean, texts)), [False, False, False, True])
    asked = (folder / "meteor" / "asked.txt").read_text().splitlines()
    assert len(asked) == 4
    # Three of four words, three of five reference words, two chunks.
    mean_of_both = 0.75 * 0.6 / (0.85 * 0.75 + 0.15 * 0.6)
    assert together.score(statistics) == pytest.approx(mean_of_both * (1 - 0.6 * (2 / 3) ** 0.2))
    assert together.count(statistics) == 3
    none = together.statistics(texts_of(["a"]))
    assert (math.isnan(together.score(none)), together.reason(none)) == (True, NO_REFERENCES)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # What the program itself counted and scored; the last is all together.
        (
            [10, 10, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 6, 6],
            0.259918692719106,
        ),
        ([4, 3, *[1] * 6, 0, 0, 0, 0, 1, 1, *[0] * 6, 1, 3, 3], 0.4452983091061361),
        (
            [6, 7, 3, 2, 2, 2, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 2, 3, 3],
            0.23092776160812878,
        ),
        ([6, 6, *[3] * 6, *[0] * 13, 6, 6], 1.0),
        ([2, 2, *[0] * 21], 0.0),
        (
            [28, 28, 11, 10, 9, 9, 6, 6, 1, 1, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 7, 18, 18],
            0.31286773389498473,
        ),
    ],
)
def test_the_formula_is_the_programs(counts, expected):
    assert meteor_of(np.array(counts, float)) == pytest.approx(expected, rel=1e-14)


def test_what_has_no_words_counts_nothing(folder, texts_of):
    metric = Meteor15("whitespace", MeteorProgram.find(folder))
    texts = texts_of(["", "a", "a", "|||"], [("a",), ("",), (), ("a",)])
    np.testing.assert_array_equal(values(metric, texts), [0, 0, np.nan, 0])
    asked = (folder / "meteor" / "asked.txt").read_text().splitlines()
    assert asked[1:] == ["SCORE ||| a ||| ", "SCORE ||| a ||| "]
    assert not np.isnan(values(metric, texts_of([""], [("",)])))
    assert math.isnan(metric.score(metric.statistics(texts_of(["a"]))))


def test_a_bar_within_a_word_begins_no_other_text(folder, texts_of):
    metric = Meteor15("whitespace", MeteorProgram.find(folder))
    texts = texts_of(
        ["x y|||x y", "a b", "a ||||||", "c||||d"], [("a b",), ("c|||a b",), ("|||a",), ("|||",)]
    )
    np.testing.assert_array_equal(values(metric, texts)[[0, 2, 3]], [0, 1, 0])
    asked = (folder / "meteor" / "asked.txt").read_text().splitlines()
    assert asked[1:] == [
        "SCORE ||| a b ||| x yx y",
        "SCORE ||| ca b ||| a b",
        "SCORE ||| a ||| a",
    ]


def test_a_program_that_dies_is_an_error_of_one_line(folder, texts_of):
    metric = Meteor15("whitespace", MeteorProgram.find(folder))
    with pytest.raises(InputError, match=r"meteor-1\.5\.jar: METEOR 1\.5 stopped before"):
        metric.statistics(texts_of(["a", "stop", "a"], [("a",)] * 3))


def test_the_archive_and_its_paraphrases_are_in_the_signature(folder, texts_of):
    first = Meteor15("whitespace", MeteorProgram.find(folder)).signature
    (folder / "meteor" / "data" / "paraphrase-en.gz").write_bytes(b"others")
    second = Meteor15("whitespace", MeteorProgram.find(folder)).signature
    assert first != second
    assert first.startswith("meteor-1.5|scope:response|lang:en|norm:yes|program:")


@pytest.mark.parametrize("gone", ["bin/java", "meteor/meteor-1.5.jar"])
def test_what_is_missing_is_said(folder, texts_of, monkeypatch, gone):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (folder / gone).unlink()
    assert MeteorProgram.find(folder) is None
    for metric in (Meteor15("whitespace", None), MeteorCoco("whitespace", None)):
        statistics = metric.statistics(texts_of(["a"], [("a",)]))
        assert math.isnan(metric.score(statistics))
        assert metric.reason(statistics) == MISSING


def test_the_program_itself_gives_the_value_of_its_authors(texts_of):
    program = MeteorProgram.find(None)
    if program is None:
        pytest.skip("METEOR 1.5 or Java is not installed")
    texts = texts_of(
        ["the cat sat on the mat", "the dog ran", "", "the cat sat|||the cat sat"],
        [("the cat sat on the mat",), ("a hound was running", "the dog runs"), ("a",), ("b c d",)],
    )
    first, second, empty, barred = values(Meteor15("whitespace", program), texts)
    assert first == pytest.approx(1.0)
    assert 0.3 < second < 1.0
    assert empty == 0
    assert barred == 0

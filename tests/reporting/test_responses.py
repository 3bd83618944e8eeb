"""Rarefaction against every possible draw, and lengths against counting by hand."""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest

from dialbench.metrics.texts import Ragged
from dialbench.records import Example
from dialbench.reporting.page.conversations import Conversations, SystemResponses
from dialbench.reporting.plots.responses import rarefied, response_plots

TEXTS = ["a b a c", "a a", "b d a", "e"]


def ragged(texts):
    return Ragged.build([text.split() for text in texts])


def conversations(*texts_of, references=("one two", "three"), seeds=1):
    examples = [Example(str(i), str(i), ("hi",), (text,)) for i, text in enumerate(references)]
    systems = [
        SystemResponses(f"s{i}", True, 1, seeds, texts, {}) for i, texts in enumerate(texts_of)
    ]
    return Conversations("demo", examples, systems)


@pytest.mark.parametrize("n", [1, 2])
def test_expected_distinct_is_the_mean_over_all_draws(n):
    texts = TEXTS * 2
    ngrams = [
        tuple(words[i : i + n])
        for words in map(str.split, texts)
        for i in range(len(words) - n + 1)
    ]
    sizes, values = rarefied(ragged(texts), n)
    assert (sizes[0], sizes[-1]) == (10, len(ngrams))
    size = int(sizes[1])
    every = (len(set(of)) / size for of in itertools.combinations(ngrams, size))
    assert values[1] == pytest.approx(fmean(every), rel=1e-12)
    assert values[-1] == pytest.approx(len(set(ngrams)) / len(ngrams))


def test_too_few_ngrams_have_no_curve():
    assert [len(part) for part in rarefied(ragged(["a b c"]), 1)] == [0, 0]


def test_one_line_a_system_that_ends_at_its_distinct():
    texts_of = ["a b c d"] * 5, ["a a a a"] * 50, ["x"]
    figures = dict(response_plots([conversations(*texts_of)]))
    assert list(figures) == ["demo-rarefied-1", "demo-rarefied-2", "demo-lengths"]
    (axes,) = figures["demo-rarefied-1"].axes
    ends = [tuple(line.get_xydata()[-1]) for line in axes.lines if len(line.get_xdata())]
    assert ends == [(20, pytest.approx(4 / 20)), (200, pytest.approx(1 / 200))]
    assert [text.get_text() for text in axes.texts] == ["s0", "s1"]
    looks = [(line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert len(set(looks)) == len(looks)


def test_the_caption_says_that_one_of_several_seeds_is_drawn():
    for seeds, words in ((1, "of every system (demo)"), (3, "; of several seeds the first (demo)")):
        made = dict(response_plots([conversations(["a b"] * 9, seeds=seeds)]))["demo-rarefied-1"]
        assert made.get_label().endswith(words)


def test_lengths_are_counted_beside_those_of_the_references():
    figures = dict(response_plots([conversations(["a b", "a b", "c", ""])]))
    (axes,) = figures["demo-lengths"].axes
    assert axes.get_title("left") == "s0\nmean 1.2"
    filled, outline = axes.patches
    values, edges, _ = filled.get_data()
    shares = dict(zip((edges[:-1] + edges[1:]) / 2, values, strict=True))
    assert {length: share for length, share in shares.items() if share} == {
        0: 0.25,
        1: 0.25,
        2: 0.5,
    }
    assert outline.get_data().values.sum() == pytest.approx(1)


def test_very_long_responses_are_counted_together_in_the_last_bin():
    texts_of = ["w"] * 995 + ["w " * 500] * 5
    figures = dict(response_plots([conversations(texts_of)]))
    (axes,) = figures["demo-lengths"].axes
    values, edges, _ = axes.patches[0].get_data()
    assert edges[-1] < 20
    assert values[-1] == pytest.approx(0.005)


def test_no_conversations_no_figure():
    assert list(response_plots([])) == []

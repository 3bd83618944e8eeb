"""Plots of responses show what was counted of them."""

from __future__ import annotations

import dataclasses

import pytest

from dialbench.records import Example, Responses
from dialbench.reporting.plots.responses import response_plots
from dialbench.scoring.profile import profile


@pytest.fixture
def answered(result):
    """Makes results of systems with these responses."""

    def make(*texts_of, seed=1):
        examples = [
            Example(str(i), str(i), ("hi",), (text,)) for i, text in enumerate(("a b", "c"))
        ]
        for number, response_texts in enumerate(texts_of):
            made = result(f"s{number}", seed=seed)
            many = [examples[i % 2] for i in range(len(response_texts))]
            responses = Responses(made.job, many, response_texts, 1.0, "cpu")
            yield dataclasses.replace(made, profile=profile(responses))

    return make


def test_one_line_a_system_that_ends_at_its_distinct(answered):
    texts_of = ["a b c d"] * 5, ["a a a a"] * 50, ["x"]
    figures = dict(response_plots(answered(*texts_of)))
    assert list(figures) == ["demo-rarefied-1", "demo-rarefied-2", "demo-lengths"]
    (axes,) = figures["demo-rarefied-1"].axes
    ends = [tuple(line.get_xydata()[-1]) for line in axes.lines if len(line.get_xdata())]
    assert ends == [(20, pytest.approx(4 / 20)), (200, pytest.approx(1 / 200))]
    assert [text.get_text() for text in axes.texts] == ["s0", "s1"]
    looks = [(line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert len(set(looks)) == len(looks)


def test_the_caption_says_that_one_of_several_seeds_is_drawn(answered):
    for seeds, words in (
        (1, "divided by their number (demo)"),
        (3, "; of several seeds the first (demo)"),
    ):
        results = [one for seed in range(seeds) for one in answered(["a b"] * 9, seed=seed)]
        made = dict(response_plots(results))["demo-rarefied-1"]
        assert made.get_label().endswith(words)


def test_the_caption_names_systems_scored_before_anything_was_counted(answered, result):
    figures = dict(response_plots([*answered(["a b"] * 9), result("Old")]))
    assert len(figures["demo-lengths"].axes) == 1
    assert figures["demo-lengths"].get_label().endswith("; not counted yet (run again): Old (demo)")
    assert list(response_plots([result("Old")])) == []


def test_lengths_stand_beside_those_of_the_references(answered):
    figures = dict(response_plots(answered(["a b", "a b", "c", ""])))
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


def test_very_long_responses_are_counted_together_in_the_last_bin(answered):
    figures = dict(response_plots(answered(["w"] * 995 + ["w " * 500] * 5)))
    (axes,) = figures["demo-lengths"].axes
    values, edges, _ = axes.patches[0].get_data()
    assert edges[-1] < 20
    assert values[-1] == pytest.approx(0.005)


def test_no_results_no_figure():
    assert list(response_plots([])) == []

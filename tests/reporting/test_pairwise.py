"""Where one row is better than another, and which responses differ most, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialbench.errors import UnknownName
from dialbench.records import Example, Responses
from dialbench.reporting.formats import to_markdown
from dialbench.reporting.pairwise import Pairwise, examples_text, plain_table

CONTEXTS = ("my dog sleeps", "the dog eats", "a cat is here", "go to work", "work is hard")
OURS = ("yes", "yes it is so", "no no no no no", "well", "a b c")
BASE = ("yes it is so", "yes", "no", "well", "a b c d")
VALUES = ((0.5, 0.2, 0.9, 0.4, math.nan), (0.1, 0.4, 0.0, 0.4, 0.3))


@pytest.fixture
def rows(result, score):
    """Two results with their responses, in a metric called `metric`."""

    def make(metric="meteor", values=VALUES):
        examples = [Example(f"e{n}", f"d{n}", (text,), ("r",)) for n, text in enumerate(CONTEXTS)]
        results = tuple(
            result(name, {metric: score(0.5, per_response=own), "length": score(2.0)})
            for name, own in zip("ab", values, strict=True)
        )
        responses = tuple(
            Responses(one.job, examples, texts, 1.0, "cpu")
            for one, texts in zip(results, (OURS, BASE), strict=True)
        )
        return results, responses

    return make


def test_wins_are_counted_by_how_much_longer_a_response_is(rows):
    pair = Pairwise.of(("A", "B"), *rows())
    wins = plain_table(pair.wins_by_length())
    counts = {
        name: [row[key] for key in ("contexts", "wins", "ties", "losses")]
        for name, row in wins.items()
    }
    assert counts == {
        "all": [4, 2, 1, 1],
        "A is shorter": [1, 1, 0, 0],
        "about as long (±2 tokens)": [1, 0, 1, 0],
        "A is longer": [2, 1, 0, 1],
    }
    assert wins["all"]["gain"] == pytest.approx((0.4 - 0.2 + 0.9 + 0) / 4)
    assert wins["A is longer"]["gain"] == pytest.approx((-0.2 + 0.9) / 2)


def test_topics_are_content_words_that_several_contexts_mention(rows, monkeypatch):
    monkeypatch.setattr("dialbench.reporting.pairwise._COMMONEST", 0.4)
    topics = plain_table(Pairwise.of(("A", "B"), *rows()).wins_by_topic())
    assert list(topics)[:2] == ["dog", "work"]
    assert not {"is", "the", "my", "a", "to"} & set(topics)
    assert (topics["dog"]["wins"], topics["dog"]["losses"]) == (1, 1)
    # The second context about work has no value in one of the two.
    assert (topics["work"]["contexts"], topics["work"]["ties"]) == (1, 1)


def test_where_less_is_better_the_lower_value_wins(rows):
    wins = plain_table(Pairwise.of(("A", "B"), *rows("self-bleu")).wins_by_length())
    assert (wins["all"]["wins"], wins["all"]["losses"]) == (1, 2)


def test_examples_stand_by_how_far_they_differ_and_equals_are_none(rows):
    pair = Pairwise.of(("A", "B"), *rows())
    examples = pair.changed_most(5)
    assert [example["id"] for example in examples] == ["e2", "e0", "e1"]
    assert examples[0]["responses"] == ["no no no no no", "no"]
    assert examples[0]["meteor"] == [0.9, 0.0]
    assert examples_text(examples[:1], pair).splitlines() == [
        "e2",
        "",
        "  - a cat is here",
        "  - reference: r",
        "  - A (0.900): no no no no no",
        "  - B (0.000): no",
    ]


def test_texts_of_examples_stand_on_one_line_and_are_no_markup(rows):
    pair = Pairwise.of(("A", "B"), *rows())
    (example,) = pair.changed_most(1)
    example = example | {"context": ["# a\nb <script>x</script>"], "responses": ["- c\nd", ""]}
    plain = examples_text([example], pair).splitlines()
    assert [line[:10] for line in plain[2:]] == [
        "  - # a b ",
        "  - refere",
        "  - A (0.9",
        "  - B (0.0",
    ]
    assert plain[-1].endswith(": (empty)")
    assert "<script>" not in examples_text([example], pair, to_markdown.escape)


def test_a_metric_that_says_which_is_better_is_needed(rows):
    results, responses = rows("length")
    assert Pairwise.of(("A", "B"), results, responses) is None
    with pytest.raises(UnknownName, match="--by: unknown metric 'dist-1'"):
        Pairwise.of(("A", "B"), *rows(), by="dist-1")
    assert np.isnan(Pairwise.of(("A", "B"), *rows(), by="meteor").gains[4])

"""From how many responses on metrics have an interval."""

from __future__ import annotations

import numpy as np
import pytest

from dialbench.metrics.registry import create
from dialbench.metrics.settings import MetricSettings
from dialbench.records import Example
from dialbench.scoring.evaluation import score_responses

WORDS = np.array([*"abcdefghij", "so", "we", "go", "on"])
NAMES = ("different", "self-bleu", "ngram-diversity", "compression-ratio", "duplicate-rate")
NAMES += ("self-repetition", "cider", "bleu-parlai", "bleu-4", "rouge-2", "intra-dist-2")


def responses(count):
    """Short responses of few words, some of them repeated and some like their reference."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(4, 9, count)
    texts = [" ".join(generator.choice(WORDS, length)) for length in lengths]
    for number, text in enumerate(texts):
        response = texts[generator.integers(count)] if number % 4 else text
        yield Example(str(number), str(number), ("hi",), (text,)), response


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_of_rare_responses_has_an_interval_from_enough_on(name):
    (metric,) = create([name], MetricSettings())
    fewest = metric.interval_from
    assert 100 < fewest <= 1600
    for count in (fewest - 1, fewest):
        score = score_responses(responses(count), [metric])[name]
        assert score.available
        assert (score.interval is not None) == (count == fewest)
        assert score.parts is not None  # tests do not wait for it


@pytest.mark.parametrize("name", ["length", "dist-1", "rouge-1", "intra-dist-1", "bleu-3"])
def test_others_have_one_of_few(name):
    metrics = create([name], MetricSettings())
    assert score_responses(responses(40), metrics)[name].interval is not None

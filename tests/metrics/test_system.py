"""What a run tells of a system beside its responses."""

from __future__ import annotations

import math

import pytest

from dialbench.errors import InputError
from dialbench.metrics import registry
from dialbench.metrics.system import SYSTEM_METRICS
from dialbench.records import Decoding, Example, Job, Responses, Result, Score
from dialbench.scoring.options import ScoringOptions
from dialbench.scoring.resources import build_metrics

JOB = Job("a", "demo", 1, Decoding(), "quick")
CURVE = [
    {"epoch": 1.0, "valid_loss": 3.0, "valid_nll": 2.5},
    {"epoch": 2.0, "valid_loss": 2.0, "valid_nll": 1.75},
    {"epoch": 3.0, "valid_loss": 2.5, "valid_nll": 1.0},
]
FACTS = {"parameters": 12, "trained_parameters": 9, "random_parameters": 3, "best_epoch": 2}


def of(name: str, *texts: str, seconds: float = 2.0, curve=(), **facts) -> Score:
    examples = [Example(str(i), str(i), ("hi",), ("yes",)) for i in range(len(texts))]
    responses = Responses(JOB, examples, texts, seconds, "cpu (fast)")
    return SYSTEM_METRICS[name].score(Result(JOB, "done", facts=facts, curve=curve), responses)


def test_perplexity_is_of_the_weights_that_answer_and_bounds_latents():
    actual = of("perplexity", "a", curve=CURVE, vocabulary=50, **FACTS)
    assert actual.value == pytest.approx(math.exp(2.0))
    assert actual.signature == "perplexity|split:valid|latent:bound|V:50"


def test_values_under_other_vocabularies_do_not_compare():
    one, two = (of("perplexity", "a", curve=CURVE, vocabulary=v, **FACTS) for v in (50, 60))
    assert one.signature != two.signature


def test_a_likelihood_within_fewer_words_has_a_signature_of_its_own():
    for name in ("perplexity", "context-gain"):
        facts = {**FACTS, "curve": CURVE, "vocabulary": 50, "context_gain": 0.1}
        whole, within = of(name, "a", **facts), of(name, "a", likelihood_within="9 words", **facts)
        assert within.signature == f"{whole.signature}|within:9 words"


@pytest.mark.parametrize("curve", [(), CURVE[2:], [{"epoch": 2.0, "lda": 1.0}]])
def test_no_perplexity_without_a_likelihood(curve):
    actual = of("perplexity", "a", curve=curve, **FACTS)
    assert not actual.available
    assert actual.reason == "the system reports no likelihood of responses"


@pytest.mark.parametrize("loss", [math.nan, math.inf, 710.0])
def test_no_perplexity_that_is_not_finite(loss):
    curve = [{**row, "valid_loss": loss} for row in CURVE if "valid_loss" in row]
    actual = of("perplexity", "a", curve=curve, **FACTS)
    assert not actual.available
    assert actual.reason == "the likelihood of responses is not finite"


def test_what_the_context_gains_is_a_fact_over_a_vocabulary():
    actual = of("context-gain", "a", context_gain=0.25, vocabulary=50, **FACTS)
    assert actual.value == 0.25
    assert actual.signature.endswith("|latent:bound|V:50")
    missing = of("context-gain", "a", **FACTS)
    assert missing.reason == "the system reports no likelihood of responses to other contexts"


def test_sizes_are_facts():
    sizes = ("parameters", "trained-parameters", "random-parameters")
    assert [of(name, "a", **FACTS).value for name in sizes] == [12, 9, 3]
    assert of("parameters", "a").reason == "the system has no model"


def test_word_recall_is_that_of_the_predicted_vocabulary():
    assert of("word-recall", "a", valid_word_recall=0.75).value == 0.75
    assert not of("word-recall", "a").available


def test_speed_is_that_of_all_answers_on_a_named_device():
    texts = ("one, two", "three", "")  # four tokens
    assert of("cases-per-second", *texts, **FACTS).value == 1.5
    assert of("cases-per-ms", *texts, **FACTS).value == 0.0015
    actual = of("seconds-per-word", *texts, **FACTS)
    assert actual.value == 0.5
    assert actual.signature.endswith("|device:cpu (fast)")


@pytest.mark.parametrize(
    ("reason", "texts", "more"),
    [
        ("the responses hold no word", ("", ""), FACTS),
        ("the responses took less time", ("a",), {**FACTS, "seconds": 0.0}),
        ("the system has no model", ("a",), {}),
    ],
)
def test_no_speed_without_words_time_or_a_model(reason, texts, more):
    actual = of("seconds-per-word", *texts, **more)
    assert math.isnan(actual.value)
    assert actual.reason.startswith(reason)


def test_none_has_the_name_of_a_metric_of_responses():
    assert not set(SYSTEM_METRICS) & set(registry.names())


def test_responses_alone_do_not_tell_it():
    settings = ScoringOptions(metrics=["length", "perplexity"])
    with pytest.raises(InputError, match=r"--metrics: perplexity is a metric of a run, "):
        build_metrics(settings)

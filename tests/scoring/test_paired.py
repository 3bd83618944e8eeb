"""Two systems compared from their results, whether runs or files gave them."""

from __future__ import annotations

import dataclasses
import json

import pytest

from dialbench.errors import InputError
from dialbench.metrics import registry
from dialbench.metrics.settings import MetricSettings
from dialbench.records import Decoding, Example, Job, Result, Score
from dialbench.reporting.tables.scores import comparison_of
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.paired import compare_results
from dialbench.scoring.score import score

TEXTS = {
    "long": [f"well i would say number {n} and {n % 3} more" for n in range(12)],
    "short": [f"number {n % 5}" for n in range(12)],
}
METRICS = ("length", "dist-1", "bleu-2")


def result_of(system, texts, *, seed=1, tokenizer="default", status="done", examples=12):
    metrics = registry.create(METRICS, MetricSettings(tokenizer))
    pairs = [(Example(f"{n}", f"{n}", (), ()), text) for n, text in enumerate(texts)]
    job = Job(system, "here", seed, Decoding(), "quick", answering={"examples": examples})
    return Result(job, status, score_responses(pairs, metrics))


def several(path, count):
    """A file with that many responses to each of 12 contexts."""
    lines = (
        {"response": text, "alternatives": [f"{n} of {text}" for n in range(1, count)]}
        for text in TEXTS["long"]
    )
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@pytest.fixture
def long():
    return result_of("long", TEXTS["long"])


@pytest.fixture
def short():
    return result_of("short", TEXTS["short"])


def test_results_differ_as_their_files_do(long, short, tmp_path):
    paths = {}
    for name, texts in TEXTS.items():
        paths[name] = tmp_path / f"{name}.jsonl"
        lines = (json.dumps({"response": text}) for text in texts)
        paths[name].write_text("\n".join(lines), encoding="utf-8")
    (report,) = score([paths["long"]], metrics=METRICS, paired_with=paths["short"])
    assert compare_results([long], [short]) == report["compared"]


def test_a_metric_without_a_value_says_why(long, short):
    actual = compare_results([long], [short])["bleu-2"]
    assert actual["difference"]["value"] is actual["p"] is None
    assert actual["reason"] == long.scores["bleu-2"].reason


def test_what_a_training_run_has_one_value_of_is_compared_but_not_tested(long, short):
    ours, base = (
        dataclasses.replace(result, scores={"parameters": Score(value, 12, "parameters|v:1")})
        for result, value in ((long, 1_500_000.0), (short, 2_319_200.0))
    )
    compared = compare_results([ours], [base])
    assert compared["parameters"]["p"] is None
    table = comparison_of("long", "short", compared)
    assert table.rows[0].cells["difference"].text == "−819,200"
    assert table.notes[-1].startswith("Parameters: one value for a training run")


def test_several_training_runs_are_compared_by_their_means(long, short):
    other = result_of("long", [f"{text} or so" for text in TEXTS["long"]], seed=2)
    actual = compare_results([long, other], [short])
    assert actual["length"]["difference"]["value"] == pytest.approx(10 - 2)
    assert actual["length"]["test"].startswith("t-test over training runs")


def test_a_run_without_a_value_is_left_out(long, short):
    nothing = dataclasses.replace(long.scores["length"], value=float("nan"), reason="no text")
    broken = dataclasses.replace(long, scores={**long.scores, "length": nothing})
    actual = compare_results([broken, long], [short])["length"]
    assert actual == compare_results([long], [short])["length"]


def test_a_metric_that_the_first_run_lacks_is_compared(long, short):
    scores = {name: score for name, score in long.scores.items() if name != "length"}
    lacking = dataclasses.replace(long, scores=scores)
    for runs in ([lacking, long], [long, lacking]):
        actual = compare_results(runs, [short])
        assert actual["length"] == compare_results([long], [short])["length"]


def test_other_signatures_are_not_compared(long):
    other = result_of("short", TEXTS["short"], tokenizer="whitespace")
    actual = compare_results([long], [other])["length"]
    assert actual["difference"] == {"value": None, "interval": None}
    assert actual["reason"] == ("scored under different signatures: tok:default and tok:whitespace")


def test_a_signature_that_says_nothing_else_is_named_whole(long, short):
    more = dataclasses.replace(long.scores["length"], signature="length|v:1|more")
    less = dataclasses.replace(short.scores["length"], signature="length|v:1")
    ours, base = (
        dataclasses.replace(result, scores={"length": score})
        for result, score in ((long, more), (short, less))
    )
    reason = compare_results([ours], [base])["length"]["reason"]
    assert reason == "scored under different signatures: more and length|v:1"


def test_variety_within_contexts_is_not_compared_across_numbers_of_responses(tmp_path):
    files = [several(tmp_path / f"{count}.jsonl", count) for count in (2, 3)]
    (report,) = score(files[:1], metrics=["within-dist-1", "dist-1"], paired_with=files[1])
    within, across = (report["compared"][name] for name in ("within-dist-1", "dist-1"))
    assert within["difference"]["value"] is within["p"] is None
    assert within["reason"] == "scored under different signatures: responses:2 and responses:3"
    assert across["p"] == 1.0


def test_a_table_says_whose_greater_values_it_counts(long, short):
    table = comparison_of("long", "short", compare_results([short], [long]))
    title = next(column.title for column in table.columns if column.name == "superiority")
    assert title == "Greater"
    assert "Greater: share of contexts on which long has the greater value" in table.notes[1]
    assert table.rows[0].cells["superiority"].value == 0.0


def test_other_examples_and_unfinished_results_are_refused(long):
    with pytest.raises(InputError, match="do not answer the same examples"):
        compare_results([long], [result_of("short", TEXTS["short"], examples=11)])
    with pytest.raises(InputError, match=r"short on here, seed 1, greedy is failed"):
        compare_results([long], [result_of("short", TEXTS["short"], status="failed")])

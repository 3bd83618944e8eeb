"""A judge named on the command line."""

from __future__ import annotations

import json

import pytest

from dialbench.nli.loading import find

SAID = [
    (["Two dogs run across a field.", "A man is sleeping on a bench."], "A person is asleep."),
    (["A woman is reading a letter."], ""),
    ([], "The dogs are asleep on a bed."),
]


@pytest.fixture
def responses(tmp_path):
    path = tmp_path / "mine.jsonl"
    lines = [{"context": context, "response": texts} for context, texts in SAID]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_finished_responses_are_judged_by_the_named_model(command, checkpoint, responses):
    folder = checkpoint()
    result = command("score", responses, "--metrics", "ue,ue-raw", "--nli", folder, "--json")
    actual = json.loads(result.out)["metrics"]
    context, response = SAID[0]
    judge = find(str(folder))
    labels = judge([(turn, response) for turn in context]).argmax(axis=1)
    expected = sum({0: 1, 1: 0, 2: -1}[label] for label in labels.tolist()) / 2
    assert actual["ue-raw"]["value"] == pytest.approx((expected + 0) / 2)
    assert actual["ue"]["n"] == 2
    assert f"|judge:{judge.name}|" in actual["ue"]["signature"]


def test_the_paraformer_convention_has_ue(command, checkpoint, responses):
    arguments = ("--convention", "paraformer", "--nli", checkpoint(), "--json")
    actual = json.loads(command("score", responses, *arguments).out)["metrics"]
    assert list(actual) == ["Dist-1", "Dist-2", "Dist-3", "UE"]
    assert actual["UE"]["measure"] == "ue-raw"
    assert actual["UE"]["value"] is not None


def test_a_run_keeps_what_its_judge_said(command, checkpoint, tmp_path, monkeypatch):
    runs, folder = tmp_path / "runs", checkpoint()
    arguments = (
        *("run", "--models", "copy-reference,random-train", "--limit-test", 6, "--out", runs),
        *("--metrics", "ue", "--nli", folder, "--formats", "csv", "--progress", "none"),
    )
    assert command(*arguments).code == 0
    (kept,) = (runs / "judged").iterdir()
    (scores,) = {
        path.read_text().count("judge:tiny") for path in runs.glob("answers/*/scores/*/*.json")
    }
    assert scores
    before = kept.read_bytes()
    for path in runs.glob("answers/*/scores/*/*"):
        path.unlink()

    class Mute:
        name = find(str(folder)).name

        def __call__(self, pairs):
            raise AssertionError("what was judged is judged again")

    monkeypatch.setattr("dialbench.nli.loading.find", lambda model: Mute())
    assert command(*arguments).code == 0
    assert kept.read_bytes() == before


def test_a_model_that_is_not_there_is_one_line(command, responses):
    result = command("score", responses, "--metrics", "ue", "--nli", "nobody/none")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "--nli nobody/none: it is neither a folder nor a model in the local cache" in result.err


def test_a_judge_that_no_metric_needs_must_be_there_too(command, responses):
    result = command("score", responses, "--metrics", "length", "--nli", "nobody/none")
    assert result.code == 2
    assert "--nli" in result.err

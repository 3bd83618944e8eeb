"""The embedded judge made from beginning to end, and how a judge is examined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dialbench.metrics.guard import UNRELATED
from dialbench.neural import checkpoint
from dialbench.nli import embedded
from dialbench.nli.cache import CachedJudge
from dialbench.nli.loading import find
from dialbench.nli.training.calibration import Offsets
from dialbench.nli.training.curriculum import PARTS, PLANS
from dialbench.nli.training.examination import constants, examine, sanity
from dialbench.nli.training.pairs import HELD_OUT, TRAINING
from dialbench.records import Example

from .conftest import DIALOGUES

FEW = tuple(
    replace(plan, kinds=tuple(replace(kind, count=2) for kind in plan.kinds)) for plan in PLANS
)


def test_the_command_makes_weights_and_a_card(command, base, lessons, tmp_path, monkeypatch):
    monkeypatch.setattr("dialbench.nli.training.curriculum.PLANS", FEW)
    out = tmp_path / "judge"
    train = ("nli", "train", "--data", lessons, "--out", out, "--dialogue-pairs", "2")
    result = command(*train)
    weights, card = out / embedded.WEIGHTS.name, out / "minilm-l6-nli.md"
    assert (result.code, result.out.split()) == (0, [str(weights), str(card)])
    text = card.read_text()
    assert all(f"`{source.name}`" in text for source in (*TRAINING, *HELD_OUT))
    assert "dialbench nli train --seed 1 --dialogue-pairs 2" in text
    assert "| | in the manner of dialogue | CC BY-NC-SA 4.0 | 6 |" in text
    # Eleven files of four pairs, and two of each label.
    words = " ".join(text.split())
    assert "| 1 | 44 | 6 | 50 | 0.001 | 1 |" in text
    assert "| 2 | 16 | " in text
    # All of the four collections were in the second stage.
    assert "| 3 | 0 | " in text
    assert f"By torch {torch.__version__} on 1 thread of a CPU with " in words
    assert all(f"| {stage} | {FEW[stage - 2].kinds[0].title} | 2 |" in text for stage in (2, 3))
    assert "of 300 get their label" in words
    assert "| `I see.` |" in text
    assert result.err.count("stage 3 of 3") == 1
    assert str(tmp_path) not in text
    first = weights.read_bytes()
    again = command(*train)
    assert (again.code, weights.read_bytes(), card.read_text()) == (0, first, text)
    monkeypatch.setattr("dialbench.nli.loading.require_sane", lambda judge, where: None)
    assert find(str(out)).name.split("@")[1] in text


@pytest.mark.parametrize(
    ("offsets", "words", "logits"),
    [
        (Offsets(0.5, -0.25), "Added to the logits: +0.5 for entailment, -0.25", (0.5, 0.0, -0.25)),
        (
            None,
            "None: no pair of offsets from -0.75 to +0.5 for entailment",
            (0, 0, 0),
        ),
    ],
)
def test_the_card_says_what_was_added_to_the_logits(
    command, base, lessons, tmp_path, monkeypatch, offsets, words, logits
):
    monkeypatch.setattr("dialbench.nli.training.curriculum.PLANS", FEW)
    monkeypatch.setattr("dialbench.nli.training.make.calibrate", lambda *arguments: offsets)
    train = ("nli", "train", "--data", lessons, "--out", tmp_path, "--dialogue-pairs", "2")
    assert command(*train).code == 0
    assert words in (tmp_path / "minilm-l6-nli.md").read_text()
    plain, moved = (
        checkpoint.read(tmp_path / name)[0]["classifier.bias"]
        for name in ("uncalibrated.safetensors", embedded.WEIGHTS.name)
    )
    assert (moved - plain).tolist() == pytest.approx(logits)


def test_the_weights_are_the_mean_of_those_after_each_stage(
    command, base, lessons, tmp_path, monkeypatch
):
    monkeypatch.setattr("dialbench.nli.training.curriculum.PLANS", FEW)
    monkeypatch.setattr("dialbench.nli.training.make.calibrate", lambda *arguments: None)
    train = ("nli", "train", "--data", lessons, "--out", tmp_path, "--dialogue-pairs", "2")
    assert command(*train).code == 0
    kept, _ = checkpoint.read(tmp_path / "uncalibrated.safetensors")
    stages = [checkpoint.read(tmp_path / f"lesson-{n}.safetensors")[0] for n in (1, 2, 3)]
    for name, found in kept.items():
        one, two, three = (tensors[f"model.{name}"] for tensors in stages)
        assert not torch.equal(one, three)
        expected = sum(part * stage for part, stage in zip(PARTS, (one, two, three), strict=True))
        assert torch.allclose(found.float(), expected, rtol=1e-3, atol=1e-6)


def test_without_data_the_folder_is_named(command, base, tmp_path):
    result = command("nli", "train", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.code == 2
    assert "snli_test.tsv: cannot be read" in result.err


def test_a_confusion_has_true_labels_in_rows(reader, lessons):
    # By its common words: neutral, neutral, contradiction for "The party was crowded.", neutral.
    actual = examine(reader, HELD_OUT[0], lessons)
    labels = reader([(p, h) for p, h in reader.asked[:4]]).argmax(axis=1)
    expected = np.zeros((3, 3), int)
    for true, given in zip([0, 1, 2, 0], labels, strict=True):
        expected[true, given] += 1
    np.testing.assert_array_equal(actual.confusion, expected)
    assert actual.accuracy == pytest.approx(np.trace(expected) / 4)


@pytest.fixture
def examples():
    return [
        Example(f"{d}-{i}", str(d), tuple(turns[:i]), (turns[i],))
        for d, turns in enumerate(DIALOGUES)
        for i in range(1, len(turns))
    ]


def test_the_sanity_suite_knows_what_it_asks(reader, examples):
    actual = sanity(CachedJudge(reader), examples)
    levels = {name: (count, level) for name, count, level in actual.levels}
    assert levels["a turn, given itself"] == (6, 1.0)
    assert levels["the true next turn, given the context"][0] == 6
    denied = [(p, h) for p, h in reader.asked if h.startswith("It is false that ")]
    assert denied
    assert all(h.lower() == f"it is false that {p}".lower() for p, h in denied)
    (_, _, unlike), (_, count, _) = actual.unrelated
    assert count == 0  # nothing is said in three of the dialogues
    margin = dict(actual.margins)["ue"]
    assert margin.value == pytest.approx(actual.following[2] - unlike)
    assert margin.interval is None  # three dialogues are too few to tell
    assert 0 <= actual.unlike <= 1


def test_commonplaces_are_looked_at_where_nobody_said_them_before():
    class Follows:
        name = "follows@1"

        def __call__(self, pairs):
            replies = {"I see.", "Fine, thanks."}
            common = [p not in UNRELATED and hypothesis in replies for p, hypothesis in pairs]
            return np.where(np.array(common)[:, None], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1])

    texts = [("I see.", f"It is {d}.", "Fine, thanks.") for d in range(4)]
    examples = [
        Example(f"{d}-{i}", str(d), (f"What of number {d}?", *turns[:i]), (turns[i],))
        for d, turns in enumerate(texts)
        for i in range(3)
    ]
    actual = sanity(Follows(), examples)
    (_, _, unlike), (_, count, level) = actual.unrelated
    assert level == 1.0 > unlike
    assert 0 < count < len(examples)


def test_turns_of_other_dialogues_are_of_others(reader, examples):
    home = {turn: number for number, turns in enumerate(DIALOGUES) for turn in turns}
    sanity(reader, examples)
    true = {(turn, e.references[0]) for e in examples for turn in e.context}
    strange = [(p, h) for p, h in reader.asked if h in home and (p, h) not in true and p != h]
    assert strange
    assert all(home[p] != home[h] for p, h in strange)


def test_a_judge_is_examined_on_what_it_was_not_taught(command, checkpoint, lessons):
    folder = checkpoint()
    result = command("nli", "examine", "--data", lessons, "--nli", folder)
    assert result.code == 0, result.err
    assert result.out.startswith(f"# What {find(str(folder)).name} makes of what it was not taught")
    parts = ("Held-out sets", "Probes", "Dialogue", "People")
    assert [result.out.index(f"## {part}\n") for part in parts] == sorted(
        result.out.index(f"## {part}\n") for part in parts
    )


def test_without_a_judge_there_is_none_to_examine(command, lessons, monkeypatch):
    monkeypatch.setattr(embedded, "_PACKAGE", "no_such_package")
    result = command("nli", "examine", "--data", lessons)
    assert result.code == 2
    assert "there is no judge to examine" in result.err
    assert embedded.HINT in result.err


def test_constants_are_judged_with_the_guard_and_without(examples):
    class Follows:
        name = "follows@1"

        def __call__(self, pairs):
            talk = [p not in UNRELATED or h == "Someone said something." for p, h in pairs]
            return np.where(np.array(talk)[:, None], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1])

    actual = {one.response: one.values for one in constants(Follows(), examples)}
    copies = ("a copy of the last turn", "the last turn, twice", "all turns of the context")
    for stopped in ("`.`", "`Someone said something.`", *copies):
        assert actual[stopped] == (0.0, 0.0, 1.0)
    assert actual["`I see.`"] == pytest.approx((1.0, 0.7, 1.0))
    assert actual["the true next turn"] == pytest.approx((1.0, 0.7, 1.0))

"""The lines between the labels, moved for dialogue."""

from __future__ import annotations

import lzma

import numpy as np
import pytest

from dialbench.metrics.guard import UNRELATED
from dialbench.nli.adaptation import shifted
from dialbench.nli.cache import CachedJudge
from dialbench.nli.training import calibration
from dialbench.nli.training.calibration import Offsets, Shifted, calibrate
from dialbench.nli.training.pairs import DEVELOPMENT
from dialbench.nli.training.ratings import RatedSet
from dialbench.records import Example

from .conftest import DIALOGUES


class Table:
    """A judge that knows the logits of every pair by how its hypothesis begins."""

    name = "table@1"

    def __init__(self, **logits):
        self.logits = logits

    def __call__(self, pairs):
        rows = [self.of(premise, hypothesis) for premise, hypothesis in pairs]
        chances = np.exp(np.array(rows, np.float64))
        return (chances / chances.sum(axis=1, keepdims=True)).astype(np.float32)

    def of(self, premise, hypothesis):
        home = {turn: number for number, turns in enumerate(DIALOGUES) for turn in turns}
        if premise in UNRELATED:
            return (0, 9, 0)
        if hypothesis == "There may be light.":
            return self.logits["weak"]
        if premise not in home:
            return self.logits["labelled"]
        if hypothesis == "I see.":
            return self.logits["common"]
        if hypothesis not in home:
            return self.logits["denied"]
        return self.logits["true" if home[premise] == home[hypothesis] else "unlike"]


@pytest.fixture
def examples():
    return [
        Example(f"{d}-{i}", str(d), tuple(turns[:i]), (turns[i],))
        for d, turns in enumerate(DIALOGUES)
        for i in range(1, len(turns))
    ]


def test_offsets_are_added_to_the_logits():
    judge = Table(denied=(0, 0, 4), true=(0.3, 1, 0.2), unlike=(0, 1, 0), labelled=(5, 0, 0))
    moved = Shifted(judge, Offsets(0.5, -0.25))
    turns = DIALOGUES[0]
    expected = np.exp([0.8, 1, -0.05])
    np.testing.assert_allclose(moved([(turns[0], turns[1])])[0], expected / expected.sum(), 1e-6)
    assert moved.name != judge.name


def test_what_is_kept_has_the_offsets_in_its_bias():
    import torch

    tensors = {"classifier.bias": torch.tensor([0.1, 0.2, 0.3]), "x.up": torch.ones(2, 2)}
    actual = shifted(tensors, (0.5, 0.0, -0.25))
    assert actual["classifier.bias"].tolist() == pytest.approx([0.6, 0.2, 0.05])
    assert tensors["classifier.bias"].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert actual["x.up"] is tensors["x.up"]


def calibrated(examples, lessons, **logits):
    judge = CachedJudge(Table(**{"labelled": (5, 0, 0), "denied": (0, 0, 9), **logits}))
    return calibrate(judge, DEVELOPMENT, lessons, examples)


def test_what_separates_best_is_chosen(examples, lessons):
    # From 0.5 on, true next turns are entailed and others stay neutral.
    actual = calibrated(examples, lessons, true=(0.6, 1, 0), unlike=(-2, 1, 0))
    assert actual == Offsets(0.5, 0.0)


def test_what_follows_people_best_is_chosen(examples, lessons):
    # True next turns are entailed from -0.125 on, what people liked only from 0.25 to 0.375.
    logits = {"true": (1.15, 1, 0), "unlike": (-2, 1, 0)}
    rows = [
        ("liked", 3.0, (0.8, 1, 0)),
        ("middling", 2.0, (-2, 1, 0)),
        ("hated", 1.0, (-2, 1, 0.9)),
    ]
    responses = {f"{word} thoroughly": answer for word, _, answer in rows}

    class Rated(Table):
        def of(self, premise, hypothesis):
            known = None if premise in UNRELATED else responses.get(hypothesis)
            return known or super().of(premise, hypothesis)

    judge = CachedJudge(Rated(labelled=(5, 0, 0), denied=(0, 0, 9), **logits))
    answered = tuple((Example(w, w, ("What is it?",), ()), f"{w} thoroughly") for w, *_ in rows)
    rated = RatedSet("three", answered, tuple(rating for _, rating, _ in rows), True)
    alone = calibrate(judge, DEVELOPMENT, lessons, examples)
    followed = calibrate(judge, DEVELOPMENT, lessons, examples, [rated])
    assert alone == Offsets()
    assert followed == Offsets(0.25, 0.125)


def test_the_level_of_unlike_turns_is_kept(examples, lessons, monkeypatch):
    # Contradictions but for an offset of -0.375; entailment from 0.5 on, which is too much.
    logits = {"true": (0.6, 1, 1.3), "unlike": (0.55, 1, 1.3)}
    assert calibrated(examples, lessons, **logits) == Offsets(0.0, -0.375)
    monkeypatch.setattr(calibration, "LEVEL", 1.0)
    assert calibrated(examples, lessons, **logits) != Offsets(0.0, -0.375)


def test_the_level_of_commonplaces_is_kept(examples, lessons):
    # What all dialogues say is entailed with any offset that entails true next turns.
    common = [
        Example(f"c-{d}", str(d), (turns[0],), ("I see.",)) for d, turns in enumerate(DIALOGUES)
    ]
    logits = {"true": (0.6, 1, 0), "unlike": (-2, 1, 0), "common": (0.65, 1, 0)}
    assert calibrated(examples, lessons, **logits) == Offsets(0.5, 0.0)
    assert calibrated(examples + common, lessons, **logits) == Offsets()
    logits["common"] = (9, 1, 0)
    assert calibrated(examples + common, lessons, **logits) is None


def test_denials_must_stay_denials(examples, lessons):
    # Half a logit more of entailment alone would make denials follow.
    logits = {"true": (0.6, 1, 0), "unlike": (-2, 1, 0), "denied": (2.4, 0, 2.5)}
    assert calibrated(examples, lessons, **logits) == Offsets(0.5, 0.5)


def test_accuracy_is_kept(examples, lessons):
    lines = ["premise\thypothesis\tlabel", "The lamp is on.\tA cat sleeps.\tneutral"]
    with lzma.open(lessons / "nli" / f"{DEVELOPMENT.name}.tsv.xz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    logits = {"true": (0.6, 1, 0), "unlike": (-2, 1, 0)}
    assert calibrated(examples, lessons, **logits, labelled=(0.4, 1, 0)) == Offsets(0.5, 0.0)
    assert calibrated(examples, lessons, **logits, labelled=(0.6, 1, 0)) == Offsets()


def test_more_accuracy_is_lost_only_where_nothing_else_keeps_the_bounds(
    examples, lessons, monkeypatch
):
    # Turns of others are entailed unless for -0.25, with which one of 150 pairs becomes wrong.
    lines = ["premise\thypothesis\tlabel", "The lamp is on.\tThere may be light.\tentailment"]
    lines += [f"The lamp is on.\tLamp {n} is on.\tentailment" for n in range(149)]
    with lzma.open(lessons / "nli" / f"{DEVELOPMENT.name}.tsv.xz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    logits = {"weak": (0.2, 0, 0), "true": (0.3, 0, 0), "unlike": (0.2, 0, 0)}
    assert calibrated(examples, lessons, **logits) == Offsets(-0.25, 0.0)
    monkeypatch.setattr(calibration, "LOSSES", (0.005,))
    assert calibrated(examples, lessons, **logits) is None

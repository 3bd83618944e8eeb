"""Pairs made from dialogues."""

from __future__ import annotations

from collections import Counter

import pytest

from dialbench.nli.judge import LABELS
from dialbench.nli.training.dialogue import (
    commonplaces,
    dialogue_pairs,
    embedded,
    is_statement,
    negation,
    reply_pairs,
)
from dialbench.records import Dialogue

from .conftest import DIALOGUES


@pytest.mark.parametrize(
    ("sentence", "negated"),
    [
        ("The boat is at the pier.", "The boat is not at the pier."),
        ("I'm ready to leave now.", "I'm not ready to leave now."),
        ("We will be there soon.", "We will not be there soon."),
        ("She’s my aunt from Perth.", "She’s not my aunt from Perth."),
        ("I like the small boats that are red.", None),
        ("You can't park here.", None),
        ("There is no bread left.", None),
    ],
)
def test_not_goes_behind_the_auxiliary_of_the_sentence_itself(sentence, negated):
    assert negation(sentence) == negated


@pytest.mark.parametrize(
    ("sentence", "denied"),
    [
        ("The boat is at the pier.", True),
        ("The boat is where?", False),
        ("Really nice weather today.", False),
        ("I see.", False),
        ("It is late. We must go now.", False),
        ("The boat is at the pier", False),
    ],
)
def test_what_can_be_denied(sentence, denied):
    assert is_statement(sentence) == denied


def test_only_i_keeps_its_capital_behind_that():
    assert embedded("The boat left.") == "the boat left."
    assert embedded("I'm late.") == "I'm late."
    assert embedded("It is late.") == "it is late."


@pytest.fixture
def dialogues():
    return [Dialogue(str(i), tuple(turns), "train") for i, turns in enumerate(DIALOGUES)]


def test_each_kind_has_its_label_and_its_dose(dialogues):
    pairs = dialogue_pairs(dialogues, 2, seed=3)
    assert Counter(LABELS[pair.label] for pair in pairs) == dict.fromkeys(LABELS, 2)
    home = {turn: number for number, turns in enumerate(DIALOGUES) for turn in turns}
    for premise, hypothesis, label in pairs:
        if LABELS[label] == "neutral":
            assert home[premise] != home[hypothesis]
        elif LABELS[label] == "entailment":
            assert hypothesis in premise
        else:
            longer, shorter = sorted((premise, hypothesis), key=len, reverse=True)
            assert shorter in home
            assert "not " in longer


def test_a_commonplace_is_what_three_dialogues_say(dialogues):
    texts = [(*d.turns, "I see.", "I see.") for d in dialogues]
    assert commonplaces(texts) == ["I see."] * 3
    assert commonplaces(texts[:2]) == []


def test_half_of_what_is_unrelated_can_be_said_everywhere(dialogues):
    texts = [Dialogue(d.id, (*d.turns, "I see."), "train") for d in dialogues]
    made = dialogue_pairs(texts, 12, seed=3, everywhere=True)
    unrelated = [pair for pair in made if LABELS[pair.label] == "neutral"]
    common = unrelated[1::2]
    assert [pair.hypothesis for pair in common] == ["I see."] * 6
    assert len({pair.premise for pair in common}) > 3
    assert all("I see." not in pair.premise for pair in common)


@pytest.mark.parametrize("turns", [("Yes.", "Yes."), ("Yes.", "Yes. Gladly.")])
def test_where_nothing_lacks_a_commonplace_there_are_no_such_pairs(turns):
    alike = [Dialogue(str(i), turns, "train") for i in range(4)]
    made = dialogue_pairs(alike, 3, seed=1, everywhere=True)
    assert len([pair for pair in made if LABELS[pair.label] == "neutral"]) == 3


def test_the_seed_alone_decides(dialogues):
    one, same, other = (dialogue_pairs(dialogues, 3, seed) for seed in (1, 1, 2))
    assert one == same != other


def test_few_dialogues_give_few_pairs(dialogues):
    assert dialogue_pairs(dialogues[:1], 50, seed=1)
    assert dialogue_pairs([], 50, seed=1) == []


def test_questions_have_their_replies_and_those_to_others():
    talks = [(f"Is it {n}?", f"Yes, number {n}.", "And is it so?", "No.") for n in range(6)]
    dialogues = [Dialogue(str(n), turns, "train") for n, turns in enumerate(talks)]
    made = reply_pairs(dialogues, 3, seed=1)
    own = {question: reply for question, reply, *_ in talks}
    assert [LABELS[pair.label] for pair in made] == ["entailment"] * 3 + ["neutral"] * 3
    for pair in made:
        assert (own[pair.premise] == pair.hypothesis) is (LABELS[pair.label] == "entailment")
    everywhere = [pair.hypothesis in ("No.", "And is it so?") for pair in made]
    assert everywhere == [False] * 3 + [True, False, True]
    assert reply_pairs(dialogues, 3, seed=1) == made != reply_pairs(dialogues, 3, seed=2)


def test_statements_have_replies_too_where_they_are_asked_for():
    talks = [(f"Ship {n} is late.", f"Then we wait for ship {n}.") for n in range(6)]
    dialogues = [Dialogue(str(n), turns, "train") for n, turns in enumerate(talks)]
    assert reply_pairs(dialogues, 3, seed=1) == []
    made = reply_pairs(dialogues, 3, seed=1, ending="")
    assert {LABELS[p.label] for p in made if (p.premise, p.hypothesis) in talks} == {"entailment"}
    assert [LABELS[pair.label] for pair in made] == ["entailment"] * 3 + ["neutral"] * 3

"""Pairs that teach one thing each."""

from __future__ import annotations

import re
from dataclasses import replace

from dialbench.nli.judge import LABELS
from dialbench.nli.training.phenomena import KINDS, phenomena_pairs


def kinds_of(count):
    return [replace(kind, count=count) for kind in KINDS]


def pairs_of(sentences, count, seed):
    made = phenomena_pairs(kinds_of(count), sentences, [], seed)
    return [pair for _, pairs in made for pair in pairs]


SENTENCES = [
    *(f"I am late for bus {word}." for word in ("A", "B", "C")),
    *(f"Two boats {verb} here." for verb in ("sail", "rest", "sink")),
    *(f"The {thing} is open." for thing in ("gate", "shop", "box")),
]


def test_each_kind_gives_as_many_pairs_as_asked_for():
    pairs = pairs_of(SENTENCES, 3, seed=1)
    assert len(pairs) == len(KINDS) * 3
    assert all(pair.premise and pair.hypothesis for pair in pairs)


def test_the_seed_alone_decides():
    one, same, other = (pairs_of(SENTENCES, 3, seed) for seed in (1, 1, 2))
    assert one == same != other


def test_what_no_sentence_gives_is_missing():
    # States, roles, comparisons; a sentence alone gives beliefs, questions and nonsense as well.
    assert len(pairs_of([], 2, seed=1)) == 6
    assert len(pairs_of(["It rains."], 2, seed=1)) == 11


def test_labels_are_what_the_pairs_mean():
    by_pair = {(p.premise, p.hypothesis): LABELS[p.label] for p in pairs_of(SENTENCES, 60, 1)}
    mirrored = labels_of("_speakers", SENTENCES)
    assert mirrored["I am late for bus A.", "I am late for bus A."] == "entailment"
    turned = {label for (p, h), label in mirrored.items() if p != h}
    assert turned == {"neutral"}
    passive = {
        (p.split()[1], h.split()[1], label)
        for (p, h), label in by_pair.items()
        if " is being " in h and p.startswith("The ")
    }
    assert all((one == other) == (label == "contradiction") for one, other, label in passive)
    compared = [
        (p.split(), h.split(), label) for (p, h), label in by_pair.items() if " than " in p + h
    ]
    for premise, hypothesis, label in compared:
        same_word = premise[2] == hypothesis[2]
        if premise[0] == hypothesis[0]:
            assert label == "neutral"
        else:
            assert label == ("contradiction" if same_word else "entailment")


def test_two_captions_are_never_called_unrelated():
    captions = ["A man runs.", "A dog sleeps."]
    made = dict(phenomena_pairs(kinds_of(50), SENTENCES, captions, seed=1))
    apart = {kind.title for kind in KINDS if not kind.captions}
    used = {text for title in apart for pair in made[title] for text in pair[:2]}
    assert not used & set(captions)
    others = {pair.premise for title, pairs in made.items() if title not in apart for pair in pairs}
    assert others & set(captions)


def labels_of(maker, sentences, count=200):
    """By pair, of the kind that `maker` makes."""
    (kind,) = (kind for kind in kinds_of(count) if kind.make.__name__ == maker)
    ((_, pairs),) = phenomena_pairs([kind], sentences, [], seed=1)
    return {(p.premise, p.hypothesis): LABELS[p.label] for p in pairs}


def test_an_opposite_contradicts_and_its_denial_does_not():
    for (premise, hypothesis), label in labels_of("_states", []).items():
        (*start, state), (*second, other) = premise.split(), hypothesis.split()
        denied = second == [*start, "not"]
        assert denied or second == start
        if denied:
            assert label == ("contradiction" if other == state else "entailment")
        else:
            assert label in ("contradiction", "neutral")
    by_pair = {
        (p.split()[-1], h.split()[-1], " not " in h): label
        for (p, h), label in labels_of("_states", [], 2_000).items()
    }
    assert by_pair["tall.", "short.", False] == "contradiction"
    assert by_pair["tall.", "short.", True] == "entailment"
    assert by_pair["tall.", "rich.", False] == "neutral"


def test_a_thought_is_not_a_fact():
    for (premise, hypothesis), label in labels_of("_beliefs", ["The gate is open."], 3).items():
        assert hypothesis == "The gate is open."
        assert premise.endswith(" the gate is open.")
        verbs = {"entailment": "(know|notice|glad|forgot)", "neutral": "(think|hope|say|wonder)"}
        assert re.search(verbs.get(label, "(wrong|falsely|pretends)"), premise)


def test_a_question_asks_one_thing_and_takes_another_for_granted():
    for (premise, hypothesis), label in labels_of("_questions", ["I am late."], 3).items():
        assert premise.endswith(" I am late?")
        granted = premise.startswith(("Why", "How", "When"))
        denied = hypothesis == "It is not true that I am late."
        assert denied or hypothesis == "I am late."
        assert label == ("neutral" if not granted else "contradiction" if denied else "entailment")


def test_of_both_either_follows_and_of_one_of_two_neither():
    one, other = "I am late.", "The gate is open."
    actual = labels_of("_conjunctions", [one, other])
    assert actual["I am late and the gate is open.", one] == "entailment"
    assert actual["The gate is open and I am late.", one] == "entailment"
    assert actual[one, "I am late and the gate is open."] == "neutral"
    assert actual[one, "I am late or the gate is open."] == "entailment"
    assert actual["Either I am late or the gate is open.", other] == "neutral"
    assert actual["If I am late, the gate is open.", other] == "neutral"
    assert actual["I am late, but it is not true that the gate is open.", other] == "contradiction"
    neither = "Neither is it true that the gate is open nor that I am late."
    assert actual[neither, one] == "contradiction"


def test_one_word_is_not_exchanged_in_every_pair():
    sentences = [f"The box in room {word} is open." for word in "abcdefghijklmnopqrstuvwxyz"]
    actual = labels_of("_opposites", [*sentences, "It is cold."])
    assert sum(label == "contradiction" for label in actual.values()) == 12 + 1

"""Pairs that teach one thing each."""

from __future__ import annotations

import re
from dataclasses import replace

from dialbench.nli.judge import LABELS
from dialbench.nli.training.phenomena import KINDS, MORE_KINDS, phenomena_pairs
from dialbench.nli.training.templates import NAMES, PEOPLE

ALL = tuple({kind.make: kind for kind in (*MORE_KINDS, *KINDS)}.values())


def kinds_of(count):
    return [replace(kind, count=count) for kind in ALL]


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
    assert len(pairs) == len(ALL) * 3
    assert all(pair.premise and pair.hypothesis for pair in pairs)


def test_the_seed_alone_decides():
    one, same, other = (pairs_of(SENTENCES, 3, seed) for seed in (1, 1, 2))
    assert one == same != other


def test_what_no_sentence_gives_is_missing():
    # Ten kinds are made of templates; a sentence gives two beliefs, questions, one nonsense too.
    assert len(pairs_of([], 2, seed=1)) == 20
    assert len(pairs_of(["It rains."], 2, seed=1)) == 25


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


def test_one_person_is_more_than_another():
    for (first, second), label in labels_of("comparisons", []).items():
        premise, hypothesis = first.split(), second.split()
        same_word = premise[2] == hypothesis[2]
        if premise[0] == hypothesis[0]:
            assert label == "neutral"
        else:
            assert label == ("contradiction" if same_word else "entailment")


def test_two_captions_are_never_called_unrelated():
    captions = ["A man runs.", "A dog sleeps."]
    made = dict(phenomena_pairs(kinds_of(50), SENTENCES, captions, seed=1))
    apart = {kind.title for kind in ALL if not kind.captions}
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
    for (premise, hypothesis), label in labels_of("states", []).items():
        (*start, state), (*second, other) = premise.split(), hypothesis.split()
        denied = second == [*start, "not"]
        assert denied or second == start
        if denied:
            assert label == ("contradiction" if other == state else "entailment")
        else:
            assert label in ("contradiction", "neutral")
    by_pair = {
        (p.split()[-1], h.split()[-1], " not " in h): label
        for (p, h), label in labels_of("states", [], 2_000).items()
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
    found = labels_of("_opposites", [*sentences, "It is cold."])
    assert sum(label == "contradiction" for label in found.values()) == 12 + 1


def test_one_deed_has_two_sides():
    found = labels_of("trades", [], 20_000)
    assert found["Bob lent Emma a bike.", "Emma borrowed a bike from Bob."] == "entailment"
    assert found["Emma borrowed a bike from Bob.", "Bob lent Emma a bike."] == "entailment"
    assert found["Bob lent Emma a bike.", "Emma lent Bob a bike."] == "contradiction"
    assert found["Bob lent Emma a bike.", "Bob borrowed a bike from Emma."] == "contradiction"
    people = {
        (len({*re.findall(r"\w+", p + h)} & {*NAMES}), label) for (p, h), label in found.items()
    }
    assert all((count > 2) == (label == "neutral") for count, label in people)


_WORDS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]


def quantity(sentence):
    """The numbers that a sentence allows, of 1 to 12."""
    found = re.search(
        r"(more than |fewer than |at least )?(\d+|" + "|".join(_WORDS) + r")\b", sentence
    )
    kind, word = found.groups()
    number = int(word) if word.isdecimal() else _WORDS.index(word) + 2
    rules = {"more than ": number.__lt__, "fewer than ": number.__gt__, "at least ": number.__le__}
    return {n for n in range(1, 13) if rules.get(kind, number.__eq__)(n)}


def test_labels_of_numbers_are_those_of_arithmetic():
    for (premise, hypothesis), label in labels_of("counts", [], 1_000).items():
        given, claimed = quantity(premise), quantity(hypothesis)
        expected = "entailment" if given <= claimed else "neutral" if given & claimed else None
        assert label == (expected or "contradiction")


def test_of_two_things_either_follows_and_of_one_of_two_neither():
    found = labels_of("lists", [], 20_000)
    assert found["I bought bread and milk.", "I bought milk."] == "entailment"
    assert found["I bought bread.", "I bought bread and milk."] == "neutral"
    assert found["I bought either bread or milk.", "I bought milk."] == "neutral"
    assert found["I bought bread but not milk.", "I bought milk."] == "contradiction"
    assert found["I bought neither bread nor milk.", "I bought bread."] == "contradiction"
    assert found["I bought bread, milk and rice.", "I bought bread and milk."] == "entailment"


def test_what_is_asked_is_open_and_what_it_is_asked_of_has_happened():
    found = labels_of("questions", [], 20_000)
    assert found["When did Bob sell the car?", "Bob sold the car."] == "entailment"
    assert found["When did Bob sell the car?", "Bob did not sell the car."] == "contradiction"
    assert found["Did Bob sell the car?", "Bob sold the car."] == "neutral"
    assert found["Did Bob sell the car?", "Bob did not sell the car."] == "neutral"
    assert found["Who sold the car?", "Someone sold the car."] == "entailment"
    assert found["Who sold the car?", "Bob sold the car."] == "neutral"
    assert found["Who sold the car?", "Nobody sold the car."] == "contradiction"


def test_however_a_deed_is_told_it_has_one_doer():
    told = labels_of("deeds", [], 2_000)
    assert {told_by(*pair) for pair in told} == {"same", "turned", "another"}
    expected = {"same": "entailment", "turned": "contradiction", "another": "neutral"}
    assert all(label == expected[told_by(*pair)] for pair, label in told.items())


def told_by(premise, hypothesis):
    (doer, other), second = doer_and_other(premise), doer_and_other(hypothesis)
    return {(doer, other): "same", (other, doer): "turned"}.get(second, "another")


def doer_and_other(text):
    places = {text.lower().find(person.lower()): person for person in PEOPLE}
    first, second = (person for place, person in sorted(places.items()) if place >= 0)
    return (second, first) if " by " in text else (first, second)


def test_what_two_people_did_holds_for_whom_it_is_said_of():
    labels = labels_of("company", [], 3_000)
    for (premise, hypothesis), label in labels.items():
        if premise.startswith("Neither"):
            assert label == "contradiction"
        elif premise.startswith("Either") or (" and " in hypothesis and " and " not in premise):
            assert label == "neutral"
        elif premise.startswith("Both"):
            assert label == "entailment"
        elif ", only " in premise:
            assert label == "contradiction"
    assert {label for (premise, _), label in labels.items() if ", but " in premise} == {
        "entailment",
        "contradiction",
    }

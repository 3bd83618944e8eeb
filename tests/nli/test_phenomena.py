"""Pairs that teach one thing each."""

from __future__ import annotations

from dataclasses import replace

from dialbench.nli.pairs import LABELS
from dialbench.nli.phenomena import KINDS, phenomena_pairs


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
    assert len(pairs) == 7 * 3
    assert all(pair.premise and pair.hypothesis for pair in pairs)


def test_the_seed_alone_decides():
    one, same, other = (pairs_of(SENTENCES, 3, seed) for seed in (1, 1, 2))
    assert one == same != other


def test_what_no_sentence_gives_is_missing():
    assert len(pairs_of(["It rains."], 2, seed=1)) == 5  # roles, comparisons, nonsense
    assert len(pairs_of([], 2, seed=1)) == 4


def test_labels_are_what_the_pairs_mean():
    by_pair = {(p.premise, p.hypothesis): LABELS[p.label] for p in pairs_of(SENTENCES, 60, 1)}
    mirrored = {
        (p, h): label for (p, h), label in by_pair.items() if p.startswith(("I am", "You are"))
    }
    assert mirrored["I am late for bus A.", "I am late for bus A."] == "entailment"
    turned = [label for (p, h), label in mirrored.items() if p[:5] != h[:5] and p[4:] != h[6:]]
    assert set(turned) == {"neutral"}
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
    (title,) = (kind.title for kind in KINDS if not kind.captions)
    assert len(made[title]) == 50
    used = {text for pair in made[title] for text in pair[:2]}
    assert not used & set(captions)
    others = {pair.premise for name, pairs in made.items() if name != title for pair in pairs}
    assert others & set(captions)

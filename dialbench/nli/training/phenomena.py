"""Pairs that teach one thing each: who speaks, how many, opposites, who does it to whom, nonsense.

Judges trained on captions and articles call "I am tired" and "You are tired" the same, overlook an
exchanged number or role, and find that a full stop follows from everything.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dialbench.nli.training import templates
from dialbench.nli.training.dialogue import CONTRADICTION, ENTAILMENT, NEUTRAL, embedded
from dialbench.nli.training.pairs import Pair
from dialbench.nli.training.rewriting import denied_opposite, opposite, other_number, swap_speaker

_SCRAPS = (
    *("the", "a", "and", "of", "to", "in", "it", "is", "i", "you", "that", "not", "for", "on"),
    *(".", ",", "?", "!", "...", "<unk>"),
)
_LONGEST_RUN = 8
_PER_OPPOSITE = 12
"""Most pairs that one word is exchanged in; captions would give men and women alone."""
_TRUE = ("{} knows that {}", "{} has noticed that {}", "{} is glad that {}", "{} forgot that {}")
_OPEN = ("{} thinks that {}", "{} hopes that {}", "{} says that {}", "{} wonders whether {}")
_FALSE = ("{} is wrong to think that {}", "{} falsely claims that {}", "{} only pretends that {}")
_GRANTED = ("Why is it that {}?", "How come {}?", "When did you notice that {}?")
_ASKED = ("Is it true that {}?", "Do you think that {}?", "Could it be that {}?")

_Maker = Callable[[Sequence[str], random.Random], Iterator[Pair]]


@dataclass(frozen=True)
class Kind:
    """Pairs of one kind.

    Attributes:
        title: what they are and how they are labelled.
        count: how many are taught.
        make: makes them of sentences in random order.
        captions: whether sentences are captions of pictures too. Two of these are never called
            unrelated: their collections hold that they contradict each other.
    """

    title: str
    count: int
    make: _Maker
    captions: bool = True


def phenomena_pairs(
    kinds: Iterable[Kind], statements: Sequence[str], captions: Sequence[str], seed: int
) -> Iterator[tuple[str, list[Pair]]]:
    """The title and the pairs of each kind; fewer where the sentences do not give as many.

    Args:
        kinds: what is made.
        statements: of dialogues.
        captions: of pictures.
        seed: the same seed gives the same pairs.
    """
    dice = random.Random(seed)  # noqa: S311
    for kind in kinds:
        order = [*statements, *captions] if kind.captions else [*statements]
        dice.shuffle(order)
        made = kind.make(order, dice)
        yield kind.title, list(itertools.islice(made, kind.count))


def _speakers(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """What is true of one who speaks says nothing of the other, in both directions."""
    for sentence in sentences:
        if swapped := swap_speaker(sentence):
            pair = dice.sample([sentence, swapped], 2)
            yield Pair(pair[0], pair[1], NEUTRAL)
            yield Pair(sentence, sentence, ENTAILMENT)


def _numbers(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    for sentence in sentences:
        if changed := other_number(sentence, dice):
            yield Pair(sentence, changed, CONTRADICTION)


def _opposites(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    uses: Counter[frozenset[str]] = Counter()
    for sentence in sentences:
        changed = opposite(sentence)
        word = frozenset((changed or "").split()).difference(sentence.split())
        uses[word] += 1
        if changed and uses[word] <= _PER_OPPOSITE:
            pair = dice.sample([sentence, changed], 2)
            yield Pair(pair[0], pair[1], CONTRADICTION)
        if denied := denied_opposite(sentence):
            yield Pair(sentence, denied, ENTAILMENT)


def _beliefs(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """What is known holds, what is thought may hold, what is claimed falsely does not."""
    for sentence in sentences:
        for forms, label in ((_TRUE, ENTAILMENT), (_OPEN, NEUTRAL), (_FALSE, CONTRADICTION)):
            premise = dice.choice(forms).format(dice.choice(templates.NAMES), embedded(sentence))
            yield Pair(premise, sentence, label)


def _questions(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """What a question takes for granted follows from it, what it asks does not."""
    for sentence in sentences:
        clause = embedded(sentence).rstrip(".")
        granted = dice.choice(_GRANTED).format(clause)
        yield Pair(granted, sentence, ENTAILMENT)
        yield Pair(dice.choice(_ASKED).format(clause), sentence, NEUTRAL)
        yield Pair(granted, f"It is not true that {clause}.", CONTRADICTION)


def _conjunctions(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """Both, one of two, one if the other."""
    while len(sentences) > 1:
        one, other = dice.sample(sentences, 2)
        first, second = one.rstrip("."), embedded(other)
        part, inner = dice.choice((one, other)), embedded(first)
        yield Pair(f"{first} and {second}", part, ENTAILMENT)
        yield Pair(one, f"{first} and {second}", NEUTRAL)
        yield Pair(f"Either {inner} or {second}", part, NEUTRAL)
        yield Pair(one, f"{first} or {second}", ENTAILMENT)
        yield Pair(f"If {inner}, {second}", part, NEUTRAL)
        yield Pair(f"{first}, but it is not true that {second}", other, CONTRADICTION)
        yield Pair(f"Neither is it true that {inner} nor that {second}", part, CONTRADICTION)


def _nonsense(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """A scrap, scraps in a row, one of them repeated, or a word of the sentence repeated."""
    for sentence in sentences:
        words = dice.choice((_SCRAPS, _SCRAPS, sentence.rstrip(".!?").lower().split()))
        kinds = dice.choice((1, 1, 2, 3))
        some = [dice.choice(words) for _ in range(kinds)]
        times = dice.randrange(1 if words is _SCRAPS else 2, _LONGEST_RUN // kinds + 2)
        yield Pair(sentence, " ".join(some * times), NEUTRAL)


def _unrelated(sentences: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """Two statements that have nothing to do with each other."""
    while len(sentences) > 1:
        one, other = dice.sample(sentences, 2)
        yield Pair(one, other, NEUTRAL)


# Few of those that are neutral whatever they say: many make all of a dialogue neutral.
_STATES = "a state, its opposite and another one, denied or not, from templates"
_BOTH = "two statements: both, one of them, one if the other"
KINDS = (
    Kind("a statement of oneself and of the other (neutral), and with itself", 60, _speakers),
    Kind("a statement and the same with another number (contradiction)", 200, _numbers),
    Kind("a word and its opposite (contradiction), or that denied (entailment)", 400, _opposites),
    Kind(_STATES, 240, templates.states),
    Kind("who does it to whom, in active and passive, from templates", 300, templates.roles),
    Kind("who is more than whom, from templates", 300, templates.comparisons),
    Kind("what somebody knows, thinks or is wrong about", 300, _beliefs, captions=False),
    Kind("what a question asks or takes for granted", 300, _questions, captions=False),
    Kind(_BOTH, 420, _conjunctions, captions=False),
    Kind("a statement and nonsense: marks, function words, repeated words", 80, _nonsense),
    Kind("two statements of different dialogues (neutral)", 40, _unrelated, captions=False),
)
MORE_KINDS = (
    Kind("so many, more, fewer, at least so many, from templates", 400, templates.counts),
    Kind("who does it to whom, with other verbs, from templates", 300, templates.other_roles),
    Kind("one deed or relation from two sides, from templates", 300, templates.trades),
    Kind("two things, one of them, one or none, from templates", 300, templates.lists),
    Kind("what is asked and what has happened, from templates", 300, templates.questions),
    Kind("what one person did to another, told in several ways", 600, templates.deeds),
    Kind("what two people did, both, one or none of them", 500, templates.company),
    Kind(_STATES, 120, templates.states),
    Kind(_BOTH, 140, _conjunctions, captions=False),
)
"""For a stage after that of `KINDS`."""

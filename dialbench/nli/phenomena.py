"""Pairs that teach one thing each: who speaks, how many, opposites, who does it to whom, nonsense.

Judges trained on captions and articles call "I am tired" and "You are tired" the same, overlook an
exchanged number or role, and find that a full stop follows from everything.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dialbench.nli.dialogue import CONTRADICTION, ENTAILMENT, NEUTRAL
from dialbench.nli.pairs import Pair
from dialbench.nli.rewriting import denied_opposite, opposite, other_number, swap_speaker

_ACTORS = (
    *("man", "woman", "boy", "girl", "child", "dog", "horse", "policeman", "farmer", "waiter"),
    *("student", "driver", "soldier", "monkey", "goat", "clown", "singer", "neighbor", "king"),
)
# Present, present participle, past participle; none of them can go both ways at a time.
_ACTS = (
    *(("chases", "chasing", "chased"), ("carries", "carrying", "carried")),
    *(("feeds", "feeding", "fed"), ("follows", "following", "followed")),
    *(("leads", "leading", "led"), ("pulls", "pulling", "pulled")),
    *(("defeats", "defeating", "defeated"), ("drags", "dragging", "dragged")),
    *(("wakes", "waking", "woken"), ("rescues", "rescuing", "rescued")),
    *(("bites", "biting", "bitten"), ("lifts", "lifting", "lifted")),
)
_NAMES = ("Alice", "Bob", "Carol", "David", "Emma", "Frank", "Grace", "Henry", "Laura", "Mark")
_COMPARATIVES = (
    *(("taller", "shorter"), ("older", "younger"), ("faster", "slower"), ("heavier", "lighter")),
    *(("richer", "poorer"), ("stronger", "weaker"), ("bigger", "smaller"), ("happier", "sadder")),
)
_SCRAPS = (
    *("the", "a", "and", "of", "to", "in", "it", "is", "i", "you", "that", "not", "for", "on"),
    *(".", ",", "?", "!", "...", "<unk>"),
)
_LONGEST_RUN = 8


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
    for sentence in sentences:
        if changed := opposite(sentence):
            pair = dice.sample([sentence, changed], 2)
            yield Pair(pair[0], pair[1], CONTRADICTION)
        if denied := denied_opposite(sentence):
            yield Pair(sentence, denied, ENTAILMENT)


def _roles(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    while True:
        one, other, third = dice.sample(_ACTORS, 3)
        verb, doing, done = dice.choice(_ACTS)
        premise = dice.choice(
            (f"The {one} {verb} the {other}.", f"The {one} is {doing} the {other}.")
        )
        yield Pair(premise, f"The {other} is {doing} the {one}.", CONTRADICTION)
        yield Pair(premise, f"The {other} is being {done} by the {one}.", ENTAILMENT)
        yield Pair(premise, f"The {one} is being {done} by the {other}.", CONTRADICTION)
        yield Pair(premise, f"The {third} is {doing} the {one}.", NEUTRAL)
        yield Pair(premise, f"The {one} is {doing} the {other}.", ENTAILMENT)


def _comparisons(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    while True:
        one, other = dice.sample(_NAMES, 2)
        (more, less), (different, _opposite) = dice.sample(_COMPARATIVES, 2)
        if dice.random() < 0.5:
            more, less = less, more
        premise = f"{one} is {more} than {other}."
        yield Pair(premise, f"{other} is {more} than {one}.", CONTRADICTION)
        yield Pair(premise, f"{other} is {less} than {one}.", ENTAILMENT)
        yield Pair(premise, f"{one} is {different} than {other}.", NEUTRAL)


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
KINDS = (
    Kind("a statement of oneself and of the other (neutral), and with itself", 60, _speakers),
    Kind("a statement and the same with another number (contradiction)", 150, _numbers),
    Kind("a word and its opposite (contradiction), or that denied (entailment)", 200, _opposites),
    Kind("who does it to whom, in active and passive, from templates", 150, _roles),
    Kind("who is more than whom, from templates", 150, _comparisons),
    Kind("a statement and nonsense: marks, function words, repeated words", 80, _nonsense),
    Kind("two statements of different dialogues (neutral)", 40, _unrelated, captions=False),
)

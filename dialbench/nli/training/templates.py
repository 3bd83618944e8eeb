"""Pairs from templates alone: how many, who does it to whom, what is listed, what is asked.

Each maker takes sentences, which it does not need, and gives pairs without end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from dialbench.nli.training.dialogue import CONTRADICTION, ENTAILMENT, NEUTRAL
from dialbench.nli.training.pairs import Pair

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
# The same, for another stage.
_OTHER_ACTS = (
    *(("arrests", "arresting", "arrested"), ("guards", "guarding", "guarded")),
    *(("teaches", "teaching", "taught"), ("pushes", "pushing", "pushed")),
    *(("catches", "catching", "caught"), ("paints", "painting", "painted")),
    *(("washes", "washing", "washed"), ("hides", "hiding", "hidden")),
)
NAMES = ("Alice", "Bob", "Carol", "David", "Emma", "Frank", "Grace", "Henry", "Laura", "Mark")
PEOPLE = (*NAMES, *("my brother", "her boss", "the nurse", "our neighbor", "the new teacher"))
# Past, past participle; none of them needs two.
_DEEDS = (
    *(("hired", "hired"), ("invited", "invited"), ("interviewed", "interviewed")),
    *(("thanked", "thanked"), ("blamed", "blamed"), ("scolded", "scolded")),
    *(("insulted", "insulted"), ("photographed", "photographed"), ("forgave", "forgiven")),
    *(("paid", "paid"), ("warned", "warned"), ("tricked", "tricked"), ("beat", "beaten")),
)
_TOLD = (
    *("{one} {past} {other}", "{one} {past} {other}", "{other} was {done} by {one}"),
    *("It was {one} who {past} {other}", "It was {other} who was {done} by {one}"),
    "{one} is the one who {past} {other}",
)
_WHEN = ("", "", " yesterday", " last week", " after the party", " in the end")
_DID = (
    *("sang", "passed the exam", "went home early", "stayed for dinner", "came to the wedding"),
    *("caught a cold", "missed the train", "laughed", "learned to swim", "signed the contract"),
)
_COMPARATIVES = (
    *(("taller", "shorter"), ("older", "younger"), ("faster", "slower"), ("heavier", "lighter")),
    *(("richer", "poorer"), ("stronger", "weaker"), ("bigger", "smaller"), ("happier", "sadder")),
)
_STATES = (
    *(("tall", "short"), ("old", "young"), ("rich", "poor"), ("happy", "sad"), ("busy", "free")),
    *(("asleep", "awake"), ("married", "single"), ("strong", "weak"), ("polite", "rude")),
    *(("early", "late"), ("alive", "dead"), ("noisy", "quiet"), ("dirty", "clean")),
)
_COUNTED = (
    *("There are {} chairs in the room.", "There were {} people on the bus.", "I need {} stamps."),
    *("She has {} cousins.", "Their son is {} years old.", "He ate {} sandwiches."),
    *("They have lived here for {} years.", "My sister bought {} tickets.", "It took {} days."),
    "You owe me {} dollars.",
)
_COUNTS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
# What the one does with the other, and what that is from the other's side; neither goes both ways.
_TRADES = (
    *(("lent {} a bike", "borrowed a bike from {}"), ("sold {} a car", "bought a car from {}")),
    *(("gave {} a present", "got a present from {}"), ("sent {} a letter", "had a letter from {}")),
    *(("taught {} French", "learned French from {}"), ("is in front of {}", "is behind {}")),
    *(("is an uncle of {}", "is a nephew of {}"), ("is the boss of {}", "works for {}")),
    *(("left before {}", "left after {}"), ("is to the left of {}", "is to the right of {}")),
)
# Of each frame, any two things go together.
_LISTED = (
    ("I bought {}.", ("bread", "milk", "cheese", "apples", "rice", "butter")),
    ("She speaks {}.", ("French", "Spanish", "Chinese", "German", "Italian", "Russian")),
    ("We met {} there.", ("Tom", "Susan", "the mayor", "your uncle", "my teacher", "Peter")),
    ("He plays {}.", ("tennis", "chess", "golf", "the piano", "the guitar", "football")),
    ("They visited {} last year.", ("Paris", "London", "Japan", "Brazil", "Egypt", "Canada")),
)
# Without did, and with it.
_EVENTS = (
    *(("bought the house", "buy the house"), ("left the party", "leave the party")),
    *(("lost the keys", "lose the keys"), ("called the doctor", "call the doctor")),
    *(("painted the fence", "paint the fence"), ("found the letter", "find the letter")),
    *(("sold the car", "sell the car"), ("quit the job", "quit the job")),
    *(("wrote that book", "write that book"), ("met the manager", "meet the manager")),
)


def states(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """A state, its opposite, both denied, and another state."""
    while True:
        subject = f"{dice.choice(('The', 'This', 'Every', 'My'))} {dice.choice(_ACTORS)} is"
        state, others = dice.sample(_STATES, 2)
        one, other = dice.sample(state, 2)
        yield Pair(f"{subject} {one}.", f"{subject} {other}.", CONTRADICTION)
        yield Pair(f"{subject} {one}.", f"{subject} not {other}.", ENTAILMENT)
        yield Pair(f"{subject} {one}.", f"{subject} not {one}.", CONTRADICTION)
        yield Pair(f"{subject} {one}.", f"{subject} {dice.choice(others)}.", NEUTRAL)


def roles(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """Who does it to whom, in active and passive."""
    return _acted(_ACTS, dice)


def other_roles(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """The same with other verbs."""
    return _acted(_OTHER_ACTS, dice)


def _acted(acts: Sequence[tuple[str, str, str]], dice: random.Random) -> Iterator[Pair]:
    while True:
        one, other, third = dice.sample(_ACTORS, 3)
        verb, doing, done = dice.choice(acts)
        premise = dice.choice(
            (f"The {one} {verb} the {other}.", f"The {one} is {doing} the {other}.")
        )
        yield Pair(premise, f"The {other} is {doing} the {one}.", CONTRADICTION)
        yield Pair(premise, f"The {other} is being {done} by the {one}.", ENTAILMENT)
        yield Pair(premise, f"The {one} is being {done} by the {other}.", CONTRADICTION)
        yield Pair(premise, f"The {third} is {doing} the {one}.", NEUTRAL)
        yield Pair(premise, f"The {one} is {doing} the {other}.", ENTAILMENT)


def deeds(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """What one person did to another, told in several ways; without a time less is told."""
    while True:
        one, other, third = dice.sample(PEOPLE, 3)
        (past, done), when = dice.choice(_DEEDS), dice.choice(_WHEN)
        here, there, reverse, apart = (
            form.format(one=a, other=b, past=past, done=done)
            for form, a, b in zip(
                dice.choices(_TOLD, k=4),
                (one, one, other, third),
                (other, other, one, one),
                strict=True,
            )
        )
        premise = _sentence(here + when)
        yield Pair(premise, _sentence(there), ENTAILMENT)
        yield Pair(premise, _sentence(reverse + when), CONTRADICTION)
        yield Pair(premise, _sentence(apart), NEUTRAL)


def company(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """What two people did: both, one or none of them, each something else."""
    while True:
        people, (did, did_next) = dice.sample(PEOPLE, 2), dice.sample(_DID, 2)
        one, other = people
        some = dice.choice(people)
        both = dice.choice((f"{one} and {other} {did}", f"Both {one} and {other} {did}"))
        told = (
            (both, f"{some} {did}", ENTAILMENT),
            (f"{some} {did}", both, NEUTRAL),
            (f"Either {one} or {other} {did}", f"{some} {did}", NEUTRAL),
            (f"Neither {one} nor {other} {did}", f"{some} {did}", CONTRADICTION),
            (f"Neither {one} nor {other} {did}", both, CONTRADICTION),
            (f"{one} {did}, but {other} did not", f"{other} {did}", CONTRADICTION),
            (f"{one} {did}, but {other} did not", f"{one} {did}", ENTAILMENT),
            (f"Of {one} and {other}, only {one} {did}", f"{other} {did}", CONTRADICTION),
            (f"{one} {did} and {other} {did_next}", f"{other} {did_next}", ENTAILMENT),
            (f"{one} {did} and {other} {did_next}", f"{other} {did}", NEUTRAL),
            (f"{one} {did} before {other} {did_next}", f"{other} {did_next}", ENTAILMENT),
            (f"{one} {did} because {other} {did_next}", f"{one} {did}", ENTAILMENT),
        )
        for premise, hypothesis, label in told:
            yield Pair(_sentence(premise), _sentence(hypothesis), label)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def trades(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """One deed or relation from two sides."""
    while True:
        one, other, third = dice.sample(NAMES, 3)
        sides = dice.sample(dice.choice(_TRADES), 2)
        here, there = (f"{{}} {side}." for side in sides)
        premise = here.format(one, other)
        yield Pair(premise, there.format(other, one), ENTAILMENT)
        yield Pair(premise, here.format(other, one), CONTRADICTION)
        yield Pair(premise, there.format(one, other), CONTRADICTION)
        yield Pair(premise, here.format(third, other), NEUTRAL)


def comparisons(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """Who is more than whom."""
    while True:
        one, other = dice.sample(NAMES, 2)
        (more, less), (different, _opposite) = dice.sample(_COMPARATIVES, 2)
        if dice.random() < 0.5:
            more, less = less, more
        premise = f"{one} is {more} than {other}."
        yield Pair(premise, f"{other} is {more} than {one}.", CONTRADICTION)
        yield Pair(premise, f"{other} is {less} than {one}.", ENTAILMENT)
        yield Pair(premise, f"{one} is {different} than {other}.", NEUTRAL)


def counts(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """So many, more, fewer and at least so many; three numbers from the lowest up."""
    while True:
        frame = dice.choice(_COUNTED).format
        drawn = sorted(dice.sample(range(len(_COUNTS)), 3))
        low, some, high = (
            [str(n + 2) for n in drawn] if dice.random() < 0.3 else [_COUNTS[n] for n in drawn]
        )
        yield Pair(frame(some), frame(f"more than {low}"), ENTAILMENT)
        yield Pair(frame(some), frame(dice.choice((low, high))), CONTRADICTION)
        yield Pair(frame(f"more than {low}"), frame(some), NEUTRAL)
        yield Pair(frame(some), frame(f"fewer than {high}"), ENTAILMENT)
        yield Pair(frame(some), frame(f"fewer than {low}"), CONTRADICTION)
        yield Pair(frame(f"at least {some}"), frame(f"more than {low}"), ENTAILMENT)
        yield Pair(frame(f"at least {low}"), frame(f"more than {some}"), NEUTRAL)
        yield Pair(frame(f"more than {some}"), frame(f"fewer than {low}"), CONTRADICTION)


def lists(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """Two things, one of them, one or the other, one without the other."""
    while True:
        sentence, things = dice.choice(_LISTED)
        frame = sentence.format
        one, other, third = dice.sample(things, 3)
        both, part = f"{one} and {other}", dice.choice((one, other))
        yield Pair(frame(both), frame(part), ENTAILMENT)
        yield Pair(frame(one), frame(both), NEUTRAL)
        yield Pair(
            frame(f"{one} but not {other}"), frame(dice.choice((both, other))), CONTRADICTION
        )
        yield Pair(frame(f"either {one} or {other}"), frame(part), NEUTRAL)
        yield Pair(frame(f"{one}, {other} and {third}"), frame(both), ENTAILMENT)
        yield Pair(frame(f"neither {one} nor {other}"), frame(part), CONTRADICTION)


def questions(_: Sequence[str], dice: random.Random) -> Iterator[Pair]:
    """What a question asks is open; what it asks about that has happened."""
    while True:
        name, (past, base) = dice.choice(NAMES), dice.choice(_EVENTS)
        word = dice.choice(("When", "Where", "Why", "How"))
        fact, denied = f"{name} {past}.", f"{name} did not {base}."
        yield Pair(f"{word} did {name} {base}?", fact, ENTAILMENT)
        yield Pair(f"Did {name} {base}?", dice.choice((fact, denied)), NEUTRAL)
        yield Pair(f"{word} did {name} {base}?", denied, CONTRADICTION)
        yield Pair(f"Who {past}?", f"Someone {past}.", ENTAILMENT)
        yield Pair(f"Who {past}?", fact, NEUTRAL)
        yield Pair(f"Who {past}?", f"Nobody {past}.", CONTRADICTION)

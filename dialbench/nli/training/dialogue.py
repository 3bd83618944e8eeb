"""Pairs in the manner of dialogue: what collections about pictures and articles do not teach.

Judges trained on such collections call any two unrelated sentences a contradiction, overlook
negation, and find that what can be said anywhere ("I see.") follows from everything. Small doses of
pairs made from real dialogues correct all three; a large one of unrelated pairs makes everything
neutral.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dialbench.nli.judge import LABELS
from dialbench.nli.training.pairs import Pair
from dialbench.records import Dialogue
from dialbench.text.untokenized import untokenized

ENTAILMENT, NEUTRAL, CONTRADICTION = range(len(LABELS))
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORDS = re.compile(r"\w+")
# Near the front, where it belongs to the sentence itself and not to a clause of it.
_AUXILIARY = re.compile(
    r"^\w+(?:['’](?:m|re|ll|s)"
    r"|(?: \w+){0,2}? (?:am|is|are|was|were|will|would|can|could|must))(?= )",
    re.IGNORECASE,
)
_SUBJECTS = "I|you|he|she|it|we|they|this|that|there|the|my|your|his|her|its|our|their"
_STATEMENT = re.compile(rf"(?:{_SUBJECTS})\b[^.?!]+ [^.?!]+ [^.?!]+\.", re.IGNORECASE)
_NEGATED = re.compile(r"\bnot\b|n['’]t\b|\bnever\b|\bno\b|\bnothing\b", re.IGNORECASE)
_FREE = ("It is not true that {}", "It is not the case that {}", "I do not think that {}")
_FEWEST, _MOST = 3, 25
_OFTEN = 3


def dialogue_pairs(
    dialogues: Sequence[Dialogue], count: int, seed: int, *, everywhere: bool = False
) -> list[Pair]:
    """`count` pairs each of unrelated turns, of turns with a part of them, and of negations.

    Args:
        dialogues: what turns are taken from.
        count: pairs of each kind; fewer where the dialogues do not give as many.
        seed: the same seed gives the same pairs.
        everywhere: whether half of the unrelated ones are a turn and a commonplace.
    """
    dice = random.Random(seed)  # noqa: S311
    pairs: list[Pair] = []
    for kind in (_with_commonplaces if everywhere else _unrelated, _parts, _negations):
        made = kind(dialogues, dice)
        pairs += [pair for pair, _ in zip(made, range(count), strict=False)]
    return pairs


def _unrelated(dialogues: Sequence[Dialogue], dice: random.Random) -> Iterator[Pair]:
    while len(dialogues) > 1:
        one, other = dice.sample(dialogues, 2)
        yield Pair(
            untokenized(dice.choice(one.turns)), untokenized(dice.choice(other.turns)), NEUTRAL
        )


def _with_commonplaces(dialogues: Sequence[Dialogue], dice: random.Random) -> Iterator[Pair]:
    """Unrelated turns, in turn with a turn and what is said everywhere."""
    common = _common(dialogues, dice)
    for pair in _unrelated(dialogues, dice):
        yield pair
        yield from itertools.islice(common, 1)


def _common(dialogues: Sequence[Dialogue], dice: random.Random) -> Iterator[Pair]:
    turns = [untokenized(turn) for dialogue in dialogues for turn in dialogue.turns]
    common = commonplaces(dialogue.turns for dialogue in dialogues)
    # Without a turn that lacks one of them, none would ever come.
    possible = any(reply not in turn for turn in turns for reply in common)
    while possible:
        turn, reply = dice.choice(turns), dice.choice(common)
        if reply not in turn:
            yield Pair(turn, reply, NEUTRAL)


def _parts(dialogues: Sequence[Dialogue], dice: random.Random) -> Iterator[Pair]:
    """A turn and one of its statements, in turn with a turn and itself."""
    for number, turn in enumerate(_turns(dialogues, dice)):
        sentences = [s for s in _SENTENCE.split(turn) if is_statement(s)]
        if number % 2:
            yield Pair(turn, turn, ENTAILMENT)
        elif len(_SENTENCE.split(turn)) > 1 and sentences:
            yield Pair(turn, dice.choice(sentences), ENTAILMENT)


def _negations(dialogues: Sequence[Dialogue], dice: random.Random) -> Iterator[Pair]:
    """A statement and its negation, in this order and the other, in two forms each."""
    for turn in _turns(dialogues, dice):
        if not is_statement(turn):
            continue
        negated = negation(turn) if dice.random() < 0.5 else None
        pair = [turn, negated or dice.choice(_FREE).format(embedded(turn))]
        if dice.random() < 0.25:
            pair.reverse()
        yield Pair(pair[0], pair[1], CONTRADICTION)


def commonplaces(turns: Iterable[Sequence[str]]) -> list[str]:
    """What is said in three or more of the dialogues, given by their turns: once for each."""
    counts = Counter(
        text for dialogue in turns for text in sorted({untokenized(turn) for turn in dialogue})
    )
    return [text for text, count in counts.items() if count >= _OFTEN for _ in range(count)]


def _turns(dialogues: Sequence[Dialogue], dice: random.Random) -> Iterator[str]:
    """Turns of a few words, each at most once, in random order."""
    turns = sorted({untokenized(turn) for dialogue in dialogues for turn in dialogue.turns})
    dice.shuffle(turns)
    return (turn for turn in turns if _FEWEST <= len(_WORDS.findall(turn)) <= _MOST)


def statements(dialogues: Sequence[Dialogue]) -> list[str]:
    """The sentences of all turns that can be denied, each once, in the order of the alphabet."""
    turns = (untokenized(turn) for dialogue in dialogues for turn in dialogue.turns)
    sentences = (sentence for turn in turns for sentence in _SENTENCE.split(turn))
    return sorted({s for s in sentences if is_statement(s) and len(_WORDS.findall(s)) <= _MOST})


def reply_pairs(
    dialogues: Sequence[Dialogue], count: int, seed: int, *, ending: str = "?"
) -> list[Pair]:
    """`count` turns with their replies (entailment), and as many with what is no reply.

    Nothing follows from a question by logic. What is taught is that a reply follows from the
    turn that it was given to (after Dziri et al., 2019), but no reply to another turn, and
    no commonplace. Where a commonplace was the reply, nothing is taught.

    Args:
        dialogues: what turns are taken from.
        count: pairs of each kind; fewer where the dialogues do not give as many.
        seed: the same seed gives the same pairs.
        ending: of the turns that are replied to; without it statements are among them.
    """
    dice = random.Random(seed)  # noqa: S311
    common = commonplaces(dialogue.turns for dialogue in dialogues)
    known = set(common)
    replied = (
        pair
        for dialogue in dialogues
        for pair in itertools.pairwise(map(untokenized, dialogue.turns))
        if pair[0].endswith(ending)
    )
    asked = [
        (turn, reply)
        for turn, reply in replied
        if reply not in known and len(_WORDS.findall(reply)) >= _FEWEST
    ]
    chosen = dice.sample(asked, min(2 * count, len(asked)))
    true, others = chosen[::2], chosen[1::2]
    elsewhere = [reply for _, reply in (*others[1:], *others[:1])]
    if common:
        elsewhere[::2] = dice.choices(common, k=len(elsewhere[::2]))
    false = zip(others, elsewhere, strict=True)
    return [
        *(Pair(turn, reply, ENTAILMENT) for turn, reply in true),
        *(Pair(turn, reply, NEUTRAL) for (turn, _), reply in false),
    ]


def is_statement(sentence: str) -> bool:
    """Whether a sentence can be denied: it has a subject in front and ends in a full stop."""
    return _STATEMENT.fullmatch(sentence) is not None


def negation(sentence: str) -> str | None:
    """The sentence with `not` behind its auxiliary; None if it has none or is negated already."""
    match = _AUXILIARY.match(sentence)
    if match is None or _NEGATED.search(sentence):
        return None
    return f"{match[0]} not{sentence[match.end() :]}"


def embedded(sentence: str) -> str:
    """The sentence as it reads behind `that`: without the capital, unless its first word is I."""
    first = re.match(r"\w+", sentence)
    return sentence if first and first[0] == "I" else sentence[0].lower() + sentence[1:]

"""When two dialogues are the same, and which ones a split shares with another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from dialbench.records import Dialogue

Key = Callable[[Dialogue], tuple[str, ...]]
_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[\W_]+")


def exact(dialogue: Dialogue) -> tuple[str, ...]:
    """Two dialogues are the same if all their turns are."""
    return dialogue.turns


def normalised(dialogue: Dialogue) -> tuple[str, ...]:
    """Two dialogues are the same if their turns are, case, spaces and punctuation ignored."""
    return tuple(_NEITHER_LETTER_NOR_DIGIT.sub("", turn.lower()) for turn in dialogue.turns)


def without_dialogues_of(
    dialogues: Iterable[Dialogue], others: Iterable[Dialogue], key: Key
) -> list[bool]:
    """For each of `dialogues` whether it does NOT occur among `others`."""
    seen = {key(dialogue) for dialogue in others}
    return [key(dialogue) not in seen for dialogue in dialogues]


def dialogues_in_both(dialogues: Iterable[Dialogue], others: Iterable[Dialogue], key: Key) -> int:
    """How many of `dialogues` also occur among `others`."""
    return without_dialogues_of(dialogues, others, key).count(False)


def repeats(dialogues: Iterable[Dialogue], key: Key) -> int:
    """How many of `dialogues` repeat an earlier one."""
    keys = [key(dialogue) for dialogue in dialogues]
    return len(keys) - len(set(keys))

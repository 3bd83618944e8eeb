"""Conversations of a system with itself (self-chat)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.records import Context, Decoding
from dialbench.running.trained import TrainedSystem


def opening_turns(corpus: str, count: int, data: Path | None = None) -> list[str]:
    """The first turns of the first dialogues of a corpus' test split, each text once.

    Args:
        corpus: a name or file.
        count: how many.
        data: the data folder.

    Raises:
        InputError: there is no such corpus, or it has fewer.
    """
    test = load_corpus(corpus, data=data, where="--openings").test
    begun: dict[str, str] = {}  # the first example of a dialogue has its first turn
    for example in test:
        begun.setdefault(example.dialogue_id, example.context[0])
    openings = list(dict.fromkeys(begun.values()))[:count]
    if len(openings) < count:
        raise InputError(
            f"{corpus} has {len(openings)} different first turns, not {count}",
            where="--openings",
            hint="Ask for fewer conversations.",
        )
    return openings


def converse(
    system: TrainedSystem, openings: Iterable[str], turns: int, decoding: Decoding
) -> list[list[str]]:
    """Lets a system speak for both sides, all conversations at once.

    Args:
        system: a trained one.
        openings: the first turn of each conversation.
        turns: how many the system adds to each.
        decoding: how it chooses its words.

    Returns:
        The turns of each conversation, oldest first, `turns` + 1 each.
    """
    conversations = [[opening] for opening in openings]
    for turn in range(turns):
        contexts = [
            Context(turns_so_far, f"self-{number}-{turn}")
            for number, turns_so_far in enumerate(conversations)
        ]
        for turns_so_far, response in zip(
            conversations, system.respond(contexts, decoding), strict=True
        ):
            turns_so_far.append(response)
    return conversations

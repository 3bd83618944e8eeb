"""Turns of a conversation as responses to what stands before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dialbench.records import Example


def responses_in(
    dialogue: str, turns: Sequence[str], every: int = 1
) -> Iterator[tuple[Example, str]]:
    """Responses with their contexts, as `write_responses` takes them.

    Args:
        dialogue: id of the conversation.
        turns: oldest first; the second is the first response.
        every: 1 where all turns from there on are responses, 2 where every second one is.
    """
    for number in range(1, len(turns), every):
        context = tuple(turns[:number])
        yield Example(f"{dialogue}-{number}", dialogue, context, ()), turns[number]

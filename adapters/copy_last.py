"""Repeats the last turn of the context: the least a system can do."""

from __future__ import annotations

from collections.abc import Sequence

from dialbench.adapter import Adapter, Card, Run
from dialbench.records import Context, Decoding


class CopyLast(Adapter):
    """Repeats the last turn of the context."""

    name = "copy-last"
    card = Card("Copy last turn", "sanity", "repeats the last turn of the context")
    ranked = False

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """The last turn of each context; an empty context gives an empty response."""
        return [context[-1] if context else "" for context in contexts]

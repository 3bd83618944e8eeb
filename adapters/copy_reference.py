"""Repeats the reference: the upper bound of every metric that compares with references."""

from __future__ import annotations

from collections.abc import Sequence

from dialbench.adapter import Adapter, Card, Run
from dialbench.records import Context, Decoding


class CopyReference(Adapter):
    """Repeats the first reference; shown as an upper bound, never ranked."""

    name = "copy-reference"
    card = Card("Human reference", "sanity", "repeats the first reference (upper bound)")
    ranked = False
    oracle = True

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """The first reference of each context; a context without any gives an empty response."""
        return [context.references[0] if context.references else "" for context in contexts]

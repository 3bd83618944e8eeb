"""Short phrases that messages and notes share."""

from __future__ import annotations


def count_of(n: int, noun: str) -> str:
    """A count with its noun, in the plural unless it is one: `1 judge`, `1,200 judges`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"

"""How many words of the references the vocabularies of their messages hold (DVS2S eq. 15)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Coverage:
    """Word coverage recall, both as fractions, NaN where there is no word to cover.

    Attributes:
        recall: mean over references of the share of their distinct words that is covered.
        recall_known: the same without words that the system does not know.
    """

    recall: float
    recall_known: float

    @classmethod
    def of(
        cls,
        references: Iterable[Sequence[str]],
        vocabularies: Iterable[Container[str]],
        known: Container[str],
    ) -> Coverage:
        """Measures it; empty references are left out.

        Args:
            references: the words of each.
            vocabularies: the words allotted to each.
            known: all words of the system.
        """
        shares, shares_known = [], []
        for reference, held in zip(references, vocabularies, strict=True):
            words = set(reference)
            covered = sum(word in held for word in words)
            within = sum(word in known for word in words)
            if words:
                shares.append(covered / len(words))
            if within:
                shares_known.append(covered / within)
        return cls(_mean(shares), _mean(shares_known))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")

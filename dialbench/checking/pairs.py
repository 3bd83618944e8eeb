"""Which entries of two snapshots are the same row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from dialbench.store.baselines import Entry


class RowKey(NamedTuple):
    """What makes a row of the table, whatever its settings and seeds."""

    system: str
    corpus: str
    decoding: str
    preset: str

    @classmethod
    def of(cls, entry: Entry) -> RowKey:
        """The row that an entry belongs to."""
        job = entry.job
        return cls(job.system, job.corpus, job.decoding, job.preset)

    def __str__(self) -> str:
        return f"{self.system} on {self.corpus}, {self.decoding}, {self.preset}"


@dataclass
class Row:
    """The entries of one row on both sides.

    Attributes:
        pairs: the same row with the same seed.
        missing, added: entries with no counterpart.
    """

    key: RowKey
    pairs: list[tuple[Entry, Entry]] = field(default_factory=list)
    missing: list[Entry] = field(default_factory=list)
    added: list[Entry] = field(default_factory=list)

    @property
    def across_seeds(self) -> bool:
        """Whether both sides ran the row, but with no seed in common."""
        return not self.pairs and bool(self.missing) and bool(self.added)


def rows(old: Iterable[Entry], new: Iterable[Entry]) -> list[Row]:
    """The rows of both sides, the baseline's first.

    Entries that share row and seed but not their settings pair by fingerprint first, then in
    their order: settings that changed are the same row, a second variant is an added one.
    """
    before, after = list(old), list(new)
    keys = dict.fromkeys(RowKey.of(entry) for entry in [*before, *after])
    return [
        _paired(
            Row(key),
            [entry for entry in before if RowKey.of(entry) == key],
            [entry for entry in after if RowKey.of(entry) == key],
        )
        for key in keys
    ]


def _paired(row: Row, old: list[Entry], new: list[Entry]) -> Row:
    for same in (_fingerprint, _seed):
        for entry in list(old):
            found = next((other for other in new if same(other) == same(entry)), None)
            if found:
                row.pairs.append((entry, found))
                old.remove(entry)
                new.remove(found)
    row.pairs.sort(key=lambda pair: pair[0].job.seed)
    row.missing, row.added = old, new
    return row


def _fingerprint(entry: Entry) -> str:
    return entry.as_job().fingerprint


def _seed(entry: Entry) -> str:
    return str(entry.job.seed)

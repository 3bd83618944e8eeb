"""Which entries of two snapshots are the same row."""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
        others: of the baseline, with seeds that are not compared: they only measure the spread.
    """

    key: RowKey
    pairs: list[tuple[Entry, Entry]] = field(default_factory=list)
    missing: list[Entry] = field(default_factory=list)
    added: list[Entry] = field(default_factory=list)
    others: list[Entry] = field(default_factory=list)

    @property
    def baseline(self) -> list[Entry]:
        """All that the baseline has of the row, its pairs first."""
        return [old for old, _ in self.pairs] + self.missing + self.others

    @property
    def run(self) -> list[Entry]:
        """All that the run has of it, its pairs first."""
        return [new for _, new in self.pairs] + self.added

    @property
    def across_seeds(self) -> bool:
        """Whether both sides ran the row, but with no seed in common."""
        return not self.pairs and bool(self.missing) and bool(self.added)


def rows(
    old: Iterable[Entry], new: Iterable[Entry], seeds: Collection[int] | None = None
) -> list[Row]:
    """The rows of both sides, the baseline's first.

    Entries that share row and seed but not their settings pair by fingerprint first, then in
    their order: settings that changed are the same row, a second variant is an added one.

    Args:
        old: of the baseline.
        new: of the run.
        seeds: the ones to compare; by default all.
    """
    before, others = _with_seeds(old, seeds)
    after, _ = _with_seeds(new, seeds)
    keys = dict.fromkeys(RowKey.of(entry) for entry in [*before, *after])
    return [
        _paired(Row(key, others=_of(key, others)), _of(key, before), _of(key, after))
        for key in keys
    ]


def _with_seeds(
    entries: Iterable[Entry], seeds: Collection[int] | None
) -> tuple[list[Entry], list[Entry]]:
    """The entries with one of these seeds, and the others."""
    chosen: list[Entry] = []
    others: list[Entry] = []
    for entry in entries:
        (chosen if seeds is None or entry.job.seed in seeds else others).append(entry)
    return chosen, others


def _of(key: RowKey, entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if RowKey.of(entry) == key]


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

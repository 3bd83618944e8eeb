"""Pairs the entries of two snapshots row by row and seed by seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from dialbench.store.baselines import Entry


class RowKey(NamedTuple):
    """What identifies a row of the table, whatever its settings and seeds."""

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
        others: of the baseline, with seeds that are not compared; they only add to the standard
            deviation over seeds.
    """

    key: RowKey
    pairs: list[tuple[Entry, Entry]] = field(default_factory=list)
    missing: list[Entry] = field(default_factory=list)
    added: list[Entry] = field(default_factory=list)
    others: list[Entry] = field(default_factory=list)

    @property
    def baseline(self) -> list[Entry]:
        """All entries of the baseline in this row, pairs first."""
        return [old for old, _ in self.pairs] + self.missing + self.others

    @property
    def run(self) -> list[Entry]:
        """All entries of the run in this row, pairs first."""
        return [new for _, new in self.pairs] + self.added

    @property
    def across_seeds(self) -> bool:
        """Whether both sides ran the row, but with no seed in common.

        Where a seed stands twice on a side, the row has several settings, which are no seeds.
        """
        sides = self.missing, self.added
        once = all(len({entry.job.seed for entry in side}) == len(side) for side in sides)
        return not self.pairs and all(sides) and once


def pair_rows(
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
        _paired(Row(key, others=_in_row(key, others)), _in_row(key, before), _in_row(key, after))
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


def _in_row(key: RowKey, entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if RowKey.of(entry) == key]


def _paired(row: Row, old: list[Entry], new: list[Entry]) -> Row:
    for same in (_fingerprint, _seed):
        for entry in list(old):
            partner = next((other for other in new if same(other) == same(entry)), None)
            if partner:
                row.pairs.append((entry, partner))
                old.remove(entry)
                new.remove(partner)
    row.pairs.sort(key=lambda pair: pair[0].job.seed)
    row.missing, row.added = old, new
    return row


def _fingerprint(entry: Entry) -> str:
    return entry.as_job().fingerprint


def _seed(entry: Entry) -> str:
    return str(entry.job.seed)

"""The findings of a comparison with a baseline, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dialbench.store.baselines import Provenance, StoredResponse

CauseKind = Literal["settings", "data", "signature", "library", "code", "device"]
Deviation = Literal["seeds", "interval"]


@dataclass(frozen=True, slots=True)
class Cause:
    """A difference between baseline and run that may explain why numbers moved.

    Attributes:
        kind: what it belongs to.
        what: its name, e.g. `learning_rate` or `torch`.
        old, new: its values; empty where it is absent.
    """

    kind: CauseKind
    what: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell that differs from the baseline's.

    Attributes:
        metric: the column.
        what: the first part of the cell that differs.
        old, new: the values (of `interval`: its ends, one after the other).
        deviations: the distance between old and new in units of `unit`; None where that unit is
            unknown or 0.
        unit: the standard deviation over the baseline's seeds, or half the width of its 95 %
            interval over dialogues.
        tolerance: the distance that would have passed, where means over seeds were compared.
    """

    metric: str
    what: Literal["value", "responses counted", "interval", "signature", "seeds with a value"]
    old: tuple[float | None, ...]
    new: tuple[float | None, ...]
    deviations: float | None = None
    unit: Deviation = "interval"
    tolerance: float | None = None

    @property
    def distance(self) -> float | None:
        """New less old; of an interval, of the end that moved further; None without a value."""
        if None in (*self.old, *self.new):
            return None
        moves = [n - o for o, n in zip(self.old, self.new, strict=True)]  # type: ignore[operator]
        return max(moves, key=abs)


@dataclass(frozen=True, slots=True)
class ResponseChange:
    """A response that differs; None stands for an example without a response."""

    example: str
    old: StoredResponse | None
    new: StoredResponse | None


@dataclass(frozen=True)
class RowReport:
    """The findings of one row: one system under one decoding, with one seed or over several.

    Attributes:
        name: the row, with its seed.
        problems: what differs besides cells and responses, one sentence each.
        cells_compared, responses_compared: how many there were.
        causes: what differs in how this row came about.
        notes: how the row was compared, where not exactly.
        texts_are_local: whether texts, where there are any, come from a local run and may not be
            published.
    """

    name: str
    problems: tuple[str, ...] = ()
    cells: tuple[CellChange, ...] = ()
    responses: tuple[ResponseChange, ...] = ()
    cells_compared: int = 0
    responses_compared: int = 0
    causes: tuple[Cause, ...] = ()
    notes: tuple[str, ...] = ()
    texts_are_local: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not (self.problems or self.cells or self.responses)


@dataclass(frozen=True)
class Comparison:
    """A runs folder compared with a baseline.

    Attributes:
        columns: metrics that only one side has, one sentence each.
        environment: differences between the two machines and their software.
    """

    old: Provenance
    new: Provenance
    rows: tuple[RowReport, ...]
    columns: tuple[str, ...] = ()
    environment: tuple[Cause, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything is as in the baseline."""
        return not self.columns and all(row.ok for row in self.rows)

    @property
    def failing(self) -> list[RowReport]:
        """The rows that differ."""
        return [row for row in self.rows if not row.ok]

    def cells(self) -> Iterator[tuple[RowReport, CellChange]]:
        """Every cell that differs, with its row."""
        return ((row, cell) for row in self.rows for cell in row.cells)

    def responses(self) -> Iterator[tuple[RowReport, ResponseChange]]:
        """Every response that differs, with its row."""
        return ((row, change) for row in self.rows for change in row.responses)

    def causes(self) -> dict[Cause, list[str]]:
        """The differences that may explain the findings, with the rows concerned ([] = all).

        Of a failing comparison, only what concerns the rows that differ.
        """
        rows_of: dict[Cause, list[str]] = {}
        for row in self.failing or self.rows:
            for cause in row.causes:
                rows_of.setdefault(cause, []).append(row.name)
        return rows_of | {cause: [] for cause in self.environment}

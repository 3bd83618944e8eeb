"""What a comparison with a baseline finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dialbench.store.baselines import Provenance, Said

CauseKind = Literal["settings", "data", "signature", "library", "code", "device"]
Deviation = Literal["seeds", "interval"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that differs between baseline and run and may be why numbers moved.

    Attributes:
        kind: of which sort it is.
        what: its name, e.g. `learning_rate` or `torch`.
        old, new: its values; empty where it is absent.
    """

    kind: CauseKind
    what: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell that is not as the baseline has it.

    Attributes:
        measure: the column.
        what: which part of the cell is the first that differs.
        old, new: the values (of `interval`: its ends, one after the other).
        deviations: how many measured deviations lie between old and new; None where none was
            measured.
        of: what was measured: the standard deviation over the baseline's seeds, or half the
            width of its 95 % interval over dialogues.
        allowed: the distance that would have passed, where seeds were compared by their spread.
    """

    measure: str
    what: Literal["value", "responses counted", "interval", "signature"]
    old: tuple[float | None, ...]
    new: tuple[float | None, ...]
    deviations: float | None = None
    of: Deviation = "interval"
    allowed: float | None = None

    @property
    def distance(self) -> float | None:
        """New less old; of an interval, of the end that moved further; None without a value."""
        if None in (*self.old, *self.new):
            return None
        moves = [n - o for o, n in zip(self.old, self.new, strict=True)]  # type: ignore[operator]
        return max(moves, key=abs)


@dataclass(frozen=True, slots=True)
class ResponseChange:
    """A response that is not what it was; None stands for an example that was not answered."""

    example: str
    old: Said | None
    new: Said | None


@dataclass(frozen=True)
class RowReport:
    """The findings of one row: one system under one decoding, with one seed or over several.

    Attributes:
        name: the row, with its seed.
        problems: what differs besides cells and responses, in words.
        cells_compared, responses_compared: how many there were.
        causes: what differs in how this row came about.
        notes: what a reader should know of how it was compared.
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
    """A runs folder against a baseline.

    Attributes:
        columns: measures that the baseline or the run has none of, in words.
        environment: what differs between the two machines and their software.
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
        """What differs in how the two came about, with the rows concerned ([] = all).

        Of a failing comparison, only what concerns the rows that differ.
        """
        found: dict[Cause, list[str]] = {}
        for row in self.failing or self.rows:
            for cause in row.causes:
                found.setdefault(cause, []).append(row.name)
        return found | {cause: [] for cause in self.environment}

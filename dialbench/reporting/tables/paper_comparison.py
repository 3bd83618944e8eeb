"""A paper's table made again: ours, what the paper printed, and the difference, row by row.

Below the rows stand, for every column, Kendall's tau-b between our order and the printed one,
and how many of the differences that the paper stars have the same sign in ours. A star says
that a value differs significantly from the best one of its column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from dialbench.papers.tables import PrintedTable
from dialbench.records import Cell, Column, Result, Row, Score, Table
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.notes import repetitions
from dialbench.reporting.tables.results import fill
from dialbench.reporting.tables.rows import named_lines
from dialbench.reporting.tables.significance import Rules
from dialbench.reporting.tables.text_table import MINUS, scale
from dialbench.stats.ranks import kendall_tau_b
from dialbench.suites.suite import Group, Suite, SuiteColumn, SuiteRow

TAU, STARS = "Kendall's tau-b (rows)", "Stars reproduced"
_PRINTED, _DIFFERENCE = "printed", "difference"


@dataclass(frozen=True)
class Beside:
    """What came of one suite on one corpus.

    Attributes:
        ours: our values under the paper's labels.
        table: the same beside the printed ones.
    """

    ours: Table
    table: Table


def beside(
    suite: Suite,
    group: Group,
    results: Mapping[str, Sequence[Result]],
    missing: Mapping[str, str],
    rules: Rules,
) -> Beside:
    """The table of one suite on one corpus.

    Args:
        suite: rows, columns and the paper's table.
        group: the corpus.
        results: by the row's label, one a seed, all at one preset; rows that were not run are
            left out, but there is one.
        missing: why rows cannot be run, by label.
        rules: what is significant in ours.
    """
    printed = suite.printed_table()
    columns = tuple(_ours(c, printed) for c in suite.columns if not c.absent)
    name = suite.name if len(suite.groups) == 1 else f"{suite.name}-{group.dataset.lower()}"
    caption = f"{suite.summary} ({group.corpus}), beside {printed.label} of {suite.paper}"
    known = results
    for column in suite.columns:
        if column.share_of:
            known = _shares(column, known)
    members = named_lines(known)
    ours = fill(Table(name, caption, columns, ()), members, rules)
    places = [place for asked in suite.columns for place in _places(asked, ours, printed)]
    filled = {row.label: row for row in ours.rows}
    rows = [_Printed(row, group, printed, filled.get(row.name)) for row in suite.rows]
    said = _said(suite, group, rows, missing)
    settings = _settings(group, {r.job.preset for members in results.values() for r in members})
    table = Table(
        name,
        caption,
        tuple(column for place in places for column in place.columns()),
        (*(_row(row, places, missing) for row in rows), *_agreement(rows, places)),
        tuple(dict.fromkeys([*repetitions(members), *said, *settings, *ours.notes])),
    )
    return Beside(ours, table)


def _shares(
    column: SuiteColumn, results: Mapping[str, Sequence[Result]]
) -> dict[str, list[Result]]:
    """The results with the column's measure as a share of one row's mean over its seeds."""
    name, of = column.metric, column.share_of
    found = [r.scores[name] for r in results.get(of, ()) if name in r.scores]
    whole = [score.value for score in found if score.available]
    mean = sum(whole) / len(whole) if sum(whole) > 0 else math.nan

    def shared(result: Result) -> Result:
        if name not in result.scores:
            return result
        score = result.scores[name]
        reason = score.reason or ("" if mean > 0 else f"there is no value of {of}")
        share = Score(score.value / mean, 0, f"{score.signature}|share of:{of}", reason=reason)
        return replace(result, scores={**result.scores, name: share})

    return {label: [shared(result) for result in row] for label, row in results.items()}


def _ours(asked: SuiteColumn, printed: PrintedTable) -> Column:
    """Our column, at the precision of the printed one."""
    place = printed.columns.index(asked.printed)
    cells = (row.printed[place].rstrip("*%") for row in printed.rows)
    digits = max(len(cell.partition(".")[2]) for cell in cells)
    return replace(
        column_of(asked.metric),
        title=asked.heading,
        digits=digits,
        percent=asked.percent,
        group="",
    )


@dataclass(frozen=True)
class _Printed:
    """A row of the suite, what the paper printed in it and what we have."""

    asked: SuiteRow
    group: Group
    table: PrintedTable
    ours: Row | None

    def cell(self, place: int) -> Cell:
        """The printed cell of the column number `place`."""
        row = self.table.row(self.asked.printed, self.group.dataset) if self.asked.printed else None
        if row is None:
            return Cell(reason="not printed")
        text = row.printed[place].rstrip("*")
        return Cell(row.values[place], significant=row.star[place], text=text)


@dataclass(frozen=True)
class _Place:
    """A column of ours and the printed column it stands beside."""

    ours: Column
    asked: SuiteColumn
    table: PrintedTable

    def columns(self) -> Iterator[Column]:
        """Ours, printed, difference, under one heading."""
        column = replace(self.ours, group=self.ours.title)
        yield replace(column, title="ours")
        yield replace(column, name=self.name(_PRINTED), title="printed", direction="none")
        yield replace(column, name=self.name(_DIFFERENCE), title="diff.", direction="none")

    def name(self, part: str) -> str:
        """The name of one of the columns beside ours."""
        return f"{self.ours.name}:{part}"

    def cells(self, row: _Printed) -> dict[str, Cell]:
        """What stands under this heading in a row."""
        ours, printed = self.our_cell(row), self.printed_cell(row)
        return {
            self.ours.name: ours,
            self.name(_PRINTED): printed,
            self.name(_DIFFERENCE): self._difference(ours, printed),
        }

    def our_cell(self, row: _Printed) -> Cell:
        """Our value; none where the measure or the row is not here."""
        if self.asked.absent:
            return Cell(reason=self.asked.absent)
        return row.ours.cells[self.ours.name] if row.ours else Cell(reason="not run")

    def printed_cell(self, row: _Printed) -> Cell:
        """The printed value, as a fraction where ours is one."""
        cell = row.cell(self.table.columns.index(self.asked.printed))
        return cell if cell.value is None else replace(cell, value=cell.value / scale(self.ours))

    def _difference(self, ours: Cell, printed: Cell) -> Cell:
        if ours.value is None or printed.value is None:
            return Cell()
        value = ours.value - printed.value
        text = f"{value * scale(self.ours):+z.{self.ours.digits}f}".replace("-", MINUS)
        return Cell(value, text=text)

    def pairs(self, rows: Sequence[_Printed]) -> list[Pair]:
        """The printed rows with ours."""
        cells = ((self.our_cell(row), self.printed_cell(row)) for row in rows)
        return [
            Pair(ours.value, printed.value, printed.significant)
            for ours, printed in cells
            if printed.value is not None
        ]


@dataclass(frozen=True)
class Pair:
    """A row's two values in one column, and whether the paper stars its own."""

    ours: float | None
    printed: float
    star: bool = False


def compared(table: Table) -> list[tuple[Column, Column]]:
    """Our columns of a table each with the printed one beside it; [] of any other table."""
    columns = {column.name: column for column in table.columns}
    printed = ((column, columns.get(f"{column.name}:{_PRINTED}")) for column in table.columns)
    return [(ours, theirs) for ours, theirs in printed if theirs is not None]


def agreement(pairs: Sequence[Pair]) -> tuple[float, int]:
    """Kendall's tau-b between both orders of the rows that have both values, and how many.

    tau-b is NaN where there is no order to compare.
    """
    both = [(pair.ours, pair.printed) for pair in pairs if pair.ours is not None]
    return kendall_tau_b([ours for ours, _ in both], [printed for _, printed in both]), len(both)


def starred(pairs: Sequence[Pair], direction: str) -> tuple[int, int]:
    """How many starred differences from the printed best value have the same sign in ours.

    Args:
        pairs: the printed rows of a column.
        direction: "higher" or "lower", whichever is better; with "none" no value is the best.

    Returns:
        That number, and how many starred values there are that can be compared: they and the
        best have a value of ours. Where several printed values are best, the sign must be the
        same against each that has one.
    """
    if direction == "none" or not pairs:
        return 0, 0
    sign = 1 if direction == "higher" else -1
    top = max(sign * pair.printed for pair in pairs)
    best = [p.ours for p in pairs if sign * p.printed == top and p.ours is not None]
    stars = [p.ours for p in pairs if p.star and sign * p.printed < top and p.ours is not None]
    same = [value for value in stars if all(sign * (top - value) > 0 for top in best)]
    return (len(same), len(stars)) if best else (0, 0)


def _places(asked: SuiteColumn, ours: Table, printed: PrintedTable) -> list[_Place]:
    """A column of the suite: one of ours for each signature of its measure."""
    if asked.absent:
        return [_Place(_ours(asked, printed), asked, printed)]
    columns = (c for c in ours.columns if c.name.partition(":")[0] == asked.metric)
    return [_Place(column, asked, printed) for column in columns]


def _row(row: _Printed, places: Sequence[_Place], missing: Mapping[str, str]) -> Row:
    cells = {name: cell for place in places for name, cell in place.cells(row).items()}
    if row.ours:
        return Row(row.ours.label, cells, row.ours.ranked, row.ours.status)
    return Row(
        row.asked.name, cells, status="not available" if row.asked.name in missing else "not run"
    )


def _agreement(rows: Sequence[_Printed], places: Sequence[_Place]) -> Iterator[Row]:
    tau, stars = {}, {}
    for place in places:
        pairs = place.pairs(rows)
        name = place.name(_DIFFERENCE)
        tau[name] = _tau(pairs)
        same, count = starred(pairs, place.ours.direction)
        stars[name] = Cell(same / count, text=f"{same} of {count}") if count else Cell()
    yield Row(TAU, tau, ranked=False)
    yield Row(STARS, stars, ranked=False)


def _tau(pairs: Sequence[Pair]) -> Cell:
    value, count = agreement(pairs)
    if math.isnan(value):
        return Cell(reason="there is no order to compare")
    return Cell(value, text=f"{value:z.2f} ({count})".replace("-", MINUS))


def _said(
    suite: Suite, group: Group, rows: Sequence[_Printed], missing: Mapping[str, str]
) -> Iterator[str]:
    printed = suite.printed_table()
    level = f" (p < {printed.p_threshold:g})" if printed.p_threshold else ""
    stars = any(star for row in printed.rows for star in row.star)
    marks = f"* there: {printed.significance_test}{level}" if stars else "it stars nothing"
    yield f"Printed: {printed.label}, {printed.paper_title}, {group.dataset}; {marks}."
    if group.instead_of:
        yield (
            f"Ours is on {group.corpus}, the paper's on {group.dataset}: neither values nor "
            "differences say how well the paper is reproduced."
        )
    yield f"{TAU}: between our order and the printed one, over so many rows that have both."
    if stars:
        yield (
            f"{STARS}: of the printed differences from the best of a column that the paper "
            "stars, those with the same sign in ours."
        )
    for column in suite.columns:
        for text in (column.absent and f"no value of ours ({column.absent})", column.note):
            if text:
                yield f"{column.heading}: {text}."
    for row in rows:
        yield from _of_row(row, missing)
    yield from suite.notes


def _settings(group: Group, presets: Set[str]) -> Iterator[str]:
    for name in sorted(presets & group.settings.keys()):
        written = ", ".join(f"{key}={value}" for key, value in group.settings[name].items())
        yield f"In place of the values of preset {name}: {written}."


def _of_row(row: _Printed, missing: Mapping[str, str]) -> Iterator[str]:
    if row.asked.name in missing:
        yield f"{row.asked.name}: not available ({missing[row.asked.name]})."
    elif row.ours is None:
        yield f"{row.asked.name}: not run."
    if row.asked.note:
        yield f"{row.asked.name}: {row.asked.note}."

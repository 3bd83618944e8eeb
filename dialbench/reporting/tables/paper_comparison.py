"""Compares our values with those that a paper printed: ours, printed and difference a row.

Below the rows stand, for every column, Kendall's tau-b between our order and the printed one,
and how many of the differences that the paper stars have the same sign in ours. A star means
that a value differs significantly from the best one of its column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from dialbench.papers.tables import PrintedTable
from dialbench.records import Cell, Column, Result, Row, Score, Table
from dialbench.reporting.tables.build import fill
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.notes import repetition_notes
from dialbench.reporting.tables.rows import label_seed_groups
from dialbench.reporting.tables.significance import Rules
from dialbench.reporting.tables.text_table import MINUS, scale
from dialbench.stats.ranks import kendall_tau_b
from dialbench.suites.suite import Group, Suite, SuiteColumn, SuiteRow

TAU, STARS = "Kendall's tau-b (rows)", "Starred differences, same sign"
_PRINTED, _DIFFERENCE = "printed", "difference"


@dataclass(frozen=True)
class PaperComparison:
    """The tables of one suite on one corpus.

    Attributes:
        ours: our values under the paper's labels.
        table: the same beside the printed ones.
    """

    ours: Table
    table: Table


def compare_with_paper(
    suite: Suite,
    group: Group,
    results: Mapping[str, Sequence[Result]],
    missing: Mapping[str, str],
    rules: Rules,
) -> PaperComparison:
    """Compares the results of one suite on one corpus with the printed table.

    Args:
        suite: its rows, columns and printed table.
        group: the corpus.
        results: by the row's label, one a seed, all at one preset; at least one row. Rows that
            were not run are left out.
        missing: why rows cannot be run, by label.
        rules: when a difference of ours is significant.
    """
    printed = suite.printed_table()
    columns = tuple(_our_column(c, printed) for c in suite.columns if not c.absent)
    name = suite.name if len(suite.groups) == 1 else f"{suite.name}-{group.dataset.lower()}"
    caption = f"{suite.summary} ({group.corpus}), beside the printed {printed.label}"
    values = results
    for column in suite.columns:
        if column.share_of:
            values = _as_shares(column, values)
    groups = label_seed_groups(values)
    ours = fill(Table(name, caption, columns, ()), groups, rules)
    column_pairs = [pair for c in suite.columns for pair in _column_pairs(c, ours, printed)]
    filled = {row.label: row for row in ours.rows}
    row_pairs = [_RowPair(row, group, printed, filled.get(row.name)) for row in suite.rows]
    presets = {result.job.preset for row in results.values() for result in row}
    notes = [
        *repetition_notes(groups),
        *_paper_notes(suite, group, row_pairs, missing),
        *_setting_notes(group, presets),
        *ours.notes,
    ]
    table = Table(
        name,
        caption,
        tuple(column for pair in column_pairs for column in pair.columns()),
        (
            *(_row(row, column_pairs, missing) for row in row_pairs),
            *_agreement_rows(row_pairs, column_pairs),
        ),
        tuple(dict.fromkeys(notes)),
    )
    return PaperComparison(ours, table)


def _as_shares(
    column: SuiteColumn, results: Mapping[str, Sequence[Result]]
) -> dict[str, list[Result]]:
    """The results with the column's metric divided by one row's mean over its seeds."""
    name, base = column.metric, column.share_of
    scores = [r.scores[name] for r in results.get(base, ()) if name in r.scores]
    values = [score.value for score in scores if score.available]
    mean = sum(values) / len(values) if sum(values) > 0 else math.nan

    def shared(result: Result) -> Result:
        if name not in result.scores:
            return result
        score = result.scores[name]
        reason = score.reason or ("" if mean > 0 else f"there is no value of {base}")
        share = Score(score.value / mean, 0, f"{score.signature}|share of:{base}", reason=reason)
        return replace(result, scores={**result.scores, name: share})

    return {label: [shared(result) for result in row] for label, row in results.items()}


def _our_column(column: SuiteColumn, printed: PrintedTable) -> Column:
    """Our column, at the precision of the printed one."""
    number = printed.columns.index(column.printed)
    cells = (row.printed[number].rstrip("*%") for row in printed.rows)
    digits = max(len(cell.partition(".")[2]) for cell in cells)
    return replace(
        column_of(column.metric),
        title=column.heading,
        digits=digits,
        percent=column.percent,
        group="",
    )


@dataclass(frozen=True)
class _RowPair:
    """A row of the suite with the printed table and our row; `ours` is None if it was not run."""

    row: SuiteRow
    group: Group
    table: PrintedTable
    ours: Row | None

    def printed_cell(self, number: int) -> Cell:
        """The cell in column `number` of the printed table."""
        label = self.row.printed
        printed = self.table.row(label, self.group.dataset) if label else None
        if printed is None:
            return Cell(reason="not printed")
        text = printed.printed[number].rstrip("*")
        return Cell(printed.values[number], significant=printed.star[number], text=text)


@dataclass(frozen=True)
class _ColumnPair:
    """A column of ours and the printed column beside it."""

    ours: Column
    column: SuiteColumn
    table: PrintedTable

    def columns(self) -> Iterator[Column]:
        """The columns ours, printed and difference under one heading."""
        column = replace(self.ours, group=self.ours.title)
        yield replace(column, title="ours")
        beside = replace(column, direction="none", signature="")  # of what the paper computed
        yield replace(beside, name=self.name(_PRINTED), title="printed")
        yield replace(beside, name=self.name(_DIFFERENCE), title="diff.")

    def name(self, part: str) -> str:
        """The name of one of the columns beside ours."""
        return f"{self.ours.name}:{part}"

    def cells(self, row: _RowPair) -> dict[str, Cell]:
        """The cells under this heading in a row."""
        ours, printed = self.our_cell(row), self.printed_cell(row)
        return {
            self.ours.name: ours,
            self.name(_PRINTED): printed,
            self.name(_DIFFERENCE): self._difference(ours, printed),
        }

    def our_cell(self, row: _RowPair) -> Cell:
        """Our value; none where we lack the metric or the row."""
        if self.column.absent:
            return Cell(reason=self.column.absent)
        return row.ours.cells[self.ours.name] if row.ours else Cell(reason="not run")

    def printed_cell(self, row: _RowPair) -> Cell:
        """The printed value, as a fraction where ours is one."""
        cell = row.printed_cell(self.table.columns.index(self.column.printed))
        return cell if cell.value is None else replace(cell, value=cell.value / scale(self.ours))

    def _difference(self, ours: Cell, printed: Cell) -> Cell:
        if ours.value is None or printed.value is None:
            return Cell()
        value = ours.value - printed.value
        text = f"{value * scale(self.ours):+z.{self.ours.digits}f}".replace("-", MINUS)
        return Cell(value, text=text)

    def pairs(self, rows: Sequence[_RowPair]) -> list[Pair]:
        """The values of all printed rows with ours."""
        cells = ((self.our_cell(row), self.printed_cell(row)) for row in rows)
        return [
            Pair(ours.value, printed.value, printed.significant)
            for ours, printed in cells
            if printed.value is not None
        ]


@dataclass(frozen=True)
class Pair:
    """A row's two values in one column, and whether the printed one has a star."""

    ours: float | None
    printed: float
    star: bool = False


def column_pairs(table: Table) -> list[tuple[Column, Column]]:
    """Our columns of a table, each with the printed one beside it; [] where there are none."""
    columns = {column.name: column for column in table.columns}
    pairs = ((column, columns.get(f"{column.name}:{_PRINTED}")) for column in table.columns)
    return [(ours, printed) for ours, printed in pairs if printed is not None]


def rank_correlation(pairs: Sequence[Pair]) -> tuple[float, int]:
    """Kendall's tau-b between our values and the printed ones, and over how many rows.

    tau-b is NaN where either side has no two different values.
    """
    both = [(pair.ours, pair.printed) for pair in pairs if pair.ours is not None]
    return kendall_tau_b([ours for ours, _ in both], [printed for _, printed in both]), len(both)


def reproduced_stars(pairs: Sequence[Pair], direction: str) -> tuple[int, int]:
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


def _column_pairs(column: SuiteColumn, ours: Table, printed: PrintedTable) -> list[_ColumnPair]:
    """A column of the suite: one of ours for each signature of its metric."""
    if column.absent:
        return [_ColumnPair(_our_column(column, printed), column, printed)]
    named = (c for c in ours.columns if c.name.partition(":")[0] == column.metric)
    return [_ColumnPair(our_column, column, printed) for our_column in named]


def _row(row: _RowPair, column_pairs: Sequence[_ColumnPair], missing: Mapping[str, str]) -> Row:
    cells = {name: cell for pair in column_pairs for name, cell in pair.cells(row).items()}
    if row.ours:
        return Row(row.ours.label, cells, row.ours.ranked, row.ours.status)
    return Row(
        row.row.name, cells, status="not available" if row.row.name in missing else "not run"
    )


def _agreement_rows(rows: Sequence[_RowPair], column_pairs: Sequence[_ColumnPair]) -> Iterator[Row]:
    tau, stars = {}, {}
    for column_pair in column_pairs:
        pairs = column_pair.pairs(rows)
        name = column_pair.name(_DIFFERENCE)
        tau[name] = _tau(pairs)
        same, count = reproduced_stars(pairs, column_pair.ours.direction)
        stars[name] = Cell(same / count, text=f"{same} of {count}") if count else Cell()
    yield Row(TAU, tau, ranked=False, summary=True)
    yield Row(STARS, stars, ranked=False, summary=True)


def _tau(pairs: Sequence[Pair]) -> Cell:
    value, count = rank_correlation(pairs)
    if math.isnan(value):
        return Cell(reason="there is no order to compare")
    return Cell(value, text=f"{value:z.2f} ({count})".replace("-", MINUS))


def _paper_notes(
    suite: Suite, group: Group, rows: Sequence[_RowPair], missing: Mapping[str, str]
) -> Iterator[str]:
    printed = suite.printed_table()
    level = f" (p < {printed.p_threshold:g})" if printed.p_threshold else ""
    stars = any(star for row in printed.rows for star in row.star)
    test = f"its *: {printed.significance_test}{level}" if stars else "no value starred"
    yield f"Printed: {printed.label}, {printed.paper_title}, {group.dataset}; {test}."
    if group.instead_of:
        yield (
            f"Ours is on {group.corpus}, the paper's on {group.dataset}: the values are not "
            "comparable."
        )
    yield f"{TAU}: between our order and the printed one (number of rows with both values)."
    if stars:
        yield (
            f"{STARS}: of the differences from the best of a column that the paper stars, "
            "those with the same sign in ours."
        )
    yield from _column_notes(suite)
    for row in rows:
        yield from _row_notes(row, missing)
    yield from suite.notes


def _column_notes(suite: Suite) -> Iterator[str]:
    """What is to be known of columns; what holds for several is said once."""
    headings: dict[str, list[str]] = {}
    for column in suite.columns:
        for text in (column.absent and f"no value of ours ({column.absent})", column.note):
            if text:
                headings.setdefault(text, []).append(column.heading)
    for text, names in headings.items():
        yield f"{', '.join(names)}: {text}."


def _setting_notes(group: Group, presets: Set[str]) -> Iterator[str]:
    for name in sorted(presets & group.settings.keys()):
        values = ", ".join(f"{key}={value}" for key, value in group.settings[name].items())
        yield f"Settings in place of those of preset {name}: {values}."


def _row_notes(row: _RowPair, missing: Mapping[str, str]) -> Iterator[str]:
    if row.row.name in missing:
        yield f"{row.row.name}: not available ({missing[row.row.name]})."
    elif row.ours is None:
        yield f"{row.row.name}: not run."
    if row.row.note:
        yield f"{row.row.name}: {row.row.note}."

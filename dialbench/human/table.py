"""A paper's table of human judgements made again from a file of judgements, ours beside theirs.

Rows and columns are the paper's. Systems and pairs that only the file knows stand below them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

from dialbench.errors import InputError
from dialbench.human.judgements import Vote, plain, read_votes
from dialbench.human.tally import (
    KAPPA,
    NOT_JUDGED,
    Asked,
    Ballots,
    Compared,
    Way,
    question_of,
    way_of,
)
from dialbench.papers.tables import PrintedRow, PrintedTable, load_table
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.formats.names import PLOTS
from dialbench.reporting.report import write
from dialbench.reporting.tables.merge_columns import side_by_side
from dialbench.reporting.tables.printed import headings, notes_of, section
from dialbench.reporting.tables.significance import Correction, Rules
from dialbench.reporting.tables.text_table import scale
from dialbench.text.cleaning import slug

_KIND = "human evaluation"
_VERSUS = " vs "
_MEAN, _SHARE = "mean", "share"
_NOT_PRINTED = "not printed"
_LEVEL = 0.01  # where the paper states none


def judged_report(
    paper: str,
    number: str,
    judgements: Path,
    out: Path,
    formats: Sequence[str],
    *,
    printed: bool = True,
    standalone: bool = False,
    alpha: float | None = None,
    correction: Correction = "none",
) -> tuple[list[Table], list[Path]]:
    """A paper's table of human judgements from a file of them, as files and as a table.

    Args:
        paper: its name.
        number: the table's.
        judgements: the file, as `read_votes` reads it.
        out: where the table goes.
        formats: of tables and pages; there is nothing to plot.
        printed: whether the paper's values stand beside ours.
        standalone: as of `report.write`.
        alpha: level of significance of the stars; by default the paper's, else 0.01.
        correction: as of `tables.build`.

    Raises:
        UnknownName: there is no such paper or table.
        InputError: the table is of something else, the file is not as it should be, nothing in
            it belongs to the table, or `alpha` or `correction` cannot be used.
    """
    asked = load_table(paper, number)
    if not isinstance(asked, PrintedTable) or asked.kind != _KIND:
        raise InputError(
            f"table {number} of {paper} is of {asked.kind}, not of human judgements",
            where="--table",
            hint="dialbench papers says of what each table is.",
        )
    votes = read_votes(judgements)
    table = judged(asked, votes, printed=printed, alpha=alpha, correction=correction)
    shown = [format for format in formats if format not in PLOTS]
    return [table], write([table], (), out, shown, ours=(), standalone=standalone)


def judged(
    table: PrintedTable,
    votes: Sequence[Vote],
    *,
    printed: bool = True,
    alpha: float | None = None,
    correction: Correction = "none",
) -> Table:
    """The table with our values, each beside the printed one if `printed`.

    Means of ratings are marked; for `alpha` and `correction` see `judged_report`.

    Raises:
        InputError: no judgement belongs to it, a rating is not on its scale, or `alpha` or
            `correction` cannot be used.
    """
    rules = Rules(table.p_threshold or _LEVEL if alpha is None else alpha, correction)
    sections: dict[str, list[PrintedRow]] = {}
    for row in table.rows:
        sections.setdefault(section(row), []).append(row)
    ballots = Ballots(votes)
    parts = {
        aspect: _Part(table, aspect, rows, ballots, rules) for aspect, rows in sections.items()
    }
    keys = {question.key for part in parts.values() for question in part.questions()}
    used = [vote for vote in votes if question_of(vote).key in keys]
    if not used:
        system, against, criterion = next(q for part in parts.values() for q in part.questions())
        raise InputError(
            f"no judgement belongs to table {table.table} of {table.paper}",
            where="--judgements",
            hint=f"It asks for system {system!r}, against {against!r}, criterion {criterion!r} "
            "and so on.",
        )
    name = slug(f"{table.paper.replace('_', '-')}-{table.table}")
    theirs = f"{table.label} of {table.paper_title or table.paper}"
    caption = f"{table.caption}, beside {theirs}" if printed else table.caption
    made = side_by_side(name, caption, {a: part.made(printed) for a, part in parts.items()})
    notes = list(_said(used, len(votes) - len(used), way_of(table.paper, table.table)))
    notes += [*made.notes, *(note for part in parts.values() for note in part.on_agreement())]
    if printed:
        notes += [f"Printed: {theirs}.", *_printed_test(table), *notes_of(table)]
    return replace(made, notes=tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _Place:
    """A column of ours.

    Attributes:
        column: its heading.
        begin: of the printed heading: a criterion or a group; "" if there is neither.
        statistic: what it shows, as of `Ballots.cell`.
        number: of the printed column beside it; None if there is none.
    """

    column: Column
    begin: str
    statistic: str
    number: int | None = None

    def printed(self, row: PrintedRow | None) -> Cell:
        """The printed cell."""
        if row is None or self.number is None:
            return Cell(reason=_NOT_PRINTED)
        value = row.values[self.number] / scale(self.column)
        return Cell(value, text=row.printed[self.number].rstrip("*%"))


@dataclass(frozen=True)
class _Line:
    """A row: what is compared or rated in it, and what the paper printed."""

    label: str
    system: str
    against: str
    printed: PrintedRow | None = None

    @classmethod
    def of(cls, row: PrintedRow) -> _Line:
        """A row of the paper."""
        system, _, against = row.system.partition(_VERSUS)
        return cls(row.system, system, against, row)


class _Part:
    """The rows of a table on one aspect, or all of them."""

    def __init__(
        self,
        table: PrintedTable,
        aspect: str,
        rows: Sequence[PrintedRow],
        ballots: Ballots,
        rules: Rules,
    ) -> None:
        self.table, self.aspect, self.ballots, self.rules = table, aspect, ballots, rules
        self.way = way_of(table.paper, table.table)
        self.places = list(_places(table))
        self.lines = [_Line.of(row) for row in rows]
        if not self.way.groups:
            self.lines += self._own()
        ratings = [place.statistic for place in self.places if place.statistic.isdigit()]
        for question in self.questions() if ratings else ():
            ballots.demand_ratings(question, ratings)

    def questions(self) -> list[Asked]:
        """What all cells ask."""
        return [self.asked(line, place) for line in self.lines for place in self.places]

    def asked(self, line: _Line, place: _Place) -> Asked:
        """What a cell asks."""
        if place.begin in self.way.groups:
            return Asked(*self.way.groups[place.begin], line.label)
        return Asked(line.system, line.against, self.aspect or place.begin)

    def made(self, printed: bool) -> Table:
        """The values as a table."""
        columns = [c for place in self.places for c in _columns(place, printed)]
        rows = [self._row(number, printed) for number in range(len(self.lines))]
        return Table("", "", tuple(columns), tuple(rows), tuple(self._on_means()))

    def _own(self) -> Iterator[_Line]:
        """The systems and pairs that only the file knows."""
        criteria = {plain(self.aspect or place.begin) for place in self.places}
        known = {question.key[1] for question in self.questions()}
        pairs = bool(self.lines[0].against)
        for asked in self.ballots.asked():
            criterion, systems = asked.key
            if bool(asked.against) == pairs and criterion in criteria and systems not in known:
                known.add(systems)
                label = f"{asked.system}{_VERSUS}{asked.against}" if pairs else asked.system
                yield _Line(label, asked.system, asked.against)

    @cached_property
    def _compared(self) -> Compared | None:
        """The paper's systems by their mean ratings; None where there are no ratings."""
        for place in self.places:
            if place.column.name == _MEAN:
                lines = enumerate(self.lines)
                asked = {n: self.asked(line, place) for n, line in lines if line.printed}
                return self.ballots.compared(asked, place.column, self.rules)
        return None

    def _row(self, number: int, printed: bool) -> Row:
        line = self.lines[number]
        ours = {place.column.name: self._cell(line, place) for place in self.places}
        if self._compared:
            marks = self._compared.marks
            ours[_MEAN] = replace(
                ours[_MEAN],
                best=number in marks.best,
                second=number in marks.second,
                significant=number in marks.significant,
            )
        judged = any(cell.value is not None for cell in ours.values())
        shown = [place for place in self.places if printed and place.number is not None]
        theirs = {_beside(place): place.printed(line.printed) for place in shown}
        return Row(
            line.label,
            {**ours, **theirs},
            ranked=line.printed is not None,
            status="done" if judged else "not judged",
        )

    def _cell(self, line: _Line, place: _Place) -> Cell:
        return self.ballots.cell(self.asked(line, place), place.statistic, self.way)

    def _on_means(self) -> Iterator[str]:
        """How mean ratings were compared, and where no star means no test."""
        found = self._compared
        if found is None:
            return
        names = [line.label for line in self.lines]
        best = ", ".join(names[row] for row in sorted(found.marks.best))
        if found.tested:
            yield self.rules.said
            counts = sorted({found.common[row] for row in found.tested})
            span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
            yield (
                "Mean: paired t-test over the mean ratings of examples, those on which both "
                f"systems were rated ({span})."
            )
        if not best:
            yield "Mean: no test (fewer than two of the paper's systems were rated)."
        for row in sorted(found.marks.untested):
            both = _count(found.common[row], "example")
            yield f"Mean: no test for {names[row]} ({both} in common with {best}, a test needs 2)."
        for row in sorted(found.ahead):
            yield (
                f"Mean: no star for {names[row]} (on the examples in common with {best} it is "
                "the one that is significantly better)."
            )
        if mine := [line.label for line in self.lines if not line.printed]:
            yield f"Shown for comparison, not ranked: {', '.join(mine)}."

    def on_agreement(self) -> Iterator[str]:
        """Why cells have no kappa though there are votes; its average where no column shows it."""
        for begin, systems in self.way.groups.items():
            asked = (Asked(*systems, line.label) for line in self.lines)
            cells = [self.ballots.cell(question, KAPPA, self.way) for question in asked]
            found = [cell.value for cell in cells if cell.value is not None]
            if found:
                yield f"{begin}: {_VERSUS.join(systems)}, average kappa {fmean(found):.3f}."
        for place in self.places:
            for line in self.lines if place.statistic == KAPPA else ():
                reason = self._cell(line, place).reason
                if reason not in ("", NOT_JUDGED):
                    criterion = self.aspect or place.begin
                    yield f"{line.label}{criterion and f', {criterion}'}: no kappa ({reason})."


def _places(table: PrintedTable) -> Iterator[_Place]:
    """Our columns: those of the paper, and the mean of ratings."""
    rated = False
    for number, (title, group) in enumerate(headings(table)):
        begin, _, statistic = table.columns[number].lower().rpartition("_")
        rated |= begin == _SHARE
        values = [row.values[number] for row in table.rows]
        cells = [row.printed[number].rstrip("*%").partition(".")[2] for row in table.rows]
        column = Column(
            table.columns[number],
            title,
            digits=max(map(len, cells)),
            percent=max(values) > 1,
            direction="none",
            group=group,
        )
        yield _Place(column, "" if begin == _SHARE else begin, statistic, number)
    if rated:
        yield _Place(Column(_MEAN, "Mean", digits=2), "", _MEAN)


def _columns(place: _Place, printed: bool) -> Iterator[Column]:
    yield place.column
    if printed and place.number is not None:
        # Its values stand as they are printed, in the unit of the column before.
        yield replace(place.column, name=_beside(place), title="printed", percent=False)


def _printed_test(table: PrintedTable) -> Iterator[str]:
    """The paper's test where no printed star tells of it."""
    if table.p_threshold and not any(star for row in table.rows for star in row.star):
        yield f"Printed: {table.significance_test} (p < {table.p_threshold:g}), no value starred."


def _beside(place: _Place) -> str:
    return f"{place.column.name} printed"


def _said(used: Sequence[Vote], others: int, way: Way) -> Iterator[str]:
    judges, examples = ({getattr(v, name) for v in used} for name in ("judge", "example"))
    yield (
        f"Ours: {_count(len(used), 'judgement')} by {_count(len(judges), 'judge')} on "
        f"{_count(len(examples), 'example')}. {way.said}"
    )
    yield (
        "Intervals of shares: Wilson's, for as many judgements as would be as sure if they were "
        f"independent. Agreement: {way.agreement_said}."
    )
    if others:
        yield f"{_count(others, 'judgement')} on other systems or by other criteria left out."


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"

"""Makes a paper's table of human judgements again from a file of judgements, ours beside theirs.

Rows and columns are the paper's. Systems and pairs that only the file has stand below them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

from dialbench.errors import InputError
from dialbench.files.distinct import require_kept
from dialbench.human.judgements import Judgement, normalised, read_judgements
from dialbench.human.tally import (
    KAPPA,
    NOT_JUDGED,
    CountingRule,
    JudgementTable,
    MeanComparison,
    Question,
    counting_rule,
    question_of,
)
from dialbench.papers.tables import PrintedRow, PrintedTable, load_table
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.options import ReportOptions, require_own_table, without_plots
from dialbench.reporting.report import write
from dialbench.reporting.tables.merge_columns import side_by_side
from dialbench.reporting.tables.printed import by_section, headings, notes_of, table_name
from dialbench.reporting.tables.significance import Rules
from dialbench.reporting.tables.text_table import scale
from dialbench.text.wording import count_of

_KIND = "human evaluation"
_VERSUS = " vs "
_MEAN, _SHARE = "mean", "share"
_NOT_PRINTED = "not printed"


def human_table_report(
    paper: str,
    number: str,
    judgements: Path,
    out: Path,
    options: ReportOptions,
) -> tuple[list[Table], list[Path]]:
    """Writes a paper's table of human judgements, made from a file of judgements.

    Args:
        paper: its name.
        number: the table's.
        judgements: the file, as `read_judgements` reads it.
        out: the folder to write to.
        options: formats, marks, and whether the paper's values stand beside ours; there is
            nothing to plot.

    Returns:
        The table, and the files written.

    Raises:
        UnknownName: there is no such paper or table.
        InputError: the table is no table of judgements, the file cannot be read or has a faulty
            row, nothing in it belongs to the table, the report might overwrite it, or `alpha` or
            `correction` cannot be used.
    """
    paper_table = load_table(paper, number)
    if not isinstance(paper_table, PrintedTable) or paper_table.kind != _KIND:
        raise InputError(
            f"table {number} of {paper} is of {paper_table.kind}, not of human judgements",
            where="--table",
            hint="`dialbench papers` lists what each table is of.",
        )
    require_kept([judgements], out, table_name(paper_table))
    table = human_table(paper_table, read_judgements(judgements), options)
    table = replace(table, layout=options.layout)
    return [table], write([table], (), out, without_plots(options), ours=())


def human_table(
    table: PrintedTable,
    judgements: Sequence[Judgement],
    options: ReportOptions,
) -> Table:
    """The paper's table with our values, each beside the printed one if `options.printed`.

    Means of ratings are marked.

    Raises:
        InputError: no judgement belongs to it, a rating is not on its scale, or an option cannot
            be used.
    """
    require_own_table(options)
    if options.baseline is not None:
        what = "means of judgements are tested against the best alone"
        raise InputError(what, where="--baseline", hint="Leave it out.")
    rules = Rules.of(options, table.p_threshold)
    by_question = JudgementTable(judgements)
    sections = {
        aspect: _Section(table, aspect, rows, by_question, rules)
        for aspect, rows in by_section(table).items()
    }
    questions = [question for part in sections.values() for question in part.questions()]
    keys = {question.key for question in questions}
    used = [judgement for judgement in judgements if question_of(judgement).key in keys]
    if not used:
        system, against, criterion = questions[0]
        raise InputError(
            f"no judgement belongs to table {table.table} of {table.paper}",
            where="--judgements",
            hint=f"Its first cell needs system {system!r}, against {against!r}, "
            f"criterion {criterion!r}.",
        )
    origin = f"{table.label} of {table.paper_title or table.paper}"
    caption = f"{table.caption}, beside {origin}" if options.printed else table.caption
    parts = {aspect: part.table(options.printed) for aspect, part in sections.items()}
    merged = side_by_side(table_name(table), caption, parts)
    rule = counting_rule(table.paper, table.table)
    notes = list(_judgement_notes(used, len(judgements) - len(used), rule))
    notes += merged.notes
    notes += (note for part in sections.values() for note in part.agreement_notes())
    notes += _alpha_note(by_question, questions)
    if options.printed:
        notes += [f"Printed: {origin}.", *_printed_test_note(table), *notes_of(table)]
    return replace(merged, notes=tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _Column:
    """A column of our values.

    Attributes:
        column: name, title and digits.
        subject: the criterion or group with which the printed heading begins; "" for neither.
        statistic: what it shows, as of `JudgementTable.cell`.
        number: of the printed column beside it; None if there is none.
    """

    column: Column
    subject: str
    statistic: str
    number: int | None = None

    @property
    def printed_name(self) -> str:
        """The name of the column of printed values beside it."""
        return f"{self.column.name} printed"

    def printed(self, row: PrintedRow | None) -> Cell:
        """The printed cell."""
        if row is None or self.number is None:
            return Cell(reason=_NOT_PRINTED)
        value = row.values[self.number] / scale(self.column)
        return Cell(value, text=row.printed[self.number].rstrip("*%"))


@dataclass(frozen=True)
class _SystemRow:
    """A row: the system or pair that is judged in it, and what the paper printed."""

    label: str
    system: str
    against: str
    printed: PrintedRow | None = None

    @classmethod
    def of(cls, row: PrintedRow) -> _SystemRow:
        """A row of the paper."""
        system, _, against = row.system.partition(_VERSUS)
        return cls(row.system, system, against, row)


class _Section:
    """The rows of a table on one aspect, or all of them."""

    def __init__(
        self,
        table: PrintedTable,
        aspect: str,
        rows: Sequence[PrintedRow],
        judgements: JudgementTable,
        rules: Rules,
    ) -> None:
        self.aspect, self.judgements, self.rules = aspect, judgements, rules
        self.rule = counting_rule(table.paper, table.table)
        self.columns = list(_columns(table))
        self.rows = [_SystemRow.of(row) for row in rows]
        if not self.rule.groups:
            self.rows += self._unprinted_rows()
        scale_points = [c.statistic for c in self.columns if c.statistic.isdigit()]
        for question in self.questions() if scale_points else ():
            judgements.require_ratings(question, scale_points)

    def questions(self) -> list[Question]:
        """The questions of all cells."""
        return [self.question(row, column) for row in self.rows for column in self.columns]

    def question(self, row: _SystemRow, column: _Column) -> Question:
        """The question of a cell."""
        if column.subject in self.rule.groups:
            return Question(*self.rule.groups[column.subject], row.label)
        return Question(row.system, row.against, self.aspect or column.subject)

    def table(self, printed: bool) -> Table:
        """The values as a table."""
        columns = [c for column in self.columns for c in _with_printed(column, printed)]
        rows = [self._row(number, printed) for number in range(len(self.rows))]
        return Table("", "", tuple(columns), tuple(rows), tuple(self._mean_notes()))

    def _unprinted_rows(self) -> Iterator[_SystemRow]:
        """The systems and pairs that only the file has."""
        criteria = {normalised(self.aspect or column.subject) for column in self.columns}
        known = {question.key[1] for question in self.questions()}
        pairs = bool(self.rows[0].against)
        for question in self.judgements.questions():
            criterion, systems = question.key
            if bool(question.against) == pairs and criterion in criteria and systems not in known:
                known.add(systems)
                pair = f"{question.system}{_VERSUS}{question.against}"
                label = pair if pairs else question.system
                yield _SystemRow(label, question.system, question.against)

    @cached_property
    def _means(self) -> MeanComparison | None:
        """The paper's systems by their mean ratings; None where there are no ratings."""
        for column in self.columns:
            if column.column.name == _MEAN:
                rows = enumerate(self.rows)
                questions = {n: self.question(row, column) for n, row in rows if row.printed}
                return self.judgements.compare_means(questions, column.column, self.rules)
        return None

    def _row(self, number: int, printed: bool) -> Row:
        row = self.rows[number]
        ours = {column.column.name: self._cell(row, column) for column in self.columns}
        if self._means:
            marks = self._means.marks
            ours[_MEAN] = replace(
                ours[_MEAN],
                best=number in marks.best,
                second=number in marks.second,
                significant=number in marks.significant,
            )
        judged = any(cell.value is not None for cell in ours.values())
        beside = [column for column in self.columns if printed and column.number is not None]
        theirs = {column.printed_name: column.printed(row.printed) for column in beside}
        return Row(
            row.label,
            {**ours, **theirs},
            ranked=row.printed is not None,
            status="done" if judged else NOT_JUDGED,
        )

    def _cell(self, row: _SystemRow, column: _Column) -> Cell:
        return self.judgements.cell(self.question(row, column), column.statistic, self.rule)

    def _mean_notes(self) -> Iterator[str]:
        """How mean ratings were compared, and which of them were not."""
        means = self._means
        if means is None:
            return
        names = [row.label for row in self.rows]
        best = ", ".join(names[row] for row in sorted(means.marks.best))
        if means.tested:
            yield self.rules.note
            counts = sorted({means.common[row] for row in means.tested})
            span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
            yield (
                "Mean: paired t-test over the mean ratings of the examples on which both systems "
                f"were rated ({span})."
            )
        if not best:
            yield "Mean: no test (fewer than two of the paper's systems were rated)."
        for row in sorted(means.marks.untested):
            common = count_of(means.common[row], "example")
            yield (
                f"Mean: no test for {names[row]} ({common} in common with {best}, a test needs 2)."
            )
        for row in sorted(means.ahead):
            yield (
                f"Mean: no star for {names[row]} (on the examples in common with {best} it is "
                "significantly better)."
            )
        if unprinted := [row.label for row in self.rows if not row.printed]:
            yield f"Shown for comparison, not ranked: {', '.join(unprinted)}."

    def agreement_notes(self) -> Iterator[str]:
        """Average kappas that no column shows, and why cells with judgements have no kappa."""
        for group, systems in self.rule.groups.items():
            questions = (Question(*systems, row.label) for row in self.rows)
            cells = [self.judgements.cell(question, KAPPA, self.rule) for question in questions]
            kappas = [cell.value for cell in cells if cell.value is not None]
            if kappas:
                yield f"{group}: {_VERSUS.join(systems)}, average kappa {fmean(kappas):.3f}."
        for column in self.columns:
            for row in self.rows if column.statistic == KAPPA else ():
                reason = self._cell(row, column).reason
                if reason not in ("", NOT_JUDGED):
                    criterion = self.aspect or column.subject
                    yield f"{row.label}{criterion and f', {criterion}'}: no kappa ({reason})."


def _alpha_note(judgements: JudgementTable, questions: Iterable[Question]) -> Iterator[str]:
    """Agreement on all judgements of a criterion, which no column shows."""
    by_criterion: dict[str, list[Question]] = {}
    for question in questions:
        by_criterion.setdefault(question.criterion, []).append(question)
    values = []
    for criterion, asked in by_criterion.items():
        if alpha := judgements.alpha(asked):
            interval = " ({:.3f} to {:.3f})".format(*alpha.interval) if alpha.interval else ""
            values.append(f"{criterion and f'{criterion} '}{alpha.value:.3f}{interval}")
    if values:
        yield f"Krippendorff's alpha (ordinal) of all judgements: {', '.join(values)}."


def _columns(table: PrintedTable) -> Iterator[_Column]:
    """Our columns: those of the paper, and the mean of ratings."""
    rated = False
    for number, (title, group) in enumerate(headings(table)):
        subject, _, statistic = table.columns[number].lower().rpartition("_")
        rated |= subject == _SHARE
        values = [row.values[number] for row in table.rows]
        decimals = [row.printed[number].rstrip("*%").partition(".")[2] for row in table.rows]
        column = Column(
            table.columns[number],
            title,
            digits=max(map(len, decimals)),
            percent=max(values) > 1,
            direction="none",
            group=group,
        )
        yield _Column(column, "" if subject == _SHARE else subject, statistic, number)
    if rated:
        yield _Column(Column(_MEAN, "Mean", digits=2), "", _MEAN)


def _with_printed(column: _Column, printed: bool) -> Iterator[Column]:
    yield column.column
    if printed and column.number is not None:
        # Its values are texts as printed, in the unit of the column before.
        yield replace(column.column, name=column.printed_name, title="printed", percent=False)


def _printed_test_note(table: PrintedTable) -> Iterator[str]:
    """The paper's test, where no printed star shows it."""
    if table.p_threshold and not any(star for row in table.rows for star in row.star):
        yield f"Printed: {table.significance_test} (p < {table.p_threshold:g}), no value starred."


def _judgement_notes(used: Sequence[Judgement], unused: int, rule: CountingRule) -> Iterator[str]:
    judges, examples = ({getattr(j, name) for j in used} for name in ("judge", "example"))
    yield (
        f"Ours: {count_of(len(used), 'judgement')} by {count_of(len(judges), 'judge')} on "
        f"{count_of(len(examples), 'example')}. {rule.description}"
    )
    yield (
        "Intervals of shares: Wilson's, at the effective number of independent judgements. "
        f"Agreement: {rule.agreement_name}."
    )
    if unused:
        yield f"{count_of(unused, 'judgement')} on other systems or by other criteria left out."

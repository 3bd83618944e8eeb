"""Results become tables: one a corpus, a row a system, a column a measure under one signature."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dialbench.records import Cell, Column, Result, Row, Score, Table
from dialbench.reporting.defaults import DEFAULT_ALPHA
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.notes import notes
from dialbench.reporting.tables.rows import Line, lines
from dialbench.reporting.tables.significance import Correction, Marks, Rules, Sample, mark


def build(
    results: Iterable[Result],
    *,
    metrics: Sequence[Column | str],
    alpha: float = DEFAULT_ALPHA,
    correction: Correction = "none",
    corpus_notes: Mapping[str, Sequence[str]] | None = None,
) -> list[Table]:
    """The tables of all corpora that occur in the results, in order of first appearance.

    Seeds of one row become their mean and sample standard deviation. In every column the best
    value and, of three rows or more, the second best are marked, and those that differ
    significantly from the best (`stats.compare.difference_test`). Rows of hardly any different
    responses are never best. Rows that are not ranked, or answered fewer contexts than others,
    come last and carry no marks.

    Args:
        results: what the store knows of each job; failed jobs give rows of dashes.
        metrics: measures in the order of the columns; those of one family stand together.
        alpha: level of significance.
        correction: "holm" adjusts p-values for the several comparisons within a column.
        corpus_notes: what is to be said of a corpus under its table.

    Raises:
        InputError: `alpha` or `correction` cannot be used.
    """
    rules = Rules(alpha, correction)
    columns = _by_family([column_of(m) if isinstance(m, str) else m for m in metrics])
    by_corpus: dict[str, list[Result]] = {}
    for result in results:
        by_corpus.setdefault(result.job.corpus, []).append(result)
    said = corpus_notes or {}
    tables = []
    for corpus, group in by_corpus.items():
        empty = Table(corpus, f"Automatic evaluation on {corpus}", tuple(columns), ())
        tables.append(fill(empty, lines(group), rules, said.get(corpus, ())))
    return tables


def _by_family(columns: Sequence[Column]) -> list[Column]:
    """The columns with those of one group side by side."""
    order = list(dict.fromkeys(column.group for column in columns))
    return sorted(columns, key=lambda column: order.index(column.group))


def fill(table: Table, members: Sequence[Line], rules: Rules, said: Sequence[str] = ()) -> Table:
    """A table that has only its name, caption and columns, with rows, marks and notes.

    A column whose measure has values under several signatures becomes several.

    Args:
        table: the empty table.
        members: what its rows show.
        rules: what is significant.
        said: what is to be said besides.
    """
    measures = [measure for column in table.columns for measure in _measures(column, members)]
    marks = {m.column.name: m.marks(members, rules) for m in measures}
    rows = tuple(
        Row(
            line.label,
            {m.column.name: m.cell(line, row, marks[m.column.name]) for m in measures},
            line.ranked,
            line.status,
        )
        for row, line in enumerate(members)
    )
    filled = dataclasses.replace(table, columns=tuple(m.column for m in measures), rows=rows)
    return dataclasses.replace(filled, notes=notes(filled, members, marks, rules, said))


@dataclass(frozen=True)
class _Measure:
    """A column and the scores that belong into it: those of `metric` with its signature."""

    metric: str
    column: Column

    def scores(self, line: Line) -> list[Score]:
        """The available scores of a line, one a seed that has one."""
        return [
            score
            for score in line.scores(self.metric)
            if score.available and score.signature == self.column.signature
        ]

    def marks(self, members: Sequence[Line], rules: Rules) -> Marks:
        """The marks of the lines that compete in this column."""
        found = {row: self.scores(line) for row, line in enumerate(members) if line.ranked}
        samples = {row: Sample.of(scores) for row, scores in found.items() if scores}
        repetitive = [row for row in samples if members[row].repetitive]
        return mark(samples, self.column, rules, repetitive)

    def cell(self, line: Line, row: int, marks: Marks) -> Cell:
        """What stands in this column in one line."""
        scores = self.scores(line)
        if not scores:
            return Cell(reason=self._absence(line))
        sample = Sample.of(scores)
        return Cell(
            value=sample.value,
            interval=sample.interval,
            deviation=sample.deviation,
            best=row in marks.best,
            second=row in marks.second,
            significant=row in marks.significant,
        )

    def _absence(self, line: Line) -> str:
        if line.status != "done":
            return line.status
        scores = line.scores(self.metric)
        if any(score.available for score in scores):
            return "scored under another signature"
        return next((score.reason for score in scores if score.reason), "not scored")


def _measures(column: Column, members: Sequence[Line]) -> list[_Measure]:
    """One column for each signature under which the measure has values, at least one."""
    scores = [score for line in members for score in line.scores(column.name)]
    signatures = list(dict.fromkeys(score.signature for score in scores if score.available))
    if not signatures:
        signatures = [score.signature for score in scores][:1] or [""]
    if len(signatures) == 1:
        return [_Measure(column.name, dataclasses.replace(column, signature=signatures[0]))]
    return [
        _Measure(
            column.name,
            dataclasses.replace(
                column,
                name=f"{column.name}:{number}",
                title=f"{column.title} ({number})",
                signature=signature,
            ),
        )
        for number, signature in enumerate(signatures, start=1)
    ]

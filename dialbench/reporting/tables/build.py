"""Builds tables from results: one a corpus, a row a system, a column a metric."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dialbench.errors import InputError
from dialbench.records import Cell, Column, Result, Row, Score, Table
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.tables.columns import bounds_of, choose_columns, column_of
from dialbench.reporting.tables.notes import notes, test_notes
from dialbench.reporting.tables.rows import SeedGroup, choose_rows, row_named, seed_groups
from dialbench.reporting.tables.significance import Marks, Rules, Sample, mark


def build(
    results: Iterable[Result],
    *,
    metrics: Sequence[Column | str],
    rules: Rules | None = None,
    corpus_notes: Mapping[str, Sequence[str]] | None = None,
    options: ReportOptions | None = None,
) -> list[Table]:
    """The tables of all corpora in the results, in order of first appearance.

    Seeds of one row become their mean and sample standard deviation. In every column the best
    value and, of three rows or more, the second best are marked, and those that differ
    significantly from the best (`stats.compare.difference_test`). Rows of hardly any different
    responses are never best. Rows that are not ranked, or have fewer responses than others,
    come last and have no marks.

    Args:
        results: of all jobs; failed jobs give rows of dashes.
        metrics: names or columns, in their order; those of one family stand together.
        rules: when a difference is significant; None: as `options` say.
        corpus_notes: notes by corpus.
        options: which rows and columns are shown, how the table is set.

    Raises:
        UnknownName: a column of the options is none.
    """
    options = options or ReportOptions()
    rules = rules or Rules.of(options)
    named = [column_of(m) if isinstance(m, str) else m for m in metrics]
    columns = choose_columns(named, options.columns)
    by_corpus: dict[str, list[Result]] = {}
    for result in results:
        by_corpus.setdefault(result.job.corpus, []).append(result)
    notes_of = corpus_notes or {}
    tables = []
    for corpus, corpus_results in by_corpus.items():
        groups = seed_groups(corpus_results)
        if options.rows is not None:
            groups = choose_rows(groups, options.rows)
        if groups:
            caption = f"Automatic evaluation on {corpus}"
            empty = Table(corpus, caption, tuple(columns), (), layout=options.layout)
            tables.append(fill(empty, groups, rules, notes_of.get(corpus, ())))
    return tables


def fill(
    table: Table, groups: Sequence[SeedGroup], rules: Rules, extra_notes: Sequence[str] = ()
) -> Table:
    """Adds rows, marks and notes to a table that has only its name, caption and columns.

    A column whose metric has values under several signatures becomes several.

    Args:
        table: the empty table.
        groups: the results of its rows.
        rules: when a difference is significant.
        extra_notes: further notes.
    """
    columns = [split for column in table.columns for split in _signature_columns(column, groups)]
    baseline = None
    if rules.baseline is not None:
        baseline = row_named(rules.baseline, groups, where="--baseline")
        rules = dataclasses.replace(rules, baseline=groups[baseline].label)
        if not groups[baseline].ranked:
            what = f"{rules.baseline} is not ranked, so nothing is tested against it"
            raise InputError(what, where="--baseline", hint="Name a row that competes.")
    marks = {c.column.name: c.marks(groups, rules, baseline) for c in columns}
    rows = tuple(
        Row(
            group.label,
            {c.column.name: c.cell(group, row, marks[c.column.name]) for c in columns},
            group.ranked,
            group.status,
        )
        for row, group in enumerate(groups)
    )
    filled = dataclasses.replace(
        table,
        columns=tuple(c.column for c in columns),
        rows=rows,
        baseline=rules.baseline or "",
    )
    filled = dataclasses.replace(filled, tests=tuple(test_notes(filled, groups, marks, rules)))
    return dataclasses.replace(filled, notes=notes(filled, groups, marks, extra_notes))


@dataclass(frozen=True)
class _SignatureColumn:
    """A column and its scores: those of `metric` under the column's signature."""

    metric: str
    column: Column

    def scores(self, group: SeedGroup) -> tuple[Score, ...]:
        """The available scores of a row, one a seed that has one."""
        return tuple(
            score
            for score in group.scores(self.metric)
            if score.available and score.signature == self.column.signature
        )

    def marks(self, groups: Sequence[SeedGroup], rules: Rules, baseline: int | None) -> Marks:
        """The marks of the rows that compete in this column."""
        scores_of = {row: self.scores(group) for row, group in enumerate(groups) if group.ranked}
        samples = {row: Sample(scores) for row, scores in scores_of.items() if scores}
        repetitive = [row for row in samples if groups[row].repetitive]
        return mark(samples, self.column, rules, repetitive, baseline)

    def cell(self, group: SeedGroup, row: int, marks: Marks) -> Cell:
        """The cell of one row in this column."""
        scores = self.scores(group)
        if not scores:
            return Cell(reason=self._missing_reason(group))
        sample = Sample(scores)
        return Cell(
            value=sample.value,
            interval=sample.interval(bounds_of(self.metric)),
            deviation=sample.deviation,
            best=row in marks.best,
            second=row in marks.second,
            significant=row in marks.significant,
            reason=self._partial_reason(group, len(scores)),
        )

    def _partial_reason(self, group: SeedGroup, count: int) -> str:
        """What is to be known of a mean that lacks training runs."""
        runs = len(group.done)
        return "" if count == runs else f"the mean of {count} of {runs} training runs"

    def _missing_reason(self, group: SeedGroup) -> str:
        if group.status != "done":
            return group.status
        scores = group.scores(self.metric)
        if any(score.available for score in scores):
            return "scored under another signature"
        return next((score.reason for score in scores if score.reason), "not scored")


def _signature_columns(column: Column, groups: Sequence[SeedGroup]) -> list[_SignatureColumn]:
    """One column for each signature under which the metric has values, at least one."""
    scores = [score for group in groups for score in group.scores(column.name)]
    signatures = list(dict.fromkeys(score.signature for score in scores if score.available))
    if not signatures:
        signatures = [score.signature for score in scores][:1] or [""]
    if len(signatures) == 1:
        return [_SignatureColumn(column.name, dataclasses.replace(column, signature=signatures[0]))]
    return [
        _SignatureColumn(
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

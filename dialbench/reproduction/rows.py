"""Sorts the results of a runs folder into the rows of a paper's table, and writes that table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialbench.adapter import Progress
from dialbench.corpora.base import name_of
from dialbench.errors import InputError, UnknownName
from dialbench.presets.preset import Preset
from dialbench.presets.preset import load as load_preset
from dialbench.records import Decoding, Job, Result, Table, fingerprint_of
from dialbench.reporting.options import ReportOptions, without_plots
from dialbench.reporting.report import write
from dialbench.reporting.tables.merge_columns import side_by_side
from dialbench.reporting.tables.paper_comparison import PaperComparison, compare_with_paper
from dialbench.reporting.tables.printed import as_printed
from dialbench.reporting.tables.significance import Rules
from dialbench.reporting.tables.topics import topic_words
from dialbench.reproduction.parameters import parameter_table
from dialbench.running.plan import (
    Plan,
    comparison_key,
    preset_for_row,
    systems_of,
    training_settings,
)
from dialbench.suites.suite import CountSuite, Group, RunnableSuite, Suite, SuiteRow, TopicSuite
from dialbench.systems import Registry, System

if TYPE_CHECKING:
    from dialbench.reporting.page.conversations import Read


def write_comparison(
    suite: Suite | TopicSuite,
    results: Sequence[Result],
    out: Path,
    options: ReportOptions,
    *,
    plan: Plan | None = None,
    read: Read | None = None,
    progress: Progress | None = None,
) -> tuple[list[Table], list[Path]]:
    """Writes our table beside the paper's: one a corpus and setting.

    A suite of topics has two tables: the paper's, and ours.

    Args:
        suite: our rows and columns and the paper's.
        results: of a runs folder; those of other systems are ignored.
        out: the folder for tables, and plots of our values.
        options: formats, marks, and whether the paper's values stand beside ours.
        plan: what was run, whose preset and plug-ins count; None looks the preset up by its name in
            the results, the suite's own first.
        read: reads the responses of a job; without it plots and page have none.
        progress: as of `report.write`.

    Returns:
        The tables, and the files written.

    Raises:
        InputError: no row of the suite was run.
    """
    plugins, preset = (plan.plugins, plan.preset) if plan else ((), None)
    systems, missing = systems_of(suite, Registry(plugins))
    row_groups = [
        (group, rows)
        for group in suite.groups
        for rows in _RowSorter(suite, group, systems, preset).by_setting(results)
    ]
    if not row_groups:
        raise InputError(
            f"no row of suite {suite.name} was run",
            where="RUNS",
            hint="Run its rows with `dialbench run --suite`, or give the corpus with --corpus.",
        )
    used = [result for _, rows in row_groups for row in rows.values() for result in row]
    ours: list[Table] | None = None
    words: list[Table] = []
    if isinstance(suite, TopicSuite):
        tables, words = [_printed_topics(suite)] if options.printed else [], topic_words(used)
    else:
        rules = Rules.of(options, suite.printed_table().p_threshold)
        groups = [group for group, _ in row_groups]
        pairs = [compare_with_paper(suite, group, r, missing, rules) for group, r in row_groups]
        tables = [pair.table for pair in pairs]
        ours = [pair.ours for pair in pairs]
        if not options.printed:
            tables, ours = [_like_the_paper(suite, groups, pairs)], None
    written = write(tables, used, out, options, ours=ours, read=read, progress=progress)
    return [replace(table, layout=options.layout) for table in (*tables, *words)], written


def _printed_topics(suite: TopicSuite) -> Table:
    table = as_printed(suite.printed_table())
    return replace(table, notes=(*table.notes, *suite.notes))


def _like_the_paper(
    suite: Suite, groups: Sequence[Group], comparisons: Sequence[PaperComparison]
) -> Table:
    """Our values alone, with the rows and columns of the paper's table."""
    parts: dict[str, Table] = {}
    for group, comparison in zip(groups, comparisons, strict=True):
        heading = name = group.corpus if group.instead_of else group.dataset
        number = 1
        while heading in parts:
            number += 1
            heading = f"{name} ({number})"
        parts[heading] = comparison.ours
    return side_by_side(suite.name, suite.summary, parts)


def write_counts(
    suite: CountSuite, out: Path, options: ReportOptions
) -> tuple[list[Table], list[Path]]:
    """Writes our parameter counts beside the paper's; returns the table and the files."""
    table = parameter_table(suite)
    return [table], write([table], (), out, without_plots(options), ours=())


@dataclass(frozen=True)
class _Newer:
    """What a system has had since it was trained.

    Attributes:
        options: those that it did not have yet.
        versions: of its code, then and now, where they differ.
    """

    options: tuple[str, ...] = ()
    versions: tuple[int, int] | None = None

    @classmethod
    def since(cls, trained: Mapping[str, Any], planned: Mapping[str, Any]) -> _Newer | None:
        """From the settings of a job, and those of today; None where an option has another value.

        An option that there was not yet cannot have been chosen otherwise.
        """
        had, wanted = trained.get("config") or {}, planned["config"]
        if fingerprint_of(had) != fingerprint_of({key: wanted.get(key) for key in had}):
            return None
        then, now = trained.get("version", planned["version"]), planned["version"]
        options = tuple(key for key in wanted if key not in had)
        return cls(options, (then, now) if then != now else None)

    @property
    def count(self) -> int:
        """How many changes those are."""
        then, now = self.versions or (0, 0)
        return len(self.options) + abs(now - then)

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands below a table: one note, or none where it would be trained so today."""
        parts = []
        if self.versions:
            parts.append("by version {} of its code, which is {} now".format(*self.versions))
        if self.options:
            parts.append(f"before there was {', '.join(self.options)}")
        return (f"trained {'; '.join(parts)}",) if parts else ()


@dataclass(frozen=True)
class _RowSorter:
    """Finds the row of a suite that a result belongs to."""

    suite: RunnableSuite
    group: Group
    systems: Mapping[str, System]
    preset: Preset | None

    def by_setting(self, results: Sequence[Result]) -> list[dict[str, list[Result]]]:
        """The results of each row, for each pair of training and test data."""
        settings: dict[str, dict[str, list[Result]]] = {}
        for row in self.suite.rows:
            for setting, found in self._of_row(results, row).items():
                settings.setdefault(setting, {})[row.name] = found
        return list(settings.values())

    def _of_row(self, results: Sequence[Result], row: SuiteRow) -> dict[str, list[Result]]:
        """For each setting what the latest code trained; what is not of today's has a note."""
        found: dict[str, dict[int, list[Result]]] = {}  # by setting, and by what is newer
        for result in results:
            newer = self._newer_than(result.job, row)
            if newer is not None:
                noted = replace(result, notes=(*result.notes, *newer.notes))
                ages = found.setdefault(comparison_key(result.job), {})
                ages.setdefault(newer.count, []).append(noted)
        return {setting: ages[min(ages)] for setting, ages in found.items()}

    def _newer_than(self, job: Job, row: SuiteRow) -> _Newer | None:
        """What the code has had since the job of this row was trained; None: it is no job of it."""
        system = self.systems.get(row.name)
        if (
            job.system != (system.name if system else row.system)
            or job.corpus != name_of(self.group.corpus)
            or job.decoding != Decoding.parse(row.decoding)
        ):
            return None
        if system is None:
            return _Newer()
        try:
            preset = self.preset or self._preset_called(job.preset)
        except UnknownName:  # a file of the user's own, which may be gone
            return _Newer()
        planned = training_settings(system, preset_for_row(preset, self.group, row))
        return _Newer.since(job.training, planned)

    def _preset_called(self, name: str) -> Preset:
        """The suite's own preset if it has that name, which may be a file that is called so."""
        of_suite = load_preset(self.suite.preset)
        return of_suite if of_suite.name == name else load_preset(name)

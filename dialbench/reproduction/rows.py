"""The results of a runs folder, sorted into the rows of a paper's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dialbench.corpora.base import name_of
from dialbench.errors import InputError, UnknownName
from dialbench.presets.preset import Preset
from dialbench.presets.preset import load as load_preset
from dialbench.records import Decoding, Job, Result, Table, fingerprint_of
from dialbench.reporting.defaults import DEFAULT_ALPHA
from dialbench.reporting.formats.names import without_plots
from dialbench.reporting.report import write
from dialbench.reporting.tables.merge_columns import side_by_side
from dialbench.reporting.tables.paper_comparison import Beside, beside
from dialbench.reporting.tables.printed import as_printed
from dialbench.reporting.tables.significance import Correction, Rules
from dialbench.reporting.tables.topics import topic_words
from dialbench.reproduction.parameters import counted
from dialbench.running.plan import recipe, setting_of, systems_of, under
from dialbench.suites.suite import CountSuite, Group, RunnableSuite, Suite, SuiteRow, TopicSuite
from dialbench.systems import Registry, System

if TYPE_CHECKING:
    from dialbench.reporting.page.conversations import Read


def compare(
    suite: Suite | TopicSuite,
    results: Sequence[Result],
    out: Path,
    formats: Sequence[str],
    *,
    alpha: float | None = None,
    correction: Correction = "none",
    preset: Preset | None = None,
    plugins: Sequence[Path] = (),
    read: Read | None = None,
    conversations: bool = True,
    printed: bool = True,
    standalone: bool = False,
) -> tuple[list[Table], list[Path]]:
    """Our table beside the paper's: one a corpus and setting, as files and as tables.

    Of topics there are two: the paper's, and ours, which every report on them has.

    Args:
        suite: what stands beside what.
        results: of a runs folder; those of other systems are left alone.
        out: where tables, and plots of our values, go.
        formats: of tables and plots.
        alpha: level of significance of our marks; by default the paper's, else `DEFAULT_ALPHA`.
        correction: as of any table.
        preset: what the results were made under; None looks it up by the name that they bear.
        plugins: files with further systems.
        read: gives the responses of a job; without it plots and page do without them.
        conversations: whether the page holds contexts and responses.
        printed: whether the paper's values stand beside ours; without them several corpora
            stand side by side, as in the paper.
        standalone: as of `report.write`.

    Raises:
        InputError: no row of the suite was run.
    """
    systems, missing = systems_of(suite, Registry(plugins))
    sorted_out = [
        (group, rows)
        for group in suite.groups
        for rows in _Sorter(suite, group, systems, preset).settings(results)
    ]
    if not sorted_out:
        raise InputError(
            f"no row of suite {suite.name} was run",
            where="RUNS",
            hint=f"Run dialbench run --suite {suite.name}, or give the corpus with --corpus.",
        )
    shown = [result for _, rows in sorted_out for row in rows.values() for result in row]
    ours: list[Table] | None = None
    words: list[Table] = []
    if isinstance(suite, TopicSuite):
        tables, words = [_as_printed(suite)] if printed else [], topic_words(shown)
    else:
        level = suite.printed_table().p_threshold or DEFAULT_ALPHA
        rules = Rules(level if alpha is None else alpha, correction)
        found = [beside(suite, group, rows, missing, rules) for group, rows in sorted_out]
        tables, ours = [made.table for made in found], [made.ours for made in found]
        if not printed:
            tables, ours = [_in_shape(suite, [group for group, _ in sorted_out], found)], None
    files = write(
        tables,
        shown,
        out,
        formats,
        ours=ours,
        read=read,
        conversations=conversations,
        standalone=standalone,
    )
    return [*tables, *words], files


def _as_printed(suite: TopicSuite) -> Table:
    table = as_printed(suite.printed_table())
    return replace(table, notes=(*table.notes, *suite.notes))


def _in_shape(suite: Suite, groups: Sequence[Group], found: Sequence[Beside]) -> Table:
    """Our values alone, in the shape of the paper's table."""
    parts: dict[str, Table] = {}
    for group, made in zip(groups, found, strict=True):
        heading = name = group.corpus if group.instead_of else group.dataset
        number = 1
        while heading in parts:
            number += 1
            heading = f"{name} ({number})"
        parts[heading] = made.ours
    return side_by_side(suite.name, suite.summary, parts)


def count(
    suite: CountSuite, out: Path, formats: Sequence[str], *, standalone: bool = False
) -> tuple[list[Table], list[Path]]:
    """Our parameter counts beside the paper's, as files and as a table."""
    table = counted(suite)
    return [table], write([table], (), out, without_plots(formats), ours=(), standalone=standalone)


@dataclass(frozen=True)
class _Sorter:
    """Finds the row of a result."""

    suite: RunnableSuite
    group: Group
    systems: Mapping[str, System]
    preset: Preset | None

    def settings(self, results: Sequence[Result]) -> list[dict[str, list[Result]]]:
        """The results of each row in turn, apart by what they learnt from and answered."""
        found: dict[str, dict[str, list[Result]]] = {}
        for row in self.suite.rows:
            for result in results:
                if self._belongs(result.job, row):
                    rows = found.setdefault(setting_of(result.job), {})
                    rows.setdefault(row.name, []).append(result)
        return list(found.values())

    def _belongs(self, job: Job, row: SuiteRow) -> bool:
        system = self.systems.get(row.name)
        return (
            job.system == (system.name if system else row.system)
            and job.corpus == name_of(self.group.corpus)
            and job.decoding == Decoding.parse(row.decoding)
            and (system is None or self._as_planned(job, system, row))
        )

    def _as_planned(self, job: Job, system: System, row: SuiteRow) -> bool:
        """Whether it was trained with the options it would be planned with today."""
        try:
            preset = self.preset or load_preset(job.preset)
        except UnknownName:  # a file of the user's own, which may be gone
            return True
        planned = recipe(system, under(preset, self.group, row))
        trained = {key: job.training.get(key) for key in planned}
        return fingerprint_of(trained) == fingerprint_of(planned)

"""Tables and plots of finished runs; nothing is run or scored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialbench.adapter import Progress
from dialbench.errors import InputError, UnknownName
from dialbench.records import Result, Table
from dialbench.reporting.options import ReportOptions, require_own_table
from dialbench.running.plan import comparison_key
from dialbench.store import baselines
from dialbench.store.layout import Store

if TYPE_CHECKING:
    from dialbench.reporting.page.conversations import Read
    from dialbench.reporting.pairwise import Pairwise
    from dialbench.reporting.results import Differences
    from dialbench.reporting.tables.rows import SeedGroup


def report(
    runs: Path | str = "results/runs",
    *,
    out: Path | str = "reports",
    progress: Progress | None = None,
    **options: Any,
) -> tuple[list[Table], list[Path]]:
    """Tables and plots of finished runs, from what they left; nothing is computed anew.

    Args:
        runs: a runs folder, or a baseline (FILE.json).
        out: where tables and plots go.
        progress: where to show how far it is.
        options: fields of `ReportOptions`.

    Returns:
        One table for each corpus and setting, and the files written.

    Raises:
        InputError: there are no results in `runs`.
        TypeError: there is no option of a name in `options`.
    """
    from dialbench.reporting.report import write

    chosen = ReportOptions(**options)
    results, read = _finished(runs)
    tables = _tables(results, chosen)
    return tables, write(tables, results, Path(out), chosen, read=read, progress=progress)


def cite(runs: Path | str = "results/runs", **options: Any) -> str:
    """A paragraph for the methods section of a paper on finished runs, and its BibTeX.

    Args:
        runs: a runs folder, or a baseline (FILE.json).
        options: fields of `ReportOptions`: those rows and columns are described.

    Raises:
        InputError: there are no results in `runs`.
        TypeError: there is no option of a name in `options`.
    """
    from dialbench.reporting.citation import methods

    results, _ = _finished(runs)
    chosen = ReportOptions(**options)
    described = [row for rows in _rows(results, chosen) for row in rows]
    systems = dict.fromkeys(result.job.system for row in described for result in row.results)
    return methods(_tables(results, chosen), systems)


def compare(
    runs: Path | str,
    a: str,
    b: str,
    *,
    corpus: str | None = None,
    by: str | None = None,
    seeds: Collection[int] | None = None,
) -> tuple[Differences, Pairwise | None]:
    """How a row of finished runs differs from another one that answered the same contexts.

    Args:
        runs: a runs folder, or a baseline (FILE.json).
        a: the label of a row, or the name of its system.
        b: likewise, the one it is compared with.
        corpus: whose contexts both answered, where there are several.
        by: the metric that decides which of two responses is better.
        seeds: the training runs that count; None: all.

    Returns:
        The differences of `a` less `b` in every metric, over those seeds; and the responses of the
        first seed of each, None where no metric has values of single responses, as in a baseline.

    Raises:
        InputError: there are no such rows, metric, seeds or corpus, several test sets that both
            answer, or `by` is of a baseline.
    """
    from dialbench.reporting.pairwise import Pairwise
    from dialbench.reporting.results import Differences
    from dialbench.scoring.paired import compare_results

    results, read = _finished(runs)
    if seeds is not None:
        results = _of_seeds(results, seeds)
    ours, base = _pair(results, a, b, corpus)
    differences = Differences(ours.label, base.label, compare_results(ours.results, base.results))
    if read is None:
        if by is not None:
            hint = "Leave it out, or name the runs."
            what = "a baseline has no values of single responses"
            raise InputError(what, where="--by", hint=hint)
        return differences, None
    first = ours.done[0], base.done[0]
    responses = read(first[0].job), read(first[1].job)
    return differences, Pairwise.of((ours.label, base.label), first, responses, by)


def _finished(runs: Path | str) -> tuple[list[Result], Read | None]:
    """The results of a runs folder or a baseline; and what reads responses, which the latter lacks.

    Raises:
        InputError: there are none, none is scored, or an earlier dialbench wrote the baseline.
        StorageError: a file is damaged.
    """
    path = Path(runs)
    if path.is_file():
        baseline = baselines.read(path)
        baseline.require_results(path)
        return baseline.results(), None
    store = Store(path)
    results = store.require_results()
    if not any(result.scores or result.status != "done" for result in results):
        hint = "Give the same command of run without --answers-only."
        raise InputError("none of its responses are scored", where=str(path), hint=hint)
    return results, store.read_responses


def _of_seeds(results: Sequence[Result], seeds: Collection[int]) -> list[Result]:
    known = sorted({result.job.seed for result in results})
    if unknown := sorted(set(seeds).difference(known)):
        what = f"no run has seed {', '.join(map(str, unknown))}"
        hint = f"There are {', '.join(map(str, known))}."
        raise InputError(what, where="--seeds", hint=hint)
    return [result for result in results if result.job.seed in seeds]


def _pair(
    results: Sequence[Result], a: str, b: str, corpus: str | None
) -> tuple[SeedGroup, SeedGroup]:
    """The two rows where both answer one test set."""
    from dialbench.reporting.tables import rows

    test_sets = rows.group_by_test_set(results)
    titles = rows.titles_of_test_sets(test_sets)
    if corpus is not None:
        corpora = dict.fromkeys([*(result.job.corpus for result in results), *titles])
        if corpus not in corpora:
            raise UnknownName.of("corpus", corpus, corpora, where="--corpus")
        chosen = [
            corpus in (title, test_set[0].job.corpus)
            for title, test_set in zip(titles, test_sets, strict=True)
        ]
        test_sets, titles = list(compress(test_sets, chosen)), list(compress(titles, chosen))
    grouped = [rows.seed_groups(test_set) for test_set in test_sets]
    for name, where in ((a, "A"), (b, "B")):
        _require_finished(name, results, where)
        rows.require_named(name, grouped, where=where)
    shared = [
        (title, groups)
        for title, groups in zip(titles, grouped, strict=True)
        if rows.rows_named(a, groups) and rows.rows_named(b, groups)
    ]
    if not shared:
        hint = "Run both with the same options."
        raise InputError("they did not answer the same contexts", where=f"{a}, {b}", hint=hint)
    if len(shared) > 1:
        what = f"both answer several test sets: {'; '.join(title for title, _ in shared)}"
        hint = f"Name one: --corpus '{shared[0][0]}'."
        raise InputError(what, where=f"{a}, {b}", hint=hint)
    ((_, groups),) = shared
    ours, base = (groups[rows.row_named(n, groups, where=w)] for n, w in ((a, "A"), (b, "B")))
    return ours, base


def _require_finished(name: str, results: Sequence[Result], where: str) -> None:
    """Checks that not all runs of a row that there is have failed or are under way."""
    from dialbench.reporting.tables import rows

    groups = rows.seed_groups(results)
    named = [groups[row] for row in rows.rows_named(name, groups)]
    if named and not any(group.done for group in named):
        hint = "Run its command again to finish it."
        raise InputError(f"{name} is {named[0].status}", where=where, hint=hint)


def _tables(results: Sequence[Result], chosen: ReportOptions) -> list[Table]:
    """One for each corpus and setting."""
    from dialbench.reporting.tables.build import build
    from dialbench.reporting.tables.rows import (
        require_named,
        require_rows,
        rows_named,
        seed_groups,
    )

    settings = _by_setting(results)
    names = list(dict.fromkeys(name for result in results for name in result.scores))
    grouped = [seed_groups(group) for group in settings]
    require_rows(grouped, chosen.rows or ())
    if chosen.baseline is not None:
        require_named(chosen.baseline, grouped, where="--baseline")
    tables = []
    for group, rows in zip(settings, grouped, strict=True):
        scored = {name for result in group for name in result.scores}
        metrics = names if chosen.columns else [name for name in names if name in scored]
        # Where it was not run, the others are tested against the best.
        known = chosen.baseline is None or rows_named(chosen.baseline, rows)
        options = chosen if known else replace(chosen, baseline=None)
        tables += build(group, metrics=metrics, options=options)
    return tables


def _by_setting(results: Sequence[Result]) -> list[list[Result]]:
    """The results that a table of their own shows, for each corpus and setting."""
    settings: dict[str, list[Result]] = {}
    for result in results:
        settings.setdefault(comparison_key(result.job), []).append(result)
    return list(settings.values())


def _rows(results: Sequence[Result], chosen: ReportOptions) -> Iterator[list[SeedGroup]]:
    """The rows of each table."""
    from dialbench.reporting.tables.rows import choose_rows, seed_groups

    for group in _by_setting(results):
        rows = seed_groups(group)
        yield rows if chosen.rows is None else choose_rows(rows, chosen.rows)


def report_suite(
    suite: str,
    runs: Path | str = "results/runs",
    *,
    corpus: str | None = None,
    out: Path | str = "reports",
    progress: Progress | None = None,
    **options: Any,
) -> tuple[list[Table], list[Path]]:
    """A paper's table, ours beside the printed one, from finished runs.

    Args:
        suite: its name or FILE.toml.
        runs: a runs folder, or a baseline (FILE.json); a suite that counts parameters needs none.
        corpus: where the suite was run in place of the paper's own corpora.
        out: where tables, and plots of our values, go.
        progress: where to show how far it is.
        options: fields of `ReportOptions`.

    Returns:
        One table for each corpus and setting, and the files written.

    Raises:
        InputError: there is no such suite, or no row of it in `runs`.
        TypeError: there is no option of a name in `options`.
    """
    from dialbench.reproduction import rows as reproduction
    from dialbench.suites.suite import CountSuite, load_suite

    loaded, chosen = load_suite(suite), ReportOptions(**options)
    require_own_table(chosen)
    if isinstance(loaded, CountSuite):
        return reproduction.write_counts(loaded, Path(out), chosen)
    loaded = loaded.on(corpus) if corpus else loaded
    results, read = _finished(runs)
    return reproduction.write_comparison(
        loaded, results, Path(out), chosen, read=read, progress=progress
    )

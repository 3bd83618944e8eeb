"""Tables and plots of finished runs; nothing is run or scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialbench.adapter import Progress
from dialbench.records import Result, Table
from dialbench.reporting.options import ReportOptions, require_own_table
from dialbench.running.plan import comparison_key
from dialbench.store.layout import Store


def report(
    runs: Path | str = "results/runs",
    *,
    out: Path | str = "reports",
    progress: Progress | None = None,
    **options: Any,
) -> tuple[list[Table], list[Path]]:
    """Tables and plots of finished runs, from what they left; nothing is computed anew.

    Args:
        runs: a runs folder.
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
    store = Store(Path(runs))
    results = store.require_results()
    tables = _tables(results, chosen)
    read = store.read_responses
    return tables, write(tables, results, Path(out), chosen, read=read, progress=progress)


def cite(runs: Path | str = "results/runs", **options: Any) -> str:
    """A paragraph for the methods section of a paper on finished runs, and its BibTeX.

    Args:
        runs: a runs folder.
        options: fields of `ReportOptions`: those rows and columns are described.

    Raises:
        InputError: there are no results in `runs`.
        TypeError: there is no option of a name in `options`.
    """
    from dialbench.reporting.citation import methods

    results = Store(Path(runs)).require_results()
    tables = _tables(results, ReportOptions(**options))
    return methods(tables, list(dict.fromkeys(result.job.system for result in results)))


def _tables(results: Sequence[Result], chosen: ReportOptions) -> list[Table]:
    """One for each corpus and setting."""
    from dialbench.reporting.tables.results import build
    from dialbench.reporting.tables.rows import require_rows, seed_groups

    settings: dict[str, list[Result]] = {}
    for result in results:
        settings.setdefault(comparison_key(result.job), []).append(result)
    names = list(dict.fromkeys(name for result in results for name in result.scores))
    require_rows([seed_groups(group) for group in settings.values()], chosen.rows or ())
    tables = []
    for group in settings.values():
        scored = {name for result in group for name in result.scores}
        metrics = names if chosen.columns else [name for name in names if name in scored]
        tables += build(group, metrics=metrics, options=chosen)
    return tables


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
        runs: a runs folder; a suite that counts parameters needs none.
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
    store = Store(Path(runs))
    results, read = store.require_results(), store.read_responses
    return reproduction.write_comparison(
        loaded, results, Path(out), chosen, read=read, progress=progress
    )

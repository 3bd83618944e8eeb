"""Tables and plots of finished runs; nothing is run or scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialbench.records import Result, Table
from dialbench.reporting.defaults import DEFAULT_ALPHA
from dialbench.reporting.formats.names import FORMATS
from dialbench.running.plan import comparison_key
from dialbench.store.layout import Store

if TYPE_CHECKING:
    from dialbench.reporting.tables.significance import Correction


def report(
    runs: Path | str = "results/runs",
    *,
    out: Path | str = "reports",
    formats: Sequence[str] = FORMATS,
    alpha: float = DEFAULT_ALPHA,
    correction: Correction = "none",
    conversations: bool = True,
    standalone: bool = False,
) -> tuple[list[Table], list[Path]]:
    """Tables and plots of finished runs, from what they left; nothing is computed anew.

    Args:
        runs: a runs folder.
        out: where tables and plots go.
        formats: of tables (tex, md, csv, txt) and plots (png, pdf), and html for one page with
            all of them.
        alpha: level of significance of the marks.
        correction: "holm" adjusts p-values within a column.
        conversations: whether that page holds contexts and responses.
        standalone: whether every table is typeset as a PDF too, which needs TeX.

    Returns:
        One table for each corpus and setting, and the files written.

    Raises:
        InputError: there are no results in `runs`.
    """
    from dialbench.reporting.report import write
    from dialbench.reporting.tables.results import build

    store = Store(Path(runs))
    results = store.require_results()
    settings: dict[str, list[Result]] = {}
    for result in results:
        settings.setdefault(comparison_key(result.job), []).append(result)
    tables = []
    for group in settings.values():
        names = dict.fromkeys(name for result in group for name in result.scores)
        tables += build(group, metrics=list(names), alpha=alpha, correction=correction)
    files = write(
        tables,
        results,
        Path(out),
        formats,
        read=store.read_responses,
        conversations=conversations,
        standalone=standalone,
    )
    return tables, files


def report_suite(
    suite: str,
    runs: Path | str = "results/runs",
    *,
    corpus: str | None = None,
    out: Path | str = "reports",
    formats: Sequence[str] = FORMATS,
    alpha: float | None = None,
    correction: Correction = "none",
    conversations: bool = True,
    printed: bool = True,
    standalone: bool = False,
) -> tuple[list[Table], list[Path]]:
    """A paper's table, ours beside the printed one, from finished runs.

    Args:
        suite: its name or FILE.toml.
        runs: a runs folder; a suite that counts parameters needs none.
        corpus: where the suite was run in place of the paper's own corpora.
        out: where tables, and plots of our values, go.
        formats: as of `report`.
        alpha: level of significance of our marks; by default the paper's, else `DEFAULT_ALPHA`.
        correction: as of `report`.
        conversations: as of `report`.
        printed: whether the paper's values stand beside ours; without them several corpora
            stand side by side, as in the paper.
        standalone: as of `report`.

    Returns:
        One table for each corpus and setting, and the files written.

    Raises:
        InputError: there is no such suite, or no row of it in `runs`.
    """
    from dialbench.reproduction import rows as reproduction
    from dialbench.suites.suite import CountSuite, load

    loaded = load(suite)
    if isinstance(loaded, CountSuite):
        return reproduction.write_counts(loaded, Path(out), formats, standalone=standalone)
    loaded = loaded.on(corpus) if corpus else loaded
    store = Store(Path(runs))
    return reproduction.write_comparison(
        loaded,
        store.require_results(),
        Path(out),
        formats,
        alpha=alpha,
        correction=correction,
        read=store.read_responses,
        conversations=conversations,
        printed=printed,
        standalone=standalone,
    )

"""What a run, a scoring or a comparison came to: tables to look at, and frames to go on with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialbench.errors import UnknownName
from dialbench.extras import require_installed
from dialbench.records import Result, Score, Table
from dialbench.reporting.formats.render import render
from dialbench.reporting.tables.brief import brief
from dialbench.reporting.tables.rows import row_named, seed_groups
from dialbench.reporting.tables.scores import comparison_of

if TYPE_CHECKING:
    from pandas import DataFrame


NO_CORPUS = "scores"
"""What stands for the corpus of responses that are of none."""


class _Shown:
    """Something made of tables: text where it is printed, HTML in a notebook."""

    tables: Sequence[Table]

    def __str__(self) -> str:
        return "\n".join(
            render(brief(table, rest="In tables and to_frame()"), "txt") for table in self.tables
        )

    def _repr_html_(self) -> str:
        layouts = ((table, replace(table.layout, notes="short")) for table in self.tables)
        return "\n".join(render(replace(table, layout=short), "html") for table, short in layouts)


@dataclass(frozen=True, repr=False)
class Results(_Shown):
    """The scores of systems, whether a run or files gave their responses.

    `results["seq2seq"]` are those of one row, `results.on("demo")` those of one corpus.

    Attributes:
        results: one for each system, corpus, seed and decoding.
        tables: one a corpus. A run's hold all comparable results of its folder, those of a suite
            stand beside the paper's.
        files: what was written for people.
        skipped: systems that could not be loaded, with the reason.
    """

    results: tuple[Result, ...]
    tables: tuple[Table, ...]
    files: tuple[Path, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results that did not end well."""
        return tuple(result for result in self.results if result.status != "done")

    def on(self, corpus: str) -> Results:
        """The results on one corpus.

        Raises:
            UnknownName: there are none.
        """
        corpora = {result.job.corpus for result in self.results}
        if corpus not in corpora:
            raise UnknownName.of("corpus", corpus, corpora, where="corpus")
        results = tuple(result for result in self.results if result.job.corpus == corpus)
        tables = tuple(table for table in self.tables if table.name == corpus)
        return replace(self, results=results, tables=tables)

    def __getitem__(self, row: str) -> Results:
        """The results of one row, by its label or, if it has no other, by its system.

        Raises:
            InputError: there is no such row, or the system has several.
        """
        groups = seed_groups(self.results)
        group = groups[row_named(row, groups, where="row")]
        alone = (
            replace(table, rows=tuple(row for row in table.rows if row.label == group.label))
            for table in self.tables
        )
        return replace(self, results=group.results, tables=tuple(t for t in alone if t.rows))

    def to_frame(self) -> DataFrame:
        """A row for each value, nothing rounded.

        Returns:
            Columns `system`, `corpus`, `seed`, `metric`, `value`, `low` and `high` (the 95 %
            interval), `n` (responses that the value rests on), `signature`, `decoding` and
            `reason` (why there is no value). Finished responses have neither seed nor decoding.

        Raises:
            InputError: pandas is not installed.
        """
        rows = [
            {**_job_cells(result), "metric": name, **_score_cells(score)}
            for result in self.results
            for name, score in result.scores.items()
        ]
        return _frame(rows, _COLUMNS).astype({"seed": "Int64"})

    def __repr__(self) -> str:
        labels = ", ".join(group.label for group in seed_groups(self.results))
        return f"<Results of {labels}>"


@dataclass(frozen=True, repr=False)
class Differences(_Shown):
    """How a system differs from another one, metric by metric.

    Attributes:
        system: its name.
        base: that of the other.
        metrics: for each metric the fields of `dialbench.stats.compare.Comparison` as plain
            values, and a `reason` where there is no p.
    """

    system: str
    base: str
    metrics: Mapping[str, Mapping[str, Any]]

    @property
    def tables(self) -> tuple[Table, ...]:  # type: ignore[override]
        """One table, a row a metric."""
        return (comparison_of(self.system, self.base, self.metrics),)

    def to_frame(self) -> DataFrame:
        """A row for each metric, nothing rounded.

        Returns:
            Columns `metric`, `difference`, `low` and `high` (its 95 % interval), `p`, `test`,
            `effect` (Cohen's d), `superiority`, `wilcoxon`, `needed`, `dialogues` and `reason`
            (why there is no p).

        Raises:
            InputError: pandas is not installed.
        """
        rows = [{"metric": name, **_difference_cells(v)} for name, v in self.metrics.items()]
        return _frame(rows, _DIFFERENCE_COLUMNS)

    def __repr__(self) -> str:
        return f"<Differences between {self.system} and {self.base}>"


_COLUMNS = (
    *("system", "corpus", "seed", "metric", "value", "low", "high", "n", "signature"),
    *("decoding", "reason"),
)
_DIFFERENCE_COLUMNS = (
    *("metric", "difference", "low", "high", "p", "test", "effect", "superiority", "wilcoxon"),
    *("needed", "dialogues", "reason"),
)


def _frame(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> DataFrame:
    require_installed("pandas", where="to_frame")
    from pandas import DataFrame

    return DataFrame(rows, columns=list(columns))


def _job_cells(result: Result) -> dict[str, Any]:
    job = result.job
    of_run = {"seed": job.seed, "decoding": str(job.decoding)} if job.preset else {}
    corpus = None if job.corpus == NO_CORPUS else job.corpus
    return {"system": job.system, "corpus": corpus, **of_run}


def _score_cells(score: Score) -> dict[str, Any]:
    low, high = score.interval or (math.nan, math.nan)
    return {
        "value": score.value,
        "low": low,
        "high": high,
        "n": score.n,
        "signature": score.signature,
        "reason": score.reason,
    }


def _difference_cells(values: Mapping[str, Any]) -> dict[str, Any]:
    low, high = values["difference"]["interval"] or (math.nan, math.nan)
    numbers = {name: v["value"] if isinstance(v, dict) else v for name, v in values.items()}
    return {"reason": "", **numbers, "low": low, "high": high}

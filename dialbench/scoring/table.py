"""Finished responses as a report: the table, marks and notes of runs, from files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialbench.adapter import Progress
from dialbench.corpora.base import name_of
from dialbench.errors import InputError, UnknownName
from dialbench.files.distinct import require_kept
from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.settings import MetricSettings
from dialbench.records import Decoding, Job, Responses, Result, Score, Table
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.report import write
from dialbench.reporting.results import NO_CORPUS, Results
from dialbench.reporting.tables.build import build
from dialbench.reporting.tables.columns import has_value
from dialbench.reporting.tables.rows import require_rows, seed_groups
from dialbench.reporting.tables.scores import comparison_of
from dialbench.reporting.tables.significance import Rules
from dialbench.scoring.options import InputOptions
from dialbench.scoring.paired import mismatch
from dialbench.scoring.profile import profile
from dialbench.scoring.score import FileScoring
from dialbench.scoring.sources import Files, Source
from dialbench.text.cleaning import slug

_GUARD = "different"
_NO_CAPTION = "Scores of finished responses"


def score_report(
    files: Files,
    inputs: InputOptions,
    report: ReportOptions,
    *,
    out: Path | None = None,
    progress: Progress | None = None,
    comparable: bool = False,
    **options: Any,
) -> Results:
    """Scores finished responses and makes the table that a run of them would have.

    Rows that do not answer the examples of the first one, or of the baseline, are not ranked.

    Args:
        files: as of `score`, or responses in memory.
        inputs: what they answer.
        report: formats and marks.
        out: where tables, plots and page go; None writes nothing.
        progress: where to show how far it is.
        comparable: whether to keep what tests need of a system alone too.
        options: as of `score`: train, cache, paired_with and fields of `ScoringOptions`.

    Returns:
        The results, their table, one more for each file with `paired_with`, and the files written.

    Raises:
        InputError: a file, name or argument cannot be used, or the baseline answers other
            examples.
        StorageError: the disk refuses.
    """
    scoring = FileScoring.of(files, inputs, progress=progress, **options)
    rules, corpus = Rules.of(report), name_of(inputs.corpus) if inputs.corpus else ""
    if out is not None:
        named = [*(source.path for source in scoring.systems), *map(Path, inputs.files)]
        require_kept(named, out, slug(corpus or NO_CORPUS))
    names = [metric.name for metric in scoring.metrics]
    guarded = scoring if _GUARD in names else replace(scoring, metrics=_with_guard(scoring.metrics))
    first = _first(scoring.systems, rules.baseline)
    comparable = comparable or len(scoring.systems) > 1
    results = [
        _result(source, guarded.scores(source, comparable=comparable), first, corpus, rules)
        for source in scoring.systems
    ]
    notes = scoring.corpus.notes if scoring.corpus else ()
    table = table_of(results, names, notes, report)
    tables, written = [table if options.get("metrics") else without_empty_columns(table)], []
    if out is not None:
        written = _written(tables, results, scoring, out, report, progress)
    if base := scoring.base:
        for source, result in zip(scoring.systems, results, strict=True):
            differences = guarded.differences(source, result.scores)
            asked = {name: differences[name] for name in names}
            tables.append(comparison_of(source.system, base.system, asked))
    return Results(tuple(results), tuple(tables), tuple(written))


def table_of(
    results: Sequence[Result],
    names: Sequence[str],
    notes: Sequence[str] = (),
    options: ReportOptions | None = None,
) -> Table:
    """The table of scores that belong to no run.

    Args:
        results: one a system, all of one corpus.
        names: of the metrics.
        notes: of the corpus.
        options: rows, columns, tests and how the table is set.
    """
    options = options or ReportOptions()
    require_rows([seed_groups(results)], options.rows or ())
    corpus = results[0].job.corpus
    (table,) = build(results, metrics=names, corpus_notes={corpus: notes}, options=options)
    return replace(table, caption=_NO_CAPTION) if corpus == NO_CORPUS else table


def without_empty_columns(table: Table) -> Table:
    """The table without metrics that no system has a value in; its notes say why."""
    valued = [column for column in table.columns if has_value(table, column)]
    return replace(table, columns=tuple(valued or table.columns))


def result_of(
    system: str,
    corpus: str | None,
    scores: Mapping[str, Score],
    *,
    examples: str = "",
    problem: InputError | None = None,
    notes: Sequence[str] = (),
) -> Result:
    """Scores that belong to no run as the result of one.

    Args:
        system: what it is called.
        corpus: what it responded to, if known.
        scores: by metric.
        examples: names the test set.
        problem: why it cannot be compared with the others.
        notes: what else the table says of it.
    """
    count = max((score.n for score in scores.values()), default=0)
    answering = {"data": examples, "examples": count}
    job = Job(system, corpus or NO_CORPUS, 0, Decoding(), "", answering=answering)
    unlike = () if problem is None else (f"not compared: {problem.where}: {problem.what}",)
    return Result(job, "done", scores, ranked=problem is None, notes=(*notes, *unlike))


def _with_guard(metrics: Sequence[Metric[Any]]) -> list[Metric[Any]]:
    # Always counted: a system with hardly any different responses is best of nothing.
    return [*registry.create([_GUARD], MetricSettings(metrics[0].tokenizer)), *metrics]


def _first(systems: Sequence[Source], baseline: str | None) -> Source:
    """The system whose examples are those of the table."""
    by_name = {source.system: source for source in systems}
    if len(by_name) < len(systems):
        names = [source.system for source in systems]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("it is named twice", where=twice, hint="Name every file once.")
    if baseline is None:
        return systems[0]
    if baseline not in by_name:
        raise UnknownName.of("system", baseline, by_name, where="--baseline")
    return by_name[baseline]


def _result(
    source: Source, scores: Mapping[str, Score], first: Source, corpus: str, rules: Rules
) -> Result:
    problem = None if source is first else mismatch(first, source)
    if problem and rules.baseline:
        raise problem
    examples = (source if problem else first).examples_checksum()
    return result_of(
        source.system, corpus, scores, examples=examples, problem=problem, notes=source.notes
    )


def _written(
    tables: Sequence[Table],
    results: Sequence[Result],
    scoring: FileScoring,
    out: Path,
    report: ReportOptions,
    progress: Progress | None,
) -> list[Path]:
    sources = {source.system: source for source in scoring.systems}
    tokenizer = scoring.metrics[0].tokenizer

    def read(job: Job) -> Responses:
        return _responses(job, sources[job.system])

    profiled = [replace(result, profile=profile(read(result.job), tokenizer)) for result in results]
    return write(tables, profiled, out, report, read=read, progress=progress)


def _responses(job: Job, source: Source) -> Responses:
    examples, texts, alternatives = [], [], []
    for example, text, *others in source.responses():
        examples.append(example)
        texts.append(text)
        alternatives.append(tuple(others))
    return Responses(job, examples, texts, 0.0, "", alternatives)

"""The main line of a run: plan, train and answer, score, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialbench.adapter import Progress
from dialbench.records import Result, Table
from dialbench.reporting.format_names import FORMATS
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.results import Results
from dialbench.running import local, processes
from dialbench.running.agenda import Agenda
from dialbench.running.options import RunOptions, resolved_device
from dialbench.running.plan import Plan, Request, comparison_key
from dialbench.running.progress import Board
from dialbench.running.tracking import TrackedDisplay, find_trackers
from dialbench.running.worker import Worker
from dialbench.store.layout import Store
from dialbench.systems import skip_warnings

if TYPE_CHECKING:
    from dialbench.running.scorer import Scorer
    from dialbench.scoring.options import ScoringOptions


def run(
    request: Request | None = None,
    *,
    out: Path | str = "results/runs",
    scoring: ScoringOptions | None = None,
    formats: Sequence[str] = FORMATS,
    **options: Any,
) -> Results:
    """Trains, answers, scores, tests and reports; does only what is not done yet.

    Args:
        request: systems, corpora, preset, seeds, decodings; by default all on the demo corpus.
        out: the runs folder; tables and plots go to its folder `report`.
        scoring: metrics and their resources.
        formats: as of `report`.
        options: fields of `RunOptions`: device, jobs, deadline, overwrite, answers_only, progress,
            tracker.

    Returns:
        What it came to; a failed system is a failed result, not an exception.

    Raises:
        DialbenchError: the request cannot be met, or the disk refuses.
        TypeError: there is no option of a name in `options`.
    """
    request, chosen = request or Request(), RunOptions(**options)
    shown = ReportOptions(formats)
    until = None if chosen.deadline is None else time.time() + chosen.deadline
    trackers = find_trackers(chosen.tracker)
    plan = Plan.of(request)
    store = Store(Path(out))
    with (
        store.writing(),
        Board(chosen.progress) as board,
        TrackedDisplay(board, trackers, store.root) as display,
    ):
        for warning in skip_warnings(plan.skipped):
            board.warn(warning)
        scorers = [] if chosen.answers_only else _scorers(plan, scoring, request, store, board)
        worker = Worker(
            store, resolved_device(chosen.device), display, chosen.overwrite, deadline=until
        )
        # Not of what is still to do: a resumed run computes with as many threads as it began with.
        jobs = chosen.jobs or processes.jobs_at_once(len(plan.tasks), worker.device)
        pending = worker.pending(plan.tasks)
        board.expect(Agenda(worker.trainings_of(pending), jobs))
        if jobs == 1:
            local.run(pending, worker)
        else:
            processes.run(pending, worker, request, jobs)
        for scorer in scorers:
            scorer.score(plan, lambda job: display.results(store.results(None, [job])))
        results = store.results(None, [task.job for task in plan.tasks])
        with board.job("report") as progress:
            tables, files = _report(plan, request, store, results, scorers, shown, progress)
    return Results(tuple(results), tuple(tables), tuple(files), plan.skipped)


def _scorers(
    plan: Plan, options: ScoringOptions | None, request: Request, store: Store, board: Board
) -> list[Scorer]:
    # Made before anything is trained: what is missing shows now, not after hours.
    from dialbench.running.scorer import Scorer
    from dialbench.scoring.options import ScoringOptions

    options = options or ScoringOptions(**request.scoring)
    scorers = [Scorer(dataset, options, store, board) for dataset in plan.datasets]
    missing: dict[str, dict[str, None]] = {}  # reason -> metrics, each once
    for metric in (metric for scorer in scorers for metric in scorer.metrics):
        if metric.missing:
            missing.setdefault(metric.missing, {})[metric.name] = None
    for reason, names in missing.items():
        board.warn(f"{', '.join(names)} will not be available: {reason}")
    return scorers


def _report(
    plan: Plan,
    request: Request,
    store: Store,
    results: Sequence[Result],
    scorers: Sequence[Scorer],
    options: ReportOptions,
    progress: Progress,
) -> tuple[list[Table], list[Path]]:
    if not scorers:
        return [], []
    from dialbench.reporting.report import write
    from dialbench.reporting.tables.build import build

    shown = [*results, *_comparable(plan, store)]
    if request.suite:
        from dialbench.reproduction.rows import write_comparison

        return write_comparison(
            request.suite,
            shown,
            store.root / "report",
            options,
            plan=plan,
            read=store.read_responses,
            progress=progress,
        )
    tables = build(shown, metrics=scorers[0].names)
    folder = store.root / "report"
    read = store.read_responses
    return tables, write(tables, shown, folder, options, read=read, progress=progress)


def _comparable(plan: Plan, store: Store) -> list[Result]:
    # Rows of earlier runs on the same examples stand in the same table, unless the system has
    # since been planned with other options.
    settings = {comparison_key(task.job) for task in plan.tasks}
    planned = {task.job.fingerprint for task in plan.tasks}
    training = {(task.job.system, task.job.corpus): task.job.training for task in plan.tasks}
    return [
        result
        for result in store.results()
        if (job := result.job).fingerprint not in planned
        and comparison_key(job) in settings
        and training.get((job.system, job.corpus), job.training) == job.training
    ]

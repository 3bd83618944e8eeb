"""The main line of a run: plan, train and answer, score, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dialbench.adapter import Adapter, Registry
from dialbench.engines import local, processes
from dialbench.engines.work import Overwrite, Worker
from dialbench.errors import InputError
from dialbench.plan import Dataset, Plan, Request, setting_of
from dialbench.progress import Board, Mode
from dialbench.records import Job, Result, Score, Table
from dialbench.reporting.formats import FORMATS
from dialbench.store.layout import Store

if TYPE_CHECKING:
    from dialbench.measures import ScoringSettings
    from dialbench.reporting.marks import Correction


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        results: of every job of the run.
        tables: one a corpus, with all comparable results of the runs folder; those of a suite
            stand beside the paper's.
        files: what was written for people.
        skipped: systems that could not be loaded, with the reason.
    """

    results: tuple[Result, ...]
    tables: tuple[Table, ...]
    files: tuple[Path, ...]
    skipped: dict[str, str]

    @property
    def failed(self) -> tuple[Result, ...]:
        """The jobs that did not end well."""
        return tuple(result for result in self.results if result.status != "done")


def run(
    request: Request | None = None,
    *,
    out: Path | str = "results/runs",
    device: str = "auto",
    jobs: int | None = 1,
    scoring: ScoringSettings | None = None,
    overwrite: Overwrite = "missing",
    progress: Mode = "none",
    formats: Sequence[str] = FORMATS,
    answers_only: bool = False,
    deadline: float | None = None,
) -> Outcome:
    """Trains, answers, scores, tests and reports; does only what is not done yet.

    Args:
        request: systems, corpora, preset, seeds, decodings; by default all on the demo corpus.
        out: the runs folder; tables and plots go to its folder `report`.
        device: auto, cpu or cuda.
        jobs: how many go on at once, each in a process of its own that shares the cores with the
            others; 1 stays in this process, None takes what suits the machine.
        scoring: measures and their resources.
        overwrite: whether finished or failed jobs are done again.
        progress: rich, plain or none.
        formats: as of `report`.
        answers_only: stop before scoring, which needs more packages than training does.
        deadline: seconds after which training stops; each system answers with its best epoch.

    Returns:
        What it came to; a failed system is a failed result, not an exception.

    Raises:
        DialbenchError: the request cannot be met, or the disk refuses.
    """
    request = request or Request()
    until = None if deadline is None else time.time() + deadline
    plan = Plan.of(request)
    store = Store(Path(out))
    with store.writing(), Board(progress) as board:
        for name, reason in plan.skipped.items():
            board.say(f"warning: {name} is skipped: {reason}")
        scorers = [] if answers_only else _scorers(plan, scoring, request, store, board)
        worker = Worker(store, _device(device), board, overwrite, deadline=until)
        _do(plan, request, worker, jobs)
        for scorer in scorers:
            scorer.score(plan, board)
        results = store.results(None, [task.job for task in plan.tasks])
        tables, files = _report(plan, request, store, results, scorers, formats)
    return Outcome(tuple(results), tuple(tables), tuple(files), plan.skipped)


def report(
    runs: Path | str = "results/runs",
    *,
    out: Path | str = "reports",
    formats: Sequence[str] = FORMATS,
    alpha: float = 0.01,
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
    from dialbench.reporting.tables import build

    store = Store(Path(runs))
    results = _results(store)
    settings: dict[str, list[Result]] = {}
    for result in results:
        settings.setdefault(setting_of(result.job), []).append(result)
    tables = []
    for group in settings.values():
        measures = dict.fromkeys(name for result in group for name in result.scores)
        tables += build(group, metrics=list(measures), alpha=alpha, correction=correction)
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
        alpha: level of significance of our marks; by default the paper's, else 0.01.
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
    from dialbench import reproduction
    from dialbench.suites import CountSuite, load

    asked = load(suite)
    if isinstance(asked, CountSuite):
        return reproduction.count(asked, Path(out), formats, standalone=standalone)
    asked = asked.on(corpus) if corpus else asked
    store = Store(Path(runs))
    return reproduction.compare(
        asked,
        _results(store),
        Path(out),
        formats,
        alpha=alpha,
        correction=correction,
        read=store.read_responses,
        conversations=conversations,
        printed=printed,
        standalone=standalone,
    )


def _results(store: Store) -> list[Result]:
    results = store.results()
    if not results:
        raise InputError(
            "there are no results",
            where=str(store.root),
            hint="Name a folder that `run` wrote to.",
        )
    return results


def load_adapter(name: str, plugins: Sequence[Path] = ()) -> type[Adapter]:
    """The adapter class of a system, by the name that `--models` takes."""
    return Registry(plugins).get(name, where="name")


class _Scorer:
    """Scores what a plan answered on one corpus, unless it is scored already."""

    def __init__(self, dataset: Dataset, settings: ScoringSettings, store: Store) -> None:
        from dialbench.measures import build_metrics, whole_training_split
        from dialbench.metrics.told import MEASURES
        from dialbench.scoring import scoring_key

        # Always counted: tables crown no system that gives hardly any different responses.
        asked = settings.metrics
        self.names = asked if "different" in asked else ("different", *asked)
        self.dataset, self.store, settings = dataset, store, replace(settings, metrics=self.names)
        self.told = [MEASURES[name] for name in self.names if name in MEASURES]
        whole = whole_training_split(dataset.corpus)
        self.metrics = build_metrics(
            settings.of_responses(),
            dataset.train if dataset.learnt_from else whole,
            store.root / "vectors",
            store.root / "judged",
            vector_text=whole,
        )
        self.key = scoring_key(self.metrics, self.told)

    def score(self, plan: Plan, board: Board) -> None:
        """Scores every answered job of the plan on this corpus."""
        answered = (task.job for task in plan.tasks if task.dataset is self.dataset)
        jobs = [
            job
            for job in answered
            if self.store.has_responses(job) and self.store.read_scores(job, self.key) is None
        ]
        if not jobs:
            return
        label, start = f"scores on {self.dataset.corpus.name}", time.monotonic()
        board.update(label, "score", {"step": 0, "steps": len(jobs)})
        for done, job in enumerate(jobs, 1):
            self.store.write_scores(job, self._scores(job), self.key)
            board.update(label, "score", {"step": done, "steps": len(jobs)})
        board.done(label, time.monotonic() - start)

    def _scores(self, job: Job) -> dict[str, Score]:
        from dialbench.evaluate import score_responses

        responses, (result,) = self.store.read_responses(job), self.store.results(None, [job])
        scores = score_responses(responses.answers(), self.metrics)
        scores |= {measure.name: measure.score(result, responses) for measure in self.told}
        return {name: scores[name] for name in self.names}


def _scorers(
    plan: Plan, settings: ScoringSettings | None, request: Request, store: Store, board: Board
) -> list[_Scorer]:
    # Made before anything is trained: what is missing shows now, not after hours.
    from dialbench.measures import ScoringSettings

    settings = settings or ScoringSettings.of(**request.scoring)
    scorers = [_Scorer(dataset, settings, store) for dataset in plan.datasets]
    for metric in {metric.name: metric for scorer in scorers for metric in scorer.metrics}.values():
        if metric.missing:
            board.say(f"warning: {metric.name} will not be available: {metric.missing}")
    return scorers


def _do(plan: Plan, request: Request, worker: Worker, jobs: int | None) -> None:
    # Not of what is still to do: a resumed run computes with as many threads as it began with.
    jobs = jobs or processes.jobs_at_once(len(plan.tasks), worker.device)
    if jobs == 1:
        local.run(plan.tasks, worker)
    else:
        processes.run(plan.tasks, worker, request, jobs)


def _device(name: str) -> str:
    if name == "cpu":
        return name
    from dialbench.neural.devices import resolve

    return resolve(name)


def _report(
    plan: Plan,
    request: Request,
    store: Store,
    results: Sequence[Result],
    scorers: Sequence[_Scorer],
    formats: Sequence[str],
) -> tuple[list[Table], list[Path]]:
    if not scorers:
        return [], []
    from dialbench.reporting.report import write
    from dialbench.reporting.tables import build

    shown = [*results, *_comparable(plan, store)]
    if request.suite:
        from dialbench.reproduction import compare

        return compare(
            request.suite,
            shown,
            store.root / "report",
            formats,
            preset=plan.preset,
            plugins=request.plugins,
            read=store.read_responses,
        )
    tables = build(shown, metrics=scorers[0].names)
    folder = store.root / "report"
    return tables, write(tables, shown, folder, formats, read=store.read_responses)


def _comparable(plan: Plan, store: Store) -> list[Result]:
    # Rows of earlier runs on the same examples stand in the same table, unless the system has
    # since been planned with other options.
    settings = {setting_of(task.job) for task in plan.tasks}
    planned = {task.job.fingerprint for task in plan.tasks}
    training = {(task.job.system, task.job.corpus): task.job.training for task in plan.tasks}
    return [
        result
        for result in store.results()
        if (job := result.job).fingerprint not in planned
        and setting_of(job) in settings
        and training.get((job.system, job.corpus), job.training) == job.training
    ]

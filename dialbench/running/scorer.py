"""Scores the responses of a plan's jobs, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dialbench.corpora.training_text import whole_training_split
from dialbench.metrics import registry
from dialbench.metrics.system import SYSTEM_METRICS
from dialbench.records import Job, Responses, Score
from dialbench.running.plan import Dataset, Plan
from dialbench.running.progress import Board, JobProgress
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.meter import Meter
from dialbench.scoring.options import ScoringOptions
from dialbench.scoring.profile import profile
from dialbench.scoring.resources import build_metrics, usual_metrics
from dialbench.scoring.score import scoring_key
from dialbench.store.layout import Store


class Scorer:
    """Scores the responses of a plan on one corpus that are not scored yet."""

    def __init__(
        self, dataset: Dataset, options: ScoringOptions, store: Store, board: Board
    ) -> None:
        # Always counted: no table marks as best a system with hardly any different responses.
        chosen = options.metrics
        names = usual_metrics(dataset.samples) if chosen is None else tuple(chosen)
        if names == ("all",):
            names = (*registry.names(), *SYSTEM_METRICS)
        self.names = names if "different" in names else ("different", *names)
        self.dataset, self.store, self.tokenizer = dataset, store, options.tokenizer
        self.system_metrics = [
            SYSTEM_METRICS[name] for name in self.names if name in SYSTEM_METRICS
        ]
        self._label, self._board = f"scores on {dataset.corpus.name}", board
        self._meter = Meter(JobProgress(board, self._label))
        whole = whole_training_split(dataset.corpus)
        self.metrics = build_metrics(
            replace(options, metrics=[n for n in self.names if n not in SYSTEM_METRICS]),
            dataset.train if dataset.is_trained_on else whole,
            store.root / "vectors",
            store.root / "judged",
            vector_text=whole,
            meter=self._meter,
        )
        self.key = scoring_key(self.metrics, self.system_metrics)

    def score(self, plan: Plan, scored: Callable[[Job], None]) -> None:
        """Scores every job of the plan on this corpus that has responses.

        Afterwards these scores are the latest ones of each, whichever were before.

        Args:
            plan: the jobs.
            scored: told of each that was not scored before.
        """
        planned = [task.job for task in plan.tasks if task.dataset is self.dataset]
        answered = [job for job in planned if self.store.answered(job)]
        jobs = [job for job in answered if not (self._is_scored(job) and self._is_profiled(job))]
        if jobs:
            with self._board.job(self._label):
                self._meter.begin(len(jobs))
                for job in self._meter.over(jobs):
                    self._score(job)
                    self.store.make_latest(job, self.key)
                    scored(job)
        for job in answered:
            self.store.make_latest(job, self.key)

    def _is_scored(self, job: Job) -> bool:
        return self.store.read_scores(job, self.key) is not None

    def _is_profiled(self, job: Job) -> bool:
        profile = self.store.profile(job)
        return profile is not None and profile.tokenizer == self.tokenizer

    def _score(self, job: Job) -> None:
        responses = self.store.read_responses(job)
        if not self._is_scored(job):
            self.store.write_scores(job, self._scores(responses), self.key)
        self.store.write_profile(job, profile(responses, self.tokenizer))

    def _scores(self, responses: Responses) -> dict[str, Score]:
        (result,) = self.store.results(None, [responses.job])
        scores = score_responses(responses.by_example(), self.metrics)
        scores |= {metric.name: metric.score(result, responses) for metric in self.system_metrics}
        return {name: scores[name] for name in self.names}

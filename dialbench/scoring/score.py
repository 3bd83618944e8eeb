"""From files of responses to plain values: every metric with its interval and signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dialbench.adapter import Progress
from dialbench.corpora.corpus import Corpus
from dialbench.corpora.training_text import training_split, whole_training_split
from dialbench.errors import InputError
from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.system import SystemMetric
from dialbench.options import sort_options
from dialbench.records import Score, Split
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.meter import Meter
from dialbench.scoring.options import InputOptions, ScoringOptions
from dialbench.scoring.paired import compare_scores, mismatch, sharing_ids
from dialbench.scoring.resources import build_metrics, usual_metrics
from dialbench.scoring.sources import Files, Source, Sources
from dialbench.version import __version__

STATISTICS = 4
"""Raised when what is stored of scores for intervals and tests changes."""


def scoring_key(
    metrics: Sequence[Metric[Any]], system_metrics: Sequence[SystemMetric] = ()
) -> dict[str, Any]:
    """Everything that can change the scores of the same responses, as a JSON object."""
    every: list[Metric[Any] | SystemMetric] = [*metrics, *system_metrics]
    signatures = {metric.name: metric.signature for metric in every}
    return {"metrics": signatures, "statistics": STATISTICS}


def score(
    files: Sequence[str | Path],
    *,
    train: Split | str | Path | None = None,
    cache: Path | None = None,
    paired_with: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Scores files of responses and returns plain values.

    Args:
        files: text, CSV, TSV or JSON lines; each is one system, called by the stem of its name.
        train: training text for novelty, ead-n and, where no file is given, word vectors: a
            split, the name of a corpus or a file of conversations.
        cache: folder for trained word vectors.
        paired_with: responses to the same contexts that every file is compared with.
        progress: where to show how far it is.
        options: fields of `InputOptions` (references, contexts, column, corpus) and of
            `ScoringOptions`. Without `metrics` those of a run; those within contexts only where
            several responses to a context are given.

    Returns:
        For each file `{"system", "corpus", "dialbench", "metrics": {name: {"value", "signature",
        "n", "interval", "reason"}}}`; `dialbench` is our version, values are fractions, not
        rounded, None where not available, and only then there is a reason. With `paired_with` also
        `{"paired_with", "compared"}`: the other system, and how far they differ in each metric;
        where there is no p, a reason.

    Raises:
        InputError: a file, name or argument cannot be used.
        TypeError: there is no option of a name in `options`.
    """
    named, chosen = sort_options(options, InputOptions, ScoringOptions)
    inputs = InputOptions(**named)
    scoring = FileScoring.of(files, inputs, train, cache, paired_with, progress, **chosen)
    reports = []
    for source in scoring.systems:
        scores = scoring.scores(source)
        report = report_of(source.system, inputs.corpus, scores)
        if base := scoring.base:
            differences = scoring.differences(source, scores)
            report |= {"paired_with": base.system, "compared": differences}
        reports.append(report)
    return reports


@dataclass(frozen=True)
class FileScoring:
    """Responses with the metrics that they are scored in.

    Attributes:
        systems: the responses of each system.
        base: those that all are compared with; None where none are named.
        metrics: all with the same tokeniser.
        corpus: whose test split is answered, where it was read.
        meter: shows how far the scoring of all of them is.
    """

    systems: Sequence[Source]
    base: Source | None
    metrics: Sequence[Metric[Any]]
    corpus: Corpus | None
    meter: Meter

    def __post_init__(self) -> None:
        self.meter.begin((len(self.systems) + (self.base is not None)) * len(self.metrics))

    @classmethod
    def of(
        cls,
        files: Files,
        inputs: InputOptions,
        train: Split | str | Path | None = None,
        cache: Path | None = None,
        paired_with: str | Path | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> FileScoring:
        """Reads what the arguments of `score` name; systems in memory have no base.

        Raises:
            InputError: a file, name or argument cannot be used, or a file does not answer the
                examples of the base in the same order.
        """
        bases = [] if paired_with is None else [paired_with]
        every = files if isinstance(files, Mapping) else [*files, *bases]
        sources = Sources(every, inputs, options.get("data"))
        same = sharing_ids(sources.systems)
        systems, base = same[: len(files)], same[-1] if bases else None
        if base and (error := next(filter(None, (mismatch(s, base) for s in systems)), None)):
            raise error
        chosen = for_sources(systems, **options)
        text = training_split(train, chosen.data)
        if text is None and sources.corpus is not None:
            text = whole_training_split(sources.corpus) or None  # as in a run on this corpus
        meter = Meter(progress)
        metrics = build_metrics(chosen, text, cache, meter=meter)
        return cls(systems, base, metrics, sources.corpus, meter)

    def scores(self, source: Source, *, comparable: bool = False) -> dict[str, Score]:
        """The scores of a system; see `score_responses` for `comparable`."""
        keep = comparable or self.base is not None
        return score_responses(source.responses(), self.metrics, comparable=keep, meter=self.meter)

    def differences(self, source: Source, scores: Mapping[str, Score]) -> dict[str, dict[str, Any]]:
        """How a system with these scores differs from the base; nothing where there is none."""
        if self.base is None:
            return {}
        return compare_scores(source, scores, self.base, self._base_scores)

    @cached_property
    def _base_scores(self) -> dict[str, Score]:
        return self.scores(self.base) if self.base else {}


def for_sources(sources: Iterable[Source], **options: Any) -> ScoringOptions:
    """The options of a scoring of files, the usual metrics of such files named.

    Raises:
        InputError: a file cannot be read, or no metric is named.
    """
    chosen = ScoringOptions(**options)
    # A run may have no metric of responses, but of the system alone.
    if chosen.metrics == ():
        raise InputError("no metric is named", where="--metrics", hint="Name one, or leave it out.")
    if chosen.metrics is None:
        return replace(chosen, metrics=metrics_for(sources))
    return replace(chosen, metrics=registry.names()) if chosen.metrics == ("all",) else chosen


def metrics_for(sources: Iterable[Source]) -> tuple[str, ...]:
    """The usual metrics of responses; those within contexts if any line has several.

    Raises:
        InputError: a file cannot be read.
    """
    several = any(line.alternatives for source in sources for line in source.lines())
    return usual_metrics(2 if several else 1)


def report_of(system: str, corpus: str | None, scores: Mapping[str, Score]) -> dict[str, Any]:
    """What `score` says of one system."""
    values = {name: plain(score) for name, score in scores.items()}
    return {"system": system, "corpus": corpus, "dialbench": __version__, "metrics": values}


def plain(score: Score) -> dict[str, Any]:
    """A score in plain values: value, signature, n, interval and, without a value, the reason."""
    values: dict[str, Any] = {
        "value": score.value if score.available else None,
        "signature": score.signature,
        "n": score.n,
        "interval": None if score.interval is None else list(score.interval),
    }
    return values | ({"reason": score.reason} if score.reason else {})

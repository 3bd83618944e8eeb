"""From files of responses to plain values: every metric with its interval and signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialbench.corpora.training_text import training_split
from dialbench.files.responses import read_response_lines, read_responses
from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.system import SystemMetric
from dialbench.records import Score, Split
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.options import ScoringOptions
from dialbench.scoring.paired import compared
from dialbench.scoring.resources import build_metrics

STATISTICS = 2
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
    corpus: str | None = None,
    paired_with: str | Path | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Scores files of responses (JSON lines) and returns plain values.

    Args:
        files: the files; each is one system, called by the stem of its name.
        train: training text for novelty, ead-n and, where no file is given, word vectors: a
            split, the name of a corpus or a file of conversations.
        cache: folder for trained word vectors.
        corpus: what the responses answer, if known.
        paired_with: responses to the same contexts that every file is compared with.
        options: fields of `ScoringOptions`. Without `metrics` all but those that need a model of
            sentences and the variants of single papers; those within contexts only where several
            responses to a context are given.

    Returns:
        For each file `{"system", "corpus", "metrics": {name: {"value", "signature", "n",
        "interval", "reason"}}}`; values are fractions, not rounded, None where not available,
        and only then there is a reason. With `paired_with` also `{"paired_with", "compared"}`:
        the other system, and how far they differ in each metric; where there is no p, a reason.

    Raises:
        InputError: a file, name or argument cannot be used.
        TypeError: there is no option of a name in `options`.
    """
    chosen = for_files(files, **options)
    built = build_metrics(chosen, training_split(train, chosen.data), cache)
    reports = [_report(Path(file), built, corpus) for file in files]
    if paired_with is not None:
        base = Path(paired_with)
        for file, report in zip(map(Path, files), reports, strict=True):
            report |= {"paired_with": system_of(base), "compared": compared(file, base, built)}
    return reports


def for_files(files: Iterable[str | Path], **options: Any) -> ScoringOptions:
    """The options of a scoring of files, the usual metrics of such files named.

    Raises:
        InputError: a file cannot be read.
    """
    chosen = ScoringOptions(**options)
    return replace(chosen, metrics=metrics_for(files)) if chosen.metrics is None else chosen


def metrics_for(files: Iterable[str | Path]) -> tuple[str, ...]:
    """The usual metrics of files of responses; those within contexts if any line has several.

    Raises:
        InputError: a file cannot be read.
    """
    several = any(
        answer.alternatives for file in files for answer in read_response_lines(Path(file))
    )
    return (*registry.SCORED, *registry.WITHIN) if several else registry.SCORED


def _report(file: Path, metrics: Sequence[Metric[Any]], corpus: str | None) -> dict[str, Any]:
    scores = score_responses(read_responses(file), metrics, comparable=False)
    return report_of(system_of(file), corpus, scores)


def report_of(system: str, corpus: str | None, scores: Mapping[str, Score]) -> dict[str, Any]:
    """What `score` says of one system."""
    values = {name: plain(score) for name, score in scores.items()}
    return {"system": system, "corpus": corpus, "metrics": values}


def system_of(file: Path) -> str:
    """What the system of a file of responses is called: the stem of the file's name."""
    name = file.name.removesuffix(".xz").removesuffix(".gz").removesuffix(".jsonl")
    # Bytes of a file name that are no UTF-8 stand in it as what no file takes.
    return name.encode("utf-8", "replace").decode("utf-8")


def plain(score: Score) -> dict[str, Any]:
    """A score in plain values: value, signature, n, interval and, without a value, the reason."""
    fields: dict[str, Any] = {
        "value": score.value if score.available else None,
        "signature": score.signature,
        "n": score.n,
        "interval": None if score.interval is None else list(score.interval),
    }
    return fields | ({"reason": score.reason} if score.reason else {})

"""From responses to scores: every measure with its value, folds, interval and signature."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError
from dialbench.files.responses import read_answers, read_responses
from dialbench.measures import ScoringSettings, build_metrics, training_split
from dialbench.metrics import registry
from dialbench.metrics.base import Metric, read
from dialbench.metrics.diversity import Denominator
from dialbench.metrics.told import Told
from dialbench.paired import compared
from dialbench.records import Answers, Score, Split
from dialbench.stats.folds import dialogue_numbers, fold_numbers, groups
from dialbench.stats.intervals import jackknife

DEFAULT = registry.DEFAULT
SCORED = registry.SCORED
WITHIN = registry.WITHIN
FOLDS = 10


def scoring_key(metrics: Sequence[Metric[Any]], told: Sequence[Told] = ()) -> dict[str, Any]:
    """Everything that can change the scores of the same responses, as a JSON object."""
    every: list[Metric[Any] | Told] = [*metrics, *told]
    return {"metrics": {metric.name: metric.signature for metric in every}, "folds": FOLDS}


def score_responses(pairs: Iterable[Answers], metrics: Sequence[Metric[Any]]) -> dict[str, Score]:
    """Scores a stream of examples and responses; contexts are not kept.

    Args:
        pairs: each example with the response to its context, in test order.
        metrics: the measures, all made for the same tokeniser.

    Returns:
        The score of each measure by its name.

    Raises:
        InputError: there are no responses.
    """
    if not metrics:
        return {}
    texts = read(pairs, metrics)
    if not len(texts):
        raise InputError("there are no responses to score", hint="Give at least one.")
    counted = ((metric, metric.statistics(texts)) for metric in metrics)
    return score_statistics(counted, texts.dialogues)


def score_statistics(
    counted: Iterable[tuple[Metric[Any], Any]], dialogues: Sequence[str]
) -> dict[str, Score]:
    """Scores what measures counted for at least one response.

    Args:
        counted: each measure with its statistics, in test order; one pair is kept at a time.
        dialogues: (responses,) the dialogue of each.

    Returns:
        The score of each measure by its name.
    """
    parts = _Parts.of(dialogues)
    return {metric.name: _score(metric, statistics, parts) for metric, statistics in counted}


def score(
    files: Sequence[str | Path],
    *,
    metrics: Iterable[str] | None = None,
    tokenizer: str = "default",
    denominator: Denominator | None = None,
    vectors: str | Path | None = None,
    train: Split | str | Path | None = None,
    data: str | Path | None = None,
    cache: Path | None = None,
    corpus: str | None = None,
    vocabulary: int | None = None,
    sentence_model: str | Path | None = None,
    nli: str | Path | None = None,
    bert_model: str | Path | None = None,
    mauve_model: str | Path | None = None,
    paired_with: str | Path | None = None,
) -> list[dict[str, Any]]:
    """Scores files of responses (JSON lines) and says so in plain values.

    Args:
        files: the files; each is one system, called by the stem of its name.
        metrics: names of the measures; None = all but those that need a model of sentences and
            the variants of single papers, and those within contexts only where several responses
            to a context are given.
        tokenizer: name of the tokeniser.
        denominator: what Distinct divides by; None: tokens, within one response n-grams.
        vectors: a file of word vectors.
        train: training text for novelty, ead-n and, where no file is given, word vectors: a
            split, the name of a corpus or a file of conversations.
        data: the data folder, for WordNet and corpora; None = $DIALBENCH_DATA or the user cache.
        cache: folder for trained word vectors.
        corpus: what the responses answer, if known.
        vocabulary: V of ead-n; None = the number of words of the training text.
        sentence_model: folder of a sentence-transformers model; None = that of the extra
            `offline`.
        nli: the judge of ue: a folder or a name in the local cache of the Hub; None = the
            embedded one.
        bert_model: the encoder of bertscore: a folder or a name in the local cache of the Hub.
        mauve_model: the language model of mauve, likewise.
        paired_with: responses to the same contexts that every file is compared with.

    Returns:
        For each file `{"system", "corpus", "metrics": {name: {"value", "signature", "n",
        "interval", "reason"}}}`; values are fractions, not rounded, None where not available,
        and only then there is a reason. With `paired_with` also `{"paired_with", "compared"}`:
        the other system, and how far they differ in each measure; where there is no p, a reason.

    Raises:
        InputError: a file, name or argument cannot be used.
    """
    settings = ScoringSettings.of(
        metrics=measures_of(files) if metrics is None else metrics,
        tokenizer=tokenizer,
        denominator=denominator,
        vectors=vectors,
        data=data,
        vocabulary=vocabulary,
        sentence_model=sentence_model,
        nli=nli,
        bert_model=bert_model,
        mauve_model=mauve_model,
    )
    built = build_metrics(settings, training_split(train, data), cache)
    reports = [_report(Path(file), built, corpus) for file in files]
    if paired_with is not None:
        base = Path(paired_with)
        for file, report in zip(map(Path, files), reports, strict=True):
            report |= {"paired_with": system_of(base), "compared": compared(file, base, built)}
    return reports


def measures_of(files: Iterable[str | Path]) -> tuple[str, ...]:
    """The usual measures of files of responses; those within contexts if any line has several.

    Raises:
        InputError: a file cannot be read.
    """
    several = any(answer.alternatives for file in files for answer in read_answers(Path(file)))
    return (*SCORED, *WITHIN) if several else SCORED


@dataclass(frozen=True)
class _Parts:
    """The responses of each fold; the jackknife group and the dialogue of each response."""

    folds: list[NDArray[np.intp]]
    groups: NDArray[np.int64]
    dialogues: NDArray[np.float64]

    @classmethod
    def of(cls, dialogues: Sequence[str]) -> _Parts:
        numbers = fold_numbers(dialogues, k=FOLDS)
        folds = [np.flatnonzero(numbers == fold) for fold in range(numbers.max() + 1)]
        of_response = dialogue_numbers(dialogues).astype(np.float64)
        return cls(folds, groups(dialogues), of_response)


def _score(metric: Metric[Any], statistics: Any, parts: _Parts) -> Score:
    value = metric.score(statistics)
    interval = None
    if not math.isnan(value):
        interval = jackknife(metric.replicate, statistics, parts.groups)
    per_response = metric.per_response(statistics)
    return Score(
        value=value,
        n=metric.count(statistics),
        signature=metric.signature,
        per_response=per_response,
        dialogues=None if per_response is None else parts.dialogues,
        per_fold=np.array([metric.replicate(statistics[fold]) for fold in parts.folds]),
        interval=interval,
        reason=metric.reason(statistics),
    )


def _report(file: Path, metrics: Sequence[Metric[Any]], corpus: str | None) -> dict[str, Any]:
    scores = score_responses(read_responses(file), metrics)
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
    said: dict[str, Any] = {
        "value": score.value if score.available else None,
        "signature": score.signature,
        "n": score.n,
        "interval": None if score.interval is None else list(score.interval),
    }
    return said | ({"reason": score.reason} if score.reason else {})

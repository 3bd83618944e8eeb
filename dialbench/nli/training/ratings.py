"""Responses that people rated, and how far utterance entailment follows their ratings.

The ratings of GRADE (Huang et al., 2020) and of the multi-reference evaluation of DailyDialog
(Gupta et al., 2019), in the folder `released_outputs` of the data folder.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialbench.corpora.files import plain_or_packed, read_lines
from dialbench.metrics.entailment import UNGUARDED, WEIGHTS, Verdicts
from dialbench.metrics.texts import Texts
from dialbench.nli.judge import Judge
from dialbench.records import Example
from dialbench.text.tokenizer import tokenize

FOLLOWING = ("ue", "ue-soft", "ue-p-entail", "ue-raw")
"""Metrics that are compared with ratings."""
_GRADE = Path("released_outputs", "grade_human")
_MULTIREF = Path("released_outputs", "dailydialog_multirefeval")


@dataclass(frozen=True)
class RatedSet:
    """Responses with the mean rating of each.

    Attributes:
        title: of the set.
        answered: examples and responses.
        ratings: (responses,) higher is better.
        choosing: whether judges are chosen by it; the others are looked at once for each.
    """

    title: str
    answered: tuple[tuple[Example, str], ...]
    ratings: tuple[float, ...]
    choosing: bool


@dataclass(frozen=True)
class Agreement:
    """How far a metric follows the ratings of a set: Spearman's rho over the responses.

    `p` is that of two sides; both are NaN where all values are equal.
    """

    title: str
    metric: str
    count: int
    rho: float
    p: float


def read_rated(data: Path) -> list[RatedSet]:
    """The rated sets that are in the data folder.

    Raises:
        InputError: a file is damaged.
    """
    names = (("dailydialog", "GRADE-DailyDialog"), ("empatheticdialogues", "GRADE-ED"))
    grade = [
        _grade(data / _GRADE, name, title)
        for name, title in (*names, ("convai2", "GRADE-ConvAI2"))
        if (data / _GRADE / "eval_data" / name).is_dir()
    ]
    multiref = plain_or_packed(data / _MULTIREF / "mturk_rating_processed_output.csv")
    return [*grade, *([_multiref(multiref)] if multiref.is_file() else [])]


def agreement(judge: Judge, rated: RatedSet) -> list[Agreement]:
    """How far each of `FOLLOWING` agrees with the ratings of a set."""
    texts, verdicts = Texts.build(rated.answered, tokenize, verbatim=True), Verdicts(judge)
    columns = {False: verdicts.of(texts), True: verdicts.unguarded(texts)}
    return [
        _agreement(rated, name, columns[name in UNGUARDED] @ np.array(WEIGHTS[name]))
        for name in FOLLOWING
    ]


def _agreement(rated: RatedSet, name: str, values: NDArray[np.float64]) -> Agreement:
    from scipy.stats import spearmanr

    if np.ptp(values) == 0 or np.ptp(rated.ratings) == 0:
        return Agreement(rated.title, name, len(values), math.nan, math.nan)
    correlation = spearmanr(values, rated.ratings)
    return Agreement(
        rated.title, name, len(values), float(correlation.statistic), float(correlation.pvalue)
    )


def _grade(folder: Path, name: str, title: str) -> RatedSet:
    rows = [
        (tuple(context.split("|||")), response, float(score))
        for model in sorted((folder / "eval_data" / name).iterdir())
        for context, response, score in zip(
            _lines(model / "human_ctx.txt"),
            _lines(model / "human_hyp.txt"),
            _lines(folder / "human_score" / name / model.name / "human_score.txt"),
            strict=True,
        )
    ]
    return _rated_set(title, rows, choosing=True)


def _multiref(path: Path) -> RatedSet:
    rows = csv.DictReader(line for _, line in read_lines(path))
    rated = [
        (tuple(row["context"].split("||||")), row["response"], float(row["human_average_rating"]))
        for row in rows
    ]
    return _rated_set("multi-reference DailyDialog", rated, choosing=False)


def _rated_set(
    title: str, rows: list[tuple[tuple[str, ...], str, float]], *, choosing: bool
) -> RatedSet:
    answered = tuple(
        (Example(str(i), str(i), context, ()), response)
        for i, (context, response, _) in enumerate(rows)
    )
    return RatedSet(title, answered, tuple(rating for *_, rating in rows), choosing)


def _lines(path: Path) -> Iterator[str]:
    return (line for _, line in read_lines(path))

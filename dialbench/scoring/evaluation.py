"""From what metrics counted to scores: value, interval, and what tests against others need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError
from dialbench.metrics.base import Metric, read
from dialbench.records import ExampleResponses, Score
from dialbench.scoring.meter import Meter
from dialbench.stats.folds import blocks, dialogue_numbers, groups
from dialbench.stats.intervals import Jackknife, mean_interval


def score_responses(
    pairs: Iterable[ExampleResponses],
    metrics: Sequence[Metric[Any]],
    *,
    comparable: bool = True,
    meter: Meter | None = None,
) -> dict[str, Score]:
    """Scores a stream of examples and responses; contexts are not kept.

    Args:
        pairs: each example with the response to its context, in test order.
        metrics: the metrics, all made for the same tokeniser.
        comparable: whether to keep what tests against another system need.
        meter: a step of it is a metric.

    Returns:
        The score of each metric by its name.

    Raises:
        InputError: there are no responses.
    """
    if not metrics:
        return {}
    texts = read(pairs, metrics)
    if not len(texts):
        raise InputError("there are no responses to score", hint="Give at least one response.")
    counted = ((metric, metric.statistics(texts)) for metric in (meter or Meter()).over(metrics))
    return score_statistics(counted, texts.dialogues, comparable=comparable)


def score_statistics(
    counted: Iterable[tuple[Metric[Any], Any]],
    dialogues: Sequence[str],
    *,
    comparable: bool = False,
) -> dict[str, Score]:
    """Scores what metrics counted for at least one response.

    Args:
        counted: each metric with its statistics, in test order; one pair is kept at a time.
        dialogues: (responses,) the dialogue of each.
        comparable: whether to keep what tests against another system need.

    Returns:
        The score of each metric by its name.
    """
    of = _Dialogues.of(dialogues)
    return {
        metric.name: _score(metric, statistics, of, comparable=comparable)
        for metric, statistics in counted
    }


@dataclass(frozen=True)
class _Dialogues:
    """The dialogue of each response, and the group of dialogues that is left out with it.

    Attributes:
        numbers: (responses,) 0, 1, ... in order of first appearance.
        groups: (responses,) 0 to G - 1, dialogues from anywhere.
        blocks: (responses,) 0 to G - 1, neighbouring dialogues, for metrics that depend on order.
    """

    numbers: NDArray[np.int64]
    groups: NDArray[np.int64]
    blocks: NDArray[np.int64]

    @classmethod
    def of(cls, names: Sequence[str]) -> _Dialogues:
        return cls(dialogue_numbers(names), groups(names), blocks(names))


def _score(
    metric: Metric[Any], statistics: Any, dialogues: _Dialogues, *, comparable: bool
) -> Score:
    value = metric.score(statistics)
    per_response = metric.per_response(statistics)
    score = Score(
        value=value,
        n=metric.count(statistics),
        signature=metric.signature_of(statistics),
        per_response=per_response,
        dialogues=dialogues.numbers.astype(np.float64),
        reason=metric.reason(statistics),
    )
    if math.isnan(value):
        return score
    enough = score.n >= metric.interval_from
    if per_response is not None:
        if enough:
            interval = mean_interval(per_response, dialogues.numbers, metric.bounds)
            score = replace(score, interval=interval)
        if not comparable:
            return score
    together = dialogues.blocks if metric.ordered else dialogues.groups
    left_out = Jackknife.of(
        value,
        lambda included: metric.jackknife_values(statistics, together, included),
        together,
        interacting=metric.interacting,
    )
    contributions = left_out.pseudo_values
    return replace(
        score,
        parts=contributions.parts,
        shares=contributions.shares,
        joint=contributions.joint if len(contributions.joint) else None,
        tally=metric.tally(statistics, dialogues.numbers) if comparable else None,
        interval=left_out.interval(metric.bounds)
        if per_response is None and enough
        else score.interval,
    )

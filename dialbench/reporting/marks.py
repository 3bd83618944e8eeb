"""Which values of a column are best, second best, or differ from the best by more than chance."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError, UnknownName
from dialbench.records import Column, Score
from dialbench.stats.significance import holm, paired_t, welch_t

Correction = Literal["none", "holm"]


@dataclass(frozen=True)
class Rules:
    """When a difference counts: p below `alpha`, adjusted by `correction` within a column.

    Raises:
        InputError: one of them cannot be used.
    """

    alpha: float = 0.01
    correction: Correction = "none"

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            hint = "Take a number between 0 and 1, such as 0.01."
            raise InputError(f"{self.alpha} is no level of significance", where="alpha", hint=hint)
        if self.correction not in (known := ("none", "holm")):
            raise UnknownName.of("correction", self.correction, known, where="correction")

    @property
    def said(self) -> str:
        """What a star says, for the notes."""
        correction = {
            "none": "not corrected for several comparisons",
            "holm": "corrected within each column after Holm",
        }[self.correction]
        level = f"two-sided p < {self.alpha:g}, {correction}"
        return f"*: differs from the best of its column ({level})."


@dataclass(frozen=True)
class Sample:
    """What a row brings to the comparison in one column: its seeds, and their means.

    Attributes:
        seeds: (seeds,) the values.
        per_response: (responses,) means over seeds; None unless every seed has them.
        per_fold: (folds,) likewise.
        dialogues: (responses,) the dialogue of each response; None if not known.
    """

    seeds: NDArray[np.float64]
    per_response: NDArray[np.float64] | None
    per_fold: NDArray[np.float64] | None
    dialogues: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Sample:
        """The sample of the scores of one row, one a seed, at least one."""
        return cls(
            np.array([score.value for score in scores]),
            _mean([score.per_response for score in scores]),
            _mean([score.per_fold for score in scores]),
            scores[0].dialogues,
        )

    @property
    def value(self) -> float:
        """The mean over seeds, exact up to its last rounding."""
        return math.fsum(self.seeds) / len(self.seeds)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds; None for one seed."""
        return float(self.seeds.std(ddof=1)) if len(self.seeds) > 1 else None


@dataclass(frozen=True)
class Marks:
    """The marks of one column, by row number.

    Attributes:
        tests: the tests that were made, in words.
        untested: rows that could not be compared with the best.
    """

    best: frozenset[int] = frozenset()
    second: frozenset[int] = frozenset()
    significant: frozenset[int] = frozenset()
    tests: frozenset[str] = frozenset()
    untested: frozenset[int] = frozenset()


_FEWEST_FOR_SECOND = 3
"""Of two rows the second best is the worst."""


def mark(
    samples: Mapping[int, Sample],
    column: Column,
    rules: Rules,
    excluded: Collection[int] = (),
) -> Marks:
    """Compares every row with the best of the column.

    Args:
        samples: the rows that are compared, by row number.
        column: whose direction says what is better.
        rules: what is significant.
        excluded: rows that are neither best nor second best, whatever their value.

    Returns:
        The marks; none where fewer than two rows compete or nothing is better, and no second best
        where fewer than three do. Rows that tie are marked alike.
    """
    sign = 1 if column.direction == "higher" else -1
    values = {row: sign * sample.value for row, sample in samples.items()}
    competing = {row: value for row, value in values.items() if row not in excluded}
    if len(competing) < 2 or column.direction == "none" or column.unranked:
        return Marks()
    best = _top(competing)
    behind = {row: value for row, value in competing.items() if row not in best}
    others = [row for row in values if row not in best]
    found = {row: _against(samples[row], [samples[top] for top in best]) for row in others}
    tested = {row: outcome for row, outcome in found.items() if outcome is not None}
    p_values = [p for p, _ in tested.values()]
    adjusted = holm(p_values) if rules.correction == "holm" else p_values
    return Marks(
        best=best,
        second=_top(behind) if len(competing) >= _FEWEST_FOR_SECOND else frozenset(),
        significant=frozenset(r for r, p in zip(tested, adjusted, strict=True) if p < rules.alpha),
        tests=frozenset(test for _, test in tested.values()),
        untested=frozenset(found) - frozenset(tested),
    )


def compare(a: Sample, b: Sample) -> tuple[float, str] | None:
    """The p of a difference and the test it comes from; None where there is nothing to test."""
    dialogues = b.dialogues if a.dialogues is None else a.dialogues
    over = "responses" if dialogues is None else "dialogues"
    for first, second, of, test in (
        (a.per_response, b.per_response, dialogues, f"paired t-test over {over}"),
        (a.per_fold, b.per_fold, None, "paired t-test over {} folds of whole dialogues"),
    ):
        if first is not None and second is not None and first.shape == second.shape:
            return paired_t(first, second, of), test.format(len(first))
    if min(len(a.seeds), len(b.seeds)) > 1:
        return welch_t(a.seeds, b.seeds), "Welch's t-test over training seeds"
    return None


def _against(sample: Sample, best: Sequence[Sample]) -> tuple[float, str] | None:
    """The comparison with that one of the best which the sample differs from least."""
    found = [outcome for top in best if (outcome := compare(sample, top)) is not None]
    return max(found, default=None)


def _top(values: Mapping[int, float]) -> frozenset[int]:
    highest = max(values.values(), default=math.nan)
    return frozenset(row for row, value in values.items() if value == highest)


def _mean(arrays: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    there = [array for array in arrays if array is not None]
    if len(there) < len(arrays) or len({array.shape for array in there}) != 1:
        return None
    return np.asarray(np.mean(there, axis=0))

"""Marks the values of a column that are best, second best, or significantly worse than the best."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dialbench.errors import InputError, UnknownName
from dialbench.metrics.formulas import FORMULAS
from dialbench.records import Column, Score
from dialbench.reporting.defaults import DEFAULT_ALPHA
from dialbench.reporting.options import Correction, ReportOptions
from dialbench.stats.clusters import Interval
from dialbench.stats.compare import Test, difference_test, pseudo_values
from dialbench.stats.intervals import UNBOUNDED, Bounds
from dialbench.stats.rounding import deviations, gap
from dialbench.stats.seeds import over_seeds
from dialbench.stats.significance import holm


@dataclass(frozen=True)
class Rules:
    """When a difference is significant: p below `alpha`, adjusted by `correction` in a column.

    Attributes:
        baseline: label of the row, or name of the system, that all others are tested against;
            None: the best of each column.

    Raises:
        InputError: one of them cannot be used.
    """

    alpha: float = DEFAULT_ALPHA
    correction: Correction = "none"
    baseline: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, int | float) and 0 < self.alpha < 1):
            hint = f"Pass a number between 0 and 1, such as {DEFAULT_ALPHA}."
            what = f"{self.alpha} is no level of significance"
            raise InputError(what, where="alpha", hint=hint)
        if self.correction not in (known := ("none", "holm")):
            raise UnknownName.of("correction", self.correction, known, where="correction")

    @classmethod
    def of(cls, options: ReportOptions, printed: float | None = None) -> Rules:
        """Those of a report; `printed` is the level of a paper, if it names one."""
        alpha = printed or DEFAULT_ALPHA if options.alpha is None else options.alpha
        return cls(alpha, options.correction, options.baseline)

    @property
    def note(self) -> str:
        """What a star means, for the notes."""
        correction = {
            "none": "not corrected for several comparisons",
            "holm": "corrected within each column after Holm",
        }[self.correction]
        level = f"two-sided p < {self.alpha:g}, {correction}"
        return f"*: differs from {self.baseline or 'the best of its column'} ({level})."


@dataclass(frozen=True)
class Sample:
    """The scores of a row in one column, one a training run and at least one."""

    scores: tuple[Score, ...]

    @property
    def value(self) -> float:
        """The mean over training runs, exact up to its last rounding."""
        return math.fsum(score.value for score in self.scores) / len(self.scores)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over training runs; None for one."""
        if len(self.scores) < 2:
            return None
        residuals = deviations(np.array([score.value for score in self.scores]))
        return float(np.sqrt((residuals**2).sum() / (len(residuals) - 1)))

    def interval(self, bounds: Bounds = UNBOUNDED) -> Interval | None:
        """95 % interval of the value: over other dialogues, and other runs where there are some.

        Cut off at the bounds; None where one of several runs has none.
        """
        if len(self.scores) == 1:
            return self.scores[0].interval
        if any(score.interval is None for score in self.scores):
            return None
        runs = [values for score in self.scores if (values := pseudo_values(score)) is not None]
        interval = over_seeds(runs).interval if len(runs) == len(self.scores) else None
        return interval and (max(interval[0], bounds[0]), min(interval[1], bounds[1]))


@dataclass(frozen=True)
class Marks:
    """The marks of one column, by row number.

    Attributes:
        reversed: rows that would have a star, but differ from the best the other way over the
            responses that both have a value for.
        tests: names of the tests.
        untested: rows that could not be compared with the best.
    """

    best: frozenset[int] = frozenset()
    second: frozenset[int] = frozenset()
    significant: frozenset[int] = frozenset()
    reversed: frozenset[int] = frozenset()
    tests: frozenset[str] = frozenset()
    untested: frozenset[int] = frozenset()


_MIN_ROWS_FOR_SECOND = 3  # of two rows the second best is the worst


def mark(
    samples: Mapping[int, Sample],
    column: Column,
    rules: Rules,
    excluded: Collection[int] = (),
    baseline: int | None = None,
) -> Marks:
    """Compares every row with the best of the column, or with a baseline.

    Args:
        samples: the rows that are compared, by row number.
        column: whose direction says what is better.
        rules: when a difference is significant.
        excluded: rows that are neither best nor second best, whatever their value.
        baseline: the row that the others are tested against; None: the best.

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
    against = best if baseline is None else frozenset({baseline})
    tests = {
        row: _least_different(sample, [samples[other] for other in against if other in samples])
        for row, sample in samples.items()
        if row not in against
    }
    tested = {row: outcome for row, outcome in tests.items() if outcome is not None}
    p_values = [test.p for test in tested.values()]
    adjusted = holm(p_values) if rules.correction == "holm" else p_values
    certain = {r for r, p in zip(tested, adjusted, strict=True) if p < rules.alpha}
    return Marks(
        best=best,
        second=_top(behind) if len(competing) >= _MIN_ROWS_FOR_SECOND else frozenset(),
        significant=frozenset(row for row in certain if not tested[row].reversed),
        reversed=frozenset(row for row in certain if tested[row].reversed),
        tests=frozenset(test.name for test in tested.values()),
        untested=frozenset(tests) - frozenset(tested),
    )


def compare(a: Sample, b: Sample) -> Test | None:
    """The test of a difference; None where there is nothing to test."""
    return difference_test(a.scores, b.scores, FORMULAS)


def _least_different(sample: Sample, others: Sequence[Sample]) -> Test | None:
    """The test against the one of the others that the sample differs from least."""
    tests = [test for other in others if (test := compare(sample, other)) is not None]
    return max(tests, key=lambda test: test.p, default=None)


def _top(values: Mapping[int, float]) -> frozenset[int]:
    highest = max(values.values(), default=math.nan)
    return frozenset(row for row, value in values.items() if not gap(value, highest))

"""Everything there is to say about the difference of two systems in one measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dialbench.stats.clusters import Estimate
from dialbench.stats.effects import mean_difference, standardised_difference, superiority
from dialbench.stats.folds import dialogue_numbers, groups
from dialbench.stats.intervals import jackknife
from dialbench.stats.power import dialogues_needed
from dialbench.stats.rounding import gap
from dialbench.stats.significance import approximate_randomisation, paired_t, wilcoxon


class Measure(Protocol):
    """A measure in the three steps that every measure here has."""

    def score(self, statistics: Any, /) -> float:
        """The value that is printed."""

    def replicate(self, statistics: Any, /) -> float:
        """The same up to rounding, but fast."""

    def per_response(self, statistics: Any, /) -> NDArray[np.float64] | None:
        """(responses,) values that the value is the mean of; None if it is not a mean."""


@dataclass(frozen=True)
class Comparison:
    """Whether and how far a system differs from another over the same contexts.

    Attributes:
        difference: its value less the other's, in the unit of the measure.
        p: two-sided.
        test: what `p` comes from, in words.
        dialogues: how many there are.
        effect: Cohen's d; None for measures of a whole set, like all below.
        superiority: share of contexts it does better on (greater value), ties half.
        wilcoxon: p of the signed-rank test over dialogues.
        needed: dialogues for which the t-test would find this difference at 5 % with a chance
            of 80 %.
    """

    difference: Estimate
    p: float
    test: str
    dialogues: int
    effect: Estimate | None = None
    superiority: Estimate | None = None
    wilcoxon: float | None = None
    needed: int | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON values; None where there is no number."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def compare(
    measure: Measure,
    ours: Any,
    base: Any,
    dialogues: Sequence[str],
    *,
    trials: int = 1_000,
    seed: int = 0,
) -> Comparison:
    """Compares a system with another in one measure.

    A mean over responses gets the t-test over dialogues and all effect sizes; a measure of a whole
    set approximate randomisation by dialogue, and the jackknife's interval of the difference.

    Args:
        measure: whose statistics they are.
        ours: (responses,) statistics of the system.
        base: (responses,) those of the system that it is compared with, for the same contexts;
            their class can `concatenate` them with ours.
        dialogues: (responses,) the dialogue of each.
        trials: of approximate randomisation.
        seed: of everything drawn at random.

    Raises:
        ValueError: the three differ in length.
    """
    if not len(ours) == len(base) == len(dialogues):
        lengths = f"{len(ours)}, {len(base)} responses and {len(dialogues)} dialogues"
        raise ValueError(f"{lengths} do not match")
    numbers = dialogue_numbers(dialogues)
    a, b = measure.per_response(ours), measure.per_response(base)
    if a is not None and b is not None:
        return _of_means(a, b, numbers, seed)
    between = _Gap(measure, ours, base)
    return Comparison(
        Estimate(float(gap(measure.score(ours), measure.score(base))), between.interval(dialogues)),
        approximate_randomisation(measure.replicate, ours, base, numbers, trials, seed),
        f"approximate randomisation, {trials:,} swaps of dialogues",
        len(np.unique(numbers)),
    )


def _of_means(
    a: NDArray[np.float64], b: NDArray[np.float64], dialogues: NDArray[np.intp], seed: int
) -> Comparison:
    return Comparison(
        mean_difference(a, b, dialogues),
        paired_t(a, b, dialogues),
        "paired t-test over dialogues",
        len(np.unique(dialogues[~np.isnan(a - b)])),
        standardised_difference(a, b, dialogues, seed=seed),
        superiority(a, b, dialogues),
        wilcoxon(a, b, dialogues),
        dialogues_needed(a, b, dialogues),
    )


@dataclass(frozen=True)
class _Gap:
    """The difference in a measure, as a function of which responses there are."""

    measure: Measure
    ours: Any
    base: Any

    def __call__(self, index: NDArray[np.intp]) -> float:
        ours, base = (self.measure.replicate(side[index]) for side in (self.ours, self.base))
        return float(gap(ours, base))

    def interval(self, dialogues: Sequence[str]) -> tuple[float, float] | None:
        return jackknife(self, np.arange(len(dialogues)), groups(dialogues))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"value": _plain(value["value"]), "interval": _plain(value["interval"])}
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and math.isnan(value) else value

"""How far judges agree beyond chance: Fleiss' and Cohen's kappa, Krippendorff's alpha.

Every coefficient is a function of sums over items, so its interval is a jackknife over items:
whichever items had been judged, by the same number of judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialbench.stats.clusters import Interval
from dialbench.stats.sums import Function, jackknife_of_sums


@dataclass(frozen=True)
class Agreement:
    """A coefficient of agreement.

    Attributes:
        value: 1 = always equal, 0 = as often as by chance; NaN where all judgements are equal, so
            that chance alone agrees.
        interval: 95 % over items, cut off at -1 and 1; None where it cannot be had, as where
            leaving out one item leaves judgements that are all equal.
        observed: share of pairs of judgements on one item that are equal, in [0, 1].
        items: how many items it rests on.
    """

    value: float
    interval: Interval | None
    observed: float
    items: int


def fleiss_kappa(ratings: ArrayLike) -> Agreement:
    """Fleiss' kappa (1971): every item has equally many judgements, by any judges.

    Args:
        ratings: (items, raters) categories, as numbers or strings.

    Raises:
        ValueError: a judgement is missing, or there are fewer than two raters or no items.
    """
    judgements = _one_hot(ratings)
    _complete(judgements, "Fleiss' kappa")
    counts = judgements.sum(axis=1)
    raters = judgements.shape[1]
    agreeing = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    return _agreement(_beyond_chance, np.concatenate([_column(agreeing), counts / raters], axis=1))


def cohen_kappa(ratings: ArrayLike) -> Agreement:
    """Cohen's kappa (1960) of two raters; of more, the mean over pairs of raters.

    Two raters who both gave one and the same judgement throughout have none, and are left out of
    the mean. There is no interval where leaving out one item would leave out further pairs.

    Args:
        ratings: (items, raters) categories, as numbers or strings; a column is a judge.

    Raises:
        ValueError: a judgement is missing, or there are fewer than two raters or no items.
    """
    judgements = _one_hot(ratings)
    _complete(judgements, "Cohen's kappa")
    items, raters, kinds = judgements.shape
    pairs = np.array(list(combinations(range(raters), 2)))
    shared = judgements[:, pairs[:, 0]] * judgements[:, pairs[:, 1]]
    agreeing = shared.sum(axis=2)
    varied = shared.sum(axis=0).max(axis=1) < items
    if not varied.any():
        return Agreement(np.nan, None, float(agreeing.mean()), items)
    one, other = (judgements[:, side] for side in pairs[varied].T)
    pair_count = one.shape[1]

    def kappa(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        count, observed, marginals = np.split(sums, [1, 1 + pair_count], axis=-1)
        shape = (*sums.shape[:-1], 2, pair_count, kinds)
        first, second = np.moveaxis(marginals.reshape(shape), -3, 0)
        expected = (first * second).sum(axis=-1) / count**2
        return np.asarray(_ratio(observed / count - expected, 1 - expected).mean(axis=-1))

    each = np.ones((items, 1))
    marginals = np.stack([one, other], axis=1).reshape(items, -1)
    sums = np.concatenate([each, agreeing[:, varied], marginals], axis=1)
    agreement = _agreement(kappa, sums)
    return Agreement(agreement.value, agreement.interval, float(agreeing.mean()), items)


def krippendorff_alpha(
    ratings: ArrayLike, level: Literal["nominal", "ordinal"] = "nominal"
) -> Agreement:
    """Krippendorff's alpha (2011), which lets judgements be missing.

    Args:
        ratings: (items, raters) categories; NaN or None where a judge gave none. Items with fewer
            than two judgements say nothing and are left out.
        level: "ordinal" weighs a disagreement by how many judgements lie between the two
            categories, in ascending order; these must be numbers then.

    Raises:
        ValueError: no item has two judgements, or text is to have an order.
    """
    if level == "ordinal" and any(isinstance(r, str) for r in np.asarray(ratings, object).flat):
        raise ValueError("categories with an order must be numbers")
    judgements = _one_hot(ratings)
    judgements = judgements[judgements.sum(axis=(1, 2)) > 1]
    if not len(judgements):
        raise ValueError("no item has two judgements to compare")
    counts = judgements.sum(axis=1)
    kinds = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(kinds)
    every = pairs.sum(axis=0)
    weighted = pairs / (counts.sum(axis=1) - 1)[:, None, None]

    def alpha(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        table = sums.reshape(*sums.shape[:-1], kinds, kinds)
        totals = table.sum(axis=-1)
        distance = _distances(totals, level)
        n = totals.sum(axis=-1)
        expected = (totals[..., :, None] * totals[..., None, :] * distance).sum(axis=(-2, -1))
        return 1 - _ratio((n - 1) * (table * distance).sum(axis=(-2, -1)), expected)

    agreement = _agreement(alpha, weighted.reshape(len(weighted), -1))
    return Agreement(
        agreement.value, agreement.interval, float(np.trace(every) / every.sum()), agreement.items
    )


def _distances(totals: NDArray[np.float64], level: str) -> NDArray[np.float64]:
    """(..., kinds, kinds) how far two categories lie apart, squared."""
    if level == "nominal":
        kinds = totals.shape[-1]
        return np.asarray(np.broadcast_to(1 - np.eye(kinds), (*totals.shape, kinds)))
    middle = np.cumsum(totals, axis=-1) - totals / 2
    return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2)


def _beyond_chance(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fleiss' kappa from (..., 1 + kinds) sums of agreement and of shares of categories."""
    items = sums[..., 1:].sum(axis=-1)
    observed = sums[..., 0] / items
    expected = ((sums[..., 1:] / items[..., None]) ** 2).sum(axis=-1)
    return _ratio(observed - expected, 1 - expected)


def _agreement(function: Function, sums: NDArray[np.float64]) -> Agreement:
    value = float(function(sums.sum(axis=0)))
    interval = jackknife_of_sums(function, sums)
    inside = interval and (max(interval[0], -1.0), min(interval[1], 1.0))
    return Agreement(value, inside, float(sums[:, 0].mean()), len(sums))


def _ratio(part: Any, whole: Any) -> NDArray[np.float64]:
    """NaN where `whole` is 0 up to rounding: all judgements are equal."""
    whole = np.asarray(whole, dtype=np.float64)
    quotient = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=quotient, where=whole > 1e-12)
    return quotient


def _one_hot(ratings: ArrayLike) -> NDArray[np.float64]:
    """(items, raters, categories) 1 where the rater chose the category; ascending categories."""
    table = np.asarray(ratings, dtype=object)
    if table.ndim != 2 or not len(table) or table.shape[1] < 2:
        raise ValueError("ratings must be (items, raters) with at least one item and two raters")
    # NaN is the one value that differs from itself.
    missing = np.array([judgement is None or judgement != judgement for judgement in table.ravel()])
    places = np.flatnonzero(~missing)
    names = sorted({table.ravel()[cell] for cell in places})
    number = {name: index for index, name in enumerate(names)}
    judgements = np.zeros((table.size, len(names)))
    judgements[places, [number[table.ravel()[cell]] for cell in places]] = 1
    return judgements.reshape(*table.shape, len(names))


def _complete(judgements: NDArray[np.float64], name: str) -> None:
    if not judgements.any(axis=2).all():
        raise ValueError(
            f"{name} needs a judgement of every rater on every item; Krippendorff's alpha does not"
        )


def _column(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[:, None]

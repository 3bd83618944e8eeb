"""Metrics as functions of counts that add up, for many mixtures of responses at once.

Each takes (..., k + m) numbers: k sums over dialogues, then how many different n-grams there are
of each of m kinds (`records.Tally`). Each returns (...) values; NaN where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Formula = Callable[..., Floats]


def share(numbers: Floats) -> Floats:
    """Different n-grams over what they are divided by, from (..., 2)."""
    return _ratio(numbers[..., 1], numbers[..., 0])


def adjusted(numbers: Floats, kinds: float) -> Floats:
    """Different n-grams over those that as many draws from `kinds` would show, from (..., 2)."""
    # One kind leaves nothing unseen, whose logarithm is infinite.
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = kinds * -np.expm1(numbers[..., 0] * np.log1p(-1 / kinds))
    return _ratio(numbers[..., 1], expected)


def bleu(numbers: Floats) -> Floats:
    """Corpus BLEU without smoothing, from (..., 3 + 2n) counts as `overlap.Bleu` adds them up."""
    matches, totals = _orders(numbers)
    return _bleu(numbers, _precisions(matches, totals))


def bleu_exp(numbers: Floats) -> Floats:
    """Corpus BLEU as sacreBLEU smooths it: the k-th order without a match counts 1 / 2^k."""
    matches, totals = _orders(numbers)
    halved = 0.5 ** np.cumsum(matches == 0, axis=-1)
    filled = np.where(matches == 0, halved, matches) * matches.any(axis=-1, keepdims=True)
    return _bleu(numbers, _precisions(filled, totals))


def bleu_coco(numbers: Floats) -> Floats:
    """Corpus BLEU of the COCO caption toolkit, with its tiny constants."""
    matches, totals = _orders(numbers)
    return _bleu(numbers, (matches + 1e-15) / (totals + 1e-9))


FORMULAS: Mapping[str, Formula] = {
    "share": share,
    "adjusted": adjusted,
    "bleu-none": bleu,
    "bleu-exp": bleu_exp,
    "bleu-coco": bleu_coco,
}


def _orders(numbers: Floats) -> tuple[Floats, Floats]:
    """(..., n) matches and n-grams of each order."""
    order = (numbers.shape[-1] - 3) // 2
    return numbers[..., 3 : 3 + order], numbers[..., 3 + order :]


def _bleu(numbers: Floats, precisions: Floats) -> Floats:
    counted, length, reference = np.moveaxis(numbers[..., :3], -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.exp(np.log(precisions).mean(axis=-1) + np.minimum(0, 1 - reference / length))
    return np.asarray(np.where(counted > 0, np.where(length > 0, value, 0.0), np.nan))


def _precisions(matches: Floats, totals: Floats) -> Floats:
    """0 for an order without n-grams."""
    return np.divide(matches, totals, out=np.zeros(totals.shape), where=totals > 0)


def _ratio(above: Floats, below: Floats) -> Floats:
    """NaN where nothing stands below."""
    return np.asarray(
        np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
    )

"""Where a trained judge draws the lines between its labels, moved for dialogue.

What it learned from is a third entailment, a third contradiction, and mostly about pictures and
articles. One offset for all pairs on the logits of each of two labels leaves the order of the
pairs as it is, but says from which of them on a turn counts as following or contradicting.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialbench.nli.judge import Judge
from dialbench.nli.training.examination import SanityReport, examine, sanity
from dialbench.nli.training.pairs import Source
from dialbench.nli.training.ratings import RatedSet, agreement
from dialbench.records import Example

STEP = 0.125
ENTAILMENT = tuple(STEP * n for n in range(-6, 5))
CONTRADICTION = tuple(STEP * n for n in range(-4, 5))
"""Offsets that are tried, every pair of them."""
LEVEL = 0.05
"""How far from 0 the UE of turns of other dialogues, and of commonplaces, may be."""
LOSSES = (0.0025, 0.005, 0.01)
"""How much of its accuracy on the development set a judge may lose: the first that is possible."""
DENIED = -0.75
"""The highest UE that denials of a turn may have."""
SEED = 2
"""Of the contexts that are looked at; the card shows those of another seed."""


@dataclass(frozen=True)
class Offsets:
    """What is added to the logits of two labels."""

    entailment: float = 0.0
    contradiction: float = 0.0

    @property
    def logits(self) -> tuple[float, float, float]:
        """In the order of the labels."""
        return self.entailment, 0.0, self.contradiction


class Shifted:
    """A judge with offsets on its logits.

    Args:
        judge: who is asked.
        offsets: natural logarithms of the factors of its odds.
    """

    def __init__(self, judge: Judge, offsets: Offsets) -> None:
        self.name = f"{judge.name}{offsets.logits}"
        self._judge, self._factors = judge, np.exp(np.array(offsets.logits, np.float32))

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """(pairs, 3) probabilities of entailment, neutral and contradiction."""
        weighted = self._judge(pairs) * self._factors
        calibrated: NDArray[np.float32] = weighted / weighted.sum(axis=1, keepdims=True)
        return calibrated


def calibrate(
    judge: Judge,
    dev: Source,
    data: Path,
    examples: Sequence[Example],
    rated: Sequence[RatedSet] = (),
) -> Offsets | None:
    """The offsets with which `ue` follows people best, and tells true next turns from others.

    That is, of those that keep `LEVEL`, `LOSSES` and `DENIED` and whose margin of `ue` has a 95 %
    interval that is nowhere below 0, the ones with the highest mean of Spearman's rho over the
    rated sets; of equal ones, as without such sets, those whose margin has the highest lower end,
    and the smallest. None if none keeps them.

    Args:
        judge: without offsets; it should remember what it was asked.
        dev: pairs with labels.
        data: the data folder.
        examples: of dialogues' development split.
        rated: responses that people rated.

    Raises:
        InputError: `dev` cannot be read.
    """
    plain = examine(judge, dev, data).accuracy
    lost = {
        offsets: plain - examine(Shifted(judge, offsets), dev, data).accuracy for offsets in _grid()
    }
    tried = ([o for o in lost if lost[o] <= loss] for loss in LOSSES)
    chosen = (_best(judge, examples, rated, offsets) for offsets in tried)
    return next((offsets for offsets in chosen if offsets is not None), None)


def _best(
    judge: Judge, examples: Sequence[Example], rated: Sequence[RatedSet], tried: Iterable[Offsets]
) -> Offsets | None:
    best, chosen = (-math.inf, 0.0), None
    for offsets in tried:
        shifted = Shifted(judge, offsets)
        sane = sanity(shifted, examples, SEED)
        if not _plausible(sane) or (margin := _lower_end(sane)) < 0:
            continue
        merit = _following(shifted, rated), margin
        if merit > best:
            best, chosen = merit, offsets
    return chosen


def _grid() -> list[Offsets]:
    """The smallest first."""
    grid = itertools.starmap(Offsets, itertools.product(ENTAILMENT, CONTRADICTION))
    return sorted(grid, key=lambda offsets: sum(map(abs, offsets.logits)))


def _plausible(sane: SanityReport) -> bool:
    # A small corpus may give nothing to deny and no commonplace; NaN there.
    near = not any(abs(level) > LEVEL for _, _, level in sane.unrelated)
    return near and not any(denied > DENIED for _, _, denied in sane.denials)


def _lower_end(sane: SanityReport) -> float:
    margin = dict(sane.margins)["ue"]
    # Few dialogues have no interval; their margin is all there is.
    return margin.value if margin.interval is None else margin.interval[0]


def _following(judge: Judge, rated: Sequence[RatedSet]) -> float:
    """The mean of Spearman's rho of `ue` and ratings; 0 of a set where all `ue` are equal."""
    found = (one for set_ in rated for one in agreement(judge, set_) if one.metric == "ue")
    rhos = [0.0 if math.isnan(one.rho) else one.rho for one in found]
    return sum(rhos) / len(rhos) if rhos else 0.0

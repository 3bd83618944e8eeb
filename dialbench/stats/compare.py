"""Two systems in one metric: is the difference real, how large is it, how far can it be trusted.

Tables and `score --paired-with` both decide here, so that the same responses have the same p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.records import Score, Tally
from dialbench.stats.clusters import Estimate
from dialbench.stats.effects import mean_difference, standardised_difference, superiority
from dialbench.stats.intervals import PseudoValues
from dialbench.stats.power import dialogues_needed
from dialbench.stats.resampling import Counts, Ngrams, randomise
from dialbench.stats.rounding import gap
from dialbench.stats.seeds import Crossed, difference_over_seeds
from dialbench.stats.significance import mean_gap, welch_t, wilcoxon

Formulas = Mapping[str, Callable[..., NDArray[np.float64]]]
TRIALS = 10_000
OVER_RUNS = "training runs"
"""What the names of tests say that take training runs as random."""


@dataclass(frozen=True)
class Test:
    """The test of a difference.

    Attributes:
        p: two-sided.
        name: which test, in words.
        reversed: whether the tested difference, over the responses that both systems have a
            value for, has another sign than that of the printed values.
    """

    p: float
    name: str
    reversed: bool = False


@dataclass(frozen=True)
class Comparison:
    """Whether and how far a system differs from another over the same contexts.

    Attributes:
        difference: its value less the other's, in the unit of the metric.
        p: two-sided; None where nothing can be tested.
        test: what `p` comes from, in words.
        dialogues: how many there are; None where it is not known.
        effect: Cohen's d; None for metrics of a whole set, like all below. They are over the
            contexts in which both systems have a value.
        superiority: share of contexts on which its value is greater, ties half; where lower
            values are better, these are the contexts that it does worse on.
        wilcoxon: p of the signed-rank test over dialogues; None as `p`.
        needed: dialogues for which the t-test would find this difference at 5 % with a chance
            of 80 %; None also where one system lacks values that the other has.
    """

    difference: Estimate
    p: float | None
    test: str
    dialogues: int | None
    effect: Estimate | None = None
    superiority: Estimate | None = None
    wilcoxon: float | None = None
    needed: int | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON values; None where there is no number."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def difference_test(
    ours: Sequence[Score], base: Sequence[Score], formulas: Formulas
) -> Test | None:
    """Tests the difference of two systems that answered the same contexts.

    Several training runs of either: both other runs and other dialogues are random. One run of
    each: the t-test over dialogues for means over responses, approximate randomisation for
    functions of counts, the jackknife's t-test for what is left. All of them test the printed
    difference on the whole set. Where only the t-test over responses that both systems have a
    value for is left, it may be `reversed`.

    Args:
        ours: the scores of a system, one a training run, at least one.
        base: those of another system in the same metric.
        formulas: the functions that tallies name.

    Returns:
        None where there is nothing to test: values alone, or another test set.
    """
    if max(len(ours), len(base)) > 1:
        return _over_runs(ours, base)
    one, other = ours[0], base[0]
    paired = _over_responses(one, other)
    if paired is not None and _of_the_same_responses(one, other):
        return paired
    whole = _by_swaps(one.tally, other.tally, formulas) or _by_jackknife(one, other)
    return whole or (paired and replace(paired, reversed=not _same_sign(one, other)))


def compare(
    ours: Sequence[Score], base: Sequence[Score], formulas: Formulas, *, seed: int = 0
) -> Comparison:
    """Compares one system with another in one metric, over the same contexts.

    One training run of each: a mean over responses has all effect sizes besides, other metrics the
    jackknife's interval of the difference. Several runs of either: the difference of their means
    with an interval for other runs and other dialogues.

    Args:
        ours: the scores of the system, one a training run, at least one.
        base: those of the system it is compared with.
        formulas: as for `difference_test`.
        seed: of everything drawn at random.
    """
    test = difference_test(ours, base, formulas)
    # p of a difference of the other sign says nothing of this one.
    withheld = test is not None and test.reversed
    p, name = (test.p, test.name) if test and not withheld else (None, "")
    one, other = ours[0], base[0]
    a, b, of = one.per_response, other.per_response, one.dialogues
    if max(len(ours), len(base)) > 1 or a is None or b is None or of is None:
        dialogues = None if of is None else len(np.unique(of))
        return Comparison(_gap_of_means(ours, base), p, name, dialogues)
    same = _of_the_same_responses(one, other)
    return Comparison(
        mean_difference(a, b, of) if same else _gap_of_means(ours, base),
        p,
        name,
        len(np.unique(of[~np.isnan(a - b)])),
        standardised_difference(a, b, of, seed=seed),
        superiority(a, b, of),
        None if withheld else wilcoxon(a, b, of),
        dialogues_needed(a, b, of) if same else None,
    )


def _gap_of_means(ours: Sequence[Score], base: Sequence[Score]) -> Estimate:
    """The difference of the means over training runs, with the jackknife's interval."""
    crossed = _jackknifed(ours, base)
    if crossed is not None:
        return Estimate(crossed.value, crossed.interval)
    mine, theirs = (math.fsum(score.value for score in side) / len(side) for side in (ours, base))
    return Estimate(float(gap(mine, theirs)), None)


def pseudo_values(score: Score) -> PseudoValues | None:
    """What groups of dialogues contribute to a score; None where that is not stored."""
    if score.parts is None or score.shares is None or not np.isfinite(score.parts).all():
        return None
    joint = np.empty(0) if score.joint is None else score.joint
    return PseudoValues(score.value, score.parts, score.shares, joint)


def _over_responses(ours: Score, base: Score) -> Test | None:
    a, b = ours.per_response, base.per_response
    if a is None or b is None or a.shape != b.shape:
        return None
    dialogues = base.dialogues if ours.dialogues is None else ours.dialogues
    over = "responses" if dialogues is None else "dialogues"
    return Test(mean_gap(a, b, dialogues).p, f"paired t-test over {over}")


def _of_the_same_responses(ours: Score, base: Score) -> bool:
    missing = [np.isnan(s.per_response) for s in (ours, base) if s.per_response is not None]
    return not (missing[0] != missing[1]).any()


def _same_sign(ours: Score, base: Score) -> bool:
    """Whether the means over the responses that both have differ as the printed ones do."""
    if ours.per_response is None or base.per_response is None:
        return False
    common = mean_gap(ours.per_response, base.per_response).mean
    return bool(common * gap(ours.value, base.value) >= 0)


def _by_swaps(ours: Tally | None, base: Tally | None, formulas: Formulas) -> Test | None:
    if ours is None or base is None or ours.formula not in formulas:
        return None
    if (ours.formula, ours.parameters) != (base.formula, base.parameters):
        return None
    if ours.sums.shape != base.sums.shape:
        return None

    def value(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return formulas[ours.formula](numbers, *ours.parameters)

    p = randomise({"": value}, _counts(ours), _counts(base), None, TRIALS)[""]
    return Test(p, f"approximate randomisation over dialogues ({TRIALS:,} swaps)")


def _counts(tally: Tally) -> Counts:
    pairs = zip(tally.codes, tally.owners, strict=True)
    return Counts(tally.sums, [Ngrams(codes, owners) for codes, owners in pairs])


def _by_jackknife(ours: Score, base: Score) -> Test | None:
    crossed = _jackknifed([ours], [base])
    if crossed is None or math.isnan(crossed.variance):
        return None
    groups = 0 if ours.parts is None else len(ours.parts)
    return Test(crossed.p, f"jackknife t-test over {groups} groups of dialogues")


def _over_runs(ours: Sequence[Score], base: Sequence[Score]) -> Test | None:
    crossed = _jackknifed(ours, base)
    if crossed is not None and not math.isnan(crossed.variance):
        name = f"t-test over {OVER_RUNS} and dialogues, both taken as random"
        single = min(len(ours), len(base)) == 1
        return Test(crossed.p, f"{name}, one run as varying like the other's" if single else name)
    if min(len(ours), len(base)) < 2:
        return None
    p = welch_t(*([score.value for score in side] for side in (ours, base)))
    return None if math.isnan(p) else Test(p, f"Welch's t-test over {OVER_RUNS}")


def _jackknifed(ours: Sequence[Score], base: Sequence[Score]) -> Crossed | None:
    sides = [[pseudo_values(score) for score in side] for side in (ours, base)]
    mine, theirs = ([values for values in side if values is not None] for side in sides)
    if len(mine) < len(ours) or len(theirs) < len(base):
        return None
    if len({values.shares.tobytes() for values in (*mine, *theirs)}) != 1:
        return None
    return difference_over_seeds(mine, theirs)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"value": _plain(value["value"]), "interval": _plain(value["interval"])}
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and math.isnan(value) else value

"""Groups human judgements by question; computes win/tie/loss, kappa and mean ratings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError
from dialbench.human.judgements import Judgement, normalised
from dialbench.records import Cell, Column, Score
from dialbench.reporting.tables.significance import Marks, Rules, Sample, mark
from dialbench.stats.agreement import Agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha
from dialbench.stats.clusters import ClusteredMean, Estimate
from dialbench.stats.significance import differences
from dialbench.stats.verdicts import Verdicts, by_item, by_judgement, share_of

KAPPA = "kappa"
NOT_JUDGED = "not judged"
_MIN_PAIRS = 2  # of values, for a paired t-test
_SHARES: dict[str, Callable[[Verdicts], Estimate]] = {
    "win": lambda verdicts: verdicts.win,
    "tie": lambda verdicts: verdicts.tie,
    "loss": lambda verdicts: verdicts.loss,
    "lose": lambda verdicts: verdicts.loss,
}


class Question(NamedTuple):
    """What judges are asked: how `system` fares `against` another by a criterion.

    `against` is empty where the system alone is rated.
    """

    system: str
    against: str = ""
    criterion: str = ""

    @property
    def key(self) -> tuple[str, frozenset[str]]:
        """The same for the same systems in either order and any spelling."""
        return normalised(self.criterion), frozenset(
            (normalised(self.system), normalised(self.against))
        )


def question_of(judgement: Judgement) -> Question:
    """The question that a judgement answers."""
    return Question(judgement.system, judgement.against, judgement.criterion)


def _item(question: Question, judgement: Judgement) -> tuple[object, str]:
    return question.key, judgement.example


@dataclass(frozen=True)
class CountingRule:
    """How a paper counts judgements.

    Attributes:
        verdicts: shares of wins, ties and losses of (items, raters) judgements.
        description: the same as a sentence for the notes.
        agreement: coefficient of agreement of (items, raters) judgements.
        agreement_name: its name.
        groups: the pair of systems that each group of columns compares, by the name with which
            its columns begin; the rows of such a table are criteria.
    """

    verdicts: Callable[[NDArray[np.float64]], Verdicts] = by_judgement
    description: str = "Shares of all judgements."
    agreement: Callable[[NDArray[np.float64]], Agreement] = fleiss_kappa
    agreement_name: str = "Fleiss' kappa"
    groups: Mapping[str, tuple[str, str]] = field(default_factory=dict)


_PER_EXAMPLE = CountingRule(by_item, "Shares of examples; judges who differ make a tie.")
_PAIRS_IN_COLUMNS = CountingRule(
    agreement=cohen_kappa,
    agreement_name="Cohen's kappa, the mean over pairs of judges",
    groups={"group1": ("DialogVED", "PLATO"), "group2": ("DialogVED-Sampling", "PLATO")},
)
_COUNTING_RULES = {("adand", "2"): _PER_EXAMPLE, ("dialogved", "6"): _PAIRS_IN_COLUMNS}


def counting_rule(paper: str, table: str) -> CountingRule:
    """How a paper's table counts judgements."""
    return _COUNTING_RULES.get((paper, table), CountingRule())


@dataclass(frozen=True)
class MeanComparison:
    """Mean ratings of several systems compared with the best one, by row number.

    Attributes:
        marks: stars are those of a paired t-test over the mean ratings of examples.
        common: on how many examples both a system and the best were rated; of several that are
            best, the fewest.
        ahead: systems that are significantly better than the best on these common examples;
            they have no star.
    """

    marks: Marks
    common: Mapping[int, int]
    ahead: frozenset[int]

    @property
    def tested(self) -> list[int]:
        """The rows that were tested."""
        return [row for row in self.common if row not in self.marks.untested]


class JudgementTable:
    """The judgements of a file by question.

    Args:
        judgements: as `read_judgements` returns them.
    """

    def __init__(self, judgements: Iterable[Judgement]) -> None:
        self._judgements: dict[tuple[str, frozenset[str]], list[Judgement]] = {}
        self._first_question: dict[frozenset[str], Question] = {}
        for judgement in judgements:
            question = question_of(judgement)
            self._judgements.setdefault(question.key, []).append(judgement)
            self._first_question.setdefault(question.key[1], question)

    def questions(self) -> Iterator[Question]:
        """Every question; a pair of systems keeps its first spelling under every criterion."""
        for criterion, systems in self._judgements:
            yield self._first_question[systems]._replace(criterion=criterion)

    def values(self, *questions: Question) -> NDArray[np.float64]:
        """(items, judges) judgements as seen from each question's system, NaN where one is missing.

        An item is an example under one of the questions.
        """
        asked = [(q, j) for q in questions for j in self._judgements.get(q.key, [])]
        items = {key: n for n, key in enumerate(dict.fromkeys(_item(q, j) for q, j in asked))}
        judges = {name: n for n, name in enumerate(dict.fromkeys(j.judge for _, j in asked))}
        values = np.full((len(items), len(judges)), np.nan)
        for question, judgement in asked:
            same_side = normalised(judgement.system) == normalised(question.system)
            sign = 1.0 if same_side else -1.0
            values[items[_item(question, judgement)], judges[judgement.judge]] = (
                sign * judgement.value
            )
        return values

    def alpha(self, questions: Iterable[Question]) -> Agreement | None:
        """Krippendorff's alpha (ordinal) of all judgements on several questions.

        None where no example was judged twice or all judgements are equal.
        """
        values = self.values(*{question.key: question for question in questions}.values())
        try:
            alpha = krippendorff_alpha(values, "ordinal")
        except ValueError:
            return None
        return None if math.isnan(alpha.value) else alpha

    def cell(self, question: Question, statistic: str, rule: CountingRule) -> Cell:
        """A statistic of the judgements on a question.

        Args:
            question: what was judged.
            statistic: win, tie, loss (or lose), kappa, mean, or a rating, for its share.
            rule: how judgements are counted.
        """
        values = self.values(question)
        if not values.size:
            return Cell(reason=NOT_JUDGED)
        if statistic == KAPPA:
            return _kappa(values, rule)
        if statistic in _SHARES:
            estimate = _SHARES[statistic](rule.verdicts(values))
        else:
            estimate = _rating_statistic(values, statistic)
        return Cell(estimate.value, estimate.interval)

    def compare_means(
        self, questions: Mapping[int, Question], column: Column, rules: Rules
    ) -> MeanComparison:
        """Compares systems by their mean ratings.

        Args:
            questions: the question of each row; a row without judgements does not compete.
            column: the column of the means.
            rules: what is significant.
        """
        by_row = {row: self._example_means(question) for row, question in questions.items()}
        rated = {row: example_means for row, example_means in by_row.items() if example_means}
        names = sorted({name for example_means in rated.values() for name in example_means})
        means = {row: np.array([m.get(name, np.nan) for name in names]) for row, m in rated.items()}
        # The best is that of the means shown, which are over all ratings.
        shown = {r: fmean(j.value for j in self._judgements[questions[r].key]) for r in rated}
        best = mark({r: _sample(v) for r, v in shown.items()}, column, rules).best
        gaps = {
            row: [gap[~np.isnan(gap)] for gap in (differences(means[row], means[b]) for b in best)]
            for row in (rated if best else ())
            if row not in best
        }
        common = {row: min(map(len, row_gaps)) for row, row_gaps in gaps.items()}
        few = {row for row, count in common.items() if count < _MIN_PAIRS}
        samples = {r: _sample(shown[r], None if r in few else means[r]) for r in rated}
        marks = mark(samples, column, rules)
        # These means may be over other examples than those on which both systems were rated.
        certain = marks.significant | marks.reversed
        ahead = {row for row in certain if any(gap.mean() > 0 for gap in gaps[row])}
        marks = replace(marks, significant=marks.significant - ahead)
        return MeanComparison(marks, common, frozenset(ahead))

    def _example_means(self, question: Question) -> dict[str, float]:
        """The mean rating of each example."""
        ratings: dict[str, list[float]] = {}
        for judgement in self._judgements.get(question.key, []):
            ratings.setdefault(judgement.example, []).append(judgement.value)
        return {example: fmean(values) for example, values in ratings.items()}

    def require_ratings(self, question: Question, scale: Sequence[str]) -> None:
        """Raises InputError if a judgement on a question is no rating of this scale."""
        for judgement in self._judgements.get(question.key, []):
            if judgement.value not in map(float, scale):
                raise InputError(
                    f"rating {judgement.value:g} is not on the scale {', '.join(scale)}",
                    where=judgement.where,
                    hint="Use the scale of the paper's table.",
                )


def _sample(value: float, per_response: NDArray[np.float64] | None = None) -> Sample:
    """A mean rating, and the means of the examples."""
    return Sample((Score(value, 0, "", per_response=per_response),))


def _kappa(values: NDArray[np.float64], rule: CountingRule) -> Cell:
    # Only Cohen's kappa depends on who judged; for others, judges may have taken turns.
    judgements = values if rule.agreement is cohen_kappa else _without_gaps(values)
    try:
        kappa = rule.agreement(judgements)
    except ValueError as error:
        return Cell(reason=str(error))
    if math.isnan(kappa.value):
        return Cell(reason="all judgements are equal")
    return Cell(kappa.value, kappa.interval)


def _without_gaps(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The judgements on each item in as few columns as hold them; NaN is sorted to the end."""
    most = int((~np.isnan(values)).sum(axis=1).max())
    return np.asarray(np.sort(values, axis=1)[:, :most])


def _rating_statistic(values: NDArray[np.float64], statistic: str) -> Estimate:
    is_rated = ~np.isnan(values)
    items = np.broadcast_to(np.arange(len(values))[:, None], values.shape)[is_rated]
    if statistic == "mean":
        mean = ClusteredMean.of(values[is_rated], items)
        return Estimate(mean.mean, mean.interval)
    return share_of(ClusteredMean.of(values[is_rated] == float(statistic), items))

"""Judgements by what was asked, and what a paper's cell makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError
from dialbench.human.judgements import Vote, plain
from dialbench.records import Cell, Column, Score
from dialbench.reporting.tables.significance import Marks, Rules, Sample, mark
from dialbench.stats.agreement import Agreement, cohen_kappa, fleiss_kappa
from dialbench.stats.clusters import ClusteredMean, Estimate
from dialbench.stats.significance import differences
from dialbench.stats.verdicts import Verdicts, by_item, by_vote, share_of

KAPPA = "kappa"
NOT_JUDGED = "not judged"
_FEWEST = 2  # pairs that a t-test needs
_SHARES: dict[str, Callable[[Verdicts], Estimate]] = {
    "win": lambda found: found.win,
    "tie": lambda found: found.tie,
    "loss": lambda found: found.loss,
    "lose": lambda found: found.loss,
}


class Asked(NamedTuple):
    """What judges are asked: how `system` fares `against` another by a criterion.

    `against` is empty where the system alone is rated.
    """

    system: str
    against: str = ""
    criterion: str = ""

    @property
    def key(self) -> tuple[str, frozenset[str]]:
        """The same for the same systems in either order, however they are written."""
        return plain(self.criterion), frozenset((plain(self.system), plain(self.against)))


def question_of(vote: Vote) -> Asked:
    """What a judgement answers."""
    return Asked(vote.system, vote.against, vote.criterion)


@dataclass(frozen=True)
class Way:
    """How a paper counts votes.

    Attributes:
        verdicts: shares of wins, ties and losses of (items, raters) votes.
        said: the same in words.
        agreement: of (items, raters) votes.
        agreement_said: its name.
        groups: pairs of systems that stand side by side, by how their columns begin; the rows of
            such a table are criteria.
    """

    verdicts: Callable[[NDArray[np.float64]], Verdicts] = by_vote
    said: str = "Shares of all judgements."
    agreement: Callable[[NDArray[np.float64]], Agreement] = fleiss_kappa
    agreement_said: str = "Fleiss' kappa"
    groups: Mapping[str, tuple[str, str]] = field(default_factory=dict)


PLAIN = Way()
_OF_ITEMS = Way(by_item, "Shares of examples: where judges differ, it is a tie.")
_IN_GROUPS = Way(
    agreement=cohen_kappa,
    agreement_said="Cohen's kappa, the mean over pairs of judges",
    groups={"group1": ("DialogVED", "PLATO"), "group2": ("DialogVED-Sampling", "PLATO")},
)
_WAYS = {("adand", "2"): _OF_ITEMS, ("dialogved", "6"): _IN_GROUPS}


def way_of(paper: str, table: str) -> Way:
    """How the votes of a table are counted."""
    return _WAYS.get((paper, table), PLAIN)


@dataclass(frozen=True)
class Compared:
    """Rated systems beside the one that is rated best, by row number.

    Attributes:
        marks: stars are those of a paired t-test over the mean ratings of examples.
        common: on how many examples both a system and the best were rated; of several that are
            best, the fewest.
        ahead: systems that are significantly better than the best there; they have no star.
    """

    marks: Marks
    common: Mapping[int, int]
    ahead: frozenset[int]

    @property
    def tested(self) -> list[int]:
        """The rows that were tested."""
        return [row for row in self.common if row not in self.marks.untested]


class Ballots:
    """The judgements of a file by what they answer.

    Args:
        votes: as `read_votes` gives them.
    """

    def __init__(self, votes: Iterable[Vote]) -> None:
        self._votes: dict[tuple[str, frozenset[str]], list[Vote]] = {}
        self._first: dict[frozenset[str], Asked] = {}
        for vote in votes:
            asked = question_of(vote)
            self._votes.setdefault(asked.key, []).append(vote)
            self._first.setdefault(asked.key[1], asked)

    def asked(self) -> Iterator[Asked]:
        """What was asked, the systems as they are first named, whatever the criterion."""
        for criterion, systems in self._votes:
            yield self._first[systems]._replace(criterion=criterion)

    def table(self, asked: Asked) -> NDArray[np.float64]:
        """(items, judges) of the answers as seen from `asked.system`, NaN where one is missing."""
        votes = self._votes.get(asked.key, [])
        items = {name: n for n, name in enumerate(dict.fromkeys(v.example for v in votes))}
        judges = {name: n for n, name in enumerate(dict.fromkeys(v.judge for v in votes))}
        table = np.full((len(items), len(judges)), np.nan)
        for vote in votes:
            side = 1.0 if plain(vote.system) == plain(asked.system) else -1.0
            table[items[vote.example], judges[vote.judge]] = side * vote.value
        return table

    def cell(self, asked: Asked, statistic: str, way: Way) -> Cell:
        """A statistic of the answers to a question.

        Args:
            asked: the question.
            statistic: win, tie, loss (or lose), kappa, mean, or a rating whose share is wanted.
            way: how votes are counted.
        """
        table = self.table(asked)
        if not table.size:
            return Cell(reason=NOT_JUDGED)
        if statistic == KAPPA:
            return _kappa(table, way)
        if statistic in _SHARES:
            found = _SHARES[statistic](way.verdicts(table))
        else:
            found = _of_ratings(table, statistic)
        return Cell(found.value, found.interval)

    def compared(self, asked: Mapping[int, Asked], column: Column, rules: Rules) -> Compared:
        """The systems that compete by the mean of their ratings.

        Args:
            asked: the question of each row; one without an answer does not compete.
            column: where the means stand.
            rules: what is significant.
        """
        rated = {row: found for row, of in asked.items() if (found := self._examples(of))}
        names = sorted({name for found in rated.values() for name in found})
        means = {row: np.array([f.get(name, np.nan) for name in names]) for row, f in rated.items()}
        # Marks stand at the mean that the table shows, which is over all ratings.
        shown = {r: fmean(v.value for v in self._votes[asked[r].key]) for r in rated}
        best = mark({r: _sample(v) for r, v in shown.items()}, column, rules).best
        gaps = {
            row: [gap[~np.isnan(gap)] for gap in (differences(means[row], means[b]) for b in best)]
            for row in (rated if best else ())
            if row not in best
        }
        common = {row: min(map(len, found)) for row, found in gaps.items()}
        few = {row for row, count in common.items() if count < _FEWEST}
        samples = {r: _sample(shown[r], None if r in few else means[r]) for r in rated}
        marks = mark(samples, column, rules)
        # That mean may rest on other examples than those on which both systems were rated.
        ahead = {row for row in marks.significant if any(gap.mean() > 0 for gap in gaps[row])}
        marks = replace(marks, significant=marks.significant - ahead)
        return Compared(marks, common, frozenset(ahead))

    def _examples(self, asked: Asked) -> dict[str, float]:
        """The mean rating of each example."""
        ratings: dict[str, list[float]] = {}
        for vote in self._votes.get(asked.key, []):
            ratings.setdefault(vote.example, []).append(vote.value)
        return {example: fmean(values) for example, values in ratings.items()}

    def demand_ratings(self, asked: Asked, known: Sequence[str]) -> None:
        """Raises InputError if an answer to a question is none of these ratings."""
        for vote in self._votes.get(asked.key, []):
            if vote.value not in map(float, known):
                raise InputError(
                    f"rating {vote.value:g}, where the table has {', '.join(known)}",
                    where=vote.where,
                    hint="Rate on the paper's scale.",
                )


def _sample(value: float, per_response: NDArray[np.float64] | None = None) -> Sample:
    """A mean rating, and the means of the examples."""
    return Sample.of([Score(value, 0, "", per_response=per_response)])


def _kappa(table: NDArray[np.float64], way: Way) -> Cell:
    # Whose votes they are matters to Cohen's kappa alone: judges may have taken turns.
    votes = table if way.agreement is cohen_kappa else _closed_up(table)
    try:
        found = way.agreement(votes)
    except ValueError as error:
        return Cell(reason=str(error))
    if math.isnan(found.value):
        return Cell(reason="all votes are equal")
    return Cell(found.value, found.interval)


def _closed_up(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The votes on each item in as few columns as hold them; NaN is sorted to the end."""
    most = int((~np.isnan(table)).sum(axis=1).max())
    return np.asarray(np.sort(table, axis=1)[:, :most])


def _of_ratings(table: NDArray[np.float64], statistic: str) -> Estimate:
    there = ~np.isnan(table)
    items = np.broadcast_to(np.arange(len(table))[:, None], table.shape)[there]
    if statistic == "mean":
        found = ClusteredMean.of(table[there], items)
        return Estimate(found.mean, found.interval)
    return share_of(ClusteredMean.of(table[there] == float(statistic), items))

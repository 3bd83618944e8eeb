"""The contract of every metric: statistics per response, merge, score (after sacreBLEU).

`Metric.statistics` looks at text once and keeps what the value needs of each response.
Statistics are indexed and concatenated like arrays, so shards, intervals and permutation
tests never touch text again. `Metric.score` turns any selection of them into the value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.texts import Paired, Ragged, Texts
from dialbench.records import ExampleResponses, Tally
from dialbench.text.tokenizer import tokenizer as find_tokenizer

BLOCK_TOKENS = 1 << 18

Bounds = tuple[float, float]
SHARE: Bounds = (0.0, 1.0)
POSITIVE: Bounds = (0.0, math.inf)
AT_LEAST_ONE: Bounds = (1.0, math.inf)
COSINE: Bounds = (-1.0, 1.0)

REPEATS_FROM = 300
"""`Metric.interval_from` of metrics that whole responses move a lot when they occur twice."""


@dataclass(frozen=True)
class Dense:
    """Statistics of a fixed number of columns: `values` is (responses, columns)."""

    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Dense:
        return Dense(self.values[index])

    @classmethod
    def concatenate(cls, parts: Sequence[Dense]) -> Dense:
        """All responses of `parts`, in order."""
        return cls(np.concatenate([part.values for part in parts]))


S = TypeVar("S", Dense, Ragged, Paired)
"""Statistics: numbers, or the tokens of the responses, or these with their references'."""


class Metric(ABC, Generic[S]):
    """A metric of a set of responses.

    Attributes:
        name: how `--metrics` calls it.
        tokenizer: name of the tokeniser that its texts must have gone through.
        signature: every choice that changes the value; that of a value also tells what the
            responses themselves decide (`signature_of`).
        verbatim: whether it reads the text itself, not only its tokens.
        ordered: whether the order of the responses changes the value.
        bounds: the lowest and highest value that is possible.
        interacting: whether what a response adds to the value depends on which others there are,
            as with different n-grams; the variance of such values needs a correction.
        interval_from: the fewest responses of which an interval is told. The value of some
            metrics comes from rare responses; whether a smaller set happens to hold as many as
            usual, it cannot tell (docs/statistics.md, "Rare responses").
        choices: fields of `MetricSettings` that build it anew, for scoring its statistics.
        missing: what it would need but was not given; its value is NaN then, whatever the text.
        version: raised when a change of the code changes the value.
    """

    verbatim: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    interacting: ClassVar[bool] = False
    bounds: Bounds = (-math.inf, math.inf)
    interval_from: int = 0
    version: ClassVar[int] = 1
    missing: str = ""

    def __init__(self, name: str, recipe: str, tokenizer: str) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.choices: Mapping[str, Any] = {"tokenizer": tokenizer}
        self.signature = f"{recipe}|tok:{tokenizer}|v:{self.version}"

    @abstractmethod
    def statistics(self, texts: Texts) -> S:
        """What the value needs of each response, in the order of `texts`."""

    @abstractmethod
    def score(self, statistics: S) -> float:
        """The value of these responses; NaN where it is not defined."""

    def score_fast(self, statistics: S) -> float:
        """The value as intervals use it: equal to `score` up to rounding, but fast.

        NaN for a metric that has neither.
        """
        return self.score(statistics)

    def score_subsets(
        self, statistics: S, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) the value on the union of the kept groups, for each of k choices of groups.

        Equal to `score` of those responses up to rounding; NaN where it is not defined.

        Args:
            statistics: of all responses.
            groups: (responses,) the group of each, 0 to G - 1.
            included: (k, G) which groups each choice keeps.
        """
        return np.array([self.score_fast(statistics[chosen[groups]]) for chosen in included])

    def jackknife_values(
        self, statistics: S, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) values that show how far other dialogues would move the value.

        Those of `score_subsets`, unless leaving responses out moves them at random besides.
        """
        return self.score_subsets(statistics, groups, included)

    def per_response(self, statistics: S) -> NDArray[np.float64] | None:
        """(responses,) values for paired tests, NaN where an example is left out.

        None where the metric exists for a whole set only.
        """
        return None

    def tally(self, statistics: S, dialogues: NDArray[np.int64]) -> Tally | None:
        """Counts by dialogue for tests that swap whole dialogues between two systems.

        None where the metric is no function of such counts, or a mean over responses.

        Args:
            statistics: of all responses.
            dialogues: (responses,) the dialogue of each, 0, 1, ...
        """
        return None

    def count(self, statistics: S) -> int:
        """How many responses the value rests on."""
        return len(statistics)

    def signature_of(self, statistics: S) -> str:
        """The signature of the value of these; values of different signatures do not compare."""
        return self.signature

    @abstractmethod
    def reason(self, statistics: S) -> str:
        """Why `score` of these statistics is NaN; empty where it is not."""


class SumMetric(Metric[Dense]):
    """A metric whose value is a function of sums over the responses."""

    @abstractmethod
    def addends(self, statistics: Dense) -> NDArray[Any]:
        """(responses, columns) what is added up; without NaN."""

    @abstractmethod
    def of_sums(self, sums: NDArray[Any]) -> float:
        """The value of responses whose addends sum to (columns,) `sums`; NaN where undefined."""

    def score_subsets(
        self, statistics: Dense, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) values; every response is added up once."""
        sums = included @ sums_by_group(self.addends(statistics), groups, included.shape[1])
        return np.array([self.of_sums(choice) for choice in sums])


def sums_by_group(
    addends: NDArray[Any], groups: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """(count, columns) sums of the (responses, columns) addends over each group."""
    columns = [np.bincount(groups, weights=column, minlength=count) for column in addends.T]
    return np.stack(columns, axis=1)


class MeanMetric(SumMetric):
    """A metric whose value is the mean over the responses that have one.

    The mean is correctly rounded, hence the same for every order of the responses.
    """

    @abstractmethod
    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) one value each, NaN where the example is left out."""

    @abstractmethod
    def undefined_reason(self) -> str:
        """Why no response at all has a value."""

    def statistics(self, texts: Texts) -> Dense:
        """(responses, 1) the values."""
        return Dense(self.values(texts)[:, None])

    def score(self, statistics: Dense) -> float:
        """The mean of the values that are there."""
        values = statistics.values[:, 0]
        there = values[~np.isnan(values)]
        return math.fsum(there) / len(there) if len(there) else math.nan

    def addends(self, statistics: Dense) -> NDArray[np.float64]:
        """(responses, 2) the value where there is one, and whether there is."""
        values = statistics.values[:, 0]
        there = ~np.isnan(values)
        return np.stack([np.where(there, values, 0.0), there], axis=1)

    def of_sums(self, sums: NDArray[Any]) -> float:
        """The mean."""
        return float(sums[0] / sums[1]) if sums[1] else math.nan

    def per_response(self, statistics: Dense) -> NDArray[np.float64]:
        """(responses,) the values themselves."""
        return np.asarray(statistics.values[:, 0], dtype=np.float64)

    def count(self, statistics: Dense) -> int:
        """How many responses have a value."""
        return int(np.count_nonzero(~np.isnan(statistics.values[:, 0])))

    def reason(self, statistics: Dense) -> str:
        """Why there is no mean."""
        return "" if self.count(statistics) else self.undefined_reason()


def read(pairs: Iterable[ExampleResponses], metrics: Sequence[Metric[Any]]) -> Texts:
    """Examples and responses as these metrics, one or more, need them.

    Raises:
        ValueError: the metrics were made for different tokenisers.
    """
    names = sorted({metric.tokenizer for metric in metrics})
    if len(names) != 1:
        raise ValueError(
            f"all metrics must have the same tokeniser, not {', '.join(names) or 'none'}"
        )
    verbatim = any(metric.verbatim for metric in metrics)
    return Texts.build(pairs, find_tokenizer(names[0]), verbatim=verbatim)

"""Length, and the lexical richness of all responses read as one text."""

from __future__ import annotations

import math
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import POSITIVE, SHARE, MeanMetric, Metric
from dialbench.metrics.info import SATURATED, MetricInfo
from dialbench.metrics.joined import Windows, mtld, mtld_of_groups, runs, types_in_windows
from dialbench.metrics.texts import Ragged, Texts

_BLOCK = 1 << 16
_FEWEST_FACTORS = 8
"""Of MTLD; the lengths of fewer say next to nothing of those of others."""


class Length(MeanMetric):
    """length: mean number of tokens of a response; an empty response counts 0."""

    bounds = POSITIVE

    def __init__(self, tokenizer: str) -> None:
        super().__init__("length", "length|unit:tokens", tokenizer)

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) number of tokens."""
        return texts.responses.lengths.astype(np.float64)

    def undefined_reason(self) -> str:
        """There is nothing to measure."""
        return "there are no responses"


class _Joined(Metric[Ragged]):
    """A metric of all responses joined in test order; their order changes the value."""

    ordered: ClassVar[bool] = True

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses, in test order."""
        return texts.responses

    def reason(self, statistics: Ragged) -> str:
        """Why there is no value."""
        return "" if len(statistics.values) else "no response has a token"


class Mtld(_Joined):
    """mtld: mean number of tokens over which the type-token ratio stays above 0.72.

    McCarthy and Jarvis (2010), mean of the forward and the backward pass. A factor ends where
    the ratio reaches the threshold (`<=`). Where no factor ends the value is the number of
    tokens.
    """

    bounds = POSITIVE

    def __init__(self, tokenizer: str) -> None:
        super().__init__(
            "mtld", "mtld|threshold:0.72|factor:<=|order:test|by:lexicalrichness", tokenizer
        )

    def score(self, statistics: Ragged) -> float:
        """The value that lexicalrichness gives; NaN without tokens."""
        return mtld(statistics) if len(statistics.values) else math.nan

    def jackknife_values(
        self, statistics: Ragged, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) values; a group that is left out takes along the factors whose middle it holds.

        Read anew, all factors behind a gap would start elsewhere: that moves the value at random,
        and more than other dialogues do.
        """
        if len(statistics.values) < _FEWEST_FACTORS * self.score(statistics):
            return np.full(len(included), np.nan)
        return mtld_of_groups(statistics, groups, included)


class Mattr(_Joined):
    """mattr: mean over all windows of consecutive tokens of types / tokens, in (0, 1].

    Covington and McFall (2010). Fewer tokens than the window: types / tokens.

    Args:
        name: "mattr" for the usual window of 50, "mattr-4" for the one that a paper names.
        window: number of tokens in a window.
        tokenizer: name of the tokeniser.
    """

    bounds = SHARE

    def __init__(self, name: str, window: int, tokenizer: str) -> None:
        super().__init__(name, f"mattr|window:{window}|order:test|by:lexicalrichness", tokenizer)
        self._window = window

    def score(self, statistics: Ragged) -> float:
        """The value that lexicalrichness gives; NaN without tokens."""
        tokens, window = statistics.values, min(self._window, len(statistics.values))
        if not len(tokens):
            return math.nan
        types = statistics.once(types_in_windows, window)
        blocks = (types[start : start + _BLOCK] for start in range(0, len(types), _BLOCK))
        # One sum in order, as in lexicalrichness, so that it rounds as there.
        shares = chain.from_iterable((block / window).tolist() for block in blocks)
        return float(sum(shares) / len(types))

    def score_subsets(
        self, statistics: Ragged, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) values; only windows near responses left out are counted again."""
        windows = Windows(statistics, self._window)
        return np.array([windows.mean(runs(statistics, chosen[groups])) for chosen in included])


METRICS = (
    MetricInfo("length", "Length", "Lexical", Length, direction="none", digits=1, exact=True),
    MetricInfo("mtld", "MTLD", "Lexical", Mtld, digits=1),
    MetricInfo("mattr", "MATTR", "Lexical", Mattr, lambda s: Mattr("mattr", 50, s.tokenizer)),
    MetricInfo(
        "mattr-4",
        "MATTR-4",
        "Lexical",
        Mattr,
        lambda s: Mattr("mattr-4", 4, s.tokenizer),
        unranked=SATURATED,
    ),
)

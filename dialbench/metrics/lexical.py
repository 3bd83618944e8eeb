"""Length, and the lexical richness of all responses read as one text."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import Direction, MeanMetric, Metric
from dialbench.metrics.texts import Ragged, Texts


class Length(MeanMetric):
    """length: mean number of tokens of a response; an empty response counts 0."""

    direction: ClassVar[Direction] = "none"

    def __init__(self, tokenizer: str) -> None:
        super().__init__("length", "length|unit:tokens", tokenizer)

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) number of tokens."""
        return texts.responses.lengths.astype(np.float64)

    def absence(self) -> str:
        """There is nothing to measure."""
        return "there are no responses"


class _Joined(Metric[Ragged]):
    """A measure of all responses joined in test order; their order changes the value."""

    ordered: ClassVar[bool] = True

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses, in test order."""
        return texts.responses

    def score(self, statistics: Ragged) -> float:
        """The value that lexicalrichness gives; NaN without tokens."""
        return self._measure(_richness(statistics)) if len(statistics.values) else math.nan

    def reason(self, statistics: Ragged) -> str:
        """Why there is no value."""
        return "" if len(statistics.values) else "no response has a token"

    @abstractmethod
    def _measure(self, text: Any) -> float:
        """The measure of a `LexicalRichness` with at least one token."""


class Mtld(_Joined):
    """mtld: mean number of tokens over which the type-token ratio stays above 0.72.

    McCarthy and Jarvis (2010), mean of the forward and the backward pass. A factor ends where
    the ratio reaches the threshold (`<=`). Where no factor ends the value is the number of
    tokens.
    """

    def __init__(self, tokenizer: str) -> None:
        super().__init__(
            "mtld", "mtld|threshold:0.72|factor:<=|order:test|by:lexicalrichness", tokenizer
        )

    def _measure(self, text: Any) -> float:
        return float(text.mtld(threshold=0.72))


class Mattr(_Joined):
    """mattr: mean over all windows of consecutive tokens of types / tokens, in (0, 1].

    Covington and McFall (2010). Fewer tokens than the window: types / tokens.

    Args:
        name: "mattr" for the usual window of 50, "mattr-4" for the one that a paper names.
        window: number of tokens in a window.
        tokenizer: name of the tokeniser.
    """

    def __init__(self, name: str, window: int, tokenizer: str) -> None:
        super().__init__(name, f"mattr|window:{window}|order:test|by:lexicalrichness", tokenizer)
        self._window = window

    def replicate(self, statistics: Ragged) -> float:
        """Equal to `score` up to rounding, without a Python loop over the windows."""
        tokens = statistics.values
        if not len(tokens):
            return math.nan
        window = min(self._window, len(tokens))
        return _types_in_windows(tokens, window) / (window * (len(tokens) - window + 1))

    def _measure(self, text: Any) -> float:
        return float(text.ttr if text.words < self._window else text.mattr(self._window))


def _richness(statistics: Ragged) -> Any:
    """The joined responses as a `LexicalRichness` that leaves our tokens alone."""
    from lexicalrichness import LexicalRichness

    words = np.array(list(statistics.words), dtype=object)
    tokens = words[statistics.values].tolist()
    return LexicalRichness(tokens, preprocessor=None, tokenizer=None)


def _types_in_windows(tokens: NDArray[np.int32], window: int) -> int:
    """Sum over all windows of their number of types.

    A token is new in the windows that hold it but not its last occurrence before; these are
    consecutive, so they are counted by their first and last start.
    """
    order = np.argsort(tokens, kind="stable")
    repeated = tokens[order[1:]] == tokens[order[:-1]]
    before = np.full(len(tokens), -1)
    before[order[1:][repeated]] = order[:-1][repeated]
    place = np.arange(len(tokens))
    first = np.maximum(np.maximum(before + 1, place - window + 1), 0)
    last = np.minimum(place, len(tokens) - window)
    return int(np.maximum(last - first + 1, 0).sum())

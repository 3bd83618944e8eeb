"""What systems say of their own, and what they have from the training split."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import SHARE, Dense, MeanMetric, Metric
from dialbench.metrics.info import Direction, MetricInfo
from dialbench.metrics.ngrams import ngram_counts, ngrams
from dialbench.metrics.texts import Ragged, Texts
from dialbench.metrics.training import TRAINING, Training

_ORDER = 4


class _AgainstTraining(Metric[Dense]):
    """A metric of responses beside the training split; it stands before `MeanMetric`.

    Args:
        name: how `--metrics` calls it.
        recipe: the start of the signature.
        tokenizer: name of the tokeniser; the training split must have gone through it.
        training: the training split; None gives NaN.
        missing: why there is none.
    """

    def __init__(
        self, name: str, recipe: str, tokenizer: str, training: Training | None, missing: str
    ) -> None:
        source = training.checksum[:12] if training else "missing"
        super().__init__(name, f"{recipe}|train:{source}", tokenizer)
        self._training = training
        self.missing = "" if training else missing

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) one value each."""
        if self._training is None:
            return np.full(len(texts), np.nan)
        both = Ragged.concatenate([self._training.turns, texts.responses])
        return self._compare_with_training(both, len(self._training.turns))

    @abstractmethod
    def _compare_with_training(self, both: Ragged, turns: int) -> NDArray[np.float64]:
        """(responses,) the value of each text of `both` behind the first `turns`."""


class Novelty(_AgainstTraining, MeanMetric):
    """novelty: share of responses that are not, token for token, a turn of the training split.

    1 - novelty is the share copied whole. An empty response counts 0: it says nothing new.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str, training: Training | None, missing: str = "") -> None:
        super().__init__("novelty", "novelty|unit:response", tokenizer, training, missing)

    def _compare_with_training(self, both: Ragged, turns: int) -> NDArray[np.float64]:
        texts = [tuple(text) for text in both.lists()]
        known = {(), *texts[:turns]}
        return np.array([text not in known for text in texts[turns:]], np.float64)

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or "there are no responses"


class CopyRate(_AgainstTraining, MeanMetric):
    """copy-rate: share of the 4-grams of a response that the training split has too, mean.

    Responses of fewer than four tokens are left out. In [0, 1]; lower is more of one's own.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str, training: Training | None, missing: str = "") -> None:
        super().__init__("copy-rate", f"copy-rate|unit:{_ORDER}-gram", tokenizer, training, missing)

    def _compare_with_training(self, both: Ragged, turns: int) -> NDArray[np.float64]:
        counts = ngram_counts(both, _ORDER)
        known, mine = np.split(ngrams(both, _ORDER), [counts[:turns].sum()])
        counts = counts[turns:]
        owners = np.repeat(np.arange(len(counts)), counts)
        copied = np.bincount(owners[np.isin(mine, known)], minlength=len(counts))
        out = np.full(len(counts), np.nan)
        np.divide(copied, counts, out=out, where=counts > 0)
        return out

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or f"no response has {_ORDER} tokens"


def _info(
    name: str, title: str, kind: type[Novelty] | type[CopyRate], direction: Direction
) -> MetricInfo:
    return MetricInfo(
        name,
        title,
        "Diversity",
        kind,
        lambda s: kind(s.tokenizer, *s.of(TRAINING)),
        direction,
        TRAINING,
        exact=True,
    )


METRICS = (
    _info("novelty", "Novelty", Novelty, "higher"),
    _info("copy-rate", "Copied", CopyRate, "lower"),
)

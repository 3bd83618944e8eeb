"""What the responses of a system repeat of each other (Shaib et al., 2024)."""

from __future__ import annotations

import math
import zlib
from typing import ClassVar

import numpy as np

from dialbench.metrics.base import POSITIVE, REPEATS_FROM, Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.ngrams import distinct, ngram_counts, ngrams, renumber
from dialbench.metrics.texts import Ragged, Texts

_LEVEL = 9
_GZIP = 16 + zlib.MAX_WBITS
"""What tells zlib to write gzip's header and checksum."""


class CompressionRatio(Metric[Ragged]):
    """compression-ratio: bytes of all responses as one text, divided by those gzip makes of it.

    The text is the tokens of all responses in order, with a space between any two, in UTF-8; gzip
    at level 9. Lower is more varied. gzip looks back 32 KiB, so that order matters; the value
    grows with the text, which must be as long for two systems to compare; and another version of
    zlib may write other bytes, hence it is in the signature.
    """

    ordered: ClassVar[bool] = True
    bounds = POSITIVE
    interval_from = REPEATS_FROM

    def __init__(self, tokenizer: str) -> None:
        recipe = f"compression-ratio|scope:joined|format:gzip|level:{_LEVEL}"
        recipe += f"|zlib:{zlib.ZLIB_RUNTIME_VERSION}"
        super().__init__("compression-ratio", recipe, tokenizer)

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses."""
        return texts.responses

    def score(self, statistics: Ragged) -> float:
        """The ratio; NaN where there is no token."""
        if not len(statistics.values):
            return math.nan
        words = list(statistics.words)
        text = " ".join([words[number] for number in statistics.values.tolist()])
        content = text.encode("utf-8", "surrogatepass")
        return len(content) / len(zlib.compress(content, _LEVEL, _GZIP))

    def reason(self, statistics: Ragged) -> str:
        """Why nothing can be compressed."""
        return "" if len(statistics.values) else "no response has a token"


class NgramDiversity(Metric[Ragged]):
    """ngram-diversity: different n-grams / n-grams, summed over n = 1 to 4, in (0, 4].

    Meister et al. (2023) and Shaib et al. (2024): of the tokens of all responses in order as one
    text, so that n-grams do cross from one response to the next, unlike those of `Distinct`.
    """

    ordered: ClassVar[bool] = True
    bounds = (0.0, 4.0)
    interval_from = REPEATS_FROM
    _highest = 4

    def __init__(self, tokenizer: str) -> None:
        recipe = f"ngram-diversity|orders:1-{self._highest}|scope:joined"
        super().__init__("ngram-diversity", recipe, tokenizer)

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses."""
        return texts.responses

    def score(self, statistics: Ragged) -> float:
        """The sum; NaN with fewer than 4 tokens."""
        if self.reason(statistics):
            return math.nan
        ends = statistics.offsets[[0, -1]]
        joined = Ragged(statistics.values, ends, statistics.words)
        shares = (
            len(distinct(ngrams(joined, n))) / int(ngram_counts(joined, n)[0])
            for n in range(1, self._highest + 1)
        )
        return math.fsum(shares)

    def reason(self, statistics: Ragged) -> str:
        """How many tokens would be needed."""
        tokens = len(statistics.values)
        if tokens >= self._highest:
            return ""
        return f"{tokens} tokens in all, fewer than {self._highest}"


class SelfRepetition(Metric[Ragged]):
    """self-repetition: how many others share the 4-grams of a response, mean of logs, 0 or more.

    Salkar et al. (2022), Shaib et al. (2024): ln(1 + sum of N_i), N_i the number of other
    responses that have the i-th different 4-gram of this one. Lower is more varied. A response
    shorter than 4 tokens counts 0. It grows with the number of responses and with their length.
    """

    bounds = POSITIVE
    interval_from = REPEATS_FROM
    _n = 4

    def __init__(self, tokenizer: str) -> None:
        super().__init__("self-repetition", f"self-repetition|ngrams:{self._n}|log:e", tokenizer)

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses."""
        return texts.responses

    def score(self, statistics: Ragged) -> float:
        """The mean; NaN without responses."""
        if not len(statistics):
            return math.nan
        count = len(statistics)
        keys = distinct(ngrams(statistics, self._n, np.arange(count), count))
        codes, owners = np.divmod(keys, count)
        kinds = renumber(codes)
        elsewhere = np.bincount(kinds) - 1
        sums = np.bincount(owners, elsewhere[kinds], count)
        return math.fsum(np.log1p(sums)) / count

    def reason(self, statistics: Ragged) -> str:
        """Why there is no mean."""
        return "" if len(statistics) else "there are no responses"


METRICS = (
    MetricInfo(
        "compression-ratio",
        "Compression",
        "Diversity",
        CompressionRatio,
        direction="lower",
        digits=2,
    ),
    MetricInfo("ngram-diversity", "N-gram diversity", "Diversity", NgramDiversity),
    MetricInfo(
        "self-repetition", "Self-repetition", "Diversity", SelfRepetition, direction="lower"
    ),
)

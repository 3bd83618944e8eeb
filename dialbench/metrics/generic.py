"""Responses that would do anywhere, and responses that are given again and again."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import REPEATS_FROM, SHARE, MeanMetric
from dialbench.metrics.frequencies import Frequencies, FrequencyMetric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.ngrams import hashed_texts, once_per_group
from dialbench.metrics.texts import Interner, Ragged, Texts
from dialbench.records import Tally, fingerprint_of
from dialbench.text.tokenizer import tokenizer as find_tokenizer

PHRASES = (
    *("i don't know", "i do not know", "i don't know what to say", "i don't know what you mean"),
    *("i don't know what you are talking about", "i don't understand", "i have no idea"),
    *("i'm not sure", "i am not sure", "i'm not sure about that", "i don't think so", "i think so"),
    *("i'm sorry", "i am sorry", "sorry", "i'm sorry to hear that", "i am sorry to hear that"),
    *("yes", "yeah", "yep", "no", "nope", "ok", "okay", "all right", "alright", "sure", "right"),
    *("of course", "of course not", "oh", "oh no", "oh my god", "wow", "well", "really", "maybe"),
    *("i see", "i know", "i agree", "i hope so", "me too", "yes i do", "no i don't", "yes it is"),
    *("that's right", "that's true", "that's good", "that's great", "that's nice", "that's ok"),
    *("that is right", "that is true", "that is good", "that is great", "that is nice"),
    *("that sounds good", "that sounds great", "sounds good", "sounds great", "great", "good"),
    *("thanks", "thank you", "thank you very much", "you're welcome", "you are welcome"),
    *("what", "why", "why not", "how", "what do you mean", "what's that", "what is that"),
)
_MARK = re.compile(r"[.,!?;:…]+")


class GenericRate(MeanMetric):
    """generic-rate: share of responses made of nothing but stock phrases, in [0, 1].

    A response is cut at punctuation marks; it is generic if every part is one of `PHRASES`, case
    and anything but letters and digits aside (a tokeniser without punctuation leaves responses
    in one part). English only. An empty response counts 0. It has no direction: people rated
    generic responses of systems higher than their other ones (benchmarks/ratings.py).
    """

    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        listed = f"{len(PHRASES)}@{fingerprint_of(list(PHRASES))[:12]}"
        super().__init__("generic-rate", f"generic-rate|phrases:{listed}", tokenizer)
        tokenize = find_tokenizer(tokenizer)
        # Through the same tokeniser: some drop articles.
        self._phrases = {_letters_and_digits(" ".join(tokenize(phrase))) for phrase in PHRASES}

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) 1 where the response is generic."""
        words = list(texts.words)
        responses = (" ".join(words[number] for number in text) for text in texts.responses.lists())
        return np.fromiter(map(self._is_generic, responses), np.float64, len(texts))

    def undefined_reason(self) -> str:
        """There is nothing to count."""
        return "there are no responses"

    def _is_generic(self, response: str) -> bool:
        parts = [
            letters for part in _MARK.split(response) if (letters := _letters_and_digits(part))
        ]
        return bool(parts) and all(part in self._phrases for part in parts)


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


class _OfWholeResponses(FrequencyMetric):
    """A metric of how often each response occurs, token for token."""

    interval_from = REPEATS_FROM

    def __init__(self, name: str, tokenizer: str) -> None:
        super().__init__(name, 1, f"{name}|unit:response", tokenizer)

    def units(self, statistics: Ragged) -> Ragged:
        """The responses as texts of one token, the response."""
        return statistics.once(_as_tokens)

    def reason(self, statistics: Ragged) -> str:
        """There is nothing to count."""
        return "" if len(statistics) else "there are no responses"


def _as_tokens(texts: Ragged) -> Ragged:
    numbers: dict[bytes, int] = {}
    content, bounds = texts.values.tobytes(), (texts.offsets * texts.values.itemsize).tolist()
    each = (numbers.setdefault(content[a:b], len(numbers)) for a, b in pairwise(bounds))
    return Ragged(np.fromiter(each, np.int32, len(texts)), np.arange(len(texts) + 1), Interner())


class Different(_OfWholeResponses):
    """different: number of responses that differ in a token / responses, in (0, 1].

    Empty responses are one. Like Distinct it falls as the number of responses grows.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        super().__init__("different", tokenizer)

    def _of(self, frequencies: Frequencies, tokens: int) -> float:
        return int(frequencies[1].sum()) / tokens if tokens else math.nan

    def tally(self, statistics: Ragged, dialogues: NDArray[np.int64]) -> Tally:
        """Different responses, each taken as one n-gram, over all responses."""
        codes, owners = once_per_group(hashed_texts(statistics), dialogues)
        sums = np.bincount(dialogues).astype(np.float64)[:, None]
        return Tally("share", sums, (codes,), (owners,))


class DuplicateRate(_OfWholeResponses):
    """duplicate-rate: share of responses that another response repeats token for token.

    Empty responses repeat each other. In [0, 1].
    """

    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        super().__init__("duplicate-rate", tokenizer)

    def _of(self, frequencies: Frequencies, tokens: int) -> float:
        counts, kinds = frequencies
        return int((counts * kinds)[counts > 1].sum()) / tokens if tokens else math.nan


METRICS = (
    MetricInfo(
        "different",
        "Different",
        "Lexical",
        Different,
        direction="none",
        digits=1,
        percent=True,
        exact=True,
    ),
    MetricInfo(
        "generic-rate",
        "Generic",
        "Diversity",
        GenericRate,
        direction="none",
        exact=True,
        unranked="people rated generic responses higher than others, see docs/metrics.md",
    ),
    MetricInfo(
        "duplicate-rate", "Duplicates", "Diversity", DuplicateRate, direction="lower", exact=True
    ),
)

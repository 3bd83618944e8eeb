"""What a run tells of a system beside its responses: likelihood, sizes, speed.

These rest on no response, so they have neither intervals nor tests of significance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dialbench.metrics.base import Direction
from dialbench.records import Responses, Result, Score
from dialbench.text.tokenizer import tokenize


class _Untold(Exception):
    """Why there is no value."""


@dataclass(frozen=True)
class Told:
    """A measure of a system that its responses do not show.

    Attributes:
        name: what `--metrics` calls it.
        direction: which values are better.
        recipe: what it is exactly.
        tell: gives the value for one job, and what else its signature must name.
        clocked: whether a clock measures it, so that no run repeats its value.
    """

    name: str
    direction: Direction
    recipe: str
    tell: Callable[[Result, Responses], tuple[float, str]]
    clocked: bool = False

    @property
    def signature(self) -> str:
        """As of any measure; a value's says more where `tell` does."""
        return f"{self.name}|{self.recipe}"

    def score(self, result: Result, responses: Responses) -> Score:
        """Its value for one job; NaN with a reason where the system does not tell it."""
        try:
            value, further = self.tell(result, responses)
        except _Untold as reason:
            return Score(math.nan, 0, self.signature, reason=str(reason))
        return Score(value, 0, f"{self.signature}|{further}" if further else self.signature)


def _perplexity(result: Result, _: Responses) -> tuple[float, str]:
    kept = result.facts.get("best_epoch")
    for row in result.curve:
        if row.get("epoch") == kept and "valid_loss" in row:
            return math.exp(row["valid_loss"]), _over(result)
    raise _Untold("the system tells no likelihood of responses")


def _context_gain(result: Result, _: Responses) -> tuple[float, str]:
    if "context_gain" not in result.facts:
        raise _Untold("the system tells no likelihood of responses to other contexts")
    return float(result.facts["context_gain"]), _over(result)


def _fact(name: str, missing: str) -> Callable[[Result, Responses], tuple[float, str]]:
    def tell(result: Result, _: Responses) -> tuple[float, str]:
        if name not in result.facts:
            raise _Untold(missing)
        return float(result.facts[name]), ""

    return tell


def _over(result: Result) -> str:
    """What a likelihood is over: only values over the same compare."""
    said = {"V": result.facts.get("vocabulary"), "within": result.facts.get("likelihood_within")}
    return "|".join(f"{name}:{value}" for name, value in said.items() if value)


def _size(kind: str) -> Told:
    recipe = "of:weights, shared ones once"
    return Told(kind, "none", recipe, _fact(kind.replace("-", "_"), "the system has no model"))


def _cases_per_second(result: Result, responses: Responses) -> tuple[float, str]:
    return len(responses.texts) / _seconds(result, responses), f"device:{responses.device}"


def _cases_per_ms(result: Result, responses: Responses) -> tuple[float, str]:
    cases, device = _cases_per_second(result, responses)
    return cases / 1000, device


def _seconds_per_word(result: Result, responses: Responses) -> tuple[float, str]:
    words = sum(len(tokenize(text)) for text in responses.texts)
    if not words:
        raise _Untold("the responses hold no word")
    return _seconds(result, responses) / words, f"device:{responses.device}"


def _seconds(result: Result, responses: Responses) -> float:
    if "parameters" not in result.facts:
        raise _Untold("the system has no model whose speed would count")
    if not responses.seconds > 0:
        raise _Untold("the answers took less time than the clock can tell")
    return responses.seconds


_ALL = (
    # The loss is the likelihood itself, or with latent variables a bound on it.
    Told("perplexity", "lower", "split:valid|latent:bound", _perplexity),
    Told(
        "context-gain",
        "higher",
        "split:valid|unit:nats a word|against:contexts half a split away|latent:bound",
        _context_gain,
    ),
    Told(
        "word-recall",
        "higher",
        "split:valid",
        _fact("valid_word_recall", "the system predicts no vocabulary"),
    ),
    *map(_size, ("parameters", "trained-parameters", "random-parameters")),
    Told("cases-per-second", "higher", "of:all answers", _cases_per_second, clocked=True),
    Told("cases-per-ms", "higher", "of:all answers", _cases_per_ms, clocked=True),
    Told(
        "seconds-per-word", "lower", "of:all answers|tok:default", _seconds_per_word, clocked=True
    ),
)
MEASURES = {told.name: told for told in _ALL}
"""All of them by name."""

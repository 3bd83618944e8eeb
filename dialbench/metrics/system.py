"""What a run reports of a system beside its responses: likelihood, sizes, speed.

These rest on no response, so they have neither intervals nor tests of significance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from dialbench.metrics.info import Direction, Group
from dialbench.records import Responses, Result, Score
from dialbench.text.tokenizer import tokenize

_LARGEST_LOSS = 700.0
"""Whose exponential is still a number."""


class _NotReported(Exception):
    """Why there is no value."""


@dataclass(frozen=True)
class SystemMetric:
    """A metric of a system that its responses do not show.

    Attributes:
        name: what `--metrics` calls it.
        title: the heading of its column.
        direction: which values are better.
        recipe: what it is exactly.
        report: gives the value for one job, and what else its signature must name.
        digits: decimals in tables.
        clocked: whether a clock measures it, so that no run repeats its value.
    """

    name: str
    title: str
    direction: Direction
    recipe: str
    report: Callable[[Result, Responses], tuple[float, str]]
    digits: int = 3
    clocked: bool = False
    group: ClassVar[Group] = "System"
    percent: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    unranked: ClassVar[str] = ""

    @property
    def signature(self) -> str:
        """As of any metric; a value's says more where `report` does."""
        return f"{self.name}|{self.recipe}"

    def score(self, result: Result, responses: Responses) -> Score:
        """Its value for one job; NaN with a reason where the system does not report it."""
        try:
            value, further = self.report(result, responses)
        except _NotReported as reason:
            return Score(math.nan, 0, self.signature, reason=str(reason))
        return Score(value, 0, f"{self.signature}|{further}" if further else self.signature)


def _perplexity(result: Result, _: Responses) -> tuple[float, str]:
    kept = result.facts.get("best_epoch")
    for row in result.curve:
        if row.get("epoch") == kept and "valid_loss" in row:
            loss = row["valid_loss"]
            if not loss < _LARGEST_LOSS:
                raise _NotReported("the likelihood of responses is not finite")
            return math.exp(loss), _over(result)
    raise _NotReported("the system reports no likelihood of responses")


def _context_gain(result: Result, _: Responses) -> tuple[float, str]:
    if "context_gain" not in result.facts:
        raise _NotReported("the system reports no likelihood of responses to other contexts")
    return float(result.facts["context_gain"]), _over(result)


def _fact(name: str, missing: str) -> Callable[[Result, Responses], tuple[float, str]]:
    def report(result: Result, _: Responses) -> tuple[float, str]:
        if name not in result.facts:
            raise _NotReported(missing)
        return float(result.facts[name]), ""

    return report


def _over(result: Result) -> str:
    """What a likelihood is over: only values over the same compare."""
    facts = {"V": result.facts.get("vocabulary"), "within": result.facts.get("likelihood_within")}
    return "|".join(f"{name}:{value}" for name, value in facts.items() if value)


def _size(name: str, title: str) -> SystemMetric:
    report = _fact(name.replace("-", "_"), "the system has no model")
    return SystemMetric(name, title, "none", "of:weights, shared ones once", report, digits=0)


def _cases_per_second(result: Result, responses: Responses) -> tuple[float, str]:
    return len(responses.texts) / _seconds(result, responses), f"device:{responses.device}"


def _cases_per_ms(result: Result, responses: Responses) -> tuple[float, str]:
    cases, device = _cases_per_second(result, responses)
    return cases / 1000, device


def _seconds_per_word(result: Result, responses: Responses) -> tuple[float, str]:
    words = sum(len(tokenize(text)) for text in responses.texts)
    if not words:
        raise _NotReported("the responses hold no word")
    return _seconds(result, responses) / words, f"device:{responses.device}"


def _seconds(result: Result, responses: Responses) -> float:
    if "parameters" not in result.facts:
        raise _NotReported("the system has no model whose speed would count")
    if not responses.seconds > 0:
        raise _NotReported("the responses took less time than the clock can tell")
    return responses.seconds


_ALL = (
    # The loss is the likelihood itself, or with latent variables a bound on it.
    SystemMetric(
        "perplexity", "Perplexity", "lower", "split:valid|latent:bound", _perplexity, digits=1
    ),
    SystemMetric(
        "context-gain",
        "Context gain",
        "higher",
        "split:valid|unit:nats a word|against:contexts half a split away|latent:bound",
        _context_gain,
    ),
    SystemMetric(
        "word-recall",
        "Word recall",
        "higher",
        "split:valid",
        _fact("valid_word_recall", "the system predicts no vocabulary"),
    ),
    _size("parameters", "Parameters"),
    _size("trained-parameters", "Trained"),
    _size("random-parameters", "Random"),
    SystemMetric(
        "cases-per-second",
        "Cases/s",
        "higher",
        "of:all answers",
        _cases_per_second,
        digits=1,
        clocked=True,
    ),
    SystemMetric(
        "cases-per-ms", "Cases/ms", "higher", "of:all answers", _cases_per_ms, clocked=True
    ),
    SystemMetric(
        "seconds-per-word",
        "s/word",
        "lower",
        "of:all answers|tok:default",
        _seconds_per_word,
        digits=4,
        clocked=True,
    ),
)
SYSTEM_METRICS = {metric.name: metric for metric in _ALL}
"""All of them by name."""

"""What metrics are built from: the tokeniser, choices, and resources such as vectors or a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from dialbench.metrics.resource import Found, Resource
from dialbench.metrics.training import TRAINING

Denominator = Literal["tokens", "ngrams"]
"""What Distinct divides by."""
T = TypeVar("T")


@dataclass(frozen=True)
class MetricSettings:
    """What metrics are built from.

    Attributes:
        tokenizer: name of the tokeniser that the texts go through.
        denominator: what Distinct divides by; None: tokens, within one response n-grams.
        vocabulary: V of ead-n; None takes the number of words of the training split.
        resources: those that were looked for.
    """

    tokenizer: str = "default"
    denominator: Denominator | None = None
    vocabulary: int | None = None
    resources: Mapping[Resource[Any], Found[Any]] = field(default_factory=dict)

    def of(self, resource: Resource[T]) -> Found[T]:
        """A resource, or why there is none."""
        return self.resources.get(resource, Found(None, resource.missing))

    @property
    def kinds(self) -> int | None:
        """V of ead-n; None where neither it nor training text was given."""
        training = self.of(TRAINING).value
        return training.kinds if self.vocabulary is None and training else self.vocabulary

    @property
    def choices(self) -> Mapping[str, Any]:
        """What builds a metric anew where its resources are not needed: fields and their values."""
        return {
            "tokenizer": self.tokenizer,
            "denominator": self.denominator,
            "vocabulary": self.kinds,
        }

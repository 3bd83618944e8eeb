"""What is known of a metric before it is computed: declared once, beside its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from dialbench.metrics.base import Metric
    from dialbench.metrics.resource import Resource
    from dialbench.metrics.settings import MetricSettings

Group = Literal["Lexical", "Diversity", "Overlap", "Embedding", "Entailment", "Semantic", "System"]
Direction = Literal["higher", "lower", "none"]
"""Which values are better."""
SATURATED = "close to 1 for nearly any text"


@dataclass(frozen=True)
class MetricInfo:
    """A metric as `--metrics`, tables, checks and shards know it.

    Attributes:
        name: how `--metrics` calls it.
        title: the heading of its column.
        group: the columns that it stands among.
        kind: its class.
        make: builds it; by default from the tokeniser alone.
        direction: which values are better.
        resource: what it must be given besides text.
        digits: decimals in tables.
        percent: whether tables show it in percent.
        exact: whether it is a ratio of counts, so that the same responses give the same value on
            every machine.
        unranked: why tables mark no best value of it although it has a direction; empty otherwise.
    """

    name: str
    title: str
    group: Group
    kind: type[Metric[Any]]
    make: Callable[[MetricSettings], Metric[Any]] | None = None
    direction: Direction = "higher"
    resource: Resource[Any] | None = None
    digits: int = 3
    percent: bool = False
    exact: bool = False
    unranked: str = ""

    def create(self, settings: MetricSettings) -> Metric[Any]:
        """The metric itself, which knows the choices that it was built with."""
        build: Callable[[str], Metric[Any]] = self.kind
        metric = build(settings.tokenizer) if self.make is None else self.make(settings)
        metric.choices = settings.choices
        return metric

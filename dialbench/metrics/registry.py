"""Every metric by name: the modules here declare theirs as `METRICS`, beside the classes."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

import dialbench.metrics
from dialbench.errors import InputError, UnknownName
from dialbench.metrics.base import Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.resource import Resource
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.system import SYSTEM_METRICS, SystemMetric

DEFAULT = (
    "length",
    "different",
    *(f"dist-{n}" for n in (1, 2, 3)),
    "mtld",
    "mattr",
    *(f"bleu-{n}" for n in (1, 2, 3, 4)),
    "meteor",
    "rouge-l",
    "emb-average",
    "emb-greedy",
    "emb-extrema",
    "ue",
    "ue-soft",
)
"""The metrics of a run or a scoring that names none, in the order of their columns."""
HEADLINE = (
    *("length", "different", "dist-1", "dist-2", "mtld"),
    *("bleu-2", "meteor", "rouge-l", "emb-average", "ue"),
)
"""Those that a terminal shows first."""
WITHIN = (*(f"within-dist-{n}" for n in (1, 2)), "within-self-bleu")
"""Those added where several responses to a context were drawn."""


def _declared() -> Iterator[MetricInfo]:
    for module in pkgutil.iter_modules(dialbench.metrics.__path__, "dialbench.metrics."):
        if module.name != __name__:
            yield from getattr(import_module(module.name), "METRICS", ())


_DECLARED = {info.name: info for info in _declared()}


def names() -> list[str]:
    """The names of all metrics of responses."""
    return sorted(_DECLARED)


def declared(name: str) -> MetricInfo | SystemMetric | None:
    """What is declared of a metric, of responses or of a system; None where it is not ours."""
    return _DECLARED.get(name) or SYSTEM_METRICS.get(name)


def resources(chosen: Iterable[str]) -> frozenset[Resource[Any]]:
    """What the metrics of these names must be given besides text.

    Raises:
        UnknownName: there is no metric of that name.
    """
    needed = (info(name).resource for name in chosen)
    return frozenset(resource for resource in needed if resource)


def create(
    chosen: Iterable[str], settings: MetricSettings, *, where: str = "--metrics"
) -> list[Metric[Any]]:
    """The metrics of these names, in this order.

    Raises:
        UnknownName: there is no metric of that name.
    """
    return [info(name, where=where).create(settings) for name in chosen]


def restore(
    name: str, choices: Mapping[str, Any], signature: str, missing: str = ""
) -> Metric[Any]:
    """A metric built elsewhere, for scoring its statistics; it has none of its resources.

    Args:
        name: of the metric.
        choices: what it was built with, as its `choices`.
        signature: its signature there.
        missing: what it would have needed.

    Raises:
        InputError: there is no such metric here, or it is computed otherwise.
    """
    metric = info(name).create(MetricSettings(**choices))
    if not _same_but_for_resources(signature, metric.signature):
        hint = f"Here it is {metric.signature!r}: score anew with one version of dialbench."
        raise InputError(f"{name} was computed as {signature!r}", hint=hint)
    metric.signature, metric.missing = signature, missing
    return metric


def _same_but_for_resources(signature: str, bare: str) -> bool:
    """Whether two signatures agree in all that the second, made without resources, says."""
    fields = [text.split("|") for text in (signature, bare)]
    return len(fields[0]) == len(fields[1]) and all(
        stored == bare_field or bare_field.endswith(":missing")
        for stored, bare_field in zip(*fields, strict=True)
    )


def info(name: str, *, where: str = "--metrics") -> MetricInfo:
    """What is declared of a metric of responses.

    Raises:
        UnknownName: there is no metric of that name.
        InputError: it is one of a system, which its responses do not show.
    """
    if name in SYSTEM_METRICS:
        raise InputError(
            f"{name} is a metric of a run, not of responses",
            where=where,
            hint="Name it to dialbench run --metrics.",
        )
    if name == "mattr-50":
        # The nearest name would be another metric.
        raise InputError("mattr-50 is called mattr", where=where, hint="A window of 4 is mattr-4.")
    if name not in _DECLARED:
        raise UnknownName.of("metric", name, [*_DECLARED, *SYSTEM_METRICS], where=where)
    return _DECLARED[name]

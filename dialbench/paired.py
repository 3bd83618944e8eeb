"""Two files of finished responses to the same contexts, compared in every measure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialbench.errors import InputError
from dialbench.files.responses import read_responses
from dialbench.metrics.base import Metric, read
from dialbench.records import Answers
from dialbench.stats.compare import compare

Pairs = list[Answers]


def compared(file: Path, base: Path, metrics: Sequence[Metric[Any]]) -> dict[str, dict[str, Any]]:
    """How a file of responses differs from another one.

    Args:
        file: the responses.
        base: those that they are compared with.
        metrics: one or more, all with the same tokeniser.

    Returns:
        For each measure the fields of `dialbench.stats.compare.Comparison` as plain values.

    Raises:
        InputError: the two do not answer the same contexts in the same order.
    """
    ours, theirs = list(read_responses(file)), list(read_responses(base))
    _demand_same_contexts(file, ours, base, theirs)
    a, b = (read(side, metrics) for side in (ours, theirs))
    return {
        metric.name: compare(
            metric, metric.statistics(a), metric.statistics(b), a.dialogues
        ).plain()
        for metric in metrics
    }


def _demand_same_contexts(file: Path, ours: Pairs, base: Path, theirs: Pairs) -> None:
    hint = "Compare responses to the same contexts in the same order."
    if len(ours) != len(theirs):
        what = f"it has {len(theirs)} responses where {file} has {len(ours)}"
        raise InputError(what, where=str(base), hint=hint)
    for number, ((a, *_), (b, *_)) in enumerate(zip(ours, theirs, strict=True), 1):
        if (a.dialogue_id, a.context) != (b.dialogue_id, b.context):
            what = f"it answers another context than {file}:{number}"
            raise InputError(what, where=f"{base}:{number}", hint=hint)

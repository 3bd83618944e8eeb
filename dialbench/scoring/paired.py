"""Two files of finished responses to the same contexts, compared in every metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialbench.errors import InputError
from dialbench.files.responses import ResponseLine
from dialbench.metrics.base import Metric, read
from dialbench.metrics.formulas import FORMULAS
from dialbench.metrics.texts import Texts
from dialbench.records import Score
from dialbench.scoring.evaluation import score_statistics
from dialbench.scoring.sources import Source
from dialbench.stats.compare import compare

_SAME = "Compare responses to the same examples in the same order."


def compared(
    source: Source, base: Source, metrics: Sequence[Metric[Any]]
) -> dict[str, dict[str, Any]]:
    """How a file of responses differs from another one.

    Args:
        source: the responses.
        base: those that they are compared with.
        metrics: one or more, all with the same tokeniser.

    Returns:
        For each measure the fields of `dialbench.stats.compare.Comparison` as plain values, and
        a `reason` where there is no p.

    Raises:
        InputError: the two do not answer the same examples in the same order.
    """
    if error := mismatch(source, base):
        raise error
    a, b = (read(side.responses(), metrics) for side in (source, base))
    differences: dict[str, dict[str, Any]] = {}
    for metric in metrics:
        x, y = (_score(metric, side) for side in (a, b))
        result = compare(x, y, FORMULAS).plain()
        if result["difference"]["value"] is None:
            # The tests give 1 where nothing pairs up.
            result |= {"p": None, "wilcoxon": None}
            result["reason"] = _missing_reason((source.path, x.reason), (base.path, y.reason))
        elif result["p"] is None:
            result["reason"] = "the metric says nothing of parts of a set, which tests need"
        differences[metric.name] = result
    return differences


def _score(metric: Metric[Any], texts: Texts) -> Score:
    counted = [(metric, metric.statistics(texts))]
    return score_statistics(counted, texts.dialogues, comparable=True)[metric.name]


def _missing_reason(*sides: tuple[Path, str]) -> str:
    """Why two files have no difference in a metric, given why each has no value in it."""
    reasons = {reason for _, reason in sides}
    if len(reasons) == 1:
        return reasons.pop() or "no example has a value in both"
    return "; ".join(f"{reason} in {path}" for path, reason in sides if reason)


def mismatch(source: Source, base: Source) -> InputError | None:
    """The first place where two files do not answer the same examples; None where they do."""
    ours, theirs = list(source.lines()), list(base.lines())
    if len(ours) != len(theirs):
        what = f"it has {len(theirs)} responses where {source.path} has {len(ours)}"
        return InputError(what, where=str(base.path), hint=_SAME)
    # A file without any reference may be compared: metrics with references have a reason then.
    referred = all(any(answer.references for answer in side) for side in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        if what := _mismatch(a, b, referred):
            return InputError(f"{what} {a.where}", where=b.where, hint=_SAME)
    return None


def _mismatch(a: ResponseLine, b: ResponseLine, referred: bool) -> str:
    """What differs between the examples of two lines, up to the place of the first one."""
    if a.context != b.context:
        return "it answers another context than"
    if a.dialogue_id != b.dialogue_id:
        return "its dialogue_id is not that of"
    if a.id != b.id and None not in (a.id, b.id):
        return "its id is not that of"
    if referred and sorted(a.references) != sorted(b.references):
        return "its references are not those of"
    return ""

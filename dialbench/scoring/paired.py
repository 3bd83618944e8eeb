"""Two systems that answered the same contexts, compared in every metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dialbench.errors import InputError
from dialbench.files.responses import ResponseLine
from dialbench.metrics.formulas import FORMULAS
from dialbench.records import Result, Score
from dialbench.reporting.tables.rows import group_by_test_set
from dialbench.scoring.sources import Source, filled
from dialbench.stats.clusters import Estimate
from dialbench.stats.compare import Comparison, compare

_SAME = "Compare responses to the same examples in the same order."
_UNTESTED = "too few parts of the set have a value in both, which tests need"
_ONE_VALUE = "one value for a training run, with nothing in it that a test could compare"


def compare_scores(
    source: Source, ours: Mapping[str, Score], base: Source, theirs: Mapping[str, Score]
) -> dict[str, dict[str, Any]]:
    """How a file of responses differs from another one that answers the same examples.

    Args:
        source: the responses.
        ours: their scores, kept comparable.
        base: the responses that they are compared with.
        theirs: the scores of those, in the same metrics.

    Returns:
        For each metric the fields of `dialbench.stats.compare.Comparison` as plain values, and
        a `reason` where there is no p.
    """
    names = str(source.path), str(base.path)
    return {
        metric: _difference(_Side(names[0], [score]), _Side(names[1], [theirs[metric]]))
        for metric, score in ours.items()
    }


def compare_results(ours: Sequence[Result], base: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """How a system differs from another one, from the scores of runs or of files.

    Args:
        ours: the results of a system, one a training run, at least one.
        base: those of the system it is compared with.

    Returns:
        What `compare_scores` returns, for each metric that both have scores in; means are over the
        training runs that have a value.

    Raises:
        InputError: a result is not finished, or they do not answer the same examples.
    """
    _require_comparable([*ours, *base])
    mine, theirs = (dict.fromkeys(n for r in side for n in r.scores) for side in (ours, base))
    names = [name for name in mine if name in theirs]
    return {name: _difference(_Side.of(ours, name), _Side.of(base, name)) for name in names}


def _require_comparable(results: Sequence[Result]) -> None:
    for result in results:
        if result.status != "done":
            raise InputError(
                f"{result.job} is {result.status}", hint="Run its command again to finish it."
            )
    if len(group_by_test_set(results)) > 1:
        jobs = f"{results[0].job} and {results[-1].job}"
        raise InputError(f"{jobs} do not answer the same examples", hint=_SAME)


@dataclass(frozen=True)
class _Side:
    """One of two systems that are compared in a metric.

    Attributes:
        name: what it is called.
        scores: one a training run.
    """

    name: str
    scores: Sequence[Score]

    @classmethod
    def of(cls, results: Sequence[Result], metric: str) -> _Side:
        """The scores of a system that has results in a metric."""
        scores = [result.scores[metric] for result in results if metric in result.scores]
        valued = [score for score in scores if score.available]
        return cls(results[0].label or results[0].job.system, valued or scores)

    @property
    def reason(self) -> str:
        """Why there is no value."""
        return self.scores[0].reason

    @property
    def has_parts(self) -> bool:
        """Whether it is known what responses or dialogues contribute to the values."""
        return all(
            any(values is not None for values in (score.per_response, score.parts, score.tally))
            for score in self.scores
        )


def _difference(ours: _Side, base: _Side) -> dict[str, Any]:
    """The fields of a comparison as plain values, with a reason where there is no p."""
    signatures = list(dict.fromkeys(score.signature for score in (*ours.scores, *base.scores)))
    if len(signatures) > 1:
        nothing = Comparison(Estimate(math.nan, None), None, "", 0).plain()
        return nothing | {"reason": f"scored under different signatures: {_unlike(signatures)}"}
    result = compare(ours.scores, base.scores, FORMULAS).plain()
    if result["difference"]["value"] is None:
        # The tests give 1 where nothing pairs up.
        result |= {"p": None, "wilcoxon": None}
        result["reason"] = _missing_reason(ours, base)
    elif result["p"] is None:
        result["reason"] = _UNTESTED if ours.has_parts and base.has_parts else _ONE_VALUE
    return result


def _unlike(signatures: Sequence[str]) -> str:
    """What of each signature is not in all of them; the whole of one that has nothing else."""
    fields = {signature: signature.split("|") for signature in signatures}
    common = set.intersection(*map(set, fields.values()))
    own = {name: "|".join(f for f in parts if f not in common) for name, parts in fields.items()}
    return " and ".join(rest or signature for signature, rest in own.items())


def _missing_reason(*sides: _Side) -> str:
    """Why two systems have no difference in a metric, given why each has no value in it."""
    reasons = {side.reason for side in sides}
    if len(reasons) == 1:
        return reasons.pop() or "no example has a value in both"
    return "; ".join(f"{side.reason} in {side.name}" for side in sides if side.reason)


def sharing_ids(sources: Sequence[Source]) -> list[Source]:
    """The sources, those without ids with those of the first one that has them.

    Only where both answer the same examples. Otherwise a response would be a dialogue of another
    name in each, and the groups of dialogues that tests compare would not be the same ones.
    """
    named = next((s for s in sources if any(line.id is not None for line in s.lines())), None)
    if named is None:
        return list(sources)
    return [
        source
        if any(line.id is not None for line in source.lines()) or mismatch(source, named)
        else replace(source, lines=partial(_with_ids_of, source, named))
        for source in sources
    ]


def _with_ids_of(source: Source, named: Source) -> list[ResponseLine]:
    return filled(source.lines(), "id", (line.id for line in named.lines()))


def mismatch(source: Source, base: Source) -> InputError | None:
    """The first place where two files do not answer the same examples; None where they do."""
    ours, theirs = list(source.lines()), list(base.lines())
    if len(ours) != len(theirs):
        what = f"it has {len(theirs)} responses where {source.path} has {len(ours)}"
        return InputError(what, where=str(base.path), hint=_SAME)
    # A file without any reference may be compared: metrics with references have a reason then.
    referred = all(any(line.references for line in side) for side in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        if what := _mismatch(a, b, referred):
            return InputError(f"{what} {a.where}", where=b.where, hint=_SAME)
    return None


def _mismatch(a: ResponseLine, b: ResponseLine, referred: bool) -> str:
    """What differs between the examples of two lines, up to the place of the first one."""
    if a.context != b.context:
        if not (a.context and b.context):
            return f"it gives {'a' if b.context else 'no'} context, unlike"
        return "it answers another context than"
    if a.dialogue_id != b.dialogue_id:
        return "its dialogue_id is not that of"
    if a.id != b.id and None not in (a.id, b.id):
        return "its id is not that of"
    if referred and sorted(a.references) != sorted(b.references):
        return "its references are not those of"
    return ""

"""A scoring in shards: what metrics counted here and there, merged without loss.

A shard keeps what each response counts for, not sums: the tokens where a metric counts n-grams,
numbers where it does not. Merging puts the responses into the order of their ids, so that values,
folds and intervals are those of scoring everything at once in that order, to the last bit. Of a
file in another order, intervals differ in their last digits, as sums do in another order.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dialbench.errors import InputError, first_line
from dialbench.files.outputs import stem
from dialbench.files.responses import ResponseLine
from dialbench.metrics import registry
from dialbench.metrics.base import Metric, read
from dialbench.metrics.packed import Shard, load, save
from dialbench.records import ExampleResponses, Score, Split
from dialbench.scoring.evaluation import score_statistics
from dialbench.scoring.options import InputOptions
from dialbench.scoring.score import FileScoring, report_of
from dialbench.scoring.sources import Source

_DIGITS = re.compile(r"(\d+)")
_SAME = "Score all shards with the same options."


def write(
    files: Sequence[Path],
    folder: Path,
    *,
    train: Split | str | Path | None = None,
    inputs: InputOptions | None = None,
    **options: Any,
) -> Iterator[Path]:
    """Counts files of responses and writes a shard for each.

    Args:
        files: responses as JSON lines; each bears the id of its example, by which shards merge.
        folder: where the shards go. Their names end in digits of a checksum of the responses and
            of what was counted, so that none takes another one's place and the same responses
            under the same metrics get the same name.
        train: as of `dialbench.score`.
        inputs: what they answer, where they do not say it.
        options: as of `dialbench.score`.

    Yields:
        Each shard's path once it is written.

    Raises:
        InputError: a file, name or argument cannot be used, or a response bears no id.
        StorageError: the disk refuses.
    """
    inputs = inputs or InputOptions()
    scoring = FileScoring.of(files, inputs, train, **options)
    for source in scoring.systems:
        shard, checksum = _counted(source, scoring.metrics, inputs.corpus)
        path = folder / f"{shard.system}-{checksum[:12]}.shard"
        save(shard, path)
        yield path


def merge(paths: Sequence[Path], system: str | None = None) -> dict[str, Any]:
    """What `dialbench.scoring.score` says of one file, from `merge_scores`."""
    return report_of(*merge_scores(paths, system))


def merge_scores(
    paths: Sequence[Path], system: str | None = None
) -> tuple[str, str | None, dict[str, Score]]:
    """Scores the responses of shards as if they had stood in one file.

    They are put in the order of their ids, numbers in ids compared as numbers; that is the test
    order of every corpus here. Where the ids of a shard do not ascend so, the metrics that
    depend on order have no value.

    Args:
        paths: the shards, in any order.
        system: what the whole is called; None takes the name that all shards bear, if they do.

    Returns:
        What the whole is called, what it answers if known, and its scores.

    Raises:
        InputError: a shard cannot be read, differs from the others in corpus or in a signature,
            holds an example that another one holds, or was counted by another version.
    """
    shards = [(path, load(path)) for path in paths]
    _require_same_metrics(shards)
    _require_distinct_ids(shards)
    whole = Shard.concatenate([shard for _, shard in shards])
    if len(shards) > 1:
        whole = whole[np.array(sorted(range(len(whole)), key=lambda i: _natural(whole.ids[i])))]
    metrics = [
        registry.restore(name, measured.choices.model_dump(), measured.signature, measured.missing)
        for name, measured in whole.measures.items()
    ]
    counted = ((metric, whole.statistics(metric.name)) for metric in metrics)
    try:
        scores = score_statistics(counted, whole.dialogues)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        # Checksums may be anybody's: what a metric counted can still be of another kind or shape.
        what = f"what they counted cannot be scored ({first_line(error)})"
        where = ", ".join(map(str, paths))
        raise InputError(what, where=where, hint="Write them anew with score --shards.") from None
    if reason := _disorder(shards):
        scores |= {m.name: _unknown(scores[m.name], reason) for m in metrics if m.ordered}
    names = {shard.system for _, shard in shards}
    called = system or (names.pop() if len(names) == 1 else "merged")
    return called, whole.corpus, scores


def _counted(
    source: Source, metrics: Sequence[Metric[Any]], corpus: str | None
) -> tuple[Shard, str]:
    """The shard of a file, and a checksum of all that its lines say and of what is counted."""
    ids: list[str] = []
    counted = [corpus, {metric.name: metric.signature for metric in metrics}]
    checksum = hashlib.sha256(json.dumps(counted, sort_keys=True).encode() + b"\n")

    def noting() -> Iterator[ExampleResponses]:
        for line in source.lines():
            ids.append(_id_of(line))
            pair = example, *texts = line.with_example()
            checksum.update(json.dumps([*astuple(example), texts]).encode() + b"\n")
            yield pair

    texts = read(noting(), metrics)
    return Shard.of(stem(source.path), corpus, ids, texts, metrics), checksum.hexdigest()


def _id_of(line: ResponseLine) -> str:
    if line.id is None:
        raise InputError(
            "this line has no id",
            where=line.where,
            hint="Shards are merged by example id: give every response the id of its example.",
        )
    return line.id


def _require_same_metrics(shards: Sequence[tuple[Path, Shard]]) -> None:
    start, first = shards[0]
    for path, shard in shards[1:]:
        if shard.corpus != first.corpus:
            what = f"its corpus is {shard.corpus}, that of {start} is {first.corpus}"
            raise InputError(what, where=str(path), hint="Merge shards of one corpus.")
        one, other = (
            {name: measure.signature for name, measure in side.measures.items()}
            for side in (shard, first)
        )
        for name in {**other, **one}:
            if one.get(name) != other.get(name):
                what = f"{name} is {one.get(name)} here and {other.get(name)} in {start}"
                raise InputError(what, where=str(path), hint=_SAME)


def _require_distinct_ids(shards: Sequence[tuple[Path, Shard]]) -> None:
    places: dict[str, Path] = {}
    for path, shard in shards:
        for id in shard.ids:
            if id in places:
                hint = "Merge each shard once, of responses that bear their examples' ids."
                raise InputError(f"id {id!r} is also in {places[id]}", where=str(path), hint=hint)
        places |= dict.fromkeys(shard.ids, path)


def _natural(id: str) -> tuple[list[tuple[int, int, str]], str]:
    """What ids are sorted by: their texts and numbers in turn."""
    parts = _DIGITS.split(id)
    # By the number of digits first, since numbers of any length may stand in an id.
    numbers = [(1, len(digits.lstrip("0")), digits.lstrip("0")) for digits in parts[1::2]]
    texts = [(0, 0, text) for text in parts[::2]]
    key = [texts[0]]
    for number, text in zip(numbers, texts[1:], strict=True):
        key += [number, text]
    return key, id


def _disorder(shards: Sequence[tuple[Path, Shard]]) -> str:
    """Why the test order is not known; empty where it is."""
    if len(shards) == 1:
        return ""
    for path, shard in shards:
        if any(one > other for one, other in pairwise(map(_natural, shard.ids))):
            return f"the test order is not known: the ids in {path.name} do not ascend"
    return ""


def _unknown(score: Score, reason: str) -> Score:
    return replace(
        score, value=math.nan, interval=None, parts=None, joint=None, tally=None, reason=reason
    )

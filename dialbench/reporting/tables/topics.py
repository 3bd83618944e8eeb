"""Makes tables of the most probable words of the topics that systems have learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dialbench.records import Cell, Column, Result, Row, Table

_GROUP = "Most probable words in falling order"
_NOTE = "The words are those of the checkpoint that gave the responses; topics have no order."


def topic_words(results: Iterable[Result]) -> list[Table]:
    """A table for each corpus on which a system has topics, a row a topic.

    A training run has its topics once, whatever the decoding. Cells are texts: there are no
    values to compare.

    Args:
        results: of all jobs; topics are the fact "topics", lists of words.
    """
    return [_table(corpus, systems) for corpus, systems in results_with_topics(results).items()]


def results_with_topics(results: Iterable[Result]) -> dict[str, dict[str, Result]]:
    """One result of every training run with topics, by corpus and label."""
    corpora: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.status == "done" and _are_words(result.facts.get("topics")):
            systems = corpora.setdefault(result.job.corpus, {})
            systems.setdefault(result.job.training_fingerprint, result)
    return {
        corpus: dict(zip(_labels(list(systems.values())), systems.values(), strict=True))
        for corpus, systems in corpora.items()
    }


def _are_words(topics: Any) -> bool:
    """Whether these are lists of words; a fact of that name may be anything."""
    return _are(topics, list) and all(_are(words, str) for words in topics)


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(v, kind) for v in values)


def _table(corpus: str, results: Mapping[str, Result]) -> Table:
    rows = tuple(
        Row(f"{label}, topic {number}", _cells(words))
        for label, result in results.items()
        for number, words in enumerate(result.facts["topics"], start=1)
    )
    width = max(len(row.cells) for row in rows)
    columns = tuple(
        Column(_name(rank), str(rank), direction="none", group=_GROUP)
        for rank in range(1, width + 1)
    )
    return Table(f"{corpus}-topics", f"Topics learnt on {corpus}", columns, rows, (_NOTE,))


def _cells(words: Sequence[str]) -> dict[str, Cell]:
    return {_name(rank): Cell(text=word) for rank, word in enumerate(words, start=1)}


def _name(rank: int) -> str:
    return f"word-{rank}"


def _labels(results: Sequence[Result]) -> Iterator[str]:
    """System names, with seed and fingerprint where several have the same."""
    names = Counter(_label(result) for result in results)
    seeds = Counter((_label(result), result.job.seed) for result in results)
    for result in results:
        label, seed = _label(result), result.job.seed
        if names[label] == 1:
            yield label
        elif seeds[label, seed] == 1:
            yield f"{label}, seed {seed}"
        else:
            yield f"{label} [{result.job.training_fingerprint[:6]}], seed {seed}"


def _label(result: Result) -> str:
    return result.label or result.job.system

"""The likeliest words of the topics that systems have learnt: a table a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dialbench.records import Cell, Column, Result, Row, Table

_GROUP = "Likeliest words, likeliest first"
_NOTE = "The words are those of the weights that answered; the order of topics means nothing."


def topic_words(results: Iterable[Result]) -> list[Table]:
    """A table for each corpus on which a system has told topics, a row a topic.

    A trained system has its topics once, whatever it was asked under, and the words stand as texts:
    there are no values to compare.

    Args:
        results: what the store knows of each job; topics are the fact "topics", lists of words.
    """
    return [_table(corpus, trained) for corpus, trained in told(results).items()]


def told(results: Iterable[Result]) -> dict[str, dict[str, Result]]:
    """A result of every trained system that tells topics: by corpus, and there by its label."""
    corpora: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.status == "done" and _are_words(result.facts.get("topics")):
            trained = corpora.setdefault(result.job.corpus, {})
            trained.setdefault(result.job.training_fingerprint, result)
    return {
        corpus: dict(zip(_labels(list(trained.values())), trained.values(), strict=True))
        for corpus, trained in corpora.items()
    }


def _are_words(topics: Any) -> bool:
    """Whether these are lists of words; another system's fact of that name may be anything."""
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
        Column(_name(place), str(place), direction="none", group=_GROUP)
        for place in range(1, width + 1)
    )
    return Table(f"{corpus}-topics", f"Topics learnt on {corpus}", columns, rows, (_NOTE,))


def _cells(words: Sequence[str]) -> dict[str, Cell]:
    return {_name(place): Cell(text=word) for place, word in enumerate(words, start=1)}


def _name(place: int) -> str:
    return f"word-{place}"


def _labels(results: Sequence[Result]) -> Iterator[str]:
    """System names, with seed and fingerprint where others are called alike."""
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

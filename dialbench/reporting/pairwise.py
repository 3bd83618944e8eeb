"""Two rows response by response: where which one does better, and what differs most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import UnknownName
from dialbench.metrics.guard import FUNCTION_WORDS
from dialbench.metrics.registry import HEADLINE
from dialbench.records import Cell, Column, Example, Responses, Result, Row, Table
from dialbench.reporting.tables.columns import column_of
from dialbench.text.cleaning import clean
from dialbench.text.tokenizer import tokenize

_ABOUT_AS_LONG = 2
"""Tokens by which responses of about the same length may differ."""
_WORDS, _RAREST, _COMMONEST = 10, 0.02, 0.25
"""How many words are listed, and of which shares of the contexts."""


@dataclass(frozen=True)
class Pairwise:
    """The responses of two rows to the same contexts, with their values in one metric.

    Attributes:
        labels: of the two rows.
        metric: its name.
        examples: what both answered.
        texts: one response a context of each row.
        values: (2, contexts); NaN where there is none.
    """

    labels: tuple[str, str]
    metric: str
    examples: Sequence[Example]
    texts: tuple[Sequence[str], Sequence[str]]
    values: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        labels: tuple[str, str],
        results: tuple[Result, Result],
        responses: tuple[Responses, Responses],
        by: str | None = None,
    ) -> Pairwise | None:
        """Two results with their responses; None where no metric has values of single responses.

        Args:
            labels: of the rows.
            results: one training run of each.
            responses: theirs.
            by: the metric that decides which response is better; None: the first usual one.

        Raises:
            UnknownName: `by` is no metric with values of single responses, of which one is better.
        """
        metrics = _metrics_by_response(*results)
        if by is not None and by not in metrics:
            raise UnknownName.of("metric", by, metrics, where="--by")
        usual = [name for name in HEADLINE if name in metrics] or metrics
        if not usual:
            return None
        metric = by or usual[0]
        values = np.stack([np.asarray(one.scores[metric].per_response) for one in results])
        ours, base = responses
        return cls(labels, metric, ours.examples, (ours.texts, base.texts), values)

    @property
    def gains(self) -> NDArray[np.float64]:
        """(contexts,) how much better the first row's response is; NaN where one has no value."""
        sign = -1 if column_of(self.metric).direction == "lower" else 1
        gains: NDArray[np.float64] = sign * (self.values[0] - self.values[1])
        return gains

    def wins_by_length(self) -> Table:
        """Which row's response is better, by how much longer the first row's is."""
        ours, base = (np.array([len(tokenize(text)) for text in texts]) for texts in self.texts)
        longer = ours - base
        first = self.labels[0]
        groups = {
            "all": np.ones(len(longer), bool),
            f"{first} is shorter": longer < -_ABOUT_AS_LONG,
            f"about as long (±{_ABOUT_AS_LONG} tokens)": abs(longer) <= _ABOUT_AS_LONG,
            f"{first} is longer": longer > _ABOUT_AS_LONG,
        }
        return self._wins("by-length", "Responses", "length", groups)

    def wins_by_topic(self) -> Table:
        """Which row's response is better, by content words that contexts mention most often."""
        words = [_content_words(example) for example in self.examples]
        counts = Counter(word for mentioned in words for word in mentioned)
        least, most = _RAREST * len(words), _COMMONEST * len(words)
        usual = sorted((-n, word) for word, n in counts.items() if least <= n <= most)[:_WORDS]
        groups = {word: np.array([word in mentioned for mentioned in words]) for _, word in usual}
        note = "A topic is a word that the context mentions."
        return self._wins("by-topic", "Topic", "topic", groups, note)

    def _wins(
        self, name: str, corner: str, by: str, groups: Mapping[str, NDArray[np.bool_]], *notes: str
    ) -> Table:
        title = column_of(self.metric).title
        first, second = self.labels
        columns = tuple(
            Column(key, heading, direction="none", digits=digits)
            for key, heading, digits in (
                ("contexts", "Contexts", 0),
                ("wins", f"{first} better", 0),
                ("ties", "Equal", 0),
                ("losses", f"{second} better", 0),
                ("gain", "Mean gain", 4),
            )
        )
        rows = tuple(Row(group, _counts(self.gains[chosen])) for group, chosen in groups.items())
        return Table(name, f"Better in {title}, by {by}", columns, rows, notes, corner=corner)

    def changed_most(self, count: int) -> list[dict[str, Any]]:
        """The examples whose two responses differ most in value, as plain values."""
        distances = np.nan_to_num(abs(self.gains))
        order = np.argsort(-distances, kind="stable")[:count]
        return [self._plain(number) for number in order.tolist() if distances[number]]

    def _plain(self, number: int) -> dict[str, Any]:
        example = self.examples[number]
        return {
            "id": example.id,
            "context": list(example.context),
            "references": list(example.references),
            "responses": [texts[number] for texts in self.texts],
            self.metric: [float(values[number]) for values in self.values],
        }


def _metrics_by_response(ours: Result, base: Result) -> list[str]:
    """Metrics of which one direction is better and both have values of single responses."""
    return [
        name
        for name, score in ours.scores.items()
        if column_of(name).direction != "none"
        and (other := base.scores.get(name)) is not None
        and score.per_response is not None
        and other.per_response is not None
    ]


def _content_words(example: Example) -> set[str]:
    tokens = {token for turn in example.context for token in tokenize(turn)}
    return {token for token in tokens if token.isalpha() and token not in FUNCTION_WORDS}


def _counts(gains: NDArray[np.float64]) -> dict[str, Cell]:
    valued = gains[~np.isnan(gains)]
    counts = {
        "contexts": len(valued),
        "wins": int((valued > 0).sum()),
        "ties": int((valued == 0).sum()),
        "losses": int((valued < 0).sum()),
    }
    cells = {name: Cell(float(count)) for name, count in counts.items()}
    return cells | {"gain": Cell(float(valued.mean()) if len(valued) else None)}


def examples_text(
    examples: Sequence[Mapping[str, Any]], pair: Pairwise, escape: Callable[[str], str] = clean
) -> str:
    """Examples for people: context, reference and both responses with their values.

    Args:
        examples: as of `Pairwise.changed_most`.
        pair: whose responses they are.
        escape: puts a text on one line, as the format needs it.
    """
    return "\n\n".join("\n".join(_example_lines(example, pair, escape)) for example in examples)


def _example_lines(
    example: Mapping[str, Any], pair: Pairwise, escape: Callable[[str], str]
) -> Iterator[str]:
    digits = column_of(pair.metric).digits
    yield f"{escape(example['id'])}\n"
    for turn in example["context"]:
        yield f"  - {escape(turn)}"
    for reference in example["references"]:
        yield f"  - reference: {escape(reference)}"
    for label, text, value in zip(
        pair.labels, example["responses"], example[pair.metric], strict=True
    ):
        yield f"  - {escape(label)} ({value:.{digits}f}): {escape(text) or '(empty)'}"


def plain_table(table: Table) -> dict[str, dict[str, float | None]]:
    """The values of a table by row and column."""
    return {row.label: {name: cell.value for name, cell in row.cells.items()} for row in table.rows}

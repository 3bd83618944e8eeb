"""Packs the responses of all systems to the same contexts into a page of limited size."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dialbench.records import Example, Job, Responses, Result
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.rows import group_by_test_set, seed_groups, titles_of_test_sets
from dialbench.reporting.tables.text_table import scale
from dialbench.text.cleaning import clean, visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

Read = Callable[[Job], Responses]

_LEAST_SHARE = 1e-4
_SLACK = 0.97
_OFTEN, _LONGEST = 3, 160


@dataclass(frozen=True)
class SystemResponses:
    """The responses of one row.

    Attributes:
        label: of the row.
        ranked: whether it competes.
        seed: of the training run shown.
        seeds: how many training runs there are.
        texts: one response a context.
        values: by metric, (responses,) values, NaN where there is none.
    """

    label: str
    ranked: bool
    seed: int
    seeds: int
    texts: Sequence[str]
    values: Mapping[str, NDArray[np.float64]]

    @property
    def different(self) -> int:
        """How many different responses there are."""
        return len(set(self.texts))

    def frequent(self) -> list[tuple[str, int]]:
        """The most frequent responses, shortened if long, and their counts."""
        return [(_shortened(clean(text)), n) for text, n in Counter(self.texts).most_common(_OFTEN)]


@dataclass(frozen=True)
class Conversations:
    """Contexts with their references and the responses of every row."""

    title: str
    examples: Sequence[Example]
    systems: Sequence[SystemResponses]

    @property
    def has_several_seeds(self) -> bool:
        """Whether a row has more training runs than the one shown."""
        return any(system.seeds > 1 for system in self.systems)

    def as_json(self, picked: Sequence[int]) -> dict[str, Any]:
        """The picked examples as JSON values; every text occurs once.

        Values are whole numbers: hundredths, or units where a metric only counts.
        """
        turns = _Numbers()
        examples = [self.examples[number] for number in picked]
        digits_of = self._metric_digits()
        return {
            "ids": [clean(example.id) for example in examples],
            "contexts": [list(map(turns.of, example.context)) for example in examples],
            "references": [list(map(turns.of, example.references)) for example in examples],
            "turns": list(turns.numbers),
            "measures": [
                {"name": name, "title": column_of(name).title, "digits": digits}
                for name, digits in digits_of.items()
            ],
            "systems": [_system_as_json(system, picked, digits_of) for system in self.systems],
        }

    def pick(self, share: float) -> list[int]:
        """Numbers of the examples of that share of all dialogues, at even distances."""
        dialogues = {example.dialogue_id: None for example in self.examples}
        kept = {
            id
            for number, id in enumerate(dialogues)
            if int((number + 1) * share) > int(number * share)
        }
        return [n for n, example in enumerate(self.examples) if example.dialogue_id in kept]

    def _metric_digits(self) -> dict[str, int]:
        """The digits to show of every metric that has a value for single responses."""
        names = dict.fromkeys(
            name
            for system in self.systems
            for name, values in system.values.items()
            if not np.isnan(values).all()
        )
        return {name: self._digits(name) for name in names}

    def _digits(self, name: str) -> int:
        arrays = (system.values[name] for system in self.systems if name in system.values)
        whole = all(bool(np.all(np.isnan(a) | (a == np.rint(a)))) for a in arrays)
        return 0 if whole else 2


@dataclass(frozen=True)
class Packed:
    """Conversations inside a page: base64 of gzip of JSON, and how many of all they are."""

    title: str
    data: str
    shown: int
    total: int


def gather(results: Iterable[Result], read: Read) -> list[Conversations]:
    """The conversations of all finished rows, grouped by test set.

    Of several seeds the first is shown.

    Args:
        results: of all jobs; unfinished ones are ignored.
        read: reads the responses of a job.

    Raises:
        StorageError: responses are missing or damaged.
    """
    test_sets = group_by_test_set(results)
    titled = zip(titles_of_test_sets(test_sets), test_sets, strict=True)
    return [_conversations(title, group, read) for title, group in titled]


def pack(sets: Sequence[Conversations], max_chars: int) -> list[Packed]:
    """The same share of every set of conversations, the largest in `max_chars` characters.

    Returns:
        One a set; [] where not even a ten-thousandth fits.
    """
    share = 1.0
    while share > _LEAST_SHARE:
        packed = [_pack(conversations, share) for conversations in sets]
        size = sum(len(conversations.data) for conversations in packed)
        if size <= max_chars:
            return packed
        share *= _SLACK * max(max_chars, 0) / size
    return []


def _pack(conversations: Conversations, share: float) -> Packed:
    picked = conversations.pick(share)
    text = json.dumps(conversations.as_json(picked), ensure_ascii=False, separators=(",", ":"))
    data = base64.b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode("ascii")
    return Packed(conversations.title, data, len(picked), len(conversations.examples))


def _conversations(title: str, results: Sequence[Result], read: Read) -> Conversations:
    examples: Sequence[Example] = ()
    systems = []
    for seed_group in seed_groups(results):
        result = seed_group.done[0]
        responses = read(result.job)
        examples = responses.examples
        values = {
            name: score.per_response
            for name, score in result.scores.items()
            if score.per_response is not None and len(score.per_response) == len(responses.texts)
        }
        seed, seeds = result.job.seed, len(seed_group.done)
        systems.append(
            SystemResponses(
                seed_group.label, seed_group.ranked, seed, seeds, responses.texts, values
            )
        )
    return Conversations(title, examples, systems)


class _Numbers:
    """Numbers texts from 0 in order of first appearance."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self.numbers.setdefault(visible(text), len(self.numbers))


def _system_as_json(
    system: SystemResponses, picked: Sequence[int], digits_of: Mapping[str, int]
) -> dict[str, Any]:
    texts = _Numbers()
    text_numbers = [texts.of(system.texts[number]) for number in picked]
    return {
        "label": clean(system.label),
        "ranked": system.ranked,
        "seed": system.seed,
        "responses": text_numbers,
        "texts": list(texts.numbers),
        "values": [
            _as_whole_numbers(system.values[name][picked], scale(column_of(name)) * 10**digits)
            if name in system.values
            else None
            for name, digits in digits_of.items()
        ],
    }


def _as_whole_numbers(values: NDArray[np.float64], unit: int) -> list[int | None]:
    return [round(value * unit) if math.isfinite(value) else None for value in values.tolist()]


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

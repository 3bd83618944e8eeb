"""What systems answered to the same contexts, small enough to travel inside a page."""

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
from dialbench.reporting.tables.rows import alike, lines
from dialbench.reporting.tables.text_table import scale
from dialbench.text.cleaning import clean, visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

Read = Callable[[Job], Responses]

_LEAST_SHARE = 1e-4
_SLACK = 0.97
_OFTEN, _LONGEST = 3, 160


@dataclass(frozen=True)
class Answers:
    """What one row answered.

    Attributes:
        label: of the row.
        ranked: whether it competes.
        seed: of the training shown.
        seeds: how many trainings there are.
        texts: one a context.
        values: by measure, (responses,) values, NaN where there is none.
    """

    label: str
    ranked: bool
    seed: int
    seeds: int
    texts: Sequence[str]
    values: Mapping[str, NDArray[np.float64]]

    @property
    def different(self) -> int:
        """How many different texts there are."""
        return len(set(self.texts))

    def frequent(self) -> list[tuple[str, int]]:
        """The texts given most often, cut if they are long, and how often."""
        return [(_cut(clean(text)), n) for text, n in Counter(self.texts).most_common(_OFTEN)]


@dataclass(frozen=True)
class Conversations:
    """Contexts with their references and what every row answered to them."""

    title: str
    examples: Sequence[Example]
    systems: Sequence[Answers]

    @property
    def of_several(self) -> bool:
        """Whether a row has more trainings than the one that is shown."""
        return any(system.seeds > 1 for system in self.systems)

    def plain(self, picked: Sequence[int]) -> dict[str, Any]:
        """The examples of these numbers as JSON values; every text stands there once.

        Values are whole numbers: hundredths, or units where a measure only counts.
        """
        turns = _Numbers()
        examples = [self.examples[number] for number in picked]
        measures = self._measures()
        return {
            "ids": [clean(example.id) for example in examples],
            "contexts": [list(map(turns.of, example.context)) for example in examples],
            "references": [list(map(turns.of, example.references)) for example in examples],
            "turns": list(turns.numbers),
            "measures": [
                {"name": name, "title": column_of(name).title, "digits": digits}
                for name, digits in measures.items()
            ],
            "systems": [_plain(system, picked, measures) for system in self.systems],
        }

    def pick(self, share: float) -> list[int]:
        """Numbers of the examples of that share of all dialogues, evenly spread."""
        dialogues = {example.dialogue_id: None for example in self.examples}
        kept = {
            id
            for place, id in enumerate(dialogues)
            if int((place + 1) * share) > int(place * share)
        }
        return [n for n, example in enumerate(self.examples) if example.dialogue_id in kept]

    def _measures(self) -> dict[str, int]:
        """The measures that have a value for a single response, with the digits to show."""
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
    """Conversations as a page carries them: base64 of gzip of JSON, and how many there are."""

    title: str
    data: str
    shown: int
    total: int


def gather(results: Iterable[Result], read: Read) -> list[Conversations]:
    """The conversations of all rows that have answered, those with the same examples together.

    Of several seeds the first is shown.

    Args:
        results: what the store knows; jobs that are not done are passed over.
        read: gives the responses of a job.

    Raises:
        StorageError: responses are missing or damaged.
    """
    groups = alike(results)
    corpora = Counter(group[0].job.corpus for group in groups)
    return [_together(group, read, corpora) for group in groups]


def pack(sets: Sequence[Conversations], room: int) -> list[Packed]:
    """The conversations in at most `room` characters: of every set as large a share as fits.

    Returns:
        One each; none at all where not even a ten-thousandth fits.
    """
    share = 1.0
    while share > _LEAST_SHARE:
        packed = [_pack(one, share) for one in sets]
        size = sum(len(one.data) for one in packed)
        if size <= room:
            return packed
        share *= _SLACK * max(room, 0) / size
    return []


def _pack(whole: Conversations, share: float) -> Packed:
    picked = whole.pick(share)
    text = json.dumps(whole.plain(picked), ensure_ascii=False, separators=(",", ":"))
    data = base64.b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode("ascii")
    return Packed(whole.title, data, len(picked), len(whole.examples))


def _together(group: Sequence[Result], read: Read, corpora: Mapping[str, int]) -> Conversations:
    examples: Sequence[Example] = ()
    systems = []
    for line in lines(group):
        result = line.done[0]
        responses = read(result.job)
        examples = responses.examples
        values = {
            name: score.per_response
            for name, score in result.scores.items()
            if score.per_response is not None and len(score.per_response) == len(responses.texts)
        }
        seed, seeds = result.job.seed, len(line.done)
        systems.append(Answers(line.label, line.ranked, seed, seeds, responses.texts, values))
    corpus = group[0].job.corpus
    title = f"{corpus}, {len(examples):,} contexts" if corpora[corpus] > 1 else corpus
    return Conversations(title, examples, systems)


class _Numbers:
    """Numbers texts in order of first appearance."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self.numbers.setdefault(visible(text), len(self.numbers))


def _plain(system: Answers, picked: Sequence[int], measures: Mapping[str, int]) -> dict[str, Any]:
    texts = _Numbers()
    said = [texts.of(system.texts[number]) for number in picked]
    return {
        "label": clean(system.label),
        "ranked": system.ranked,
        "seed": system.seed,
        "said": said,
        "texts": list(texts.numbers),
        "values": [
            _whole(system.values[name][picked], scale(column_of(name)) * 10**digits)
            if name in system.values
            else None
            for name, digits in measures.items()
        ],
    }


def _whole(values: NDArray[np.float64], unit: int) -> list[int | None]:
    return [round(value * unit) if math.isfinite(value) else None for value in values.tolist()]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

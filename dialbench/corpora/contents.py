"""What every reader of a corpus uses: its card, the dialogues and examples that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dialbench.corpora.files import SPLITS
from dialbench.errors import InputError
from dialbench.records import Dialogue, Example
from dialbench.text.wording import count_of

Item = Dialogue | Example


@dataclass(frozen=True)
class Card:
    """What is known of a corpus before it is read; shown by `dialbench corpora`.

    Attributes:
        name: what users write.
        title: the name that papers print.
        summary: one line about what it is.
        licence: as its publisher states it.
        publishable: whether text of it may be committed or published.
        official: number of units per split in the official release; empty if there is none.
        notes: warnings that belong under every table made on it.
        unit: what `official` counts.
        citation: the paper to cite.
        folder: the corpus' folder inside the data folder; its name if empty.
    """

    name: str
    title: str
    summary: str
    licence: str
    publishable: bool = False
    official: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unit: Literal["dialogues", "contexts"] = "dialogues"
    citation: str = ""
    folder: str = ""


class Contents:
    """What a reader has read, split by split: stripped dialogues or ready-made examples.

    Splits in `absent` have no file; every other one needs an example.
    """

    def __init__(self) -> None:
        self.absent: frozenset[str] = frozenset()
        self.items: dict[str, list[Item]] = {split: [] for split in SPLITS}
        self.notes: list[str] = []
        self._empty_turns = 0

    def strip_turns(self, turns: Sequence[str]) -> tuple[str, ...]:
        """Turns without blanks around them; empty ones are dropped and counted."""
        kept = tuple(text for turn in turns if (text := turn.strip()))
        self._empty_turns += len(turns) - len(kept)
        return kept

    def add_dialogue(self, split: str, id: str, turns: Sequence[str]) -> None:
        """Adds a dialogue, its turns stripped."""
        self.items[split].append(Dialogue(id, self.strip_turns(turns), split))

    def add_example(
        self, split: str, id: str, context: Sequence[str], references: Sequence[str], where: str
    ) -> None:
        """Adds an example that is a dialogue of its own, its turns stripped.

        Raises:
            InputError: nothing is left of its context or of its references; it names `where`.
        """
        stripped = self.strip_turns(context), self.strip_turns(references)
        for kind, texts in zip(("context", "reference"), stripped, strict=True):
            if not texts:
                hint = "Fetch it again, or leave this line out."
                raise InputError(f"there is no {kind} in it", where=where, hint=hint)
        self.items[split].append(Example(id, id, *stripped))

    def all_notes(self) -> Iterator[str]:
        """The reader's notes and those about what could not be used."""
        yield from self.notes
        if self._empty_turns:
            yield f"{count_of(self._empty_turns, 'empty turn')} dropped"
        dialogues = (item for items in self.items.values() for item in items)
        short = sum(isinstance(item, Dialogue) and len(item.turns) < 2 for item in dialogues)
        if short:
            yield f"{count_of(short, 'dialogue')} with fewer than two turns, giving no example"


def require_folder(folder: Path, name: str = "") -> Path:
    """The folder of the corpus `name` (that of the folder if empty) if it is there.

    Raises:
        InputError: it is missing; names the folder and how to get it.
    """
    if not folder.is_dir():
        raise InputError(
            "no such corpus folder",
            where=str(folder),
            hint="Give the folder that holds it with --data DIR or DIALBENCH_DATA, "
            f"or run `dialbench fetch {name or folder.name}`.",
        )
    return folder

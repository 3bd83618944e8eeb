"""Anybody's own conversations: one JSON object a line, a dialogue or a ready-made example.

A dialogue is `{"turns": [...]}`, an example `{"context": [...], "references": [...]}`; both may
have an `id` and, in a single file, a `split`; an example may name its `dialogue_id`. Other keys
are ignored. Three files `train.jsonl`, `valid.jsonl`, `test.jsonl` in a folder are the splits, of
which the first two may be missing; a file called `test.jsonl` is a test split; any other single
file is split by dialbench, unless it serves as training text alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dialbench.corpora.contents import Card, Contents, Item
from dialbench.corpora.files import SPLITS, read_lines, split_files
from dialbench.errors import InputError
from dialbench.files.lines import json_hint
from dialbench.files.unicode import unicode_text
from dialbench.files.validation import first_fault
from dialbench.records import Dialogue, Example

_FORM = 'Write {"turns": [...]} or {"context": [...], "references": [...]}.'


class _Line(BaseModel):
    model_config = ConfigDict(strict=True)

    id: str | int | None = None
    dialogue_id: str | int | None = None
    split: Literal["train", "valid", "test"] | None = None
    turns: list[str] | None = Field(default=None, min_length=1)
    context: list[str] | None = Field(default=None, min_length=1)
    references: list[str] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _is_dialogue_or_example(self) -> _Line:
        example_fields = (self.context is not None) + (self.references is not None)
        if example_fields != (2 if self.turns is None else 0):
            raise ValueError("give either turns, or context and references")
        return self


def card(path: Path, reserved: Container[str] = ()) -> Card:
    """A card for the user's own file or folder, named after it.

    A name in `reserved`, those of known corpora, gets a prefix: a licence is looked up by name.
    """
    name = _name_of(path)
    name = f"own-{name}" if name in reserved else name
    return Card(name, name, f"read from {path}", "yours: not stated")


def _name_of(path: Path) -> str:
    # Not `resolve`: it raises where links lead in a circle.
    return unicode_text(
        Path(os.path.realpath(path)).name.removesuffix(".xz").removesuffix(".jsonl")
    )


def read(path: Path, *, test_only: bool = False) -> Contents:
    """Reads a file, or the files of a folder; lines without an id are named by their number.

    Args:
        path: the file or folder.
        test_only: lines of a single file that name no split are all for the test.

    Raises:
        InputError: a file is missing or damaged, a line is neither a dialogue nor an example, or
            an id stands twice.
    """
    files = {split: f"{split}.jsonl" for split in SPLITS}
    reader = _Reader(unmarked="test" if test_only or _name_of(path) == "test" else None)
    contents = reader.contents
    if path.is_dir():
        paths = split_files(path, files)
        for split in paths:
            reader.read(paths[split], split)
        contents.absent = frozenset(SPLITS) - paths.keys()
        return contents
    reader.read(path, None)
    if not reader.divide():
        contents.absent = frozenset(split for split in SPLITS if not contents.items[split])
    return contents


def is_single_file(name: str) -> bool:
    """Whether a corpus of this name is one file, which holds no splits but those its lines name."""
    return name.endswith((".jsonl", ".jsonl.xz")) and not Path(name).is_dir()


def read_training(path: Path) -> list[Item]:
    """All of a single file that is not marked as belonging to valid or test, in its order.

    Raises:
        InputError: as `read`.
    """
    reader = _Reader(unmarked="train")
    reader.read(path, None)
    return reader.contents.items["train"]


class _Reader:
    """Reads the lines of files into splits.

    Args:
        unmarked: the split of lines that name none, in a file that is none; None keeps them for
            `divide`.
    """

    def __init__(self, unmarked: str | None = None) -> None:
        self.contents = Contents()
        self._unmarked = unmarked
        self._unassigned: list[Item] = []
        self._lines_of_ids: dict[str, str] = {}

    def read(self, path: Path, split: str | None) -> None:
        for number, (where, text) in enumerate(read_lines(path), start=1):
            if not text.strip():
                continue
            line = _validated(text, where)
            if split and line.split not in (None, split):
                raise InputError(
                    f"the line says that it belongs to the split {line.split}",
                    where=where,
                    hint=f"Move it there or delete its split: this file holds the split {split}.",
                )
            name = f"line-{number}" if split is None else f"{split}-{number}"
            item = self._item(line, name, where)
            assigned = split or line.split or self._unmarked
            if assigned:
                self.contents.items[assigned].append(_in_split(item, assigned))
            else:
                self._unassigned.append(item)

    def divide(self) -> bool:
        """Gives every dialogue without a split one of the three, 80/10/10, if there is any."""
        if not self._unassigned:
            return False
        split_of = _assign_splits(_dialogue_id(item) for item in self._unassigned)
        for item in self._unassigned:
            split = split_of[_dialogue_id(item)]
            self.contents.items[split].append(_in_split(item, split))
        sizes = " / ".join(f"{list(split_of.values()).count(split):,}" for split in SPLITS)
        self.contents.notes.append(
            f"split by dialbench, by a hash of the dialogue ids, into {sizes} dialogues "
            "(train / valid / test)"
        )
        return True

    def _item(self, line: _Line, name: str, where: str) -> Item:
        id = self._unclaimed(name) if line.id is None else str(line.id)
        self._claim_id(id, where)
        if line.turns is not None:
            turns = self.contents.strip_turns(line.turns)
            for index in range(1, len(turns)):
                self._claim_id(f"{id}-{index}", where)
            return Dialogue(id, turns, "")
        context = self.contents.strip_turns(line.context or ())
        references = self.contents.strip_turns(line.references or ())
        if not context or not references:
            raise InputError(
                "the references hold no text" if context else "the context holds no text",
                where=where,
                hint=_FORM,
            )
        dialogue_id = id if line.dialogue_id is None else str(line.dialogue_id)
        return Example(id, dialogue_id, context, references)

    def _unclaimed(self, id: str) -> str:
        """The id of a line that gives none, which an earlier line may have given itself."""
        while id in self._lines_of_ids:
            id += "*"
        return id

    def _claim_id(self, id: str, where: str) -> None:
        first = self._lines_of_ids.setdefault(id, where)
        if first != where:
            raise InputError(
                f"id {id!r} stands already at {first}",
                where=where,
                hint="Give every line an id of its own, or none.",
            )


def _validated(text: str, where: str) -> _Line:
    try:
        return _Line.model_validate_json(text)
    except ValidationError as error:
        fault = first_fault(error)
        what = f"{fault.field}: {fault.message}" if fault.field else fault.message
        raise InputError(what, where=where, hint=json_hint(fault.message, _FORM)) from None


def _dialogue_id(item: Item) -> str:
    return item.id if isinstance(item, Dialogue) else item.dialogue_id


def _in_split(item: Item, split: str) -> Item:
    return replace(item, split=split) if isinstance(item, Dialogue) else item


def _assign_splits(ids: Iterable[str]) -> dict[str, str]:
    """A split for every id: the tenth of smallest hash is test, the next tenth valid."""
    ranked = sorted(set(ids), key=_hash)
    tenth = max(1, round(len(ranked) / 10))
    return {
        id: "test" if rank < tenth else "valid" if rank < 2 * tenth else "train"
        for rank, id in enumerate(ranked)
    }


def _hash(id: str) -> bytes:
    return hashlib.sha256(id.encode()).digest()

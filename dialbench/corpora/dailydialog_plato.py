"""DailyDialog in the form of PLATO (Bao et al., 2020) and DialogVED (Chen et al., 2022).

Layout: `dial.{train,valid,test}`, one context a line as `turn __eou__ turn<TAB>response`, every
context of a dialogue on a line of its own; the files may be xz-packed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dialbench.corpora.contents import Card, Contents, require_folder
from dialbench.corpora.dailydialog import END_OF_TURN
from dialbench.corpora.files import SPLITS, read_fields, split_files
from dialbench.errors import InputError

CARD = Card(
    name="dailydialog-plato",
    title="DailyDialog (PLATO)",
    summary="DailyDialog as PLATO and DialogVED read it, typographic apostrophes replaced",
    licence="CC BY-NC-SA 4.0 (that of DailyDialog)",
    official={"train": 76_052, "valid": 7_069, "test": 6_740},
    unit="contexts",
    citation="Bao et al., 2020, PLATO: Pre-trained Dialogue Generation Model with Discrete Latent "
    "Variable, ACL",
    folder="dailydialog_plato",
)
PLATO_FILES = {split: f"dial.{split}" for split in SPLITS}


def read(folder: Path) -> Contents:
    """Reads the files under `folder`; dialogue ids are `<split>-<index from 0>`.

    Raises:
        InputError: a file is damaged, the test file is missing, or a line neither begins a
            dialogue nor continues that of the line before.
    """
    contents = Contents()
    files = split_files(require_folder(folder, CARD.name), PLATO_FILES)
    contents.absent = frozenset(SPLITS) - files.keys()
    for split, path in files.items():
        for index, turns in enumerate(_dialogues(path)):
            contents.add_dialogue(split, f"{split}-{index}", turns)
    return contents


def split_turns(text: str) -> list[str]:
    """The turns of a context, without blanks around them."""
    return [turn.strip() for turn in text.split(END_OF_TURN)]


def _dialogues(path: Path) -> Iterator[list[str]]:
    dialogue: list[str] = []
    for where, (context, response) in read_fields(path, 2):
        turns = split_turns(context)
        if len(turns) == 1:
            if dialogue:
                yield dialogue
        elif turns != dialogue:
            raise InputError(
                "the context does not continue that of the line before",
                where=where,
                hint="Every context of a dialogue needs a line, in order; fetch the file again.",
            )
        dialogue = [*turns, response.strip()]
    if dialogue:
        yield dialogue

"""DailyDialog (Li et al., 2017): everyday English dialogues written for learners.

Layout of the official release: `{train,validation,test}/dialogues_*.txt`, one dialogue a line,
every turn ended by `__eou__`; the files may be xz-packed.
"""

from __future__ import annotations

from pathlib import Path

from dialbench.corpora.contents import Card, Contents, require_folder
from dialbench.corpora.files import SPLITS, plain_or_packed, read_lines
from dialbench.errors import InputError

CARD = Card(
    name="dailydialog",
    title="DailyDialog",
    summary="everyday English dialogues of two speakers, 13,118 in all",
    licence="CC BY-NC-SA 4.0",
    official={"train": 11_118, "valid": 1_000, "test": 1_000},
    citation="Li et al., 2017, DailyDialog: A Manually Labelled Multi-turn Dialogue Dataset, "
    "IJCNLP",
)
END_OF_TURN = "__eou__"
_FOLDERS = {"train": "train", "valid": "validation", "test": "test"}


def read(folder: Path) -> Contents:
    """Reads the three text files under `folder`; dialogue ids are `<split>-<index from 0>`.

    Raises:
        InputError: a file is missing or damaged, or a line does not end with `__eou__`.
    """
    require_folder(folder)
    contents = Contents()
    for split in SPLITS:
        read_split(folder, split, contents)
    return contents


def read_split(folder: Path, split: str, contents: Contents) -> None:
    """Adds one split of the corpus in `folder`.

    Raises:
        InputError: as `read`.
    """
    name = _FOLDERS[split]
    path = plain_or_packed(folder / name / f"dialogues_{name}.txt")
    for index, (where, line) in enumerate(read_lines(path)):
        *turns, rest = line.split(END_OF_TURN)
        if rest.strip() or not turns:
            raise InputError(
                f"the dialogue does not end with {END_OF_TURN}",
                where=where,
                hint="The line is cut off or the file is not DailyDialog; fetch it again.",
            )
        contents.add_dialogue(split, f"{split}-{index}", turns)

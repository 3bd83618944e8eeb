"""Persona-Chat (Zhang et al., 2018): two crowd workers get to know each other, each with a persona.

Layout: `{train,valid,test}_original.json`, a list of `{"dialogue": [...], "speaker persona": [...],
"listener persona": [...]}`; the files may be xz-packed. The dialogues of the revised personas are
the same. Persona sentences are no turns: systems see the dialogue alone.
"""

from __future__ import annotations

from pathlib import Path

from dialbench.corpora.contents import Card, Contents, require_folder
from dialbench.corpora.files import SPLITS, read_json, split_files, texts_at
from dialbench.errors import InputError

CARD = Card(
    name="personachat",
    title="Persona-Chat",
    summary="English small talk of two crowd workers, each with a persona of a few sentences",
    licence="not stated",
    official={"train": 8_939, "valid": 1_000, "test": 968},
    notes=("systems do not see the persona sentences, which published ones do",),
    citation="Zhang et al., 2018, Personalizing Dialogue Agents: I have a dog, do you have pets "
    "too?, ACL",
)
_FILES = {split: f"{split}_original.json" for split in SPLITS}


def read(folder: Path) -> Contents:
    """Reads the files under `folder`; dialogue ids are `<split>-<index from 0>`.

    Raises:
        InputError: a file is damaged, the test file is missing, or a dialogue has no turns.
    """
    contents = Contents()
    files = split_files(require_folder(folder, CARD.name), _FILES)
    contents.absent = frozenset(SPLITS) - files.keys()
    for split, path in files.items():
        for where, value in read_json(path):
            if not isinstance(value, list):
                raise InputError("not a list of dialogues", where=where, hint="Fetch it again.")
            for index, dialogue in enumerate(value):
                turns = texts_at(dialogue, "dialogue", f"{where}, dialogue {index}")
                contents.add_dialogue(split, f"{split}-{index}", turns)
    return contents

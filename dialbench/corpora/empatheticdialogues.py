"""EmpatheticDialogues (Rashkin et al., 2019): a speaker tells of an emotion, a listener replies.

Layout of the official release: `{train,valid,test}.csv`, one utterance a line; the files may be
xz-packed. Fields never hold a comma (it is written `_comma_`) and quotes mean nothing: a default
csv reader swallows lines there and loses about 1,700 conversations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dialbench.corpora.contents import Card, Contents, require_folder
from dialbench.corpora.files import SPLITS, plain_or_packed, read_lines
from dialbench.errors import InputError

CARD = Card(
    name="empatheticdialogues",
    title="EmpatheticDialogues",
    summary="English conversations about an emotional situation, 24,850 in all",
    licence="CC BY-NC 4.0",
    official={"train": 19_533, "valid": 2_770, "test": 2_547},
    citation="Rashkin et al., 2019, Towards Empathetic Open-domain Conversation Models, ACL",
)
_ID, _UTTERANCE = "conv_id", "utterance"


def read(folder: Path) -> Contents:
    """Reads the three CSV files under `folder`; dialogue ids are the corpus' own.

    Raises:
        InputError: a file is missing or damaged, lacks a column, or a line has other fields.
    """
    require_folder(folder)
    contents = Contents()
    for split in SPLITS:
        dialogues: dict[str, list[str]] = {}
        for id, utterance in _utterances(plain_or_packed(folder / f"{split}.csv")):
            dialogues.setdefault(id, []).append(utterance)
        for id, turns in dialogues.items():
            contents.add_dialogue(split, id, turns)
    return contents


def _utterances(path: Path) -> Iterator[tuple[str, str]]:
    lines = read_lines(path)
    where, header = next(lines)
    columns = [column.strip() for column in header.split(",")]
    for column in (_ID, _UTTERANCE):
        if column not in columns:
            raise InputError(
                f"column {column!r} is missing",
                where=where,
                hint=f"Expected a header with {_ID} and {_UTTERANCE}.",
            )
    id, utterance = columns.index(_ID), columns.index(_UTTERANCE)
    for where, line in lines:
        fields = line.split(",")
        # The official valid and test files add a column of candidates that the header omits.
        if not len(columns) <= len(fields) <= len(columns) + 1:
            raise InputError(
                f"{len(fields)} fields, expected {len(columns)}",
                where=where,
                hint="Commas inside a field are written _comma_.",
            )
        yield fields[id], fields[utterance].replace("_comma_", ",")

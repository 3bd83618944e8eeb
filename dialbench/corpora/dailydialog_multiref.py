"""The test set of DailyDialog with five references to each context (Gupta et al., 2019).

Layout: `multireftest.json`, one dialogue a line, `{"dialogue": [{"text": "...", "responses":
["..."]}]}`; the first response is the original one. The files may be xz-packed. Training and
validation dialogues are those of DailyDialog, where its folder lies beside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialbench.corpora import dailydialog
from dialbench.corpora.contents import Card, Contents, require_folder
from dialbench.corpora.files import plain_or_packed, read_json, texts_at
from dialbench.errors import InputError
from dialbench.records import Dialogue

CARD = Card(
    name="dailydialog-multiref",
    title="DailyDialog (5 references)",
    summary="the test set of DailyDialog with four further human references to each context",
    licence="not stated; the dialogues are DailyDialog's, CC BY-NC-SA 4.0",
    official=dailydialog.CARD.official,
    notes=(
        "five references to each context (four where one is empty), lower-cased and tokenised as "
        "published",
    ),
    citation="Gupta et al., 2019, Investigating Evaluation of Open-Domain Dialogue Systems With "
    "Human Generated Multiple References, SIGDIAL",
    folder="dailydialog_multiref",
)


def read(folder: Path) -> Contents:
    """Reads the test file under `folder`, and train and valid of DailyDialog beside it.

    Dialogue ids are those of `dailydialog`.

    Raises:
        InputError: a file is missing or damaged, or a turn has no references.
    """
    contents = Contents()
    path = plain_or_packed(require_folder(folder, CARD.name) / "multireftest.json")
    training = folder.parent / dailydialog.CARD.name
    if training.is_dir():
        for split in ("train", "valid"):
            dailydialog.read_split(training, split, contents)
        contents.notes.append("systems are trained on DailyDialog's own training split")
    else:
        contents.absent = frozenset({"train", "valid"})
    for index, (where, value) in enumerate(read_json(path)):
        contents.items["test"].append(_dialogue(f"test-{index}", value, where))
    return contents


def _dialogue(id: str, value: Any, where: str) -> Dialogue:
    turns = value.get("dialogue") if isinstance(value, dict) else None
    if not isinstance(turns, list) or not all(_has_text(turn) for turn in turns):
        raise _faulty("'dialogue' is not a list of turns with a text", where)
    return Dialogue(
        id,
        tuple(turn["text"].strip() for turn in turns),
        "test",
        tuple(_references(turn, where) for turn in turns[:-1]),
    )


def _has_text(turn: Any) -> bool:
    text = turn.get("text") if isinstance(turn, dict) else None
    return isinstance(text, str) and bool(text.strip())


def _references(turn: Any, where: str) -> tuple[str, ...]:
    texts = texts_at(turn, "responses", where)
    references = tuple(stripped for text in texts if (stripped := text.strip()))
    if not references:
        raise _faulty("a turn has no reference", where)
    return references


def _faulty(what: str, where: str) -> InputError:
    return InputError(what, where=where, hint="The file is damaged; fetch it again.")

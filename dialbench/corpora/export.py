"""A split of a corpus as JSON lines, for systems that answer elsewhere.

A line holds `id`, `dialogue_id`, `context` and `references`; with a `response` added it is what
`file[path=...]` and `dialbench score` read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from dialbench.corpora.base import names
from dialbench.corpora.corpus import Corpus
from dialbench.corpora.files import SPLITS, plain_or_packed
from dialbench.errors import InputError
from dialbench.files.atomic import atomic_file
from dialbench.files.responses import fields_of
from dialbench.text.cleaning import visible


def files_of(corpus: str) -> list[Path]:
    """The files of the user's own corpus that `load_corpus(corpus)` reads; of a known one none."""
    path = Path(corpus)
    if corpus in names():
        return []
    splits = [plain_or_packed(path / f"{split}.jsonl") for split in SPLITS]
    return [file for file in (path, *splits) if file.is_file()]


def export_lines(corpus: Corpus, split: str) -> Iterator[str]:
    """The examples of a split in corpus order, a JSON object each, without line ends.

    Raises:
        InputError: the corpus has no such split.
    """
    if not len(corpus.split(split)):
        raise InputError(
            f"the corpus has no {split} split",
            where=f"export {corpus.name}",
            hint="Name another one with --split.",
        )
    for example in corpus.split(split):
        line = json.dumps(fields_of(example), ensure_ascii=False)
        yield line if visible(line) == line else json.dumps(fields_of(example))


def write_export(corpus: Corpus, split: str, path: Path) -> None:
    """Writes the lines of a split atomically.

    Raises:
        InputError: the corpus has no such split.
        StorageError: the disk refuses.
    """
    with atomic_file(path) as file:
        for line in export_lines(corpus, split):
            file.write(line.encode("utf-8") + b"\n")


def licence_notice(corpus: Corpus) -> str:
    """What whoever gets the text must know, in one line."""
    advice = "" if corpus.publishable else "; its text may not be passed on without checking that"
    return f"{corpus.title}, licence: {corpus.licence}{advice}"

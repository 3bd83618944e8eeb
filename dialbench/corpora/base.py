"""Corpora by name: what every corpus offers, where its files lie, and how it is loaded."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import cast

from dialbench.corpora.files import SPLITS
from dialbench.corpora.overlap import dialogues_in_both, normalised, without_dialogues_of
from dialbench.errors import InputError, UnknownName
from dialbench.files.folders import data_folder as data_folder
from dialbench.records import Dialogue, Example, Split
from dialbench.text.wording import count_of

Item = Dialogue | Example

_HOMES = {
    "dailydialog": "dialbench.corpora.dailydialog",
    "demo": "dialbench.corpora.demo",
    "empatheticdialogues": "dialbench.corpora.empatheticdialogues",
}


@dataclass(frozen=True)
class Card:
    """What is known of a corpus before it is read; shown by `dialbench corpora`.

    Attributes:
        name: what users write; also the corpus' folder inside the data folder.
        title: the name that papers print.
        summary: one line about what it is.
        licence: as its publisher states it.
        publishable: whether text of it may be committed or published.
        official: number of dialogues per split in the official release; empty if there is none.
        notes: warnings that belong under every table made on it.
    """

    name: str
    title: str
    summary: str
    licence: str
    publishable: bool = False
    official: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Contents:
    """What a reader found, split by split: tidied dialogues or ready-made examples."""

    def __init__(self) -> None:
        self.items: dict[str, list[Item]] = {split: [] for split in SPLITS}
        self.notes: list[str] = []
        self._empty_turns = 0

    def tidy(self, turns: Sequence[str]) -> tuple[str, ...]:
        """Turns without blanks around them; empty ones are dropped and counted."""
        kept = tuple(text for turn in turns if (text := turn.strip()))
        self._empty_turns += len(turns) - len(kept)
        return kept

    def add_dialogue(self, split: str, id: str, turns: Sequence[str]) -> None:
        """Adds a dialogue after tidying its turns."""
        self.items[split].append(Dialogue(id, self.tidy(turns), split))

    def all_notes(self) -> Iterator[str]:
        """The reader's own notes and those about what could not be used."""
        yield from self.notes
        if self._empty_turns:
            yield f"{count_of(self._empty_turns, 'empty turn')} dropped"
        dialogues = (item for items in self.items.values() for item in items)
        short = sum(isinstance(item, Dialogue) and len(item.turns) < 2 for item in dialogues)
        if short:
            yield f"{count_of(short, 'dialogue')} with fewer than two turns, giving no example"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Dialogues in three splits and the examples made of them.

    Each turn from the second on is the response of an example whose context is the latest
    `context_turns` turns before it (PaRaFormer paper, section 4: five).
    """

    card: Card
    items: Mapping[str, Sequence[Item]]
    context_turns: int = 5
    remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What users call it."""
        return self.card.name

    @property
    def title(self) -> str:
        """The name to print."""
        return self.card.title

    @property
    def licence(self) -> str:
        """The licence as published."""
        return self.card.licence

    @property
    def publishable(self) -> bool:
        """Whether text of it may be committed or published."""
        return self.card.publishable

    @property
    def official(self) -> Mapping[str, int]:
        """Dialogues per split of the official release; empty if there is none."""
        return self.card.official

    @cached_property
    def train(self) -> Split:
        """The examples to learn from."""
        return self._split("train")

    @cached_property
    def valid(self) -> Split:
        """The examples to choose settings by."""
        return self._split("valid")

    @cached_property
    def test(self) -> Split:
        """The examples to be answered."""
        return self._split("test")

    def split(self, name: str) -> Split:
        """The split called "train", "valid" or "test"."""
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def dialogues(self, split: str) -> Iterator[Dialogue]:
        """The dialogues of a split in corpus order.

        A ready-made example counts as a dialogue: its context and its first reference.
        """
        for item in self.items[split]:
            if isinstance(item, Dialogue):
                yield item
            else:
                yield Dialogue(item.id, (*item.context, item.references[0]), split)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Warnings that belong under every table made on this corpus."""
        notes = [*self.card.notes, *self.remarks]
        shared, n = self.test_in_train, len(self.items["test"])
        if shared:
            notes.append(
                f"{shared:,} of {n:,} test dialogues also occur in train "
                "(case, spaces and punctuation ignored)"
            )
        return tuple(f"{self.title}: {note}" for note in notes)

    @cached_property
    def test_in_train(self) -> int:
        """How many test dialogues also occur in train, ignoring case, spaces, punctuation."""
        return dialogues_in_both(self.dialogues("test"), self.dialogues("train"), normalised)

    def checksum_of(self, *splits: str) -> str:
        """sha256 (64 hex digits) over everything that makes the examples of these splits.

        It covers ids, turns and the length of contexts, not how the files were packed.
        """
        digest = hashlib.sha256(f"context_turns={self.context_turns}".encode())
        for split in splits:
            digest.update(f"\nsplit={split}\n".encode())
            for item in self.items[split]:
                digest.update(_line_of(item).encode("utf-8"))
        return digest.hexdigest()

    @cached_property
    def checksum(self) -> str:
        """sha256 (64 hex digits) over the content of all three splits."""
        return self.checksum_of(*SPLITS)

    def _split(self, name: str) -> Split:
        examples = (
            example for item in self.items[name] for example in _examples(item, self.context_turns)
        )
        return Split(name, tuple(examples))


def _place_in_draw(dialogue_id: str) -> bytes:
    return hashlib.sha256(f"sample\n{dialogue_id}".encode()).digest()


def sample(split: Split, limit: int | None) -> Split:
    """At most `limit` examples of a split, whole dialogues drawn at random, in corpus order.

    The head of a file is no fair sample: corpora are often sorted. The draw depends on the
    dialogues' ids alone, so that a smaller sample lies within a larger one; the dialogue that
    reaches the limit is cut there.
    """
    if limit is None or limit >= len(split):
        return split
    lengths = Counter(example.dialogue_id for example in split)
    room = dict.fromkeys(lengths, 0)
    for id in sorted(lengths, key=_place_in_draw):
        room[id] = min(lengths[id], limit)
        limit -= room[id]
    kept = []
    for example in split:
        if room[example.dialogue_id]:
            room[example.dialogue_id] -= 1
            kept.append(example)
    return Split(split.name, kept)


def _examples(item: Item, context_turns: int) -> Iterator[Example]:
    if isinstance(item, Example):
        yield replace(item, context=item.context[-context_turns:])
        return
    for place in range(1, len(item.turns)):
        context = item.turns[max(0, place - context_turns) : place]
        yield Example(f"{item.id}-{place}", item.id, context, (item.turns[place],))


def _line_of(item: Item) -> str:
    if isinstance(item, Dialogue):
        parts: list[object] = [item.id, item.turns]
    else:
        parts = [item.id, item.dialogue_id, item.context, item.references]
    return json.dumps(parts, ensure_ascii=False) + "\n"


def names() -> list[str]:
    """The names of all corpora that ship with the suite, in alphabetical order."""
    return sorted(_HOMES)


def card(name: str, *, where: str = "--corpus") -> Card:
    """What is known of the corpus called `name` without reading it.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in _HOMES:
        raise UnknownName.of("corpus", name, _HOMES, where=where)
    return cast(Card, import_module(_HOMES[name]).CARD)


def load_corpus(
    name: str,
    *,
    data: Path | None = None,
    context_turns: int = 5,
    clean: bool = False,
    whole: bool = False,
    where: str = "--corpus",
) -> Corpus:
    """Reads a corpus.

    Args:
        name: a known name, a `FILE.jsonl`, or a folder holding train, valid and test.jsonl.
        data: the folder of all corpora; None = $DIALBENCH_DATA or the user cache.
        context_turns: how many of the latest turns a context keeps, at least 1.
        clean: leave out test dialogues that, case, spaces and punctuation ignored, are in train.
        whole: nobody learns from it: what a single file assigns to no split is all for the test.
        where: the argument that `name` came from, for error messages.

    Raises:
        InputError: a file is missing or faulty, or a split would have no example.
        UnknownName: there is no such corpus.
    """
    if context_turns < 1:
        raise InputError(f"a context needs at least 1 turn, not {context_turns}", where=where)
    known, contents = _read(name, data, where, whole=whole)
    remarks = [*_differences(known, contents), *contents.all_notes()]
    corpus = Corpus(known, contents.items, context_turns, tuple(remarks))
    if clean:
        corpus = _cleaned(corpus)
    for split in ("test",) if whole else SPLITS:
        if not any(True for item in corpus.items[split] for _ in _examples(item, 1)):
            raise InputError(f"{split} has no example", where=f"{where} {name}")
    return corpus


def name_of(name: str) -> str:
    """What results call the corpus that `load_corpus(name)` reads; nothing is read."""
    if name in _HOMES:
        return name
    from dialbench.corpora import jsonl

    return jsonl.card(Path(name)).name


def _read(name: str, data: Path | None, where: str, *, whole: bool) -> tuple[Card, Contents]:
    if name in _HOMES:
        read = cast(Callable[[Path], Contents], import_module(_HOMES[name]).read)
        return card(name), read(data_folder(data) / name)
    path = Path(name)
    if name.endswith((".jsonl", ".jsonl.xz")) or path.is_dir():
        from dialbench.corpora import jsonl

        return jsonl.card(path), jsonl.read(path, whole=whole)
    if len(path.parts) > 1 or path.exists():
        raise InputError(
            "is neither a FILE.jsonl nor a folder holding train.jsonl, valid.jsonl and test.jsonl",
            where=f"{where} {name}",
            hint=f"Known corpora: {', '.join(names())}.",
        )
    raise UnknownName.of("corpus", name, _HOMES, where=where)


def require_folder(folder: Path) -> Path:
    """The folder of a corpus if it is there.

    Raises:
        InputError: it is missing; says where it was looked for and how to get it.
    """
    if not folder.is_dir():
        raise InputError(
            "no such corpus folder",
            where=str(folder),
            hint="Give the folder that holds it with --data DIR or DIALBENCH_DATA, "
            f"or run `dialbench fetch {folder.name}`.",
        )
    return folder


def _differences(known: Card, contents: Contents) -> Iterator[str]:
    for split, official in known.official.items():
        n = len(contents.items[split])
        if n != official:
            yield f"{split} has {n:,} dialogues, the official release {official:,}"


def _cleaned(corpus: Corpus) -> Corpus:
    test = corpus.items["test"]
    keep = without_dialogues_of(corpus.dialogues("test"), corpus.dialogues("train"), normalised)
    kept = [item for item, wanted in zip(test, keep, strict=True) if wanted]
    remark = (
        f"{len(test) - len(kept):,} of {len(test):,} test dialogues left out because they occur "
        "in train (case, spaces and punctuation ignored)"
    )
    items = {**corpus.items, "test": kept}
    return replace(corpus, items=items, remarks=(*corpus.remarks, remark))

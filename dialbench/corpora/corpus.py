"""A corpus: dialogues in three splits and the examples made of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dialbench.corpora.contents import Card, Item
from dialbench.corpora.files import SPLITS
from dialbench.corpora.overlap import dialogues_in_both, normalised
from dialbench.records import Dialogue, Example, Split


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
        return self.train if name == "train" else self.valid if name == "valid" else self.test

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
                digest.update(_serialise(item).encode("utf-8"))
        return digest.hexdigest()

    @cached_property
    def checksum(self) -> str:
        """sha256 (64 hex digits) over the content of all three splits."""
        return self.checksum_of(*SPLITS)

    def _split(self, name: str) -> Split:
        turns = self.context_turns
        examples = (example for item in self.items[name] for example in examples_of(item, turns))
        return Split(name, tuple(examples))


def _sampling_key(dialogue_id: str) -> bytes:
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
    quota = dict.fromkeys(lengths, 0)
    for id in sorted(lengths, key=_sampling_key):
        quota[id] = min(lengths[id], limit)
        limit -= quota[id]
    kept = []
    for example in split:
        if quota[example.dialogue_id]:
            quota[example.dialogue_id] -= 1
            kept.append(example)
    return Split(split.name, kept)


def examples_of(item: Item, context_turns: int) -> Iterator[Example]:
    """The examples of a dialogue, or a ready-made example, with contexts of so many turns."""
    if isinstance(item, Example):
        yield replace(item, context=item.context[-context_turns:])
        return
    for index in range(1, len(item.turns)):
        context = item.turns[max(0, index - context_turns) : index]
        references = item.references[index - 1] if item.references else (item.turns[index],)
        yield Example(f"{item.id}-{index}", item.id, context, references)


def _serialise(item: Item) -> str:
    if isinstance(item, Dialogue):
        parts: list[object] = [item.id, item.turns]
        if item.references:
            parts.append(item.references)
    else:
        parts = [item.id, item.dialogue_id, item.context, item.references]
    return json.dumps(parts, ensure_ascii=False) + "\n"

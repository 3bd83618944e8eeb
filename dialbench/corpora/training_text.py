"""Training text: the turns of a training split, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialbench.corpora import jsonl
from dialbench.corpora.base import load_corpus
from dialbench.corpora.contents import Item
from dialbench.corpora.corpus import Corpus
from dialbench.errors import InputError
from dialbench.records import Dialogue, Example, Split


def training_split(
    train: Split | str | Path | None, data: str | Path | None = None
) -> Split | None:
    """Text to learn from, contexts uncut: that of a corpus, or all of a file of conversations.

    Of a corpus, which a name or a folder of three files stands for, it is the training split. Of
    a single file it is every line but those marked valid or test.

    Raises:
        InputError: there is no such corpus, it cannot be read or has no training split, or all
            lines of the file are marked.
    """
    if train is None or isinstance(train, Split):
        return train
    name = str(train)
    if jsonl.is_single_file(name):
        examples = tuple(_uncut_examples(jsonl.read_training(Path(name)), least=1))
        if not examples:
            raise InputError(
                "no line is training text",
                where=f"--train {name}",
                hint='Lines marked "split": "valid" or "test" are left out.',
            )
    else:
        folder = None if data is None else Path(data)
        split = whole_training_split(load_corpus(name, data=folder, where="--train"))
        if not split:
            raise InputError(
                "the corpus has no training split",
                where=f"--train {name}",
                hint="Name another corpus or a file of training text.",
            )
        return split
    return Split("train", examples)


def whole_training_split(corpus: Corpus) -> Split:
    """The training split with contexts uncut, whatever part of it systems learn from.

    It is empty where the corpus has none.
    """
    return Split("train", tuple(_uncut_examples(corpus.items["train"], least=2)))


def _uncut_examples(items: Iterable[Item], least: int) -> Iterator[Example]:
    """Ready-made examples as they are; one example for each dialogue of at least `least` turns."""
    for item in items:
        if not isinstance(item, Dialogue):
            yield item
        elif len(item.turns) >= least:
            yield Example(item.id, item.id, item.turns[:-1], item.turns[-1:])


def turns_of(split: Split) -> Iterator[str]:
    """Each turn of the split once, in the order in which contexts and references show it.

    A text that occurs again at another position of the dialogue counts again.
    """
    longest = max((len(example.context) for example in split), default=0)
    dialogues: dict[str, _KnownTurns] = {}
    for example in split:
        known = dialogues.setdefault(example.dialogue_id, _KnownTurns([], {}))
        truncated = len(example.context) == longest
        start = known.start_of(example.context, truncated=truncated)
        positions = (*((turn,) for turn in example.context), example.references)
        for position, turns in enumerate(positions, start):
            for turn in turns:
                if known.add(turn, position):
                    yield turn


@dataclass(frozen=True)
class _KnownTurns:
    """The turns of a dialogue that examples have shown so far.

    Attributes:
        at: the turns at each position; several where it branches.
        places: the positions of each turn, in the order in which they became known.
    """

    at: list[set[str]]
    places: dict[str, list[int]]

    def add(self, turn: str, position: int) -> bool:
        """Notes a turn; whether it was not known at that position."""
        while position >= len(self.at):
            self.at.append(set())
        if turn in self.at[position]:
            return False
        self.at[position].add(turn)
        self.places.setdefault(turn, []).append(position)
        return True

    def start_of(self, context: Sequence[str], *, truncated: bool) -> int:
        """The position at which a context begins.

        Args:
            context: turns.
            truncated: whether the context may lack turns at its beginning.
        """
        if not truncated and self._fits(context, 0):
            return 0
        if not context:
            return len(self.at)
        # The latest position where all of it is known, else where most of its beginning is.
        latest = len(self.at) - len(context)
        places = sorted(self.places.get(context[0], ()))
        whole = [place for place in reversed(places) if place <= latest]
        for start in (*whole, *(place for place in places if place > latest)):
            if self._fits(context, start):
                return start
        # Another branch of the dialogue, or turns of it that no example showed.
        return 0 if self.at and context[0] in self.at[0] else len(self.at)

    def _fits(self, context: Sequence[str], start: int) -> bool:
        known = self.at[start : start + len(context)]
        return all(turn in turns for turn, turns in zip(context, known, strict=False))

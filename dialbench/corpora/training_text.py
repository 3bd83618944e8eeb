"""Training text: the turns of a training split, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from dialbench.corpora import jsonl
from dialbench.corpora.base import Corpus, Item, load_corpus
from dialbench.errors import InputError
from dialbench.records import Dialogue, Example, Split


def training_split(
    train: Split | str | Path | None, data: str | Path | None = None
) -> Split | None:
    """Text to learn from, contexts uncut: that of a corpus, or all of a file of conversations.

    Of a corpus, which a name or a folder of three files stands for, it is the training split. Of
    a single file it is every line but those marked valid or test.

    Raises:
        InputError: there is no such corpus, it cannot be read, or all lines of the file are
            marked.
    """
    if train is None or isinstance(train, Split):
        return train
    name = str(train)
    if jsonl.is_single_file(name):
        examples = tuple(_whole(jsonl.read_training(Path(name)), least=1))
        if not examples:
            raise InputError(
                "no line is training text",
                where=f"--train {name}",
                hint='Lines marked "split": "valid" or "test" are left out.',
            )
    else:
        folder = None if data is None else Path(data)
        corpus = load_corpus(name, data=folder, where="--train")
        return whole_training_split(corpus)
    return Split("train", examples)


def whole_training_split(corpus: Corpus) -> Split:
    """The training split with contexts uncut, whatever part of it systems learn from."""
    return Split("train", tuple(_whole(corpus.items["train"], least=2)))


def _whole(items: Iterable[Item], least: int) -> Iterator[Example]:
    """Ready-made examples as they are, dialogues of at least so many turns as one example each."""
    for item in items:
        if not isinstance(item, Dialogue):
            yield item
        elif len(item.turns) >= least:
            yield Example(item.id, item.id, item.turns[:-1], item.turns[-1:])


def turns_of(split: Split) -> Iterator[str]:
    """Each turn of the split once, as contexts and references show its dialogues growing.

    What is said again at another place of the dialogue counts again.
    """
    longest = max((len(example.context) for example in split), default=0)
    dialogues: dict[str, list[set[str]]] = {}
    for example in split:
        said = dialogues.setdefault(example.dialogue_id, [])
        cut = len(example.context) == longest
        start = _start(example.context, said, cut=cut)
        places = (*((turn,) for turn in example.context), example.references)
        for place, turns in enumerate(places, start):
            if place == len(said):
                said.append(set())
            for turn in turns:
                if turn not in said[place]:
                    said[place].add(turn)
                    yield turn


def _start(context: Sequence[str], said: Sequence[set[str]], *, cut: bool) -> int:
    """The place in a dialogue at which a context begins.

    Args:
        context: turns.
        said: what was said at each place of the dialogue so far.
        cut: whether the context may lack turns at its beginning.
    """

    def fits(start: int) -> bool:
        known = said[start : start + len(context)]
        return all(turn in heard for turn, heard in zip(context, known, strict=False))

    if not cut and fits(0):
        return 0
    # The latest place where all of it was said before, else where most of its beginning was.
    latest = len(said) - len(context)
    for start in chain(range(latest, -1, -1), range(max(latest + 1, 0), len(said))):
        if fits(start):
            return start
    # Another branch of the dialogue, or turns of it that no example showed.
    return 0 if said and context and context[0] in said[0] else len(said)

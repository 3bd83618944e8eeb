"""Training text: the turns of a training split, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
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
    dialogues: dict[str, list[set[str]]] = {}
    for example in split:
        known_turns = dialogues.setdefault(example.dialogue_id, [])
        truncated = len(example.context) == longest
        start = _start_position(example.context, known_turns, truncated=truncated)
        positions = (*((turn,) for turn in example.context), example.references)
        for position, turns in enumerate(positions, start):
            if position == len(known_turns):
                known_turns.append(set())
            for turn in turns:
                if turn not in known_turns[position]:
                    known_turns[position].add(turn)
                    yield turn


def _start_position(
    context: Sequence[str], known_turns: Sequence[set[str]], *, truncated: bool
) -> int:
    """The position in a dialogue at which a context begins.

    Args:
        context: turns.
        known_turns: the turns known so far at each position of the dialogue.
        truncated: whether the context may lack turns at its beginning.
    """

    def fits(start: int) -> bool:
        known = known_turns[start : start + len(context)]
        return all(turn in turns for turn, turns in zip(context, known, strict=False))

    if not truncated and fits(0):
        return 0
    # The latest position where all of it is known, else where most of its beginning is.
    latest = len(known_turns) - len(context)
    for start in chain(range(latest, -1, -1), range(max(latest + 1, 0), len(known_turns))):
        if fits(start):
            return start
    # Another branch of the dialogue, or turns of it that no example showed.
    return 0 if known_turns and context and context[0] in known_turns[0] else len(known_turns)

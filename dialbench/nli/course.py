"""Everything that makes the embedded judge: gather, train, keep, examine, tell."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.files.atomic import atomic_write
from dialbench.neural.devices import dtype_of
from dialbench.nli import embedded
from dialbench.nli.cache import Remembering
from dialbench.nli.dialogue import dialogue_pairs
from dialbench.nli.pairs import HELD_OUT, TRAINING, Pair, Source, read
from dialbench.nli.training import Training, TrainingSettings

_CORPUS = "dailydialog"


@dataclass(frozen=True)
class Course:
    """What the judge is taught.

    Attributes:
        counts: how many pairs each source gave.
        dialogue: pairs in the manner of dialogue, of each of three kinds.
        pairs: all of them.
    """

    counts: tuple[tuple[Source, int], ...]
    dialogue: int
    pairs: tuple[Pair, ...]

    @property
    def dialogue_pairs(self) -> int:
        """Pairs in the manner of dialogue, of all kinds."""
        return len(self.pairs) - sum(count for _, count in self.counts)

    @classmethod
    def gather(cls, data: Path, dialogue: int, seed: int) -> Course:
        """Reads the training sets, and makes pairs of DailyDialog's training split.

        Raises:
            InputError: a file is missing or damaged.
        """
        found = [(source, read(source, data)) for source in TRAINING]
        turns = list(load_corpus(_CORPUS, data=data, where="--data").dialogues("train"))
        made = dialogue_pairs(turns, dialogue, seed)
        pairs = [pair for _, own in found for pair in own] + made
        return cls(tuple((source, len(own)) for source, own in found), dialogue, tuple(pairs))


def train(
    data: Path,
    out: Path,
    *,
    seed: int = 1,
    dialogue: int = 500,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Trains the adaptation, or goes on with it, examines it and writes its card.

    Args:
        data: the data folder, with `nli` and `dailydialog`.
        out: where the adaptation, its card, checkpoints and judgements go.
        seed: of the order of the pairs, of those that are made, and of the first values.
        dialogue: pairs in the manner of dialogue, of each kind.
        tell: is told how far it is.

    Returns:
        The files of the adaptation and its card.

    Raises:
        InputError: a file or the extra `offline` is missing.
        StorageError: the disk refuses, or `out` holds another training.
    """
    folder = embedded.base_folder()
    if folder is None:
        raise InputError("there is no base to adapt", hint="Install dialbench[offline].")
    settings = TrainingSettings(seed=seed)
    course = Course.gather(data, dialogue, seed)
    model, tokenizer = embedded.base(folder)
    training = Training(model, tokenizer, course.pairs, settings, out / "training.safetensors")
    learned = training.fit(lambda progress: tell(str(progress)))
    weights = out / embedded.WEIGHTS.name
    embedded.save(weights, learned)
    facts: dict[str, object] = {
        "base": embedded.BASE_SHA256,
        "file": weights.name,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "parameters": sum(tensor.numel() for tensor in learned.values()),
        "command": f"dialbench nli train --seed {seed} --dialogue-pairs {dialogue}",
        "dtype": str(dtype_of("auto", "cpu")).removeprefix("torch."),
        "pairs": len(training.rows),
    }
    path = weights.with_suffix(".md")
    atomic_write(path, _examined(folder, weights, data, course, settings, facts, tell))
    return [weights, path]


def _examined(
    folder: Path,
    weights: Path,
    data: Path,
    course: Course,
    settings: TrainingSettings,
    facts: dict[str, object],
    tell: Callable[[str], None],
) -> str:
    """The card, after all examinations; what was judged before a break is not judged again."""
    from dialbench.nli.card import card
    from dialbench.nli.examination import CONTEXTS, examine, sanity

    judge = Remembering(embedded.load(folder, weights), weights.parent / "judged")
    found = []
    for source in HELD_OUT:
        found.append(examine(judge, source, data))
        tell(f"{source.name}: {found[-1].accuracy:.2%}")
    valid = load_corpus(_CORPUS, data=data, where="--data").valid
    return card(course, settings, found, sanity(judge, valid), {"contexts": CONTEXTS} | facts)

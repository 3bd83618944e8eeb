"""Everything that makes the embedded judge: gather, train, calibrate, keep, examine, tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.files.atomic import atomic_write
from dialbench.files.checksum import sha256_of
from dialbench.neural.devices import dtype_of
from dialbench.nli import embedded
from dialbench.nli.adaptation import mean, shifted
from dialbench.nli.cache import CachedJudge
from dialbench.nli.loading import find
from dialbench.nli.training.calibration import Offsets, Shifted, calibrate
from dialbench.nli.training.card import card
from dialbench.nli.training.curriculum import CORPUS, PARTS, Curriculum
from dialbench.nli.training.findings import Findings
from dialbench.nli.training.fitting import Training
from dialbench.nli.training.pairs import DEVELOPMENT
from dialbench.nli.training.ratings import read_rated

_UNCALIBRATED = "uncalibrated.safetensors"
THREADS = 1
"""Of training: sums fall otherwise on another number of threads, and so would the weights."""


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
        dialogue: pairs in the manner of dialogue, of each label, in the first stage.
        tell: is told how far it is.

    Returns:
        The files of the adaptation and its card.

    Raises:
        InputError: a file or the extra `nli` is missing.
        StorageError: the disk refuses, or `out` holds another training.
    """
    folder = embedded.base_folder()
    if folder is None:
        raise InputError("there is no base to adapt", hint=embedded.HINT)
    curriculum = Curriculum.gather(data, dialogue, seed)
    learned, pairs = _taught(curriculum, folder, out, tell)
    embedded.save(out / _UNCALIBRATED, learned)
    judge = CachedJudge(embedded.load(folder, out / _UNCALIBRATED), out / "judged")
    valid = load_corpus(CORPUS, data=data, where="--data").valid
    rated = [one for one in read_rated(data) if one.choosing]
    offsets = calibrate(judge, DEVELOPMENT, data, valid, rated)
    tell("no offsets keep the bounds" if offsets is None else f"offsets: {offsets.logits}")
    weights = out / embedded.WEIGHTS.name
    embedded.save(weights, shifted(learned, (offsets or Offsets()).logits))
    facts: dict[str, object] = {
        "base": embedded.BASE_SHA256,
        "file": weights.name,
        "sha256": sha256_of(weights),
        "parameters": sum(tensor.numel() for tensor in learned.values()),
        "command": f"dialbench nli train --seed {seed} --dialogue-pairs {dialogue}",
        "torch": torch.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "dtype": str(dtype_of("auto", "cpu")).removeprefix("torch."),
        "threads": THREADS,
    }
    findings = Findings.of(Shifted(judge, offsets or Offsets()), data, valid, tell)
    path = weights.with_suffix(".md")
    atomic_write(path, card(curriculum, pairs, offsets, findings.to_markdown(), facts))
    return [weights, path]


def examine(model: str | None, data: Path, tell: Callable[[str], None]) -> str:
    """What a judge makes of all that it was not taught, as Markdown.

    Args:
        model: see `dialbench.nli.loading.find`.
        data: the data folder, with `nli` and `dailydialog`.
        tell: is told how far it is.

    Raises:
        InputError: the judge cannot be used, or a file is missing or damaged.
    """
    judge = find(model)
    if judge is None:
        raise InputError("there is no judge to examine", hint=embedded.HINT)
    valid = load_corpus(CORPUS, data=data, where="--data").valid
    findings = Findings.of(CachedJudge(judge), data, valid, tell)
    return f"# What {judge.name} makes of what it was not taught\n\n{findings.to_markdown()}"


def _taught(
    curriculum: Curriculum, folder: Path, out: Path, tell: Callable[[str], None]
) -> tuple[dict[str, Tensor], list[int]]:
    """The mean of what the stages learned, and how many pairs of each were short enough."""
    learned: list[dict[str, Tensor]] = []
    pairs = []
    for number, stage in enumerate(curriculum.stages, 1):
        model, tokenizer = embedded.base(folder)
        file = out / f"lesson-{number}.safetensors"
        start = learned[-1] if learned else {}
        training = Training(model, tokenizer, stage.pairs, stage.settings, file, start)
        tell(f"stage {number} of {len(curriculum.stages)}")
        with _threads(THREADS):
            learned.append(training.fit(lambda progress: tell(str(progress))))
        pairs.append(len(training.rows))
    return mean(learned, PARTS), pairs


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

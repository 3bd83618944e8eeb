"""METEOR 1.5 (Denkowski and Lavie, 2014) by its own program, which needs Java."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError
from dialbench.extras import install_command
from dialbench.files.checksum import sha256_of
from dialbench.metrics.base import SHARE, Dense, MeanMetric, SumMetric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.resource import Resource
from dialbench.metrics.texts import Texts

_JAR, _PARAPHRASES = "meteor-1.5.jar", Path("data") / "paraphrase-en.gz"
_BAR = "|||"
_COUNTS = 23
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])  # exact, stem, synonym, paraphrase
MISSING = (
    f"METEOR 1.5 was not found: it needs java on the PATH, and {install_command('meteor')} or "
    f"{_JAR} with {_PARAPHRASES} in the folder meteor of the data folder"
)

Case = tuple[str, list[str]]


class MeteorProgram:
    """METEOR's archive and the Java that runs it.

    Args:
        java: the program.
        folder: that of the archive and, below it, of its table of paraphrases.
    """

    def __init__(self, java: str, folder: Path) -> None:
        self._java, self._folder = java, folder

    @classmethod
    def find(cls, data: Path | None) -> MeteorProgram | None:
        """The program in `data`/meteor, else that of pycocoevalcap, or None."""
        java = shutil.which("java")
        package = importlib.util.find_spec("pycocoevalcap")
        places = (package and package.submodule_search_locations) or ()
        for folder in (path / "meteor" for path in (*filter(None, [data]), *map(Path, places))):
            if java and (folder / _JAR).is_file() and (folder / _PARAPHRASES).is_file():
                return cls(java, folder.resolve())
        return None

    @property
    def name(self) -> str:
        """How signatures call it: a checksum of the archive and its paraphrases."""
        digest = hashlib.sha256()
        for part in (_JAR, _PARAPHRASES):
            digest.update(bytes.fromhex(sha256_of(self._folder / part)))
        return digest.hexdigest()[:12]

    def counts(self, texts: Texts) -> NDArray[np.float64]:
        """(responses, 23) METEOR's counts of each response with its best reference.

        Zero where no reference has a token; NaN without a reference.

        Raises:
            InputError: the program fails.
        """
        counts = np.zeros((len(texts), _COUNTS))
        counts[np.diff(texts.reference_offsets) == 0] = np.nan
        cases = dict(enumerate(_cases(texts)))
        asked = {index: case for index, case in cases.items() if case[1]}
        if asked:
            counts[list(asked)] = np.array(list(self._answers(asked.values())))
        return counts

    def _answers(self, cases: Iterable[Case]) -> Iterator[list[float]]:
        command = [self._java, "-Xmx2G", "-jar", _JAR, "-", "-", "-stdio", "-l", "en", "-norm"]
        with subprocess.Popen(  # noqa: S603
            command,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        ) as running:
            try:
                for response, references in cases:
                    line = " ||| ".join(["SCORE", *references, response])
                    print(line, file=running.stdin, flush=True)
                    yield _numbers(cast(IO[str], running.stdout).readline())
            except (OSError, ValueError):
                raise InputError(
                    "METEOR 1.5 stopped before it had scored everything",
                    where=str(self._folder / _JAR),
                    hint="See what `java -jar` says of it, or leave METEOR 1.5 out.",
                ) from None
            finally:
                running.kill()


def _numbers(line: str) -> list[float]:
    numbers = [float(number) for number in line.split()]
    if len(numbers) != _COUNTS:
        raise ValueError(f"{len(numbers)} numbers")
    # As METEOR itself scores and sums: an equal text has no chunks, hence no penalty.
    if numbers[20] == 1 and numbers[21:] == numbers[:2]:
        numbers[20] = 0
    return numbers


def meteor_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(...) METEOR 1.5 of (..., 23) counts of one response, or summed over several.

    The counts: tokens of response and reference, function words of both; for each kind of match
    the matched content words of both and function words of both; chunks (0 for equal texts),
    matched words of both.
    """
    lengths, function = counts[..., 0:2], counts[..., 2:4]
    kinds = counts[..., 4:20].reshape(*counts.shape[:-1], 4, 4)
    chunks, matched = counts[..., 20], counts[..., 21:23]
    content_matches, function_matches = (
        np.einsum("k,...kw->...w", _WEIGHTS, kinds[..., part]) for part in np.split(np.arange(4), 2)
    )
    weighted_matches = _DELTA * content_matches + (1 - _DELTA) * function_matches
    total = _DELTA * (lengths - function) + (1 - _DELTA) * function
    precision, recall = np.moveaxis(_divided(weighted_matches, total), -1, 0)
    mean = _divided(precision * recall, _ALPHA * precision + (1 - _ALPHA) * recall)
    penalty = _GAMMA * _divided(chunks, matched.mean(axis=-1)) ** _BETA
    return np.where(np.isnan(counts[..., 0]), np.nan, mean * (1 - penalty))


def _divided(some: NDArray[np.float64], all_: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.divide(some, all_, out=np.zeros_like(some), where=all_ > 0))


METEOR = Resource[MeteorProgram]("meteor")


class Meteor15(MeanMetric):
    """meteor-1.5: METEOR 1.5 for English with its defaults, mean over examples, in [0, 1].

    Exact, stem, synonym and paraphrase matches; alpha 0.85, beta 0.2, gamma 0.6, delta 0.75; the
    best of several references. It reads the tokens, joined by spaces, through its own
    normalisation, as the COCO caption toolkit calls it. A response or reference without a token
    counts 0; examples without a reference are left out.

    Args:
        tokenizer: name of the tokeniser.
        program: METEOR itself; None gives NaN and a reason.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str, program: MeteorProgram | None) -> None:
        super().__init__("meteor-1.5", _recipe("response", program), tokenizer)
        self._program = program
        self.missing = "" if program else MISSING

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) METEOR with the best reference."""
        if self._program is None:
            return np.full(len(texts), np.nan)
        return meteor_of(texts.once(self._program.counts))

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or NO_REFERENCES


class MeteorCoco(SumMetric):
    """meteor-coco: METEOR 1.5 of all responses' counts together, in [0, 1].

    What the COCO caption toolkit prints. Long responses weigh more than in meteor-1.5, from which
    the value differs by a fifth. Arguments as of `Meteor15`.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str, program: MeteorProgram | None) -> None:
        super().__init__("meteor-coco", _recipe("corpus", program), tokenizer)
        self._program = program
        self.missing = "" if program else MISSING

    def statistics(self, texts: Texts) -> Dense:
        """(responses, 23) counts; NaN without a reference."""
        if self._program is None:
            return Dense(np.full((len(texts), _COUNTS), np.nan))
        return Dense(texts.once(self._program.counts))

    def score(self, statistics: Dense) -> float:
        """METEOR of the sums, which are whole numbers; NaN without references."""
        return self.of_sums(self.addends(statistics).sum(axis=0))

    def addends(self, statistics: Dense) -> NDArray[np.float64]:
        """(responses, 1 + 23) whether there is a reference, and the counts."""
        there = ~np.isnan(statistics.values[:, :1])
        return np.hstack([there, np.where(there, statistics.values, 0.0)])

    def of_sums(self, sums: NDArray[Any]) -> float:
        """METEOR of responses with these counts in all."""
        return float(meteor_of(sums[1:])) if sums[0] else math.nan

    def count(self, statistics: Dense) -> int:
        """How many examples have a reference."""
        return int(np.count_nonzero(~np.isnan(statistics.values[:, 0])))

    def reason(self, statistics: Dense) -> str:
        """What is missing."""
        return "" if self.count(statistics) else self.missing or NO_REFERENCES


def _recipe(scope: str, program: MeteorProgram | None) -> str:
    source = program.name if program else "missing"
    return f"meteor-1.5|scope:{scope}|lang:en|norm:yes|program:{source}|references:max"


def _cases(texts: Texts) -> Iterator[Case]:
    """Each response with those of its references that have a token."""
    # As the toolkit, but in references as well: a bar would end a text and begin another.
    words = [word.replace(_BAR, "") for word in texts.words]
    references = texts.references.lists()
    for response, count in zip(
        texts.responses.lists(), np.diff(texts.reference_offsets), strict=True
    ):
        joined = [_joined(words, next(references)) for _ in range(count)]
        yield _joined(words, response), list(filter(None, joined))


def _joined(words: list[str], numbers: list[int]) -> str:
    return " ".join(filter(None, (words[number] for number in numbers)))


METRICS = (
    MetricInfo(
        "meteor-1.5",
        "METEOR 1.5",
        "Overlap",
        Meteor15,
        lambda s: Meteor15(s.tokenizer, s.of(METEOR).value),
        resource=METEOR,
    ),
    MetricInfo(
        "meteor-coco",
        "METEOR (COCO)",
        "Overlap",
        MeteorCoco,
        lambda s: MeteorCoco(s.tokenizer, s.of(METEOR).value),
        resource=METEOR,
    ),
)

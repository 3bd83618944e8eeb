"""Texts from plain strings, tiny resources, and what peers need."""

from __future__ import annotations

import json
import lzma
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialbench.metrics.base import Metric
from dialbench.metrics.embedding import VECTORS
from dialbench.metrics.entailment import JUDGE, Verdicts
from dialbench.metrics.registry import create
from dialbench.metrics.resource import Found, Resource
from dialbench.metrics.semantic import SENTENCES, SentenceModel
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.texts import Interner, Texts
from dialbench.metrics.training import TRAINING, Training
from dialbench.metrics.wordnet import WORDNET, WordNet, WordNetFiles
from dialbench.records import Example
from dialbench.text.tokenizer import tokenizer
from dialbench.text.vectors import Vectors

MakeTexts = Callable[..., Texts]


def _texts(
    responses: Sequence[str],
    references: Sequence[Sequence[str]] | None = None,
    tokenize: str = "whitespace",
    words: Interner | None = None,
    alternatives: Sequence[Sequence[str]] | None = None,
) -> Texts:
    given = [()] * len(responses) if references is None else references
    context = ("a b", "c")
    examples = [Example(str(i), f"d{i // 2}", context, tuple(own)) for i, own in enumerate(given)]
    others = [()] * len(responses) if alternatives is None else alternatives
    pairs = [(e, text, *also) for e, text, also in zip(examples, responses, others, strict=True)]
    return Texts.build(pairs, tokenizer(tokenize), words, verbatim=True)


@pytest.fixture(scope="session")
def texts_of() -> MakeTexts:
    """`texts_of(responses, references=None, tokenize="whitespace", words=, alternatives=)`."""
    return _texts


@pytest.fixture(scope="session")
def tiny_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WordNet archive of four senses and one irregular form."""
    senses = {
        "noun": ["n 02 cab 0 taxi 0 000 | a car", "n 02 goose 0 silly_bird 0 000 | a bird"],
        "verb": ["v 02 start 0 begin 0 000 | to begin"],
        "adj": ["a 02 glad 0 fond(p) 0 000 | in joy"],
        "adv": [],
    }
    path = tmp_path_factory.mktemp("data") / "nltk_data" / "corpora" / "wordnet.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for part, lines in senses.items():
            data = "  1 a licence text\n"
            index = "  1 a licence text\n"
            for line in lines:
                offset = len(data)
                data += f"{offset:08d} 03 {line}\n"
                for word in line.split()[2:6:2]:
                    index += f"{word.split('(')[0]} {part[0]} 1 0 1 0 {offset:08d}\n"
            archive.writestr(f"wordnet/data.{part}", data)
            archive.writestr(f"wordnet/index.{part}", index)
            archive.writestr(f"wordnet/{part}.exc", "geese goose\n" if part == "noun" else "")
    return path


@pytest.fixture(scope="session")
def tiny_vectors() -> Vectors:
    """Vectors of the words a to h in 5 dimensions; z has a vector of zeros."""
    matrix = np.random.default_rng(3).normal(size=(9, 5)).astype(np.float32)
    matrix[8] = 0.0
    return Vectors([*"abcdefgh", "z"], matrix, "tiny")


def _letters(texts: list[str]) -> np.ndarray[Any, Any]:
    """How often each of a to h occurs, and a constant: a sentence model for words of a letter."""
    return np.array([[1, *(text.count(letter) for letter in "abcdefgh")] for text in texts])


class LetterJudge:
    """Says what follows by how many letters two texts share."""

    name = "letters"

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray[Any, Any]:
        """(pairs, 3) probabilities."""
        shared = [len(set(one) & set(other) - {" "}) for one, other in pairs]
        return np.array([[n + 0.5, 1.0, 2.0] for n in shared]) / (np.array(shared)[:, None] + 3.5)


@pytest.fixture(scope="session")
def every_metric(tiny_wordnet: Path, tiny_vectors: Vectors) -> Callable[..., list[Metric[Any]]]:
    """`every_metric(*names)`: metrics with the tiny resources and the whitespace tokeniser."""
    resources: dict[Resource[Any], Found[Any]] = {
        WORDNET: Found(WordNetFiles(tiny_wordnet)),
        VECTORS: Found(tiny_vectors),
        TRAINING: Found(Training(map(str.split, ("a b c d e", "a b", "f g h a")))),
        SENTENCES: Found(SentenceModel(_letters, "letters")),
        JUDGE: Found(Verdicts(LetterJudge())),
    }

    def make(*names: str) -> list[Metric[Any]]:
        return create(names, MetricSettings("whitespace", resources=resources))

    return make


@pytest.fixture(scope="session")
def wordnet(data_folder: Path) -> WordNet:
    """The WordNet of the data folder."""
    actual = WordNet.find(data_folder)
    assert actual is not None
    return actual


@pytest.fixture(scope="session")
def nltk_wordnet(data_folder: Path) -> Any:
    """The same WordNet as nltk reads it."""
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    folder = data_folder / "nltk_data"
    nltk.data.path.insert(0, str(folder))
    root = nltk.data.find("corpora/wordnet.zip/wordnet/")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The multilingual functions are not available")
        yield WordNetCorpusReader(root, None)
    nltk.data.path.remove(str(folder))


@pytest.fixture(scope="session")
def released(data_folder: Path) -> tuple[list[str], list[tuple[str, ...]]]:
    """HRED's released responses to the DailyDialog test set, and the five references of each."""
    path = data_folder / "released_outputs" / "dailydialog_multirefeval" / "hredf.txt.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        responses = file.read().splitlines()
    path = data_folder / "dailydialog_multiref" / "multireftest.json.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        turns = [turn for line in file for turn in json.loads(line)["dialogue"][:-1]]
    return responses, [tuple(turn["responses"]) for turn in turns]

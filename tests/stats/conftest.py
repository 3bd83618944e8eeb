"""Text as the statistics rooms meet it: token numbers of responses, drawn from a Zipf law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bigrams:
    """The bigrams of each response, one row each, and how many tokens it has."""

    codes: NDArray[np.int64]
    there: NDArray[np.bool_]
    tokens: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: NDArray[np.intp]) -> Bigrams:
        return Bigrams(self.codes[index], self.there[index], self.tokens[index])

    @classmethod
    def concatenate(cls, parts: Sequence[Bigrams]) -> Bigrams:
        fields = ("codes", "there", "tokens")
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in fields))


def distinct_2(text: Bigrams) -> float:
    # numpy's own unique hashes integers since 2.3, which takes far longer than sorting here.
    ordered = np.sort(text.codes[text.there])
    return (1 + np.count_nonzero(np.diff(ordered))) / int(text.tokens.sum())


@dataclass(frozen=True)
class ZipfText:
    """Dialogues of a few responses; a dialogue has its own favourite words.

    `words` is the vocabulary, `longest` the tokens of the longest response.
    """

    words: int = 2000
    longest: int = 16

    def draw(
        self, generator: np.random.Generator, dialogues: int = 100, per_dialogue: int = 3
    ) -> tuple[Bigrams, NDArray[np.int64]]:
        """The statistics of one test set and the dialogue of each response."""
        responses = dialogues * per_dialogue
        weights = 1 / np.arange(1, self.words + 1)
        bounds = np.cumsum(weights / weights.sum())
        shape = (responses, self.longest)
        tokens = np.searchsorted(bounds[:-1], generator.random(shape))
        own = np.searchsorted(bounds[:-1], generator.random((dialogues, 4)))
        owner = np.repeat(np.arange(dialogues), per_dialogue)
        favourite = own[owner[:, None], generator.integers(4, size=shape)]
        tokens = np.where(generator.random(shape) < 0.2, favourite, tokens)
        lengths = generator.integers(3, self.longest + 1, size=responses)
        there = np.arange(self.longest - 1) < lengths[:, None] - 1
        return Bigrams(tokens[:, :-1] * self.words + tokens[:, 1:], there, lengths), owner


@pytest.fixture(scope="session")
def zipf() -> ZipfText:
    return ZipfText()


@pytest.fixture(scope="session")
def score_distinct_2():
    return distinct_2

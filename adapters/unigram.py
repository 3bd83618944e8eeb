"""Draws words by their frequency, without any order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from dialbench.adapter import Adapter, Card, Run
from dialbench.neural.randomness import seed_of
from dialbench.records import Context, Decoding, Split
from dialbench.text.tokenizer import detokenize, tokenize

from .random_train import training_responses


class Unigram(Adapter):
    """Draws a length, then each word by its frequency in the training responses.

    What is drawn depends on the seed and the example's id, and on nothing else.
    """

    name = "unigram"
    card = Card("Unigram", "sanity", "words drawn by their frequency in the training responses")
    ranked = False

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Counts the words and the lengths (in tokens) of the training responses.

        Raises:
            ValueError: there are no training responses.
        """
        tokenized = [tokenize(response) for response in training_responses(train)]
        words = Counter(word for tokens in tokenized for word in tokens)
        lengths = Counter(len(tokens) for tokens in tokenized)
        self.set_state({"words": [*words.items()], "lengths": [*lengths.items()]})

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """Random words for each context."""
        return [self._draw(seed_of(run.seed, self.name, context.id)) for context in contexts]

    def _draw(self, seed: int) -> str:
        source = random.Random(seed)  # noqa: S311 (a system under test, no secret)
        words, word_ends = self.words
        lengths, length_ends = self.lengths
        (length,) = source.choices(lengths, cum_weights=length_ends)
        return detokenize(source.choices(words, cum_weights=word_ends, k=length) if length else ())

    def state(self) -> Mapping[str, Any]:
        """Words and lengths with their counts."""
        return self.counts

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes words and lengths with their counts."""
        self.counts = state
        self.words = _cumulative(state["words"])
        self.lengths = _cumulative(state["lengths"])


def _cumulative(counts: Sequence[tuple[Any, int]]) -> tuple[list[Any], list[int]]:
    return [item for item, _ in counts], list(accumulate(count for _, count in counts))

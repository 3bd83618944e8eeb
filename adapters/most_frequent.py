"""Always gives the most frequent training response: the score of the dullest system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dialbench.adapter import Adapter, Card, Run
from dialbench.records import Context, Decoding, Split
from dialbench.text.tokenizer import tokenize

from .random_train import training_responses


class MostFrequent(Adapter):
    """Gives the most frequent training response, whatever the context."""

    name = "most-frequent"
    card = Card("Most frequent response", "sanity", "always the commonest training response")
    ranked = False

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Counts the training responses by their tokens; of equals, the first to appear wins.

        The response is written as it first appears in the training split.

        Raises:
            ValueError: there are no training responses.
        """
        counts: Counter[str] = Counter()
        written: dict[str, str] = {}
        for response in training_responses(train):
            key = " ".join(tokenize(response))
            counts[key] += 1
            written.setdefault(key, response)
        self.response = written[counts.most_common(1)[0][0]]

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """The same response for every context."""
        return [self.response for _ in contexts]

    def state(self) -> str:
        """The one response."""
        return self.response

    def set_state(self, state: str) -> None:
        """Takes the one response."""
        self.response = state

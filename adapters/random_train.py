"""Draws a human response at random: fluent, diverse, and unrelated to the context."""

from __future__ import annotations

from collections.abc import Sequence

from dialbench.adapter import Adapter, Card, Run
from dialbench.neural.randomness import seed_of
from dialbench.records import Context, Decoding, Split


class RandomTrain(Adapter):
    """Draws a training response from the seed and the example's id, and from nothing else."""

    name = "random-train"
    card = Card("Random training response", "sanity", "a training response drawn at random")
    ranked = False

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Remembers every training response.

        Raises:
            ValueError: there are none.
        """
        self.responses = training_responses(train)

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """A training response for each context, each occurrence in training equally likely."""
        responses = self.responses
        return [
            responses[seed_of(run.seed, self.name, context.id) % len(responses)]
            for context in contexts
        ]

    def state(self) -> list[str]:
        """The training responses in corpus order."""
        return self.responses

    def set_state(self, state: list[str]) -> None:
        """Takes the training responses."""
        self.responses = state


def training_responses(train: Split) -> list[str]:
    """Every human response of the training split, in corpus order.

    Raises:
        ValueError: there are none.
    """
    responses = [reference for example in train for reference in example.references]
    if not responses:
        raise ValueError("the corpus has no training responses")
    return responses

"""The training text that some metrics compare responses with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from dialbench.metrics.resource import Resource
from dialbench.metrics.texts import Ragged


class Training:
    """The turns of a training split, tokenised.

    Attributes:
        turns: (turns,) texts.
        kinds: how many different tokens they hold.
        checksum: sha256 (64 hex digits) of the tokens.
    """

    def __init__(self, token_lists: Iterable[Sequence[str]]) -> None:
        digest = hashlib.sha256()

        def read() -> Iterable[list[str]]:
            for tokens in token_lists:
                digest.update("\t".join(tokens).encode("utf-8") + b"\n")
                yield list(tokens)

        self.turns = Ragged.build(read())
        self.kinds = len(self.turns.words)
        self.checksum = digest.hexdigest()


TRAINING = Resource[Training]("train", "no training text was given")

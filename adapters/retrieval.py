"""Answers as a human once answered the most similar context: the classic tf-idf retrieval.

Contexts are bags of words, each word counted once for every time it occurs and `last_turn` times
where it occurs in the last turn, weighted by idf = ln((1 + N) / (1 + df)) + 1 over the N training
contexts, and compared by their cosine.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dialbench.adapter import Adapter, Card, Run
from dialbench.records import Context, Decoding, Split
from dialbench.text.tokenizer import tokenize

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_BLOCK = 256
# Cosines that differ by rounding only are the same; the first context wins on every machine.
_TIE = 1e-6


@dataclass(frozen=True)
class RetrievalConfig:
    """How contexts are compared.

    Attributes:
        last_turn: how often a word of the last turn counts; earlier turns count once. Of 1, 2,
            3, 5, 10 and 1000, 3 gave the best unigram F1 on the validation split of DailyDialog.
    """

    last_turn: float = 3.0

    def __post_init__(self) -> None:
        if not 0 < self.last_turn < math.inf:
            raise ValueError(f"last_turn is {self.last_turn:g}, but must be above 0")


class Retrieval(Adapter):
    """Gives the response of the most similar training context."""

    name = "retrieval"
    card = Card("tf-idf retrieval", "sanity", "the response of the most similar training context")
    ranked = False
    Config = RetrievalConfig

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Remembers contexts and first responses of the training split.

        Raises:
            ValueError: there are none.
        """
        examples = [example for example in train if example.references]
        if not examples:
            raise ValueError("the corpus has no training responses")
        self.set_state(
            {
                "contexts": [example.context for example in examples],
                "responses": [example.references[0] for example in examples],
            }
        )

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """The response of the nearest training context, of equally near ones the first.

        A context that shares no word with any of them gets the first training response.
        """
        nearest: list[int] = []
        for start in range(0, len(contexts), _BLOCK):
            nearest += self.index.nearest(contexts[start : start + _BLOCK])
            run.progress.update("respond", step=len(nearest), steps=len(contexts))
        return [self.responses[row] for row in nearest]

    def state(self) -> Mapping[str, Any]:
        """The training contexts and their responses."""
        return {"contexts": self.contexts, "responses": self.responses}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes contexts and responses and indexes them."""
        self.contexts, self.responses = state["contexts"], state["responses"]
        self.index = _Index(self.contexts, self.config.last_turn)


class _Index:
    """The unit vectors of N contexts over V words."""

    def __init__(self, contexts: Sequence[Sequence[str]], last_turn: float) -> None:
        self.last_turn = last_turn
        self.words: dict[str, int] = {}
        self.turns: dict[str, IntArray] = {}
        rows, columns, counts = self._bags(contexts, self._learn)
        N, V = len(contexts), len(self.words)
        self.idf = np.log((1 + N) / (1 + np.bincount(columns, minlength=V))) + 1  # (V,)
        values = self._unit(rows, columns, counts)
        starts = np.searchsorted(rows, np.arange(N + 1))
        with warnings.catch_warnings():  # torch calls its CSR tensors a beta
            warnings.simplefilter("ignore", UserWarning)
            self.matrix = torch.sparse_csr_tensor(  # (N, V)
                torch.from_numpy(starts.astype(np.int32)),
                torch.from_numpy(columns.astype(np.int32)),
                torch.from_numpy(values),
                size=(N, V),
            )

    def nearest(self, contexts: Sequence[Sequence[str]]) -> list[int]:
        """The row of the most similar context, the first of equals, for each of B contexts."""
        rows, columns, counts = self._bags(contexts, self._known)
        queries = np.zeros((len(self.words), len(contexts)), dtype=np.float32)  # (V, B)
        queries[columns, rows] = self._unit(rows, columns, counts)
        cosines = self.matrix @ torch.from_numpy(queries)  # (N, B)
        near = cosines >= cosines.amax(dim=0) - _TIE
        return [int(row) for row in near.numpy().argmax(axis=0)]

    def _unit(self, rows: IntArray, columns: IntArray, counts: FloatArray) -> Any:
        """The entries (float32) divided by the length of their row's vector."""
        values = counts * self.idf[columns]
        norms = np.sqrt(np.bincount(rows, values**2))
        return (values / norms[rows]).astype(np.float32)

    def _bags(
        self, contexts: Sequence[Sequence[str]], number: Callable[[str], IntArray]
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Row, column and count of every word of every context, by row and column."""
        turns = [
            (row, number(turn), self.last_turn if position == len(context) else 1.0)
            for row, context in enumerate(contexts)
            for position, turn in enumerate(context, start=1)
        ]
        lengths = [len(words) for _, words, _ in turns]
        rows = np.repeat(np.array([row for row, _, _ in turns], dtype=np.int64), lengths)
        weights = np.repeat([weight for _, _, weight in turns], lengths)
        columns = np.concatenate([np.empty(0, np.int64), *(words for _, words, _ in turns)])
        V = max(1, len(self.words))
        cells, entries = np.unique(rows * V + columns, return_inverse=True)
        return cells // V, cells % V, np.bincount(entries, weights).astype(np.float64)

    def _learn(self, turn: str) -> IntArray:
        """Numbers of the words of a training turn; turns come back in many contexts."""
        if turn not in self.turns:
            words = [self.words.setdefault(word, len(self.words)) for word in tokenize(turn)]
            self.turns[turn] = np.array(words, dtype=np.int64)
        return self.turns[turn]

    def _known(self, turn: str) -> IntArray:
        """Numbers of those words of a turn that occur in training."""
        words = [self.words[word] for word in tokenize(turn) if word in self.words]
        return np.array(words, dtype=np.int64)

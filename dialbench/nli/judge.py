"""A judge: pairs of a premise and a hypothesis to probabilities of what follows from what."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dialbench.errors import InputError

LABELS = ("entailment", "neutral", "contradiction")
"""In the order of every judge's probabilities."""
LONGEST = 128
"""Pieces of a pair; of longer ones the latest words are read."""
# More do not fit into a core's cache.
_BATCH_PIECES = 512
KNOWN = (
    ("A man is sleeping on a bench.", "A person is asleep.", "entailment"),
    ("A woman is reading a letter.", "The letter is from her sister.", "neutral"),
    ("Two dogs run across a field.", "The dogs are asleep on a bed.", "contradiction"),
)
"""What every judge must get right before its first use: premise, hypothesis, label."""


class Judge(Protocol):
    """Whoever judges.

    Attributes:
        name: who it is, with its revision; judgements of different names do not compare.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """(pairs, 3) probabilities of entailment, neutral and contradiction."""


class Classifier:
    """A model that classifies pairs of texts as a judge, in float32.

    Args:
        logits: takes what the tokenizer gives and answers with (pairs, 3) numbers.
        tokenizer: of two texts.
        order: the places of entailment, neutral and contradiction among the logits.
        name: see `Judge`.
        longest: pieces of a pair.
    """

    def __init__(
        self,
        logits: Callable[..., Tensor],
        tokenizer: Any,
        order: Sequence[int],
        name: str,
        longest: int = LONGEST,
    ) -> None:
        self.name = name
        self._logits, self._order, self._longest = logits, list(order), longest
        tokenizer.truncation_side = "left"
        self._tokenizer = tokenizer

    @torch.no_grad()
    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """(pairs, 3) probabilities of entailment, neutral and contradiction."""
        probabilities = np.zeros((len(pairs), len(LABELS)), np.float32)
        encoded = self._encoded(pairs)
        for rows in _batches([len(ids) for ids in encoded["input_ids"]]):
            batch = self._tokenizer.pad(
                {name: [values[i] for i in rows] for name, values in encoded.items()},
                return_tensors="pt",
            )
            probabilities[rows] = self._logits(**batch)[:, self._order].softmax(-1).numpy()
        return probabilities

    def _encoded(self, pairs: Sequence[tuple[str, str]]) -> dict[str, list[list[int]]]:
        if not pairs:
            return {"input_ids": []}
        premises, hypotheses = zip(*pairs, strict=True)
        return dict(
            self._tokenizer(
                list(premises), list(hypotheses), truncation=True, max_length=self._longest
            )
        )


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of pairs of about one length, the longest first, so that little is padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        size = max(1, _BATCH_PIECES // lengths[order[start]])
        yield order[start : start + size]
        start += size


def order_of(labels: dict[int, str], *, where: str) -> list[int]:
    """The places of entailment, neutral and contradiction among the labels of a config.

    Raises:
        InputError: they are not three, or are not called so.
    """
    places = [
        [index for index, label in labels.items() if label.lower().startswith(stem)]
        for stem in ("entail", "neutral", "contradict")
    ]
    if len(labels) != len(LABELS) or any(len(indices) != 1 for indices in places):
        raise InputError(
            f"the labels are {', '.join(labels.values())}, not {', '.join(LABELS)}",
            where=where,
            hint="Choose an NLI model, or correct id2label in its config.json.",
        )
    return list(itertools.chain.from_iterable(places))


def require_sane(judge: Judge, *, where: str) -> None:
    """Raises InputError unless three plain pairs come out right; wrong label orders exist."""
    probabilities_of_pairs = judge([(premise, hypothesis) for premise, hypothesis, _ in KNOWN])
    for (premise, hypothesis, label), probabilities in zip(
        KNOWN, probabilities_of_pairs, strict=True
    ):
        verdict = LABELS[int(probabilities.argmax())]
        if verdict != label:
            raise InputError(
                f"the model calls {premise!r} and {hypothesis!r} {verdict}, not {label}",
                where=where,
                hint="It is no NLI model, or its config.json lists the labels in the wrong order.",
            )

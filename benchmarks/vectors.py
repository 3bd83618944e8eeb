"""How well word vectors of little text tell fitting responses from others.

    python benchmarks/vectors.py --data FOLDER [--corpus dailydialog]

2,000 contexts of DailyDialog's test set have five responses of people each (Gupta et al., 2019).
The embedding metrics compare one of them with the other four, and a response to another context
with the same four. Cohen's d says how far these values lie apart.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import numpy as np

from dialbench.corpora.training_text import training_split, turns_of
from dialbench.metrics.base import read
from dialbench.metrics.embedding import EmbeddingAverage, EmbeddingExtrema, EmbeddingGreedy
from dialbench.records import Example
from dialbench.text.tokenizer import tokenize
from dialbench.text.vectors import Vectors, train

CONTEXTS = 2_000
SIZES = (10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000)
METRICS = {"average": EmbeddingAverage, "greedy": EmbeddingGreedy, "extrema": EmbeddingExtrema}
Pairs = list[tuple[Example, str]]


def main() -> None:
    """Prints a line for each amount of training text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", default="dailydialog")
    arguments = parser.parse_args()
    fitting, other = pairs(arguments.data)
    split = training_split(arguments.corpus, arguments.data)
    texts = [tokenize(turn) for turn in turns_of(split)] if split else []
    ends = np.cumsum([len(text) for text in texts])
    for size in (*takewhile(lambda size: size < ends[-1], SIZES), ends[-1]):
        part = texts[: int(np.searchsorted(ends, size)) + 1]
        vectors = train(part, seed=1)
        print(f"{sum(map(len, part)):,} tokens:", *(line(vectors, fitting, other)), sep="\n  ")


def pairs(data: Path) -> tuple[Pairs, Pairs]:
    """One response against the others to its context; one to another context against the same."""
    with lzma.open(data / "dailydialog_multiref/multireftest.json.xz", "rt") as file:
        turns = [turn for line in file for turn in json.loads(line)["dialogue"]]
    given = [turn["responses"] for turn in turns if len(turn.get("responses") or ()) == 5]
    random.Random(1).shuffle(given)
    given = given[:CONTEXTS]
    examples = [Example(str(i), str(i), ("",), tuple(own[1:])) for i, own in enumerate(given)]
    firsts = [own[0] for own in given]
    return (
        list(zip(examples, firsts, strict=True)),
        list(zip(examples, [*firsts[1:], firsts[0]], strict=True)),
    )


def line(vectors: Vectors, fitting: Pairs, other: Pairs) -> Sequence[str]:
    """The means of each metric, and Cohen's d between them."""
    lines = []
    for name, kind in METRICS.items():
        metric = kind("default", vectors)
        ours, theirs = (metric.values(read(each, [metric])) for each in (fitting, other))
        there = ~(np.isnan(ours) | np.isnan(theirs))
        ours, theirs = ours[there], theirs[there]
        d = (ours.mean() - theirs.mean()) / np.sqrt((ours.var() + theirs.var()) / 2)
        lines.append(f"{name}: fitting {ours.mean():.4f}, other {theirs.mean():.4f}, d {d:.2f}")
    return lines


if __name__ == "__main__":
    main()

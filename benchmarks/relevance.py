"""Which likeness of response and context tells what belongs together, and agrees with people.

    python benchmarks/relevance.py --data DATA

Prints, for each way to compare a response with its context by the sentence model, the chance that
the true next turn of a validation split scores above one of another dialogue, and Spearman's
correlation with the mean ratings of each system of GRADE's human judgements (Huang et al., 2020).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, spearmanr

from dialbench.corpora.base import load_corpus
from dialbench.metrics.semantic import EmbeddingContext, SentenceModel
from dialbench.metrics.texts import Texts
from dialbench.records import Example
from dialbench.text.tokenizer import split_words

Context = tuple[str, ...]
WAYS: dict[str, Callable[[Context], Context]] = {
    "last turn": lambda context: context[-1:],
    "all turns joined": lambda context: (" ".join(context),),
    "each turn, mean": lambda context: context,
}


def likeness(
    model: SentenceModel, contexts: Sequence[Context], responses: Sequence[str]
) -> NDArray[np.float64]:
    """(responses,) emb-context of each."""
    examples = [Example(str(i), str(i), context, ()) for i, context in enumerate(contexts)]
    pairs = zip(examples, responses, strict=True)
    return EmbeddingContext("whitespace", model).values(
        Texts.build(pairs, split_words, verbatim=True)
    )


def discrimination(model: SentenceModel, data: Path, corpus: str, count: int) -> Iterator[float]:
    """The chance, by way, that a true next turn scores above one of another context."""
    examples = [e for e in load_corpus(corpus, data=data).valid if len(e.context) > 1]
    random.Random(0).shuffle(examples)
    chosen = examples[:count]
    true = [example.references[0] for example in chosen]
    for reads in WAYS.values():
        contexts = [reads(example.context) for example in chosen]
        own, other = (
            likeness(model, contexts, responses) for responses in (true, [*true[1:], true[0]])
        )
        yield float(mannwhitneyu(own, other).statistic) / len(own) ** 2


def agreement(model: SentenceModel, system: Path) -> Iterator[float]:
    """The correlation, by way, with the ratings of a system."""
    contexts = [tuple(line.split("|||")) for line in _lines(system / "human_ctx.txt")]
    responses = _lines(system / "human_hyp.txt")
    scores = system.parents[2] / "human_score" / system.parent.name / system.name
    ratings = [float(line) for line in _lines(scores / "human_score.txt")]
    for reads in WAYS.values():
        values = likeness(model, [reads(context) for context in contexts], responses)
        yield float(spearmanr(values, ratings).statistic)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="The data folder.")
    parser.add_argument("--contexts", type=int, default=1000, help="Contexts of each corpus.")
    arguments = parser.parse_args()
    model = SentenceModel.find(None)
    if model is None:
        parser.error("install dialbench[embed] for the sentence model")
    print("", *WAYS, sep=" | ")
    for corpus in ("dailydialog", "empatheticdialogues"):
        _print(corpus, discrimination(model, arguments.data, corpus, arguments.contexts))
    rated = arguments.data / "released_outputs" / "grade_human" / "eval_data"
    for system in sorted(rated.glob("*/*")):
        _print(f"{system.parent.name} {system.name}", agreement(model, system))


def _print(title: str, values: Iterator[float]) -> None:
    print(title, *(f"{value:.3f}" for value in values), sep=" | ", flush=True)


if __name__ == "__main__":
    main()

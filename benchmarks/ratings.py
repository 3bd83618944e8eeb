"""How people rated generic responses of systems, beside the other responses of these systems.

    python benchmarks/ratings.py --data FOLDER

FOLDER holds `released_outputs`: the ratings of multirefeval (Gupta et al., 2019) and GRADE (Huang
et al., 2020). The interval is that of the difference of means over contexts that are drawn anew;
rho is Spearman's, between being generic (`generic-rate` of one response) and the mean rating.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from dialbench.metrics.base import read
from dialbench.metrics.generic import GenericRate
from dialbench.records import Example

DRAWS = 10_000


class Rated(NamedTuple):
    """A response with its mean rating."""

    system: str
    context: str
    response: str
    rating: float


def main() -> None:
    """Prints a line for each set of ratings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data / "released_outputs"
    for name, ratings in (("multirefeval", multirefeval), ("GRADE", grade)):
        rated = list(ratings(folder))
        compare(f"{name}, all systems", rated, lambda r: r.system != "human")
        for system in sorted({r.system for r in rated}):
            compare(f"{name}, {system}", rated, lambda r, s=system: r.system == s)


def multirefeval(folder: Path) -> Iterator[Rated]:
    """500 responses to 100 contexts, one of them a person's."""
    path = folder / "dailydialog_multirefeval/mturk_rating_processed_output.csv.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rating = float(row["human_average_rating"])
            yield Rated(row["model"], row["context_id"], row["response"], rating)


def grade(folder: Path) -> Iterator[Rated]:
    """1,200 responses, those of a corpus and a generator or ranker together."""
    with lzma.open(folder / "grade_human/human_judgement.json.xz", "rt", encoding="utf-8") as file:
        for row in json.load(file):
            system = f"{row['Dataset'].removesuffix('_EVAL')} {row['DialogModel']}"
            rating = float(np.mean(json.loads(row["HumanScores"])))
            yield Rated(system, row["Context"], row["Response"], rating)


def compare(name: str, rated: list[Rated], wanted: Callable[[Rated], bool]) -> None:
    """The mean rating of generic responses and of others, where there are five generic ones."""
    chosen = [r for r in rated if wanted(r)]
    metric = GenericRate("default")
    examples = (Example(r.context, r.context, (r.context,), ()) for r in chosen)
    pairs = zip(examples, (r.response for r in chosen), strict=True)
    generic = metric.values(read(pairs, [metric])) > 0
    ratings = np.array([r.rating for r in chosen])
    if generic.sum() < 5:
        return
    low, high = interval(generic, ratings, [r.context for r in chosen])
    rho = spearmanr(generic, ratings)
    means = ratings[generic].mean(), ratings[~generic].mean()
    print(
        f"{name}: {generic.sum()} of {len(generic)} generic, rated {means[0]:.2f}, "
        f"others {means[1]:.2f}, difference {low:.2f} to {high:.2f}, rho {rho.statistic:.2f}"
    )


def interval(generic: np.ndarray, ratings: np.ndarray, contexts: list[str]) -> tuple[float, float]:
    """95 % of the differences of means where contexts are drawn with replacement."""
    owner = np.unique(contexts, return_inverse=True)[1]
    sums = [
        np.bincount(owner, weights=values)
        for values in (generic, ~generic, generic * ratings, ~generic * ratings)
    ]
    count = len(sums[0])
    drawn = np.random.default_rng(1).multinomial(count, np.full(count, 1 / count), size=DRAWS)
    generics, others, rated, rated_others = (drawn @ values for values in sums)
    there = (generics > 0) & (others > 0)
    gaps = rated[there] / generics[there] - rated_others[there] / others[there]
    low, high = np.percentile(gaps, (2.5, 97.5))
    return float(low), float(high)


if __name__ == "__main__":
    main()

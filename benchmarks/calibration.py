"""How often intervals hold the true value, and how often tests call equal systems different.

    python benchmarks/calibration.py [--data DIR] [--worlds 300] [--sizes 100,300,1000]
                                     [--parts intervals,tests,runs,few] [--metrics a,b]

Prints Markdown tables (those of docs/statistics.md). The world is DailyDialog's training split:
a response is what was said after the most similar turn of other dialogues (by tf-idf, nearly equal
turns left out), so it overlaps with the reference about as much as a system's does. A test set is
some of the dialogues, cut to its size; the true value at a size is the mean over all test sets.
Two interchangeable systems are two such sources, exchanged by a coin for each dialogue.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer

from dialbench.corpora.base import load_corpus
from dialbench.files.folders import data_folder
from dialbench.metrics.base import Metric, read
from dialbench.metrics.formulas import FORMULAS
from dialbench.metrics.registry import create
from dialbench.metrics.settings import MetricSettings
from dialbench.records import Example
from dialbench.scoring.evaluation import score_statistics
from dialbench.stats.clusters import ClusteredMean
from dialbench.stats.compare import difference_test
from dialbench.stats.intervals import PseudoValues
from dialbench.stats.seeds import difference_over_seeds, over_seeds

METRICS = (
    *("length", "different", "dist-1", "dist-2", "dist-3", "intra-dist-2", "mtld", "mattr"),
    *("ead-1", "ent-1", "ent-2", "self-bleu", "bleu-1", "bleu-2", "bleu-4", "bleu-parlai"),
    *("rouge-l", "f1", "chrf", "cider", "generic-rate", "compression-ratio", "ngram-diversity"),
)
TESTED = ("rouge-l", "cider", "dist-1", "dist-2", "bleu-2", "bleu-4", "mtld", "mattr", "self-bleu")
LIKE = 0.75
"""Turns more similar than this are copies: the corpus holds some dialogues twice."""
KINDS = 12_000


@dataclass(frozen=True)
class World:
    """All that test sets are drawn from.

    Attributes:
        pairs: examples, each with a response, dialogue by dialogue.
        other: for each example the response of another source.
        starts, ends: (dialogues,) which examples belong to each.
    """

    pairs: list[tuple[Example, str]]
    other: list[str]
    starts: NDArray[np.intp]
    ends: NDArray[np.intp]

    def drawn(self, generator: np.random.Generator, size: int, *, single: bool) -> NDArray[np.intp]:
        """(size,) examples of random dialogues, or of as many dialogues as examples."""
        if single:
            return generator.choice(len(self.pairs), size, replace=False)
        found: list[int] = []
        for dialogue in generator.permutation(len(self.starts)):
            found.extend(range(self.starts[dialogue], self.ends[dialogue]))
            if len(found) >= size:
                break
        return np.array(found[:size])


def world(data: Path, asked: int = 5000, answering: int = 4000) -> World:
    """Contexts of some dialogues, answered with turns of others."""
    dialogues = list(load_corpus("dailydialog", data=data).dialogues("train"))
    order = np.random.default_rng(0).permutation(len(dialogues))
    contexts, sources = (
        [
            (number, one, two)
            for number, index in enumerate(part)
            for one, two in zip(dialogues[index].turns, dialogues[index].turns[1:], strict=False)
        ]
        for part in (order[:asked], order[asked : asked + answering])
    )
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    known = vectorizer.fit_transform([turn for _, turn, _ in sources]).T.tocsr()
    questions = vectorizer.transform([turn for _, turn, _ in contexts]).tocsr()
    first, second = [], []
    for start in range(0, len(contexts), 500):
        likeness = (questions[start : start + 500] @ known).toarray()
        likeness[likeness > LIKE] = 0
        nearest = np.argpartition(-likeness, 2, axis=1)[:, :2]
        first.extend(sources[i][2] for i in nearest[:, 0])
        second.extend(sources[i][2] for i in nearest[:, 1])
    numbers = np.array([number for number, _, _ in contexts])
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    pairs = [
        (Example(str(i), str(d), (turn,), (reference,)), response)
        for i, ((d, turn, reference), response) in enumerate(zip(contexts, first, strict=True))
    ]
    return World(pairs, second, starts, np.append(starts[1:], len(contexts)))


def metrics(names: Sequence[str]) -> list[Metric]:
    """The metrics, with as many words in V as the corpus has."""
    return create(names, MetricSettings(vocabulary=KINDS))


def coverage(
    of: World, names: Sequence[str], size: int, worlds: int, *, single: bool
) -> Iterator[str]:
    """A row for each metric: how many intervals hold the true value, and where others miss it."""
    built = metrics(names)
    texts = read(iter(of.pairs), built)
    counted = {metric.name: metric.statistics(texts) for metric in built}
    generator = np.random.default_rng(size)
    intervals: dict[str, list[tuple[float, tuple[float, float] | None]]] = {n: [] for n in counted}
    for _ in range(worlds):
        index = of.drawn(generator, size, single=single)
        dialogues = [str(i) if single else of.pairs[i][0].dialogue_id for i in index]
        part = ((metric, counted[metric.name][index]) for metric in built)
        for name, score in score_statistics(part, dialogues).items():
            intervals[name].append((score.value, score.interval))
    for name, drawn in intervals.items():
        yield f"| `{name}` | {size:,} | {'responses' if single else 'dialogues'} | {_held(drawn)} |"


def _held(drawn: Sequence[tuple[float, tuple[float, float] | None]]) -> str:
    """The cells of a row of `coverage`, from the value and the interval in each world.

    The true value is the mean of the values; the width is the median one over that of an interval
    of 1.96 deviations of the values to either side.
    """
    values = np.array([value for value, _ in drawn])
    low, high = np.array([i for _, i in drawn if i is not None]).reshape(-1, 2).T
    if not len(low):
        return f"– | | | | | {len(drawn)}"
    over, under = (np.mean(side) for side in (low > np.nanmean(values), high < np.nanmean(values)))
    hold = 1 - over - under
    error = np.sqrt(hold * (1 - hold) / len(low))
    width = np.median(high - low) / (2 * 1.96 * np.nanstd(values, ddof=1))
    cells = " | ".join(f"{share:.3f}" for share in (hold, error, over, under))
    return f"{cells} | {width:.2f} | {len(drawn) - len(low)}"


def rejections(of: World, names: Sequence[str], size: int, worlds: int) -> Iterator[str]:
    """A row for each metric: how often two interchangeable systems are called different."""
    built = metrics(names)
    generator = np.random.default_rng(size + 1)
    values: dict[str, list[float]] = {name: [] for name in names}
    tests: dict[str, str] = {}
    for _ in range(worlds):
        index = of.drawn(generator, size, single=False)
        names_of = np.array([of.pairs[i][0].dialogue_id for i in index])
        coins = dict(zip(np.unique(names_of), generator.integers(2, size=len(index)), strict=False))
        sides: list[list[tuple[Example, str]]] = [[], []]
        for place, name in zip(index, names_of, strict=True):
            example, response = of.pairs[place]
            texts = (response, of.other[place])
            sides[0].append((example, texts[coins[name]]))
            sides[1].append((example, texts[1 - coins[name]]))
        scores = []
        for side in sides:
            texts = read(iter(side), built)
            part = ((metric, metric.statistics(texts)) for metric in built)
            scores.append(score_statistics(part, texts.dialogues, comparable=True))
        for name in names:
            test = difference_test([scores[0][name]], [scores[1][name]], FORMULAS)
            if test is not None:
                values[name].append(test.p)
                tests[name] = test.name
    for name, p in values.items():
        uniform = stats.kstest(p, "uniform").pvalue
        yield (
            f"| `{name}` | {tests[name]} | {size:,} | {np.mean(np.array(p) < 0.05):.3f} "
            f"| {np.mean(np.array(p) < 0.01):.3f} | {uniform:.2f} |"
        )


def runs(worlds: int) -> Iterator[str]:
    """Rows for 1 to 5 training runs of two systems, whose runs differ little or much, or unlike."""
    generator = np.random.default_rng(2)
    shares = np.full(20, 0.05)

    def side(count: int, of_run: float, shared: NDArray[np.float64]) -> list[PseudoValues]:
        parts = [
            of_run * generator.normal() + shared + generator.normal(size=20) / 3
            for _ in range(count)
        ]
        return [PseudoValues(float(each.mean()), each, shares) for each in parts]

    for counts in ((2, 1), (3, 1), (2, 2), (3, 2), (3, 3), (5, 5)):
        for deviations in ((0.0, 0.0), (0.1, 0.1), (0.3, 0.3), (1.0, 1.0), (1.0, 0.1), (0.1, 1.0)):
            p, held, welch = [], 0, []
            for _ in range(worlds):
                shared = generator.normal(size=20)
                each = zip(counts, deviations, strict=True)
                ours, base = (side(count, of_run, shared) for count, of_run in each)
                p.append(difference_over_seeds(ours, base).p)
                if min(counts) > 1:
                    values = ([run.value for run in runs] for runs in (ours, base))
                    welch.append(stats.ttest_ind(*values, equal_var=False).pvalue)
                low, high = over_seeds(ours).interval or (0.0, 0.0)
                held += low <= 0 <= high
            yield (
                f"| {counts[0]}, {counts[1]} | {deviations[0]:g}, {deviations[1]:g} "
                f"| {np.mean(np.array(p) < 0.05):.3f} | {np.mean(np.array(p) < 0.01):.3f} "
                f"| {_share_below(welch, 0.05)} | {_share_below(welch, 0.01)} "
                f"| {held / worlds:.3f} |"
            )


def _share_below(p: Sequence[float], level: float) -> str:
    return f"{np.mean(np.array(p) < level):.3f}" if p else "-"


def few(worlds: int) -> Iterator[str]:
    """Rows for few dialogues of unequal length."""
    generator = np.random.default_rng(3)
    for sizes in ([1, 1, 2, 2, 5, 40], [1] * 8, [1, 2, 3, 4, 5, 6, 7, 8], [2] * 15 + [30]):
        dialogue = np.repeat(np.arange(len(sizes)), sizes)
        for correlation in (0.0, 0.3):
            p = []
            for _ in range(worlds):
                values = np.sqrt(correlation) * generator.normal(size=len(sizes))[dialogue]
                values = values + np.sqrt(1 - correlation) * generator.normal(size=len(dialogue))
                p.append(ClusteredMean.of(values, dialogue).p)
            listed = ", ".join(map(str, sizes)) if len(sizes) < 10 else "fifteen of 2 and one of 30"
            yield (
                f"| {listed} | {correlation:g} | {np.mean(np.array(p) < 0.05):.3f} "
                f"| {np.mean(np.array(p) < 0.01):.3f} |"
            )


HEADS = {
    "intervals": "| metric | size | drawn as | hold | ± | all above | all below | width | none |",
    "tests": "| metric | test | responses | p < 0.05 | p < 0.01 | uniform |",
    "runs": "| runs | deviations of runs | p < 0.05 | p < 0.01 "
    "| Welch p < 0.05 | p < 0.01 | interval holds |",
    "few": "| responses of the dialogues | correlation | p < 0.05 | p < 0.01 |",
}


def main() -> None:
    """Reads the command line and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--worlds", type=int, default=300)
    parser.add_argument("--sizes", default="100,300,1000")
    parser.add_argument("--parts", default="intervals,tests,runs,few")
    parser.add_argument("--metrics", default=",".join(METRICS))
    options = parser.parse_args()
    parts, sizes = options.parts.split(","), [int(size) for size in options.sizes.split(",")]
    names = options.metrics.split(",")
    of = world(data_folder(options.data)) if {"intervals", "tests"} & set(parts) else None
    for part in parts:
        print(f"\n{HEADS[part]}\n|{'---|' * (HEADS[part].count('|') - 1)}", flush=True)
        if part == "runs":
            rows = runs(10 * options.worlds)
        elif part == "few":
            rows = few(10 * options.worlds)
        elif part == "tests":
            tested = [name for name in names if name in TESTED]
            rows = (row for size in sizes for row in rejections(of, tested, size, options.worlds))
        else:
            rows = (
                row
                for size in sizes
                for single in (False, True)
                for row in coverage(of, names, size, options.worlds, single=single)
            )
        for row in rows:
            print(row, flush=True)


if __name__ == "__main__":
    main()

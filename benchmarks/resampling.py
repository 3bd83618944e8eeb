"""How long 10,000 resamples of a table's count measures take.

    python benchmarks/resampling.py [--responses 6740] [--systems 11] [--resamples 10000]

Prints one JSON object. Artificial systems answer the same contexts; word frequencies follow Zipf's
law. `swaps`: each system against the first in length, dist-1 to -3, ead-1 and -2 and bleu-1 to
-4, by swapping whole dialogues. `bootstrap`: BCa intervals of length and bleu-1 to -4 of every
system, drawing whole dialogues. Systems are shared out over `--threads`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.stats.clusters import sums_by
from dialbench.stats.resampling import Counts, Ngrams, randomise
from dialbench.stats.sums import Function, bca

PER_DIALOGUE = 7
WORDS = 8_000
# Columns of the sums: tokens, reference tokens, 4 orders of matches, 4 of n-grams; then kinds.
KINDS = 10


def bleu(order: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corpus BLEU without smoothing."""
    matches, totals = sums[..., 2 : 2 + order], sums[..., 6 : 6 + order]
    with np.errstate(divide="ignore"):
        logs = np.log(matches / totals).mean(axis=-1)
    return np.exp(logs + np.minimum(0, 1 - sums[..., 1] / sums[..., 0]))


def distinct(n: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Different n-grams per token."""
    return sums[..., KINDS + n - 1] / sums[..., 0]


def adjusted(n: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Different n-grams over those expected of as many drawn evenly from V^n."""
    kinds = float(WORDS) ** n
    return sums[..., KINDS + n - 1] / (kinds * -np.expm1(sums[..., 5 + n] * np.log1p(-1 / kinds)))


def length(responses: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean number of tokens."""
    return sums[..., 0] / responses


def measures(responses: int) -> dict[str, Function]:
    """The count measures by name."""
    functions: dict[str, Function] = {"length": partial(length, responses)}
    functions |= {f"bleu-{n}": partial(bleu, n) for n in range(1, 5)}
    functions |= {f"dist-{n}": partial(distinct, n) for n in range(1, 4)}
    return functions | {f"ead-{n}": partial(adjusted, n) for n in range(1, 3)}


def system(responses: int, seed: int) -> Counts:
    """The counts of one artificial system: 1 to 24 tokens a response, a fifth of them right."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 25, size=responses)
    owners = np.repeat(np.arange(responses), lengths)
    weights = 1 / np.arange(1, WORDS + 1)
    bounds = np.cumsum(weights / weights.sum())[:-1]
    tokens = np.searchsorted(bounds, generator.random(len(owners)))
    totals = np.stack([np.maximum(lengths - n, 0) for n in range(4)], axis=1)
    matches = generator.binomial(totals, [0.2, 0.08, 0.03, 0.01])
    reference = generator.integers(1, 25, size=responses)
    sums = np.concatenate([lengths[:, None], reference[:, None], matches, totals], axis=1)
    return Counts(sums.astype(np.float64), [ngrams(tokens, owners, n) for n in (1, 2, 3)])


def ngrams(tokens: NDArray[np.int64], owners: NDArray[np.int64], n: int) -> Ngrams:
    """Those that lie within a response."""
    last = len(tokens) - n + 1
    codes = sum(tokens[step : last + step] * WORDS ** (n - 1 - step) for step in range(n))
    inside = owners[:last] == owners[n - 1 :]
    return Ngrams(np.asarray(codes)[inside], owners[:last][inside])


def timed(call: Callable[[Any], Any], inputs: Any, threads: int) -> dict[str, float]:
    """Seconds for all inputs: on the clock, and of all cores."""
    start, start_cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(call, inputs))
    clock, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    return {"clock_s": round(clock, 2), "cpu_s": round(cpu, 2)}


def main() -> None:
    """Reads the command line and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--responses", type=int, default=6_740)
    parser.add_argument("--systems", type=int, default=11)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    dialogues = np.arange(options.responses) // PER_DIALOGUE
    first, *others = (system(options.responses, seed) for seed in range(options.systems))
    asked = measures(options.responses)
    linear = {name: f for name, f in asked.items() if name == "length" or name.startswith("bleu")}

    def swaps(other: Counts) -> dict[str, float]:
        return randomise(asked, other, first, dialogues, options.resamples)

    def bootstrap(one: Counts) -> list[Any]:
        sums = sums_by(dialogues, one.sums)
        return [bca(f, sums, options.resamples) for f in linear.values()]

    result = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        **vars(options),
        "dialogues": int(dialogues[-1]) + 1,
        "swaps": timed(swaps, others, options.threads),
        "bootstrap": timed(bootstrap, [first, *others], options.threads),
        "load_average": round(os.getloadavg()[0], 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

"""How fast and how lean scoring is: our time over the peers' on the same text, and peak memory.

    python benchmarks/scoring.py --data DATA_FOLDER [--responses 2000] [--large 1000000]

Prints one JSON object. Each peer is called as its users call it, on text whose tokens are separated
by spaces; our time includes tokenising, statistics and score. The large set has contexts and is
scored with every default measure, folds and intervals, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dialbench.metrics.base import Metric
from dialbench.metrics.registry import DEFAULT, MetricSettings, create
from dialbench.metrics.texts import Texts
from dialbench.records import Example
from dialbench.scoring import score_responses
from dialbench.text.tokenizer import tokenizer
from dialbench.text.vectors import Vectors, load

Pair = tuple[Example, str]
SIZE = 200


def words(data: Path) -> list[str]:
    """English words, most frequent first, so that stems and synonyms have the usual work."""
    known = load(data / "vectors" / "glove.twitter.27B.25d.top12k.txt.xz", where="--data")
    return [word for word in known.words if word.isalpha()]


def synthetic(count: int, vocabulary: list[str], seed: int = 0) -> Iterator[Pair]:
    """Examples with three context turns and one reference; word frequencies follow Zipf's law."""
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(vocabulary) + 1)
    chances = np.cumsum(weights / weights.sum())
    for number in range(count):
        ends = np.cumsum(generator.integers(1, 25, size=5)).tolist()
        places = np.searchsorted(chances[:-1], generator.random(ends[-1])).tolist()
        tokens = [vocabulary[place] for place in places]
        bounds = zip([0, *ends], ends, strict=False)
        texts = [" ".join(tokens[start:end]) for start, end in bounds]
        example = Example(str(number), str(number // 7), tuple(texts[:3]), (texts[3],))
        yield example, texts[4]


def ours(metrics: list[Metric[Any]], pairs: list[Pair]) -> dict[str, float]:
    """Text to values."""
    texts = Texts.build(pairs, tokenizer("whitespace"))
    return {metric.name: metric.score(metric.statistics(texts)) for metric in metrics}


def nltk_meteor(pairs: list[Pair]) -> dict[str, float]:
    """Mean of `meteor_score` over the responses."""
    from nltk.corpus import wordnet
    from nltk.translate.meteor_score import meteor_score

    scores = [
        meteor_score([r.split() for r in e.references], text.split(), wordnet=wordnet)
        for e, text in pairs
    ]
    return {"meteor": sum(scores) / len(scores)}


def sacrebleu(pairs: list[Pair]) -> dict[str, float]:
    """Corpus BLEU with tokeniser and smoothing off."""
    from sacrebleu.metrics import BLEU

    peer = BLEU(tokenize="none", smooth_method="none", force=True)
    references = [[e.references[0] for e, _ in pairs]]
    return {"bleu-4": peer.corpus_score([text for _, text in pairs], references).score / 100}


def rouge_score(pairs: list[Pair]) -> dict[str, float]:
    """Mean ROUGE-L over the responses."""
    from rouge_score.rouge_scorer import RougeScorer

    class Split:
        tokenize = staticmethod(str.split)

    peer = RougeScorer(["rougeL"], tokenizer=Split())
    scores = [peer.score(e.references[0], text)["rougeL"].fmeasure for e, text in pairs]
    return {"rouge-l": sum(scores) / len(scores)}


def lexicalrichness(pairs: list[Pair]) -> dict[str, float]:
    """MTLD and MATTR of all tokens."""
    from lexicalrichness import LexicalRichness

    tokens = [token for _, text in pairs for token in text.split()]
    peer = LexicalRichness(tokens, preprocessor=None, tokenizer=None)
    return {"mtld": peer.mtld(), "mattr": peer.mattr(4), "mattr-50": peer.mattr(50)}


PEERS: dict[str, Callable[[list[Pair]], dict[str, float]]] = {
    "nltk meteor": nltk_meteor,
    "sacrebleu": sacrebleu,
    "rouge-score": rouge_score,
    "lexicalrichness": lexicalrichness,
}


def timed(call: Callable[..., dict[str, float]], *arguments: Any) -> tuple[dict[str, float], float]:
    """The values and the seconds they took."""
    start = time.perf_counter()
    values = call(*arguments)
    return values, time.perf_counter() - start


def compare(count: int, data: Path) -> dict[str, Any]:
    """Seconds of each peer and ours; a first call on little text pays for imports and WordNet."""
    import nltk.data

    nltk.data.path.insert(0, str(data / "nltk_data"))
    pairs = list(synthetic(count, words(data)))
    results = {}
    for name, peer in PEERS.items():
        metrics = create(peer(pairs[:20]), MetricSettings("whitespace", data=data))
        ours(metrics, pairs[:20])
        expected, theirs_s = timed(peer, pairs)
        values, ours_s = timed(ours, metrics, pairs)
        results[name] = {
            "theirs_s": round(theirs_s, 3),
            "ours_s": round(ours_s, 3),
            "ratio": round(ours_s / theirs_s, 3),
            "largest_difference": max(abs(values[key] - expected[key]) for key in values),
        }
    return results


def score_large(count: int, data: Path) -> dict[str, float]:
    """Scores a large set as a stream; to be run in a process of its own."""
    vocabulary = words(data)
    matrix = np.random.default_rng(1).normal(size=(len(vocabulary), SIZE)).astype(np.float32)
    vectors = Vectors(vocabulary, matrix, "random")
    metrics = create(DEFAULT, MetricSettings("default", data=data, vectors=vectors))
    start = time.perf_counter()
    scores = score_responses(synthetic(count, vocabulary), metrics)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert all(score.available for score in scores.values())
    return {"responses": count, "seconds": round(seconds, 1), "peak_gib": round(peak / 2**30, 3)}


def main() -> None:
    """Reads the command line and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--responses", type=int, default=2_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(score_large(options.large, options.data)))
        return
    arguments = ["--child", "--data", str(options.data), "--large", str(options.large)]
    child = [sys.executable, __file__, *arguments]
    result = {
        "python": platform.python_version(),
        "responses": options.responses,
        "against": compare(options.responses, options.data),
        "large": json.loads(subprocess.run(child, check=True, capture_output=True).stdout),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The multilingual functions")
    main()

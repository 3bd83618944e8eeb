"""How fast and how lean scoring is: our time over the peers' on the same text, and peak memory.

    python benchmarks/scoring.py --data DATA_FOLDER [--responses 20000] [--large 1000000]

Prints one JSON object. Each peer is called as its users call it, on text whose tokens are separated
by spaces; our time includes tokenising, statistics and score, anew for each peer. Times are
seconds of one processor, so that other work on the machine does not count. Peers that are not
installed are left out. nltk's self-BLEU grows with the square and gets fewer responses. The large
set has contexts and is scored with every default measure, folds and intervals, in a process of
its own; `--large 0` leaves it out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np

from dialbench.evaluate import score_responses
from dialbench.metrics.base import Metric
from dialbench.metrics.registry import DEFAULT, MetricSettings, create
from dialbench.metrics.texts import Texts
from dialbench.metrics.wordnet import WordNet
from dialbench.records import Example
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
    return {"mtld": peer.mtld(), "mattr": peer.mattr(50), "mattr-4": peer.mattr(4)}


def nltk_sentence_bleu(pairs: list[Pair]) -> dict[str, float]:
    """Means of `sentence_bleu` with the smoothing of ParlAI and of PLATO."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    recipes = {
        "bleu-parlai": ((0.25,) * 4, SmoothingFunction(epsilon=1e-12).method1),
        "bleu-plato-new-1": ((1, 0, 0, 0), SmoothingFunction().method7),
        "bleu-plato-new-2": ((0.5, 0.5, 0, 0), SmoothingFunction().method7),
    }
    return {
        name: sum(
            sentence_bleu([r.split() for r in e.references], text.split(), weights, smooth)
            for e, text in pairs
        )
        / len(pairs)
        for name, (weights, smooth) in recipes.items()
    }


def nltk_self_bleu(pairs: list[Pair]) -> dict[str, float]:
    """Mean `sentence_bleu` of each response against all others."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    said = [text.split() for _, text in pairs]
    smooth = SmoothingFunction(epsilon=0.1).method1
    scores = [
        sentence_bleu(said[:i] + said[i + 1 :], text, (0.25,) * 4, smooth)
        for i, text in enumerate(said)
    ]
    return {"self-bleu": sum(scores) / len(scores)}


def pycocoevalcap(pairs: list[Pair]) -> dict[str, float]:
    """BLEU, ROUGE-L and CIDEr-D of the COCO caption toolkit."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    wanted = {e.id: list(e.references) for e, _ in pairs}
    said = {e.id: [text] for e, text in pairs}
    bleu, _ = Bleu(4).compute_score(wanted, said, verbose=0)
    values = {f"bleu-coco-{n}": bleu[n - 1] for n in (1, 2, 3, 4)}
    values["rouge-l-coco"] = float(Rouge().compute_score(wanted, said)[0])
    return values | {"cider": float(Cider().compute_score(wanted, said)[0])}


PEERS: dict[str, Callable[[list[Pair]], dict[str, float]]] = {
    "nltk meteor": nltk_meteor,
    "nltk sentence bleu": nltk_sentence_bleu,
    "nltk self-bleu": nltk_self_bleu,
    "sacrebleu": sacrebleu,
    "rouge-score": rouge_score,
    "lexicalrichness": lexicalrichness,
    "pycocoevalcap": pycocoevalcap,
}
LIMITS = {"nltk self-bleu": 300}


def timed(call: Callable[..., dict[str, float]], *arguments: Any) -> tuple[dict[str, float], float]:
    """The values and the seconds they took."""
    start = time.process_time()
    values = call(*arguments)
    return values, time.process_time() - start


def compare(count: int, data: Path) -> dict[str, Any]:
    """Seconds of each peer and ours; a first call on little text pays for imports and WordNet."""
    import nltk.data

    nltk.data.path.insert(0, str(data / "nltk_data"))
    pairs = list(synthetic(count, words(data)))
    settings = MetricSettings("whitespace", wordnet=WordNet.find(data))
    there = {name: peer for name, peer in PEERS.items() if is_installed(name)}
    rows = {name: beside(peer, settings, pairs[: LIMITS.get(name)]) for name, peer in there.items()}
    full = [row for row in rows.values() if row["responses"] == count]
    theirs_s, ours_s = (sum(row[key] for row in full) for key in ("theirs_s", "ours_s"))
    together = {"theirs_s": theirs_s, "ours_s": ours_s, "times_faster": theirs_s / ours_s}
    return rows | {"those with all responses": together}


def is_installed(peer: str) -> bool:
    """Whether the package that a peer is named after is here."""
    return importlib.util.find_spec(peer.split()[0].replace("-", "_")) is not None


def beside(
    peer: Callable[[list[Pair]], dict[str, float]], settings: MetricSettings, pairs: list[Pair]
) -> dict[str, Any]:
    """One peer and our measures of the same names."""
    metrics = create(peer(pairs[:20]), settings)
    ours(metrics, pairs[:20])
    expected, theirs_s = timed(peer, pairs)
    values, ours_s = timed(ours, metrics, pairs)
    return {
        "responses": len(pairs),
        "measures": list(values),
        "theirs_s": theirs_s,
        "ours_s": ours_s,
        "times_faster": theirs_s / ours_s,
        "largest_difference": max(abs(values[key] - expected[key]) for key in values),
    }


def score_large(count: int, data: Path) -> dict[str, float]:
    """Scores a large set as a stream; to be run in a process of its own."""
    vocabulary = words(data)
    matrix = np.random.default_rng(1).normal(size=(len(vocabulary), SIZE)).astype(np.float32)
    vectors = Vectors(vocabulary, matrix, "random")
    metrics = create(
        DEFAULT, MetricSettings("default", wordnet=WordNet.find(data), vectors=vectors)
    )
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
    parser.add_argument("--responses", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(score_large(options.large, options.data)))
        return
    result: dict[str, Any] = {
        "python": platform.python_version(),
        "against": compare(options.responses, options.data),
    }
    if options.large:
        arguments = ["--child", "--data", str(options.data), "--large", str(options.large)]
        child = subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=PIPE)
        result["large"] = json.loads(child.stdout)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The multilingual functions")
    main()

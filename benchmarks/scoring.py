"""How fast and how lean scoring is: our time over the peers' on the same text, and peak memory.

    python benchmarks/scoring.py --data DATA_FOLDER [--responses 20000] [--large 1000000]

Prints one JSON object. Each peer is called as its users call it, on text whose tokens are separated
by spaces. Ours is timed twice: anew for each peer from text to values, and once for the metrics of
all peers as `dialbench score` computes them, with intervals. Times are seconds of one
processor, the least of three, so that other work on the machine counts little. Peers that are not
installed are left out, with a line that says so. nltk's self-BLEU grows with the square and gets
fewer responses. The large set is a file that `dialbench score` reads and scores, with intervals,
with every metric that counts words; `--large 0` leaves it out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, TypeVar

import numpy as np

from dialbench.metrics.base import Metric
from dialbench.metrics.registry import DEFAULT, create, needs
from dialbench.metrics.resource import Found
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.texts import Texts
from dialbench.metrics.wordnet import WORDNET, WordNet
from dialbench.records import Example
from dialbench.scoring.evaluation import score_responses
from dialbench.text.tokenizer import tokenizer
from dialbench.text.vectors import load

Pair = tuple[Example, str]
T = TypeVar("T")
REPEATS = 3


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


def lexicalrichness_mtld(pairs: list[Pair]) -> dict[str, float]:
    """MTLD of all tokens."""
    return {"mtld": _richness(pairs).mtld()}


def lexicalrichness_mattr(pairs: list[Pair]) -> dict[str, float]:
    """MATTR of all tokens, with the usual window."""
    return {"mattr": _richness(pairs).mattr(50)}


def lexicalrichness_mattr_4(pairs: list[Pair]) -> dict[str, float]:
    """MATTR of all tokens, with the window of a paper."""
    return {"mattr-4": _richness(pairs).mattr(4)}


def _richness(pairs: list[Pair]) -> Any:
    from lexicalrichness import LexicalRichness

    tokens = [token for _, text in pairs for token in text.split()]
    return LexicalRichness(tokens, preprocessor=None, tokenizer=None)


def nltk_distinct(pairs: list[Pair], n: int) -> dict[str, float]:
    """Different n-grams of all responses by their tokens."""
    from nltk import ngrams

    found: set[tuple[str, ...]] = set()
    tokens = 0
    for _, text in pairs:
        words = text.split()
        tokens += len(words)
        found.update(ngrams(words, n))
    return {f"dist-{n}": len(found) / tokens}


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

    responses = [text.split() for _, text in pairs]
    smooth = SmoothingFunction(epsilon=0.1).method1
    scores = [
        sentence_bleu(responses[:i] + responses[i + 1 :], text, (0.25,) * 4, smooth)
        for i, text in enumerate(responses)
    ]
    return {"self-bleu": sum(scores) / len(scores)}


def pycocoevalcap(pairs: list[Pair]) -> dict[str, float]:
    """BLEU, ROUGE-L and CIDEr-D of the COCO caption toolkit."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    references = {e.id: list(e.references) for e, _ in pairs}
    responses = {e.id: [text] for e, text in pairs}
    bleu, _ = Bleu(4).compute_score(references, responses, verbose=0)
    values = {f"bleu-coco-{n}": bleu[n - 1] for n in (1, 2, 3, 4)}
    values["rouge-l-coco"] = float(Rouge().compute_score(references, responses)[0])
    return values | {"cider": float(Cider().compute_score(references, responses)[0])}


PEERS: dict[str, Callable[[list[Pair]], dict[str, float]]] = {
    "nltk meteor": nltk_meteor,
    "nltk sentence bleu": nltk_sentence_bleu,
    "nltk self-bleu": nltk_self_bleu,
    "sacrebleu": sacrebleu,
    "rouge-score": rouge_score,
    "lexicalrichness mtld": lexicalrichness_mtld,
    "lexicalrichness mattr": lexicalrichness_mattr,
    "lexicalrichness mattr-4": lexicalrichness_mattr_4,
    **{f"nltk dist-{n}": partial(nltk_distinct, n=n) for n in (1, 2, 3)},
    "pycocoevalcap": pycocoevalcap,
}
LIMITS = {"nltk self-bleu": 300}
WITHOUT_REFERENCES = ("nltk dist", "lexicalrichness")


def timed(call: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    """The result and the least seconds of processor of three calls."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = call(*arguments)
        seconds.append(time.process_time() - start)
    return result, min(seconds)


def compare(count: int, data: Path) -> dict[str, Any]:
    """Seconds of each peer and ours; a first call on little text pays for imports and WordNet."""
    import nltk.data

    nltk.data.path.insert(0, str(data / "nltk_data"))
    pairs = list(synthetic(count, words(data)))
    settings = MetricSettings("whitespace", resources={WORDNET: Found(WordNet.find(data))})
    there = {name: peer for name, peer in PEERS.items() if is_installed(name)}
    for package in sorted({package_of(name) for name in PEERS.keys() - there.keys()}):
        print(f"left out: {package} is not installed (pip install {package})", file=sys.stderr)
    bare = [(replace(example, references=()), response) for example, response in pairs]
    rows = {
        name: beside(
            peer,
            settings,
            (bare if name.startswith(WITHOUT_REFERENCES) else pairs)[: LIMITS.get(name)],
        )
        for name, peer in there.items()
    }
    full = [row for row in rows.values() if row["responses"] == count]
    theirs_s = sum(row["theirs_s"] for row in full)
    metrics = create([name for row in full for name in row["metrics"]], settings)
    _, ours_s = timed(score_responses, pairs, metrics)
    together = {"theirs_s": theirs_s, "ours_s": ours_s, "times_faster": theirs_s / ours_s}
    return rows | {"all with every response, ours with intervals": together}


def package_of(peer: str) -> str:
    """The package that a peer is named after."""
    return peer.split()[0]


def is_installed(peer: str) -> bool:
    """Whether the package of a peer is here."""
    return importlib.util.find_spec(package_of(peer).replace("-", "_")) is not None


def beside(
    peer: Callable[[list[Pair]], dict[str, float]], settings: MetricSettings, pairs: list[Pair]
) -> dict[str, Any]:
    """One peer and our metrics of the same names."""
    metrics = create(peer(pairs[:20]), settings)
    ours(metrics, pairs[:20])
    expected, theirs_s = timed(peer, pairs)
    values, ours_s = timed(ours, metrics, pairs)
    return {
        "responses": len(pairs),
        "metrics": list(values),
        "theirs_s": theirs_s,
        "ours_s": ours_s,
        "times_faster": theirs_s / ours_s,
        "largest_difference": max(abs(values[key] - expected[key]) for key in values),
    }


COUNTED = (
    *(f"intra-dist-{n}" for n in (1, 2)),
    *(f"ent-{n}" for n in (1, 2, 3, 4)),
    *("self-bleu", "generic-rate", "cider"),
)
"""Counted besides the usual metrics in the large file."""


def score_large(count: int, data: Path) -> dict[str, Any]:
    """What `dialbench score` takes for a file, in a process of its own."""
    counting = [name for name in (*DEFAULT, *COUNTED) if not needs([name])]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.jsonl"
        with file.open("w", encoding="utf-8") as out:
            for example, response in synthetic(count, words(data)):
                print(json.dumps(asdict(example) | {"response": response}), file=out)
        command = [sys.executable, "-m", "dialbench", "score", str(file), "--json"]
        start = time.perf_counter()
        child = subprocess.Popen([*command, "--metrics", ",".join(counting)], stdout=DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return {
        "responses": count,
        "metrics": counting,
        "wall_s": round(time.perf_counter() - start, 1),
        "processor_s": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gib": round(usage.ru_maxrss * 1024 / 2**30, 3),
    }


def main() -> None:
    """Reads the command line and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--responses", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    options = parser.parse_args()
    result: dict[str, Any] = {"python": platform.python_version()}
    if options.responses:
        result["against"] = compare(options.responses, options.data)
    if options.large:
        result["large"] = score_large(options.large, options.data)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The multilingual functions")
    main()

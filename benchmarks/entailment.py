"""How fast responses are judged: all systems of a run against CrossEncoder.predict for each.

    python benchmarks/entailment.py RUNS [--limit 100]

Prints one JSON object. RUNS is a folder that `dialbench run` wrote to; of each of its files of
responses the first `--limit` count. The peer is sentence-transformers' CrossEncoder with the same
weights, called once a system on all pairs of a turn and a response; ours judges each different
pair once. Both times include tokenising. Seconds are of the clock and of all cores; the ratio is
that of the cores' seconds, which other processes disturb less. Labels are compared of pairs that
both judges read whole.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.neural import checkpoint
from dialbench.nli import embedded
from dialbench.nli.adaptation import merge
from dialbench.nli.cache import CachedJudge
from dialbench.nli.encoder import library_name
from dialbench.nli.judge import LABELS, LONGEST
from dialbench.nli.loading import find
from dialbench.store.layout import Store
from dialbench.text.untokenized import untokenized

Pairs = list[tuple[str, str]]
Judge = Callable[[Pairs], NDArray[np.floating]]


def systems_of(runs: Path, limit: int) -> list[Pairs]:
    """The pairs of a turn and a response of each file of responses."""
    store = Store(runs)
    found = []
    for job in store.jobs():
        if store.answered(job):
            responses = store.read_responses(job)
            answered = list(zip(responses.examples, responses.texts, strict=True))[:limit]
            found.append(
                [
                    (untokenized(t), untokenized(r))
                    for e, r in answered
                    if r.strip()
                    for t in e.context
                ]
            )
    return found


def peer(folder: Path) -> Judge:
    """CrossEncoder with the weights of the embedded judge, which are written to `folder`."""
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification

    base = embedded.base_folder()
    assert base, "install dialbench[nli]"
    encoder, tokenizer = embedded.base(base)
    merge(encoder, checkpoint.read(embedded.WEIGHTS)[0])
    model: Any = BertForSequenceClassification(
        BertConfig.from_pretrained(base, id2label=dict(enumerate(LABELS)))
    )
    own = encoder.state_dict()
    head = {name: own.pop(name) for name in list(own) if name.startswith("classifier.")}
    model.load_state_dict({f"bert.{library_name(n)}": v for n, v in own.items()} | head)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    theirs = CrossEncoder(str(folder), local_files_only=True, device="cpu", max_length=128)
    return lambda pairs: theirs.predict(pairs, apply_softmax=True, show_progress_bar=False)


def timed(judge: Judge, systems: list[Pairs]) -> tuple[NDArray[np.floating], dict[str, float]]:
    """The labels' probabilities of all pairs, (n, 3), and seconds."""
    judge([("Warm", "up.")])
    start, start_cpu = time.perf_counter(), time.process_time()
    shares = np.concatenate([judge(pairs) for pairs in systems])
    clock, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    return shares, {
        "clock_s": round(clock, 2),
        "cpu_s": round(cpu, 2),
        "pairs_per_clock_s": round(len(shares) / clock, 1),
        "pairs_per_cpu_s": round(len(shares) / cpu, 1),
    }


def whole(systems: list[Pairs]) -> NDArray[np.bool_]:
    """Which pairs are short enough to be read whole; of others ours keeps the latest words."""
    base = embedded.base_folder()
    assert base, "install dialbench[nli]"
    _, tokenizer = embedded.base(base)
    premises, hypotheses = zip(*chain.from_iterable(systems), strict=True)
    return (
        np.array([len(found) for found in tokenizer(premises, hypotheses)["input_ids"]]) <= LONGEST
    )


def main() -> None:
    """Reads the command line and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--limit", type=int, default=100)
    options = parser.parse_args()
    systems = systems_of(options.runs, options.limit)
    judge = find(None)
    assert judge, "install dialbench[nli]"
    own, ours = timed(CachedJudge(judge), systems)
    with tempfile.TemporaryDirectory() as folder:
        other, theirs = timed(peer(Path(folder)), systems)
    fits = whole(systems)
    result = {
        "systems": len(systems),
        "pairs": len(own),
        "different_pairs": len({pair for pairs in systems for pair in pairs}),
        "ours": ours,
        "cross_encoder": theirs,
        "ratio": round(theirs["cpu_s"] / ours["cpu_s"], 2),
        "pairs_cut": int((~fits).sum()),
        "same_labels_of_whole_pairs": float((own.argmax(1) == other.argmax(1))[fits].mean()),
        "largest_difference_of_whole_pairs": float(np.abs(own - other)[fits].max()),
        "machine": platform.processor() or platform.machine(),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

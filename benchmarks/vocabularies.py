"""Seconds a word with beam 20: DVS2S against S2SA, the experiment of the DVS2S paper's Figure 2.

    python benchmarks/vocabularies.py --out FILE.json [--preset paper] [--device cpu] [--batch 1]

Both have the same weights, untrained, and answer the same synthetic messages in batches of the
same size; no answer ends early, so both write the same number of words. Measured are reading,
word prediction, gathering output rows and beam search; not loading, tokenising and detokenising.
Systems take turns, after a round that does not count; FILE holds mean and standard deviation of
seconds a word, and the ratio round by round (the paper: 0.6 on CPU and GPU).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dialbench_adapters.dvs2s import DVS2S
from dialbench_adapters.s2sa import S2SA
from systems import synthetic

from dialbench.adapter import Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import Batch, build_vocabulary, encode, make_batch
from dialbench.neural.decoding import beam_search
from dialbench.neural.devices import autocast, describe, dtype_of, resolve
from dialbench.presets.preset import load
from dialbench.records import Context, Split
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, SPECIALS

BEAM = 20


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--options", default="", help="of both systems, e.g. hidden=512")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch", type=int, default=1, help="messages answered at once")
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--words", type=int, default=12, help="of every answer")
    parser.add_argument("--functions", type=int, default=701, help="function words; the paper's")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    device = resolve(arguments.device)
    settings = load(arguments.preset).system
    sides = systems(settings, arguments.options, arguments.functions, device)
    batches = batches_of(sides[0], arguments.messages, arguments.batch, device)
    times = measure(sides, batches, arguments.words, arguments.rounds, device)
    report = {
        "preset": arguments.preset,
        "options": arguments.options,
        "batch": arguments.batch,
        "beam": BEAM,
        "words": [len(sides[0].vocabulary), arguments.functions + sides[1].config.content_words],
        "machine": describe(device, dtype_of(sides[0].config.precision, device)),
        **summary(times),
    }
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


def systems(
    settings: dict[str, Any], options: str, functions: int, device: str
) -> tuple[NeuralAdapter, DVS2S]:
    """S2SA and DVS2S over the same words with the same weights, which never end an answer."""
    registry = Registry()
    (plain,) = registry.parse(f"{S2SA.name}[{options}]" if options else S2SA.name)
    (dynamic,) = registry.parse(f"{DVS2S.name}[{options}]" if options else DVS2S.name)
    s2sa, dvs2s = plain.build(settings), dynamic.build(settings)
    assert isinstance(s2sa, NeuralAdapter)
    assert isinstance(dvs2s, DVS2S)
    words = s2sa.config.vocabulary
    s2sa.vocabulary = dvs2s.vocabulary = build_vocabulary(talk(words), words)
    dvs2s.function_words = s2sa.vocabulary.words[: functions + len(SPECIALS)]
    run = Run(1, device)
    weights = dvs2s._new_model(run).state_dict()
    weights["output.bias"][EOS] = -1e4
    model = s2sa._new_model(run)
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return s2sa, dvs2s


def talk(words: int) -> Split:
    """Synthetic examples that hold every word."""
    return synthetic(max(1_000, words // 20 + 1), words)


def batches_of(system: NeuralAdapter, messages: int, size: int, device: str) -> list[Batch]:
    """The messages to answer, one turn each."""
    examples = talk(system.config.vocabulary)[:messages]
    contexts = [Context(example.context[-1:], example.id) for example in examples]
    data = encode(contexts, system.vocabulary, system.config.context_tokens)
    rows = np.split(np.arange(messages), np.arange(size, messages, size))
    return [make_batch(data, part, device, 1, "infer") for part in rows]


def measure(
    sides: Sequence[NeuralAdapter], batches: Sequence[Batch], words: int, rounds: int, device: str
) -> dict[str, list[float]]:
    """Seconds a word of each system in each round."""
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for _ in range(rounds + 1):
        for side in sides:
            times[side.name].append(seconds_a_word(side, batches, words, device))
    return {name: found[1:] for name, found in times.items()}


def seconds_a_word(side: NeuralAdapter, batches: Sequence[Batch], words: int, device: str) -> float:
    """Wall time of answering all batches over the words of the best hypotheses."""
    model = side._ready(Run(1, device))
    written = 0
    wait(device)
    start = time.perf_counter()
    for batch in batches:
        with autocast(device, dtype_of(side.config.precision, device)):
            found = beam_search(model, batch, BEAM, words)
        written += sum(len(hypotheses[0].tokens) for hypotheses in found)
    wait(device)
    return (time.perf_counter() - start) / written


def wait(device: str) -> None:
    """Until the device has done what it was told."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def summary(times: dict[str, list[float]]) -> dict[str, Any]:
    """Means and deviations, and the ratio of DVS2S to S2SA."""
    ratios = [d / s for d, s in zip(times[DVS2S.name], times[S2SA.name], strict=True)]
    return {
        "seconds_per_word": {
            name: {"mean": statistics.mean(found), "deviation": statistics.stdev(found)}
            for name, found in times.items()
        },
        "ratio": {"median": statistics.median(ratios), "rounds": ratios},
    }


if __name__ == "__main__":
    main()

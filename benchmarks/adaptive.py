"""How many test cases a second AdaND answers, against Seq2Seq (LSTM) in the same run.

    python benchmarks/adaptive.py --out FILE.json [--preset paper] [--device cpu] [--rounds 5]

The speed test of the AdaND paper (its Table 3), which prints 0.407 cases a millisecond for AdaND
and 0.740 for Seq2Seq: 0.55 of its speed. Untrained models answer synthetic contexts greedily, all
to the full length, so that none gains by short answers, 128 at once. What is timed
begins with numbers of words on the device and ends with those of the answers. The systems take
turns in every round; the value is the median of the ratios round by round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from systems import Side, synthetic, wait

from dialbench.neural.data import Batch, answering_rows, encode, make_batch
from dialbench.neural.devices import autocast, describe, dtype_of, resolve
from dialbench.presets.preset import load
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS

PEER = "seq2seq-lstm"
BASELINES = "cvae-lstm", "laed", "ta-seq2seq-lstm"
ADAPTIVE = "adand-context", "adand-topic", "adand", "adand[cell=paper]"
# At the paper's sizes the equations' rank: of the hidden state and a word vector together.
WHOLE = "adand[cell=paper,rank=600]"
SYSTEMS = PEER, *BASELINES, *ADAPTIVE, WHOLE
AT_ONCE = 128
PRINTED = 0.407 / 0.740


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int, default=128, help="a round")
    parser.add_argument("--systems", nargs="*", default=SYSTEMS)
    arguments = parser.parse_args()
    device = resolve(arguments.device)
    settings = load(arguments.preset).system
    split = synthetic(4_000, settings.get("vocabulary", 20_000))
    sides = {}
    for name in dict.fromkeys([PEER, *arguments.systems]):
        (system,) = Registry().parse(name)
        sides[name] = Side(system.build(settings), split, device, arguments.cases)
        writer: Any = getattr(sides[name].model, "writer", sides[name].model)
        with torch.no_grad():
            writer.output.bias[EOS] = -torch.inf
    ready = {name: batches(side) for name, side in sides.items()}
    rounds = [
        {name: cases(side, ready[name]) for name, side in sides.items()}
        for _ in range(arguments.rounds + 1)
    ][1:]
    report: dict[str, Any] = {
        "preset": arguments.preset,
        "machine": describe(device, dtype_of("auto", device)),
        "printed": PRINTED,
        "systems": {name: summary(rounds, name) for name in sides},
    }
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report["systems"], indent=2))


def batches(side: Side) -> list[Batch]:
    """The contexts as batches on the device."""
    data = encode(side.contexts, side.adapter.vocabulary, side.adapter.config.context_tokens)
    return [
        make_batch(data, rows, side.device, side.run.seed, "infer")
        for rows in answering_rows(data, AT_ONCE)
    ]


def cases(side: Side, ready: list[Batch]) -> float:
    """Cases a second of one round."""
    dtype = dtype_of(side.adapter.config.precision, side.device)
    side.model.eval()
    wait(side.device)
    start = time.perf_counter()
    for batch in ready:
        with autocast(side.device, dtype):
            side.adapter.answer(side.model, batch, Decoding())
    wait(side.device)
    return len(side.contexts) / (time.perf_counter() - start)


def summary(rounds: list[dict[str, float]], name: str) -> dict[str, float]:
    """Medians over the rounds of the speed and of its ratio to the peer's."""
    return {
        "cases_per_second": statistics.median(round[name] for round in rounds),
        "relative": statistics.median(round[name] / round[PEER] for round in rounds),
    }


if __name__ == "__main__":
    main()

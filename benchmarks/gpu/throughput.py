"""How fast every system trains and answers at the paper preset, on whatever device is there.

    python3 benchmarks/gpu/throughput.py --out FILE.json [--device cuda] [--seconds 30]

The text is synthetic, with about DailyDialog's lengths and a vocabulary of 20,000 words. For each
system: training examples a second, floating-point operations a second (6 for each trained weight
and token), the share of the bfloat16 peak given with --peak, peak memory, and greedy answers a
second.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from dialbench.adapter import Registry, Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import Encoded, build_vocabulary, encode_split, training_rows
from dialbench.neural.devices import describe, dtype_of, resolve
from dialbench.neural.model import count_parameters
from dialbench.neural.training import Trainer
from dialbench.records import Decoding, Example, Split


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--answers", type=int, default=1024)
    parser.add_argument("--peak", type=float, default=0.0, help="bfloat16 FLOP/s of the device")
    arguments = parser.parse_args()
    device = resolve(arguments.device)
    split = synthetic(arguments.examples)
    systems = [s for s in Registry().parse("all") if issubclass(s.adapter, NeuralAdapter)]
    report: dict[str, Any] = {"device": describe(device, dtype_of("auto", device))}
    for system in systems:
        adapter = system.build({})
        assert isinstance(adapter, NeuralAdapter)
        measured = measure(adapter, split, device, arguments.seconds, arguments.answers)
        if arguments.peak:
            measured["share_of_peak"] = measured["flops"] / arguments.peak
        report[system.name] = measured
        arguments.out.write_text(json.dumps(report, indent=2) + "\n")
        print(system.name, measured, flush=True)


def synthetic(count: int) -> Split:
    """Examples of 1 to 5 turns of 4 to 22 words, words falling off as 1 / rank."""
    draw = random.Random(1)
    words = [f"w{i}" for i in range(20_000)]
    weights = [1 / (i + 1) for i in range(len(words))]

    def turn() -> str:
        return " ".join(draw.choices(words, weights, k=draw.randint(4, 22)))

    # Every word once, so that the vocabulary has its full size.
    rest = iter([" ".join(words[i : i + 20]) for i in range(0, len(words), 20)])
    return Split(
        "train",
        [
            Example(
                str(i),
                str(i),
                tuple(turn() for _ in range(draw.randint(1, 5))),
                (next(rest, None) or turn(),),
            )
            for i in range(count)
        ],
    )


def measure(
    adapter: NeuralAdapter, split: Split, device: str, seconds: float, answers: int
) -> dict[str, float]:
    """Training and answering of one system."""
    config = adapter.config
    run = Run(1, device, Path(tempfile.mkdtemp()))
    adapter.vocabulary = build_vocabulary(split, config.vocabulary)
    model = adapter._fresh_model(run)
    data = encode_split(split, adapter.vocabulary, config.context_tokens, config.response_tokens)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    examples, tokens, spent = _train(Trainer(model, data, data, config, run), data, seconds)
    trained = count_parameters(model)["trained_parameters"]
    contexts = [example.blind() for example in split[:answers]]
    start = time.perf_counter()
    adapter.respond(contexts, Decoding(), run)
    answered = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated() if device.startswith("cuda") else 0
    return {
        "parameters": count_parameters(model)["parameters"],
        "train_examples_per_second": examples / spent,
        "flops": 6 * trained * tokens / spent,
        "answers_per_second": len(contexts) / answered,
        "peak_memory_bytes": memory,
    }


def _train(trainer: Trainer, data: Encoded, seconds: float) -> tuple[int, int, float]:
    rows = training_rows(data, trainer.config.batch_size, 1, 1)
    trainer.model.train()
    for batch in rows[:5]:
        trainer._update(batch)
    _wait(trainer.run.device)
    examples = tokens = 0
    start = time.perf_counter()
    for batch in rows[5:]:
        trainer._update(batch)
        examples += len(batch)
        tokens += int(data.source.lengths[batch].sum() + data.target.lengths[batch].sum())
        if time.perf_counter() - start > seconds:
            break
    _wait(trainer.run.device)
    return examples, tokens, time.perf_counter() - start


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()

"""How fast every system trains and answers, relative to the Transformer in the same run.

    python benchmarks/systems.py --out FILE.json [--models all] [--preset small] [--device cpu]

The text is synthetic, with about DailyDialog's lengths and as many words as the preset's
vocabulary. For each system: training examples a second and greedy answers of exactly 20 words a
second, medians of rounds in which the systems take turns, so that a machine whose speed drifts
slows all of them; both also relative to `transformer`. A round before them is not counted: a GPU
loads and chooses its kernels when they are first called, which takes seconds. Systems that learn in
several stages or from more than words are left out: there is no one rate to give. Further:
parameters, floating-point operations a second (6 for each trained weight and token) and their share
of the bfloat16 peak given with --peak, peak memory on a GPU, and what drawing weights costs systems
that draw them for each context. FILE.md beside FILE.json holds the table for people.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from dialbench_adapters.pretrained.tuning import TunedAdapter

from dialbench.adapter import Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import build_vocabulary, encode, encode_split, make_batch, training_rows
from dialbench.neural.devices import describe, dtype_of, resolve
from dialbench.neural.model import count_parameters
from dialbench.presets.preset import load
from dialbench.records import Decoding, Example, Split
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS

WORDS = 20
PEER = "transformer"
VARIANTS = (
    "paraformer-k[redraw_at_inference=per_batch]",
    "rl-transformer[redraw_at_inference=per_batch]",
)


def main() -> None:
    """Measures and writes after every round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", default=",".join(("all", *VARIANTS)), help=f"besides {PEER}")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of training, a round")
    parser.add_argument("--examples", type=int, default=4_000, help="to learn from")
    parser.add_argument("--answers", type=int, default=256, help="a round")
    parser.add_argument("--peak", type=float, default=0.0, help="bfloat16 FLOP/s of the device")
    arguments = parser.parse_args()
    device = resolve(arguments.device)
    settings = {**load(arguments.preset).system, "start": "scratch"}
    split = synthetic(arguments.examples, settings.get("vocabulary", 20_000))
    systems = [
        system
        for system in Registry().parse(f"{PEER},{arguments.models}")
        if system.adapter.fit in (NeuralAdapter.fit, TunedAdapter.fit)
    ]
    report: dict[str, Any] = {
        "preset": arguments.preset,
        "machine": describe(device, dtype_of("auto", device)),
        "systems": {},
        "failed": {},
    }
    sides: dict[str, Side] = {}
    for system in systems:
        with surviving(system.name, report["failed"]):
            side = Side(system.build(settings), split, device, arguments.answers)
            side.warm_up(arguments.seconds)
            sides[system.name] = side
            report["systems"][system.name] = side.facts()
    for _ in range(arguments.rounds):
        for name, side in list(sides.items()):
            with surviving(name, report["failed"]):
                side.round(arguments.seconds)
                print(name, side.rounds[-1], flush=True)
        for name in report["failed"]:
            sides.pop(name, None)
            report["systems"].pop(name, None)
        for name, side in sides.items():
            report["systems"][name] |= side.summary(sides[PEER], arguments.peak)
        arguments.out.write_text(json.dumps(report, indent=2) + "\n")
        arguments.out.with_suffix(".md").write_text(table(report["systems"]))


@contextlib.contextmanager
def surviving(name: str, failed: dict[str, str]) -> Iterator[None]:
    """Notes what goes wrong with a system other than the one that all compare with."""
    try:
        yield
    except Exception as error:
        if name == PEER:
            raise
        failed[name] = f"{type(error).__name__}: {error}"
        print(name, "failed:", failed[name], flush=True)


def synthetic(count: int, vocabulary: int) -> Split:
    """Examples of 1 to 5 turns of 4 to 22 words, words falling off as 1 / rank."""
    draw = random.Random(1)
    words = [f"w{i}" for i in range(vocabulary)]
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


class Side:
    """One system, ready to train and to answer.

    Args:
        adapter: untrained.
        split: what it learns from; its first contexts are answered.
        device: a torch device name.
        answers: how many are answered a round.
    """

    def __init__(self, adapter: Any, split: Split, device: str, answers: int) -> None:
        config, before = adapter.config, allocated(device)
        self.adapter, self.device = adapter, device
        self.contexts = [example.as_context() for example in split[:answers]]
        self.run = Run(1, device, Path(tempfile.mkdtemp()))
        adapter.vocabulary = build_vocabulary(split, config.vocabulary)
        self.model = adapter._new_model(self.run)
        self.data = encode_split(
            split, adapter.vocabulary, config.context_tokens, config.response_tokens
        )
        self.trainer = adapter.trainer(self.model, self.data, self.data, self.run)
        self.rounds: list[dict[str, float]] = []
        self.held = allocated(device) - before

    def facts(self) -> dict[str, float]:
        """Its size."""
        return dict(count_parameters(self.model))

    def warm_up(self, seconds: float) -> None:
        """A round that does not count."""
        self.round(seconds)
        self.rounds.clear()

    def round(self, seconds: float) -> None:
        """Trains for so many seconds and answers once."""
        before = allocated(self.device)
        if self.device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats()
        examples, tokens, spent = self._train(seconds)
        answered = self._answer()
        trained = count_parameters(self.model)["trained_parameters"]
        memory = allocated(self.device, peak=True) - before + self.held
        self.held += allocated(self.device) - before
        self.rounds.append(
            {
                "train": examples / spent,
                "answer": len(self.contexts) / answered,
                "flops": 6 * trained * tokens / spent,
                "memory": float(memory),
                **self._draws(answered),
            }
        )

    def _train(self, seconds: float) -> tuple[int, int, float]:
        trainer, data = self.trainer, self.data
        rows = training_rows(data, trainer.config.batch_size, 1, len(self.rounds) + 1)
        self.model.train()
        for batch in rows[:3]:
            trainer._update(batch)
        wait(self.device)
        examples = tokens = 0
        start = time.perf_counter()
        for batch in rows[3:]:
            trainer._update(batch)
            examples += len(batch)
            tokens += int(data.source.lengths[batch].sum() + data.target.lengths[batch].sum())
            if time.perf_counter() - start > seconds:
                break
        wait(self.device)
        return examples, tokens, time.perf_counter() - start

    def _answer(self) -> float:
        """Seconds for all contexts, of answers that never end before their limit."""
        adapter, step = self.adapter, self.model.step
        config = adapter.config

        def endless(*given: Any) -> Any:
            logits, state = step(*given)
            logits[:, EOS] = -torch.inf
            return logits, state

        adapter.config = dataclasses.replace(config, response_tokens=WORDS)
        self.model.step = endless
        start = time.perf_counter()
        adapter.respond(self.contexts, Decoding(), self.run)
        spent = time.perf_counter() - start
        adapter.config = config
        del self.model.step
        return spent

    def _draws(self, answered: float) -> dict[str, float]:
        """How many normals a second, and which share of the answering time drawing takes."""
        if not self.model.draws_weights or self.adapter.config.redraw_at_inference != "per_context":
            return {}
        config = self.adapter.config
        some = self.contexts[: config.answer_batch]
        data = encode(some, self.adapter.vocabulary, config.context_tokens)
        batch = make_batch(data, torch.arange(len(some)).numpy(), self.device, 1, "infer")
        start = time.perf_counter()
        self.model.draws(batch)
        wait(self.device)
        spent = time.perf_counter() - start
        share = spent / len(some) * len(self.contexts) / answered
        drawn = len(some) * self.model.random.numbers
        return {"numbers_per_second": drawn / spent, "share_of_answering": share}

    def summary(self, peer: Side, peak: float) -> dict[str, float]:
        """Medians over the rounds, and of the ratios to the peer round by round."""
        medians = {
            name: statistics.median(round[name] for round in self.rounds) for name in self.rounds[0]
        }
        relative = {
            f"{name}_relative": statistics.median(
                ours[name] / theirs[name]
                for ours, theirs in zip(self.rounds, peer.rounds, strict=True)
            )
            for name in ("train", "answer")
        }
        return medians | relative | ({"share_of_peak": medians["flops"] / peak} if peak else {})


def table(systems: dict[str, dict[str, float]]) -> str:
    """The main figures in Markdown."""
    lines = [
        "| system | training examples/s | of transformer | answers/s | of transformer |"
        " share of drawing |",
        "|---|---|---|---|---|---|",
    ]
    for name, s in systems.items():
        share = f"{s['share_of_answering']:.2f}" if "share_of_answering" in s else ""
        lines.append(
            f"| {name} | {s['train']:.0f} | {s['train_relative']:.2f} | {s['answer']:.0f} |"
            f" {s['answer_relative']:.2f} | {share} |"
        )
    return "\n".join(lines) + "\n"


def allocated(device: str, *, peak: bool = False) -> int:
    """Bytes of a GPU in use by all systems here, now or at most; 0 on a CPU."""
    if not device.startswith("cuda"):
        return 0
    return torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated()


def wait(device: str) -> None:
    """Until the device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()

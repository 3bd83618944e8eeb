"""Do CPU and GPU agree? The loss and the greedy answers of every trained system on both.

    python3 benchmarks/gpu/agreement.py RUNS --out FILE.json [--preset quick]

RUNS is a runs folder that `dialbench run --answers-only --device cuda` left. Each trained system
is loaded again and answers the same test contexts on the CPU in float32; its loss on the
validation examples is computed on both.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from dialbench.adapter import Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import encode_split
from dialbench.neural.devices import describe, dtype_of
from dialbench.neural.training import evaluate
from dialbench.running.plan import Plan, Request, Task
from dialbench.store.layout import Store


def main() -> None:
    """Compares and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", default="quick")
    arguments = parser.parse_args()
    store = Store(arguments.runs)
    plan = Plan.of(Request(preset=arguments.preset))
    report = {task.system.name: compare(task, store) for task in plan.tasks if _neural(task)}
    facts = describe("cuda", dtype_of("auto", "cuda")) if torch.cuda.is_available() else {}
    arguments.out.write_text(json.dumps({"device": facts, "systems": report}, indent=2) + "\n")


def _neural(task: Task) -> bool:
    return issubclass(task.system.adapter, NeuralAdapter)


def compare(task: Task, store: Store) -> dict[str, Any]:
    """Losses on both devices and the share of equal answers."""
    losses = {device: _loss(task, store, device) for device in ("cpu", "cuda")}
    theirs = store.read_responses(task.job).texts
    adapter, run = _loaded(task, store, "cpu")
    contexts = [example.blind() for example in task.dataset.test]
    ours = adapter.respond(contexts, task.job.decoding, run)
    same = sum(a == b for a, b in zip(ours, theirs, strict=True))
    return {"loss": losses, "equal_answers": same / len(ours), "answers": len(ours)}


def _loaded(task: Task, store: Store, device: str) -> tuple[NeuralAdapter, Run]:
    folder = store.trained(task.job)
    assert folder is not None, f"{task.job} is not trained in {store.root}"
    adapter = task.system.adapter.load(folder, task.system.config(task.preset.system))
    assert isinstance(adapter, NeuralAdapter)
    return adapter, Run(task.job.seed, device, store.root, task.preset.system)


def _loss(task: Task, store: Store, device: str) -> float:
    adapter, run = _loaded(task, store, device)
    config = adapter.config
    data = encode_split(
        task.dataset.valid, adapter.vocabulary, config.context_tokens, config.response_tokens
    )
    model = adapter.model
    assert model is not None
    return evaluate(model.to(device), data, config, run, "valid")["loss"]


if __name__ == "__main__":
    main()

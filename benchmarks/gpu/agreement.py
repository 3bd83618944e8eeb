"""Do CPU and GPU agree? The loss and the greedy responses of every trained system on both.

Each system of a runs folder is loaded again. Its loss on the validation examples and its responses
to the test contexts are computed on the CPU in float32, on the device in float32, where only the
order of additions differs, and on the device in the precision that a run takes there. Systems that
draw weights for each context keep those of their last epoch, since devices draw others.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dialbench.adapter import Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import encode_split
from dialbench.neural.training import evaluate
from dialbench.running.plan import Plan, Request, Task
from dialbench.store.layout import Store

REFERENCE = ("cpu", "float32")


def compare_all(runs: Path, device: str, models: str, jobs: int, seconds: float) -> dict[str, Any]:
    """What `compare` gives of every trained system, or why there is nothing.

    Args:
        runs: a runs folder of `request(models)`.
        device: to be compared with the CPU.
        models: as `--models` takes them.
        jobs: systems at once.
        seconds: after which the rest is left out.
    """
    plan, store = Plan.of(request(models)), Store(runs)
    report: dict[str, Any] = {name: {"failed": why} for name, why in plan.skipped.items()}
    todo = []
    for task in plan.tasks:
        (result,) = store.results(None, [task.job]) or [None]
        if result is None or result.status != "done":
            report[task.system.name] = {
                "failed": (result and result.reason) or "there was no time to train it"
            }
        elif issubclass(task.system.adapter, NeuralAdapter):
            todo.append(task.system.name)
    return report | _side_by_side(runs, device, models, todo, jobs, seconds)


def request(models: str) -> Request:
    """A moment of training, so that every system can be tried in two minutes."""
    return Request(models=models, limit_train=300, limit_test=32)


def _side_by_side(
    runs: Path, device: str, models: str, names: list[str], jobs: int, seconds: float
) -> dict[str, Any]:
    report: dict[str, Any] = {name: {"failed": "there was no time to compare"} for name in names}
    pool = ProcessPoolExecutor(jobs, get_context("spawn"))
    try:
        given = {pool.submit(_compare_named, runs, device, models, n): n for n in names}
        for future in as_completed(given, timeout=max(1.0, seconds)):
            try:
                report[given[future]] = future.result()
            except Exception as error:  # one system's crash is reported in its place
                report[given[future]] = {"failed": f"{type(error).__name__}: {error}"}
    except TimeoutError:
        pass
    finally:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
    return report


def _compare_named(runs: Path, device: str, models: str, name: str) -> dict[str, Any]:
    tasks = {task.system.name: task for task in Plan.of(request(models)).tasks}
    return compare(tasks[name], Store(runs), device)


def compare(task: Task, store: Store, device: str) -> dict[str, Any]:
    """Losses, and shares of responses equal to the reference's, by device and precision.

    Returns:
        `loss` and `equal`, each by "cpu float32" and so on, and `responses`, how many there were.
    """
    loss: dict[str, float] = {}
    texts: dict[str, list[str]] = {}
    for where in dict.fromkeys((REFERENCE, (device, "float32"), (device, "auto"))):
        key = " ".join(where)
        losses, texts[key] = _measured(task, store, *where)
        loss |= {key: losses["loss"]} if losses else {}
    reference = texts.pop(" ".join(REFERENCE))
    equal = {
        key: sum(a == b for a, b in zip(reference, others, strict=True)) / len(reference)
        for key, others in texts.items()
    }
    return {"loss": loss, "equal": equal, "responses": len(reference)}


def _measured(
    task: Task, store: Store, device: str, precision: str
) -> tuple[dict[str, float], list[str]]:
    folder = store.trained(task.job)
    assert folder is not None, f"{task.job} is not trained in {store.root}"
    config = dataclasses.replace(task.system.config(task.preset.system), precision=precision)
    if hasattr(config, "redraw_at_inference"):
        config = dataclasses.replace(config, redraw_at_inference="none")
    adapter = task.system.adapter.load(folder, config)
    assert isinstance(adapter, NeuralAdapter)
    assert adapter.model is not None
    run = Run(task.job.seed, device, store.root, task.preset.system)
    contexts = [example.as_context() for example in task.dataset.test]
    texts = adapter.respond(contexts, task.job.decoding, run)
    c = adapter.config
    data = encode_split(task.dataset.valid, adapter.vocabulary, c.context_tokens, c.response_tokens)
    try:
        return evaluate(adapter.model, data, c, run, "valid"), texts
    except NotImplementedError:  # several models, each with a loss of its own part
        return {}, texts


def table(report: dict[str, Any]) -> str:
    """A line for every system, those that failed last."""
    lines = []
    for name, facts in sorted(report.items(), key=lambda item: "failed" in item[1]):
        if "failed" in facts:
            lines.append(f"{name}: FAILED: {facts['failed']}")
            continue
        losses = ", ".join(f"{key} {value:.4f}" for key, value in facts["loss"].items())
        equal = ", ".join(f"{key} {value:.2f}" for key, value in facts["equal"].items())
        lines.append(f"{name}: loss {losses}; equal responses {equal}")
    return "\n".join(lines)

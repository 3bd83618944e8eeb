"""A job, and a store to keep its results in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialbench.records import Decoding, Example, Job, Responses
from dialbench.store.layout import Store

SCORING = {"tokenizer": "default", "metrics": ("dist-1", "bleu-2")}


@pytest.fixture
def job() -> Job:
    return Job("echo", "demo", 1, Decoding(), "quick", {"epochs": 2}, {"limit": 3})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def responses(job: Job, texts: tuple[str, ...] = ("yes", "no")) -> Responses:
    examples = [
        Example(f"d-{number}", "d", ("hello", "how are you?"), ("fine", "well"))
        for number in range(len(texts))
    ]
    return Responses(job, examples, texts, 1.5, "cuda")


def keep(store: Store, job: Job, files: dict[str, str] | None = None, **known: Any) -> None:
    def save(folder: Path) -> None:
        for name, content in (files or {"state.json": "null"}).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)

    store.commit_trained(
        job, save, known.get("facts", {}), known.get("curve", ()), known.get("notes", ())
    )


def only(root: Path, pattern: str) -> Path:
    (path,) = root.rglob(pattern)
    return path


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))

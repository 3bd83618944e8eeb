"""Kills every kind of write of the store at every file operation; prints how often."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from dying import dies_at

from dialbench.records import Decoding, Example, Job, Responses, Score
from dialbench.store.layout import Store
from dialbench.store.lock import LOCK, OWNER

JOB = Job("echo", "demo", 1, Decoding(), "quick")
SCORING = {"tokenizer": "default"}


def train(store: Store, mark: str) -> None:
    def save(folder: Path) -> None:
        for name in ("a", "b"):
            (folder / name).write_text(mark)

    store.commit_trained(JOB, save, {"mark": mark}, [{"loss": 1.0}], [mark])


def answer(store: Store, mark: str) -> None:
    examples = [Example(str(number), "d", ("hi",), ()) for number in range(3)]
    store.write_responses(Responses(JOB, examples, [mark] * 3, 1.0, "cpu"))


def score(store: Store, mark: str) -> None:
    value = float(len(mark))
    store.write_scores(JOB, {"length": Score(value, 3, mark, np.full(3, value))}, SCORING)


def status(store: Store, mark: str) -> None:
    store.set_status(JOB, "done", mark)


def trained_mark(store: Store) -> str:
    folder = store.trained(JOB)
    assert folder is not None
    (mark,) = {(folder / name).read_text() for name in ("a", "b")}
    return mark


def answered_mark(store: Store) -> str:
    (mark,) = set(store.read_responses(JOB).texts)
    return mark


def scored_mark(store: Store) -> str:
    scores = store.read_scores(JOB, SCORING)
    assert scores is not None
    length = scores["length"]
    assert length.per_response is not None
    assert set(length.per_response) == {length.value} == {float(len(length.signature))}
    return length.signature


def status_mark(store: Store) -> str:
    (result,) = store.results(SCORING)
    return result.reason


KINDS: dict[str, tuple[Callable[[Store, str], None], Callable[[Store], str]]] = {
    "train": (train, trained_mark),
    "answer": (answer, answered_mark),
    "score": (score, scored_mark),
    "status": (status, status_mark),
}


def main(root: Path) -> None:
    store = Store(root / "runs")
    for write, _ in KINDS.values():
        write(store, "old")
    shutil.copytree(store.root, root / "before")
    for name, (write, read) in KINDS.items():
        seen = set()
        number = 1
        while dies_at(number, partial(write, store, "newer")):
            with store.writing():
                hidden = {path.name for path in store.root.rglob(".*")}
                assert hidden == {LOCK, OWNER}
            seen.add(read(store))
            restore(root)
            number += 1
        assert read(store) == "newer"
        restore(root)
        assert "old" in seen
        assert seen <= {"old", "newer"}, seen
        print(name, number - 1)


def restore(root: Path) -> None:
    shutil.rmtree(root / "runs")
    shutil.copytree(root / "before", root / "runs")


main(Path(sys.argv[1]))

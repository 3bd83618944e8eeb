"""Snapshots made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from dialbench.records import Decoding, Example, Job, Responses
from dialbench.store.baselines import (
    Baseline,
    Entry,
    GroupedScore,
    Provenance,
    ResponseFields,
    examples_key,
)
from dialbench.store.schema import JobFields

VERSIONS = {"dialbench": "0.1.0", "python": "3.11.7", "torch": "2.6.0"}
CPU = {"device": "cpu (x86_64)", "dtype": "float32", "threads": 1, "torch": "2.6.0"}
IDS = ("d-1", "d-2", "d-3")


def _scores(values: Mapping[str, Any]) -> dict[str, GroupedScore]:
    plain = {"n": 3, "interval": None, "reason": ""}
    return {
        name: GroupedScore(
            **{**plain, "signature": f"{name}|v:1"}
            | (value if isinstance(value, dict) else {"value": value})
        )
        for name, value in values.items()
    }


@pytest.fixture
def entry() -> Callable[..., Entry]:
    """Makes an entry; scores are values by metric, or whole fields."""

    def make(
        system: str = "echo",
        seed: int = 1,
        *,
        scores: Mapping[str, Any] | None = None,
        texts: Sequence[str] = ("yes", "no", "i do"),
        config: Mapping[str, Any] | None = None,
        data: str = "aa",
        kept: bool = True,
        **fields: Any,
    ) -> Entry:
        training = {"config": dict(config or {"epochs": 2}), "version": 1, "data": data}
        job = Job(system, "demo", seed, Decoding(), "quick", training, {"data": "bb"})
        examples = [Example(id, "d", ("hello",), ()) for id in IDS[: len(texts)]]
        stored = Responses(job, examples, texts, 1.0, "cpu")
        responses = ResponseFields.of(stored, examples_key([e.id for e in examples]))
        if not kept:
            responses = responses.model_copy(update={"texts": None})
        values = {"dist-1": 0.5, "bleu-1": 0.25} if scores is None else scores
        usual = {
            "label": system,
            "status": "done",
            "device": CPU["device"],
            "circumstances": CPU,
            "weights": {"model.safetensors": "00"},
            "responses": responses,
            "scores": _scores(values),
        }
        return Entry(job=JobFields.of(job), **{**usual, **fields})

    return make


@pytest.fixture
def snapshot() -> Callable[..., Baseline]:
    """Makes a snapshot of entries."""

    def make(*entries: Entry, commit: str = "c0ffee", **versions: str) -> Baseline:
        provenance = Provenance(
            command="dialbench check runs --update",
            commit=commit,
            date="2026-01-02T03:04:05+00:00",
            versions={**VERSIONS, **versions},
        )
        lengths = {len(e.responses) for e in entries if e.responses}
        examples = {examples_key(list(IDS[:n])): list(IDS[:n]) for n in lengths}
        return Baseline(provenance=provenance, examples=examples, entries=list(entries))

    return make

"""The trial that the README begins with: systems that have learnt to answer, if little."""

from __future__ import annotations

import pytest

from dialbench.adapter import Run
from dialbench.records import Decoding
from dialbench.running.plan import Plan, Request

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("system", ["seq2seq", "hred", "transformer", "paraformer-n", "s2sa"])
def test_answers_differ_and_depend_on_the_context(system, tmp_path):
    (task,) = Plan.of(Request(models=f"{system}[precision=float32]")).tasks
    adapter, data = task.system.build(task.preset.system), task.dataset
    run = Run(task.job.seed, folder=tmp_path)
    adapter.fit(data.train, data.valid, run)
    assert adapter.facts()["context_gain"] > 0.05
    assert len(set(adapter.respond(data.contexts, Decoding(), run))) >= 20

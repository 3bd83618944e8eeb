"""How the time until a deadline is shared, and what a run answers with that it has stopped."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dialbench.bench import run
from dialbench.neural.training import Trainer
from dialbench.running.plan import Plan, Request
from dialbench.running.progress import Board
from dialbench.running.worker import Worker
from dialbench.store.layout import Store

DATED = Path(__file__).parent / "dated.py"
STARTING = Path(__file__).parent.parent / "starting.py"
TINY = "embedding=16,vocabulary=300,epochs=100000,patience=100000"


@pytest.fixture
def shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Seconds that each task in turn gets of 100 if none takes any, by `jobs` at once."""
    monkeypatch.setattr(time, "time", lambda: 1000.0)

    def of(models: str, jobs: int, decodings: str = "greedy", trained: tuple[int, ...] = ()):
        plan = Plan.of(Request(models=models, decodings=decodings, plugins=(STARTING,)))
        store = Store(tmp_path)
        for number in trained:
            store.commit_trained(plan.tasks[number].job, lambda folder: None, {}, [], [])
        worker = Worker(store, "cpu", Board("none"), deadline=1100.0)
        tasks = plan.tasks
        untils = [worker.training_deadline(task, tasks[i:], jobs) for i, task in enumerate(tasks)]
        return [until - 1000.0 for until in untils]

    return of


def test_one_after_another(shares):
    given = shares("pupil[alone=true],rival[alone=true],teacher", 1)
    assert given == pytest.approx([100 / 3, 50, 100])


def test_side_by_side(shares):
    assert shares("pupil[alone=true],rival[alone=true],teacher", 3) == [100, 100, 100]
    assert shares("pupil[alone=true],rival[alone=true],teacher", 2) == [50, 100, 100]


def test_what_others_wait_for_leaves_them_half(shares):
    assert shares("teacher,pupil,rival", 3)[0] == 50
    assert shares("pupil,rival", 2) == [50, 100]


def test_once_the_base_is_there_nobody_waits(shares):
    assert shares("teacher,pupil,rival", 3, trained=(0,)) == [100, 100, 100]


def test_decodings_of_one_training_take_no_time_twice(shares):
    assert shares("teacher", 1, decodings="greedy,beam:2") == [100, 100]


def test_no_deadline(tmp_path: Path):
    plan = Plan.of(Request(models="teacher", plugins=(STARTING,)))
    worker = Worker(Store(tmp_path), "cpu", Board("none"))
    assert worker.training_deadline(plan.tasks[0], plan.tasks, 1) is None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that tells how many updates have been made."""
    plain, done = Trainer._update, []

    def update(self, rows):
        done.append(rows)
        return plain(self, rows)

    monkeypatch.setattr(Trainer, "_update", update)
    monkeypatch.setattr(time, "time", lambda: float(len(done)))


@pytest.mark.usefixtures("clock")
def test_a_run_ends_and_the_next_with_a_deadline_trains_nothing(tmp_path: Path):
    # The first needs a base, which is trained in its name.
    models = f"cvae[layers=1,heads=2,attention=16,{TINY}],seq2seq[hidden=8,{TINY}]"
    request = Request(models=models, limit_train=40, limit_test=4)
    arguments = {"out": tmp_path, "device": "cpu", "answers_only": True}
    outcome = run(request, deadline=16.0, **arguments)
    assert not outcome.failed
    cvae, seq2seq = outcome.results
    stopped = "training was stopped by the deadline in epoch {} of at most 100000, after {} updates"
    of_base = [note for note in cvae.notes if note.startswith("transformer")]
    assert any(f", which it starts from: {stopped.format(2, 4)}" in note for note in of_base)
    assert stopped.format(2, 4) in cvae.notes
    assert stopped.format(4, 8) in seq2seq.notes
    before = [Store(tmp_path).weights(result.job) for result in outcome.results]
    again = run(request, deadline=1000.0, **arguments)
    assert [Store(tmp_path).weights(result.job) for result in again.results] == before


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_without_a_deadline_completes_what_one_cut_short(tmp_path: Path, jobs: int):
    sizes = "embedding=16,vocabulary=300,epochs=6"
    models = f"cvae[layers=1,heads=2,attention=16,{sizes}],seq2seq[hidden=8,{sizes}]"
    request = Request(models=models, limit_train=40, limit_test=4, decodings="greedy,beam:2")
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    arguments = {"device": "cpu", "answers_only": True}
    stopped = run(request, out=cut, deadline=13.0, **arguments)
    assert not stopped.failed
    assert all("deadline" in " ".join(result.notes) for result in stopped.results)
    run(request, out=whole, **arguments)
    outcome = run(request, out=cut, jobs=jobs, **arguments)
    for result in outcome.results:
        stores = Store(cut), Store(whole)
        completed, undisturbed = (store.weights(result.job) for store in stores)
        assert completed == undisturbed
        completed, undisturbed = (store.read_responses(result.job).texts for store in stores)
        assert completed == undisturbed
        assert "deadline" not in " ".join(result.notes)
    assert not list(cut.glob("trained/*/work"))


def test_other_processes_keep_the_same_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "time", lambda: 5000.0)
    request = Request(models="dated,also-dated", limit_train=40, limit_test=1, plugins=(DATED,))
    arguments = {"out": tmp_path, "device": "cpu", "answers_only": True}
    outcome = run(request, jobs=2, deadline=700.0, **arguments)
    texts = [Store(tmp_path).read_responses(result.job).texts for result in outcome.results]
    assert texts == [["5700.0"], ["5700.0"]]


def test_what_waits_for_a_training_does_not_wait_for_its_responses(tmp_path: Path):
    request = Request(models="slow,heir", limit_train=40, limit_test=1, plugins=(DATED,))
    outcome = run(request, out=tmp_path, device="cpu", jobs=2, answers_only=True)
    assert Store(tmp_path).read_responses(outcome.results[0].job).texts == ["met"]
    assert (tmp_path / "fits").read_text() == "slow\n"


def test_too_late(tmp_path: Path):
    request = Request(models=f"transformer[{TINY}]", limit_train=40, limit_test=4)
    outcome = run(request, out=tmp_path, device="cpu", deadline=0.0, answers_only=True)
    assert "the deadline came before the end of the first epoch" in outcome.failed[0].reason

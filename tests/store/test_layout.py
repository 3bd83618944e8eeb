"""What was stored comes back, and is whole or not there."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.errors import StorageError, SystemFailed
from dialbench.records import Decoding, Job, Profile, Score, Tally
from dialbench.store.layout import Store
from dialbench.store.schema import JobFields

from .conftest import SCORING, keep, only, responses

DYING = Path(__file__).parents[1] / "dying"


# Trained systems


def test_the_checksums_of_a_trained_system_are_those_of_its_files(store: Store, job: Job) -> None:
    assert store.weights(job) == {}
    keep(store, job, {"a.json": "", "in/b.json": "abc"})
    # The well-known sha256 of nothing and of abc.
    assert {name: digest[:8] for name, digest in store.weights(job).items()} == {
        "a.json": "e3b0c442",
        "in/b.json": "ba7816bf",
    }
    only(store.root, "b.json").write_text("abd")
    with pytest.raises(StorageError, match="checksum"):
        store.weights(job)


def test_a_trained_system_is_found_once_it_is_whole(store: Store, job: Job) -> None:
    assert store.trained(job) is None
    work = store.work_folder(job)
    (work / "epoch-1").write_text("half way")
    assert store.trained(job) is None
    assert (store.work_folder(job) / "epoch-1").read_text() == "half way"
    keep(store, job, {"state.json": "[1]", "deep/weights": "w"})
    folder = store.trained(job)
    assert folder is not None
    assert (folder / "state.json").read_text() == "[1]"
    assert (folder / "deep" / "weights").read_text() == "w"
    assert not work.exists()


def test_a_fresh_work_folder_forgets_an_interrupted_training(store: Store, job: Job) -> None:
    (store.work_folder(job) / "epoch-1").write_text("half way")
    assert list(store.work_folder(job, fresh=True).iterdir()) == []


def test_jobs_of_one_training_share_it_and_others_do_not(store: Store, job: Job) -> None:
    keep(store, job)
    sibling = replace(job, decoding=Decoding("beam", 5), answering={"limit": 9})
    assert store.trained(sibling) == store.trained(job)
    for other in (
        replace(job, seed=2),
        replace(job, system="echo[x=1]"),
        replace(job, corpus="other"),
        replace(job, training={"epochs": 3}),
    ):
        assert store.trained(other) is None
        assert store.work_folder(other) != store.work_folder(job)


def test_a_training_that_cannot_be_saved_leaves_the_older_one(store: Store, job: Job) -> None:
    keep(store, job, {"state.json": "old"})
    (store.work_folder(job) / "epoch-9").write_text("")

    def save(folder: Path) -> None:
        (folder / "state.json").write_text("new")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.commit_trained(job, save, {}, [], [])
    folder = store.trained(job)
    assert folder is not None
    assert (folder / "state.json").read_text() == "old"
    assert (store.work_folder(job) / "epoch-9").exists()


def test_a_curve_that_holds_no_numbers_is_the_fault_of_the_system(store: Store, job: Job) -> None:
    with pytest.raises(SystemFailed, match=r"^curve.*valid number") as caught:
        keep(store, job, curve=[{"epoch": 1.0, "valid_loss": "low"}])
    assert "\n" not in caught.value.message
    assert store.trained(job) is None


def test_a_writer_takes_away_what_killed_ones_left_half_written(store: Store, job: Job) -> None:
    keep(store, job)
    store.write_responses(responses(job), {})
    folders = [store.root / name for name in ("judged", "vectors", "report", "answers", "trained")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        (folder / ".x.0123abcd.dialbench-new").write_text("half")
    with store.writing():
        assert not list(store.root.rglob("*.dialbench-new"))


# Answers


def test_responses_come_back(store: Store, job: Job) -> None:
    assert store.answered(job) is None
    store.write_responses(responses(job), {"batch_size": 32, "threads": np.int64(2)})
    assert store.answered(job) is not None
    assert store.read_responses(job) == replace(
        responses(job), texts=["yes", "no"], examples=list(responses(job).examples)
    )
    record = json.loads(only(store.root, "job.json").read_text())
    assert record["schema_version"] == 2
    assert record["answered"]["circumstances"] == {"batch_size": 32, "threads": 2}


def test_several_responses_to_a_context_come_back(store: Store, job: Job) -> None:
    drawn = replace(responses(job), alternatives=[("maybe", ""), ("never", "no")])
    store.write_responses(drawn)
    assert store.read_responses(job).alternatives == [("maybe", ""), ("never", "no")]


def test_no_responses_at_all_come_back(store: Store, job: Job) -> None:
    store.write_responses(responses(job, ()))
    assert store.read_responses(job).texts == []


def test_reading_responses_that_are_not_there(store: Store, job: Job) -> None:
    with pytest.raises(StorageError, match="there are no responses of echo on demo, seed 1"):
        store.read_responses(job)
    store.set_status(job, "started")
    with pytest.raises(StorageError, match="there are no responses"):
        store.read_responses(job)


def test_new_responses_take_the_old_scores_with_them(store: Store, job: Job) -> None:
    store.set_status(job, "started", label="Echo", ranked=False)
    store.write_responses(responses(job))
    store.write_scores(job, {"length": Score(1.0, 2, "s")}, SCORING)
    store.write_responses(responses(job, ("perhaps",)))
    assert store.read_scores(job, SCORING) is None
    (result,) = store.results()
    assert (result.label, result.ranked, result.status) == ("Echo", False, "started")


# Scores


def assert_same(left: Score, right: Score) -> None:
    for name in ("n", "signature", "reason"):
        assert getattr(left, name) == getattr(right, name)
    np.testing.assert_array_equal(left.value, right.value)
    np.testing.assert_array_equal(left.interval or (), right.interval or ())
    for name in ("per_response", "dialogues", "parts", "shares", "joint"):
        one, other = getattr(left, name), getattr(right, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert other.dtype == np.float64
            np.testing.assert_array_equal(one, other)
    assert (left.tally is None) == (right.tally is None)
    if left.tally is not None:
        assert (left.tally.formula, left.tally.parameters) == (
            right.tally.formula,
            right.tally.parameters,
        )
        np.testing.assert_array_equal(left.tally.sums, right.tally.sums)
        for one, other in zip(
            (*left.tally.codes, *left.tally.owners),
            (*right.tally.codes, *right.tally.owners),
            strict=True,
        ):
            assert other.dtype == np.int64
            np.testing.assert_array_equal(one, other)


numbers = st.floats(allow_infinity=False)
arrays = st.none() | st.lists(st.floats(), max_size=4).map(np.array)
whole = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(lambda x: np.array(x, np.int64))
tallies = st.builds(
    Tally,
    formula=st.text(st.characters(codec="utf-8")),
    sums=st.lists(st.floats(), max_size=4).map(lambda x: np.array(x).reshape(-1, 1)),
    codes=st.tuples(whole, whole),
    owners=st.tuples(whole, whole),
    parameters=st.lists(st.floats(-1e9, 1e9), max_size=2).map(tuple),
)
scores = st.builds(
    Score,
    value=numbers,
    n=st.integers(0, 10**9),
    signature=st.text(st.characters(codec="utf-8")),
    per_response=arrays,
    dialogues=arrays,
    parts=arrays,
    shares=arrays,
    joint=arrays,
    tally=st.none() | tallies,
    interval=st.none() | st.tuples(numbers, numbers),
    reason=st.text(st.characters(codec="utf-8")),
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), scores, max_size=3))
def test_scores_come_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, given_scores: dict[str, Score]
) -> None:
    store = Store(tmp_path_factory.mktemp("runs"))
    job = Job("echo", "demo", 1, Decoding(), "quick")
    store.write_scores(job, given_scores, SCORING)
    read = store.read_scores(job, SCORING)
    assert read is not None
    assert list(read) == list(given_scores)
    for name, score in given_scores.items():
        assert_same(read[name], score)
    json.loads(only(store.root, "scores.json").read_text(), parse_constant=pytest.fail)


def test_scores_under_other_settings_stand_side_by_side(store: Store, job: Job) -> None:
    store.write_responses(responses(job))
    for tokenizer in ("default", "whitespace"):
        store.write_scores(job, {"x": Score(1.0, 2, tokenizer)}, {"tokenizer": tokenizer})
    first = store.read_scores(job, {"tokenizer": "default"})
    assert first is not None
    assert first["x"].signature == "default"
    assert store.read_scores(job, {"tokenizer": "bert"}) is None
    assert store.results({"tokenizer": "default"})[0].scores["x"].signature == "default"
    assert store.results()[0].scores["x"].signature == "whitespace"
    store.write_scores(job, {"x": Score(2.0, 2, "default")}, {"tokenizer": "default"})
    assert store.results()[0].scores["x"].value == 2.0
    assert store.results({"tokenizer": "bert"})[0].scores == {}


# Status and results


def test_a_profile_comes_back_until_there_are_other_responses(store: Store, job: Job) -> None:
    store.write_responses(responses(job))
    assert store.profile(job) is None
    kept = Profile([0, 2], [0, 1, 1], {1: [(10, 0.1 + 0.2), (12, 1 / 3)], 2: []})
    store.write_profile(job, kept)
    (result,) = store.results()
    assert result.profile == kept
    store.write_responses(responses(job))
    assert store.profile(job) is None


def test_a_result_tells_everything_known(store: Store, job: Job) -> None:
    store.set_status(job, "started", label="Echo (greedy)", ranked=False)
    curve = [{"epoch": 1.0, "loss": 2.5}, {"epoch": 2.0, "loss": math.nan}]
    facts = {"parameters": np.int64(12), "share": math.inf, "shape": (2, 3), "path": Path("a")}
    keep(store, job, facts=facts, curve=curve, notes=["half precision"])
    store.write_responses(responses(job), notes=["slow", "half precision"])
    store.write_scores(job, {"length": Score(1.0, 2, "s")}, SCORING)
    store.set_status(job, "done")
    (result,) = store.results(SCORING)
    assert result.job == job
    assert (result.status, result.label, result.ranked) == ("done", "Echo (greedy)", False)
    assert result.notes == ("half precision", "slow")
    assert result.facts == {"parameters": 12, "share": None, "shape": [2, 3], "path": "a"}
    assert result.curve[0] == {"epoch": 1.0, "loss": 2.5}
    assert math.isnan(result.curve[1]["loss"])
    assert result.scores["length"].value == 1.0


def test_a_failure_is_told_with_its_reason_until_the_next_try(store: Store, job: Job) -> None:
    assert store.status(job) is None
    store.set_status(job, "failed", "out of memory \ud800")
    log = store.write_log(job, "a long story \ud800\n")
    assert log.read_text() == "a long story ?\n"
    (result,) = store.results()
    assert (result.status, result.reason) == ("failed", "out of memory ?")
    store.set_status(job, "started")
    assert store.status(job) == "started"
    assert store.results()[0].reason == ""


def test_jobs_and_results_are_in_order_and_can_be_chosen(store: Store, job: Job) -> None:
    beam = Decoding("beam", 5)
    jobs = [
        replace(job, system="b", seed=1),
        replace(job, system="a", seed=10),
        replace(job, system="a", seed=2),
        replace(job, system="a", seed=2, decoding=beam),
    ]
    assert store.jobs() == []
    assert store.results() == []
    for one in jobs:
        store.set_status(one, "done")
    assert store.jobs() == [jobs[3], jobs[2], jobs[1], jobs[0]]
    chosen = store.results(jobs=[jobs[0], replace(job, system="never"), jobs[3]])
    assert [result.job for result in chosen] == [jobs[0], jobs[3]]


def test_what_a_dead_writer_started_is_interrupted(store: Store, job: Job) -> None:
    done = replace(job, seed=2)
    with store.writing():
        store.set_status(job, "started")
        store.set_status(done, "done")
        assert store.status(job) == "started"
    with store.writing():
        assert store.status(job) == "interrupted"
        assert store.status(done) == "done"
    with store.writing(), pytest.raises(StorageError, match="in use"), store.writing():
        pass


texts = st.text(st.characters(codec="utf-8"))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | texts
branches = st.lists(leaves, max_size=3) | st.dictionaries(texts, leaves, max_size=3)
json_objects = st.dictionaries(
    texts, leaves | branches | st.lists(branches, max_size=2), max_size=3
)


@given(json_objects, json_objects, st.integers(0, 2**63))
def test_a_job_keeps_its_fingerprint_on_the_way_through_json(
    training: dict[str, Any], answering: dict[str, Any], seed: int
) -> None:
    job = Job("s", "c", seed, Decoding("top-p", 0.9), "quick", training, answering)
    fields = json.loads(json.dumps(JobFields.of(job).model_dump()))
    back = JobFields.model_validate(fields).job()
    assert back == job
    assert back.fingerprint == job.fingerprint


# Names


@pytest.mark.parametrize(
    ("system", "corpus", "start"),
    [
        ("PaRaFormer-N[layout=full]", "demo", "paraformer-n-layout-full-demo-s1-greedy-"),
        ("../../etc", "/home/me/My File.jsonl", "etc-home-me-my-file.jsonl-s1-greedy-"),
        ("...", "日本語", "s1-greedy-"),
        ("x" * 300, "demo", "x" * 67 + "-"),
    ],
)
def test_folder_names_are_safe_and_short(
    store: Store, job: Job, system: str, corpus: str, start: str
) -> None:
    job = replace(job, system=system, corpus=corpus)
    store.set_status(job, "done")
    (folder,) = (store.root / "answers").iterdir()
    assert folder.name == start + job.fingerprint[:12]
    assert len(folder.name) <= 80
    assert store.jobs() == [job]


# Disks and deaths


def test_a_full_disk_leaves_everything_as_it_was(small_disk: Path, job: Job) -> None:
    store = Store(small_disk / "runs")
    keep(store, job, {"state.json": "old"})
    store.write_responses(responses(job, ("old",)))
    store.write_scores(job, {"x": Score(1.0, 1, "old", np.zeros(1))}, SCORING)
    big = "n" * 1_500_000
    writes: list[Callable[[], None]] = [
        lambda: keep(store, job, {"state.json": big}),
        lambda: store.write_responses(responses(job, (big,))),
        lambda: store.write_scores(job, {"x": Score(1.0, 1, "s", np.zeros(200_000))}, SCORING),
        lambda: store.set_status(job, "failed", big),
    ]
    for write in writes:
        with pytest.raises(StorageError, match=r"no space left on device\. Free some space"):
            write()
    folder = store.trained(job)
    assert folder is not None
    assert (folder / "state.json").read_text() == "old"
    assert store.read_responses(job).texts == ["old"]
    assert store.results(SCORING)[0].scores["x"].signature == "old"
    assert store.status(job) == "started"


def test_a_read_only_disk_can_be_read(
    small_disk: Path, lock_disk: Callable[[], None], job: Job
) -> None:
    store = Store(small_disk / "runs")
    store.write_responses(responses(job))
    lock_disk()
    assert store.read_responses(job).texts == ["yes", "no"]
    for write in (
        lambda: store.writing().__enter__(),
        lambda: store.work_folder(job),
        lambda: store.set_status(job, "done"),
    ):
        with pytest.raises(StorageError, match="Choose a folder that can be written with --out"):
            write()


def test_a_writer_killed_at_any_file_operation_leaves_old_or_new(tmp_path: Path) -> None:
    command = [sys.executable, str(DYING / "die_in_store.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    deaths = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert list(deaths) == ["train", "answer", "score", "status"]
    # Three steps for every file at the least: look, open, rename.
    assert min(deaths.values()) >= 3
    assert deaths["train"] >= 9


def test_reading_results_needs_neither_torch_nor_systems(store: Store, job: Job) -> None:
    store.write_scores(job, {"x": Score(1.0, 1, "s", np.zeros(1))}, SCORING)
    store.set_status(job, "done")
    code = (
        "import sys; from pathlib import Path; from dialbench.store.layout import Store;"
        "print(len(Store(Path(sys.argv[1])).results()[0].scores));"
        "print([m for m in ('torch', 'dialbench_adapters', 'scipy') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(store.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "[]"]

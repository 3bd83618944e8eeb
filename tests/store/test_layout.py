"""What was stored comes back, belongs to its job, and is whole or not there."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import shutil
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
from safetensors.numpy import save as packed

from dialbench.errors import StorageError
from dialbench.records import Decoding, Example, Job, Profile, Responses, Score, Tally
from dialbench.store.layout import Store
from dialbench.store.schema import JobFields

DYING = Path(__file__).parents[1] / "dying"
SCORING = {"tokenizer": "default", "metrics": ("dist-1", "bleu-2")}


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


def _scores(store: Store, job: Job) -> Path:
    store.write_responses(responses(job))
    score = Score(0.5, 2, "s", per_response=np.array([0.25, 0.75]))
    store.write_scores(job, {"m": score}, SCORING)
    return only(store.root, "scores.safetensors")


@pytest.mark.parametrize(
    "tensors",
    [
        b"",
        b"\xff" * 20,
        packed({"per_response/m": np.ones((2, 2))}),
        packed({"per_response/m": np.ones(2, np.int64)}),
    ],
)
def test_scores_whose_checksum_fits_may_still_be_damaged(
    store: Store, job: Job, tensors: bytes
) -> None:
    path = _scores(store, job)
    path.write_bytes(tensors)
    change(path.with_suffix(".json"), arrays_sha256=hashlib.sha256(tensors).hexdigest())
    with pytest.raises(StorageError, match=r"scores\.safetensors: is damaged \("):
        store.read_scores(job, SCORING)


@pytest.mark.parametrize("count", [0, 1, 3, -1, 10**30])
def test_a_wrong_count_of_responses_is_damage(store: Store, job: Job, count: int) -> None:
    store.write_responses(responses(job))
    path = only(store.root, "job.json")
    change(path, answered=json.loads(path.read_text())["answered"] | {"count": count})
    with pytest.raises(StorageError, match=r"is damaged \("):
        store.read_responses(job)


@pytest.mark.parametrize("version", [0, -1, 1.5, "x", None, [1]])
def test_no_schema_is_older_than_the_first(store: Store, job: Job, version: object) -> None:
    store.write_responses(responses(job))
    change(only(store.root, "job.json"), schema_version=version)
    with pytest.raises(StorageError, match=r"job\.json: is damaged \(schema_version"):
        store.jobs()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "9" * 5000])
def test_no_json_is_a_traceback(store: Store, job: Job, text: str) -> None:
    store.write_responses(responses(job))
    only(store.root, "job.json").write_text(text)
    with pytest.raises(StorageError, match=r"job\.json: is damaged \("):
        store.jobs()


def test_a_job_with_an_unknown_decoding_is_damage(store: Store, job: Job) -> None:
    store.write_responses(responses(job))
    path = only(store.root, "job.json")
    change(path, job=json.loads(path.read_text())["job"] | {"decoding": "gready"})
    with pytest.raises(StorageError, match=r"job\.json: is damaged \(unknown decoding"):
        store.jobs()


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


@pytest.mark.parametrize("spoil", ["change", "remove"])
def test_a_damaged_system_is_named_with_the_way_out(store: Store, job: Job, spoil: str) -> None:
    keep(store, job, {"state.json": "[1]", "weights": "www"})
    path = only(store.root, "weights")
    path.write_text("wWw") if spoil == "change" else path.unlink()
    with pytest.raises(StorageError) as error:
        store.trained(job)
    assert error.value.where == str(path)
    folder = only(store.root, "finished")
    assert error.value.hint == f"Delete the folder {folder} or use --overwrite always."
    shutil.rmtree(folder)
    assert store.trained(job) is None  # what a run trains
    keep(store, job)
    assert store.trained(job) is not None


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


@pytest.mark.parametrize("spoil", ["change", "remove"])
def test_damaged_responses(store: Store, job: Job, spoil: str) -> None:
    store.write_responses(responses(job))
    path = only(store.root, "responses.jsonl")
    path.write_bytes(path.read_bytes().replace(b"yes", b"yea")) if spoil == "change" else (
        path.unlink()
    )
    with pytest.raises(StorageError, match=r"damaged .* use --overwrite always") as error:
        store.read_responses(job)
    assert error.value.where == str(path)


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


def test_mattr_of_older_scores_is_read_by_the_name_of_its_window(store: Store, job: Job) -> None:
    older = {
        name: Score(value, 2, f"mattr|window:{window}|v:1", parts=np.array([value]))
        for name, value, window in (("mattr", 0.9, 4), ("mattr-50", 0.7, 50))
    }
    store.write_scores(job, older, SCORING)
    actual = store.read_scores(job, SCORING)
    assert actual is not None
    assert {name: score.value for name, score in actual.items()} == {"mattr-4": 0.9, "mattr": 0.7}
    assert actual["mattr-4"].parts == np.array([0.9])


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


@pytest.mark.parametrize("name", ["scores.json", "scores.safetensors"])
def test_damaged_scores(store: Store, job: Job, name: str) -> None:
    store.write_scores(job, {"x": Score(1.0, 2, "s", np.ones(2))}, SCORING)
    path = only(store.root, name)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(StorageError, match="is damaged") as error:
        store.read_scores(job, SCORING)
    assert error.value.where == str(path)


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


def test_a_damaged_profile_is_named_and_a_run_does_without(
    store: Store, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    store.write_responses(responses(job))
    store.write_profile(job, Profile([1], [1], {}))
    path = only(store.root, "profile.json")
    change(path, lengths=[-1])
    with pytest.raises(StorageError, match="lengths") as error:
        store.results()
    assert error.value.hint == "Delete this file and run again."
    with store.writing():
        assert store.profile(job) is None
    assert f"{path}: it is removed" in caplog.text
    assert store.read_responses(job).texts == ["yes", "no"]


def test_a_profile_of_a_newer_dialbench_stays(store: Store, job: Job) -> None:
    store.write_responses(responses(job))
    store.write_profile(job, Profile([1], [1], {}))
    change(only(store.root, "profile.json"), schema_version=99)
    with pytest.raises(StorageError, match="follows schema 99"), store.writing():
        pass
    assert only(store.root, "profile.json").exists()


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


# Names and damage


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


def test_files_of_a_newer_dialbench_are_left_alone(store: Store, job: Job) -> None:
    store.set_status(job, "done")
    path = only(store.root, "job.json")
    change(path, schema_version=99, wonderful="field")
    for read in (store.jobs, store.results, lambda: store.status(job)):
        with pytest.raises(StorageError, match="follows schema 99; this dialbench reads up to 2"):
            read()
    assert json.loads(path.read_text())["wonderful"] == "field"


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "{}", '{"schema_version": 1}', '{"schema_version": "x"}', "\udcff"],
)
def test_damaged_job_files(store: Store, job: Job, content: str) -> None:
    store.set_status(job, "done")
    path = only(store.root, "job.json")
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(StorageError, match=r"is damaged \(\w.+\)\. Delete this file") as error:
        store.results()
    assert error.value.where == str(path)
    assert "\n" not in error.value.message
    assert "_Versioned" not in error.value.message
    path.unlink()
    assert store.results() == []


def test_a_job_file_that_was_edited_is_noticed(store: Store, job: Job) -> None:
    store.set_status(job, "done")
    path = only(store.root, "job.json")
    record = json.loads(path.read_text())
    change(path, job=record["job"] | {"seed": 7})
    with pytest.raises(StorageError, match="the job does not match its fingerprint"):
        store.jobs()


def test_a_folder_that_holds_another_job_is_noticed(store: Store, job: Job) -> None:
    other = replace(job, seed=7)
    for one in (job, other):
        store.set_status(one, "done")
        keep(store, one)
    for kind in ("answers", "trained"):
        first, second = sorted((store.root / kind).iterdir(), key=lambda path: "s7" in path.name)
        second.rename(store.root / "aside")
        first.rename(second)
        (store.root / "aside").rename(first)
    with pytest.raises(StorageError, match="it belongs to another job"):
        store.status(job)
    with pytest.raises(StorageError, match="it belongs to another training"):
        store.trained(job)


def test_a_copy_of_a_folder_is_no_second_job(
    store: Store, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    store.write_responses(responses(job))
    shutil.copytree(only(store.root, "job.json").parent, store.root / "answers" / "backup")
    assert store.jobs() == store.jobs() == [job]
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert "answers/backup' is passed over" in record.getMessage()


def test_results_under_another_name_are_missed_aloud(
    store: Store, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    store.write_responses(responses(job))
    folder = only(store.root, "job.json").parent
    folder.rename(folder.with_name("old"))
    assert store.results() == []
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"must be called '{folder.name}'" in record.getMessage()


@pytest.mark.parametrize("forbidden", ["answers", "job.json"])
def test_what_may_not_be_read_is_told(
    store: Store, job: Job, monkeypatch: pytest.MonkeyPatch, forbidden: str
) -> None:
    store.set_status(job, "done")
    for module, name in ((os, "listdir"), (os, "scandir"), (io, "open")):
        monkeypatch.setattr(module, name, refusing(getattr(module, name), forbidden))
    monkeypatch.setattr("builtins.open", io.open)
    with pytest.raises(StorageError) as error:
        store.require_results()
    assert Path(error.value.where).name == forbidden
    assert error.value.what == "permission denied"
    assert error.value.hint == "Change its permissions or name another folder."


def refusing(read: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Refuses to read what is called so; root, who may run this, is refused nothing."""

    def checked(path: Any = ".", *arguments: Any, **options: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path, *arguments, **options)

    return checked


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

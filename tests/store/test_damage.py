"""What is damaged, was edited or may not be read is named, with what to do about it."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as packed

from dialbench.errors import StorageError
from dialbench.records import Job, Profile, Score
from dialbench.store.layout import Store

from .conftest import SCORING, change, keep, only, responses


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


@pytest.mark.parametrize("name", ["scores.json", "scores.safetensors"])
def test_damaged_scores(store: Store, job: Job, name: str) -> None:
    store.write_scores(job, {"x": Score(1.0, 2, "s", np.ones(2))}, SCORING)
    path = only(store.root, name)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(StorageError, match="is damaged") as error:
        store.read_scores(job, SCORING)
    assert error.value.where == str(path)


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

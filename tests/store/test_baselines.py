"""A baseline comes back as it was written, or says in one line why it cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialbench.errors import DialbenchError, InputError, StorageError
from dialbench.records import Example, Job, Responses
from dialbench.store import baselines
from dialbench.store.baselines import (
    Baseline,
    Entry,
    GroupedScore,
    Provenance,
    ResponseFields,
    StoredResponse,
)
from dialbench.store.schema import JobFields, ProfileFields


@pytest.fixture
def baseline(job: Job) -> Baseline:
    examples = [Example("d-1", "d", ("hello",), ()), Example("d-2", "d", ("hi",), ())]
    given = Responses(job, examples, ("how are you", ""), 1.0, "cpu")
    key = baselines.examples_key(["d-1", "d-2"])
    score = GroupedScore(
        value=0.1 + 0.2, n=2, signature="s", interval=(1e-07, 1.5), reason=""
    )  # 0.30000000000000004: other last digits stand for the same float
    entry = Entry(
        job=JobFields.of(job),
        label="Echo",
        status="done",
        responses=ResponseFields.of(given, key),
        scores={"bleu-1": score},
    )
    origin = Provenance(command="c", commit="", date="2026-01-02", versions={"torch": "2.6"})
    return Baseline(provenance=origin, examples={key: ["d-1", "d-2"]}, entries=[entry])


@pytest.fixture
def path(tmp_path: Path, baseline: Baseline) -> Path:
    baselines.write(tmp_path / "b.json", baseline)
    return tmp_path / "b.json"


def test_what_was_written_comes_back(path: Path, baseline: Baseline) -> None:
    actual = baselines.read(path)
    assert actual.entries == baseline.entries
    assert actual.entries[0].scores["bleu-1"].value == 0.1 + 0.2
    first, second = actual.responses_of(actual.entries[0]).values()
    assert (first.words, first.text) == (3, "how are you")
    # The well-known sha256 of nothing.
    assert second == StoredResponse("e3b0c44298fc", 0, "")


def test_every_digit_counts(path: Path) -> None:
    text = path.read_text()
    places = [place for place, character in enumerate(text) if character.isdigit()]
    assert len(places) > 100
    for place in places:
        digit = str((int(text[place]) + 1) % 10)
        path.write_text(text[:place] + digit + text[place + 1 :])
        with pytest.raises(DialbenchError):
            baselines.read(path)


def test_how_the_file_is_laid_out_does_not_count(path: Path) -> None:
    before = baselines.read(path)
    text = path.read_text()
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert baselines.read(path) == before
    path.write_text(json.dumps(json.loads(text), sort_keys=True))
    assert baselines.read(path) == before


def test_a_list_of_numbers_takes_one_line_and_texts_stay_as_they_are(
    tmp_path: Path, job: Job, baseline: Baseline
) -> None:
    texts = ("[ 1, 2 ]", "[\n 1,\n 2\n]")
    examples = [Example("d-1", "d", ("hello",), ()), Example("d-2", "d", ("hi",), ())]
    given = ResponseFields.of(Responses(job, examples, texts, 1.0, "cpu"), "k")
    profile = ProfileFields(lengths=[0, 12], reference_lengths=[3], rarefied={2: [(5, 0.25)]})
    fields = {"responses": given, "profile": profile, "curve": [{"epoch": 1.0, "loss": None}]}
    entry = baseline.entries[0].model_copy(update=fields)
    held = {"entries": [entry], "examples": {"k": ["d-1", "d-2"]}}
    baselines.write(tmp_path / "b.json", baseline.model_copy(update=held))
    assert baselines.read(tmp_path / "b.json").entries == [entry]
    written = (tmp_path / "b.json").read_text()
    assert '"lengths": [ 0, 12 ]' in written
    assert "[ 5, 0.25 ]" in written


def changed(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"schema_version": 99}, "follows schema 99"),
        ({"entries": 3}, "is damaged (entries:"),
        ({"unknown": 3}, "is damaged (unknown:"),
        ({"examples": {}}, "not one response for every example"),
        ({"checksum": "00"}, "does not match its checksum"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(path: Path, fields: dict[str, Any], told: str) -> None:
    changed(path, **fields)
    with pytest.raises(StorageError) as caught:
        baselines.read(path)
    assert told in caught.value.message
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "groups",
    [
        {"sizes": "3 4"},
        {"sizes": "3 4", "parts": "0.5"},
        {"sizes": "0", "parts": "1"},
        {"sizes": "3 x", "parts": "1 1"},
        {"joint": "one"},
    ],
)
def test_groups_that_are_none_are_told_in_one_line(path: Path, groups: dict[str, str]) -> None:
    value = json.loads(path.read_text())
    value["entries"][0]["scores"]["bleu-1"] |= groups
    path.write_text(json.dumps(value))
    with pytest.raises(StorageError, match=r"is damaged \(entries"):
        baselines.read(path)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"[]", b"how are you\n", b'{"response": "fine"}\n' * 2]
)
def test_files_that_are_no_baseline(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(InputError, match="it is no baseline") as error:
        baselines.read(path)
    assert "`dialbench score`" in error.value.hint
    assert "--update" in error.value.hint
    assert "\n" not in error.value.message


@pytest.mark.parametrize("start", ["<<<<<<< ours\n", "[", '"'])
def test_a_baseline_that_is_no_longer_json_is_to_be_restored(path: Path, start: str) -> None:
    path.write_text(start + path.read_text())
    with pytest.raises(StorageError, match=r"is damaged .+ Restore it from version control"):
        baselines.read(path)


def test_a_missing_file_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--update"):
        baselines.read(tmp_path / "none.json")

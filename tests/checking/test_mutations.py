"""From a run to the verdict: one token, one weight, one digit fail; nothing else does."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialbench
from dialbench.bench import run
from dialbench.checking.findings import Comparison
from dialbench.errors import InputError, StorageError
from dialbench.running.plan import Request
from dialbench.scoring.options import ScoringOptions
from dialbench.store import baselines

TINY = """
summary = "no more than it takes to have weights"
seeds = [1]
context_turns = 3
limit_train = 40
limit_valid = 20
limit_test = 24
[system]
vocabulary = 300
embedding = 8
hidden = 8
layers = 1
heads = 2
attention = 8
feed_forward = 16
epochs = 1
response_tokens = 6
context_tokens = 16
"""
MODELS = "copy-last,random-train,transformer"


def go(folder: Path, out: str, models: str = MODELS, **request: Any) -> Path:
    (folder / "tiny.toml").write_text(TINY)
    run(
        Request(models=models, preset=str(folder / "tiny.toml"), **request),
        out=folder / out,
        device="cpu",
        scoring=ScoringOptions(metrics=("length", "dist-2", "rouge-l")),
        formats=(),
    )
    return folder / out


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs and the baseline of them."""
    folder = tmp_path_factory.mktemp("check")
    comparison = dialbench.check(go(folder, "runs"), baseline=folder / "base.json", update=True)
    assert [row.problems for row in comparison.rows] == [("the row was added",)] * 3
    return folder


@pytest.fixture
def runs(first: Path, tmp_path: Path) -> Path:
    """The runs, to be spoilt."""
    return Path(shutil.copytree(first / "runs", tmp_path / "runs"))


@pytest.fixture
def checked(first: Path, runs: Path) -> Callable[..., Comparison]:
    return lambda **options: dialbench.check(runs, baseline=first / "base.json", **options)


def only(root: Path, pattern: str) -> Path:
    (path,) = root.glob(pattern)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def flip_a_token(runs: Path) -> None:
    responses = only(runs, "answers/copy-last-*/responses.jsonl")
    lines = responses.read_text(encoding="utf-8").splitlines()
    fields = json.loads(lines[4])
    fields["response"] = " ".join([*fields["response"].split()[:-1], "zebra"])
    lines[4] = json.dumps(fields, ensure_ascii=False)
    responses.write_text("\n".join(lines) + "\n", encoding="utf-8")


def flip_a_weight(runs: Path) -> None:
    weights = only(runs, "trained/transformer-*/finished/system/model.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 0x80  # the sign of the last number, little-endian
    weights.write_bytes(bytes(data))


def test_an_untouched_run_passes_and_so_does_the_same_run_again(
    checked: Callable[..., Comparison], first: Path, tmp_path: Path
) -> None:
    comparison = checked()
    assert comparison.ok
    assert sum(row.cells_compared for row in comparison.rows) == 12
    assert sum(row.responses_compared for row in comparison.rows) == 72
    again = go(tmp_path, "again")
    assert dialbench.check(again, baseline=first / "base.json").ok


def test_one_token_of_one_response_fails(checked: Callable[..., Comparison], runs: Path) -> None:
    flip_a_token(runs)
    with pytest.raises(StorageError, match="checksum does not match"):
        checked()
    # As if the system itself had said so.
    record = only(runs, "answers/copy-last-*/job.json")
    job = json.loads(record.read_text(encoding="utf-8"))
    job["answered"]["sha256"] = sha256(record.with_name("responses.jsonl"))
    record.write_text(json.dumps(job), encoding="utf-8")
    comparison = checked()
    ((row, change),) = comparison.responses()
    assert row.name.startswith("copy-last on demo")
    assert change.old is not None
    assert change.new is not None
    old, new = str(change.old.text).split(), str(change.new.text).split()
    assert old[:-1] == new[:-1]
    assert new[-1] == "zebra"
    assert [report.name for report in comparison.failing] == [row.name]


def test_one_token_moves_the_cells_that_see_it(
    checked: Callable[..., Comparison], runs: Path, tmp_path: Path
) -> None:
    flip_a_token(runs)
    record = only(runs, "answers/copy-last-*/job.json")
    job = json.loads(record.read_text(encoding="utf-8"))
    job["answered"]["sha256"] = sha256(record.with_name("responses.jsonl"))
    record.write_text(json.dumps(job), encoding="utf-8")
    shutil.rmtree(record.with_name("scores"))
    go(tmp_path, "runs", "copy-last")
    moved = list(checked().cells())
    assert {row.name.split()[0] for row, _ in moved} == {"copy-last"}
    assert {cell.metric for _, cell in moved} & {"dist-2", "rouge-l"}
    assert "length" not in {cell.metric for _, cell in moved}  # it is still one token


def test_one_weight_fails(checked: Callable[..., Comparison], runs: Path) -> None:
    flip_a_weight(runs)
    with pytest.raises(StorageError, match="checksum does not match"):
        checked()
    # As if the training itself had come to it.
    record = only(runs, "trained/transformer-*/finished/trained.json")
    trained = json.loads(record.read_text(encoding="utf-8"))
    trained["files"]["model.safetensors"] = sha256(record.parent / "system/model.safetensors")
    record.write_text(json.dumps(trained), encoding="utf-8")
    (row,) = checked().failing
    assert row.name.startswith("transformer on demo")
    assert "model.safetensors differs" in row.problems[0]


@pytest.mark.parametrize("field", ["value", "n"])
def test_one_digit_of_the_baseline_fails(
    first: Path, runs: Path, tmp_path: Path, field: str
) -> None:
    path = tmp_path / "base.json"
    whole = baselines.read(first / "base.json")
    entry = whole.entries[1]
    score = entry.scores["rouge-l"]
    other = score.model_copy(update={field: getattr(score, field) + 1})
    wrong = entry.model_copy(update={"scores": {**entry.scores, "rouge-l": other}})
    entries = [whole.entries[0], wrong, *whole.entries[2:]]
    # With a checksum that fits, so that only the comparison can find it.
    baselines.write(path, whole.model_copy(update={"entries": entries}))
    ((_, cell),) = dialbench.check(runs, baseline=path).cells()
    assert cell.metric == "rouge-l"
    assert cell.distance == pytest.approx(-1)
    text = (first / "base.json").read_text(encoding="utf-8")
    path.write_text(text.replace(f'"n": {score.n}', f'"n": {score.n + 1}', 1), encoding="utf-8")
    with pytest.raises(StorageError, match="changed by hand"):
        dialbench.check(runs, baseline=path)


def test_an_update_says_what_moved_and_then_passes(first: Path, runs: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(first / "base.json", tmp_path / "base.json"))
    shutil.rmtree(only(runs, "answers/random-train-*"))
    assert not dialbench.check(runs, baseline=path, update=True).ok
    assert dialbench.check(runs, baseline=path).ok
    assert baselines.read(path).provenance.versions["dialbench"] == dialbench.__version__


def test_a_baseline_holds_finished_rows_only(runs: Path, tmp_path: Path) -> None:
    record = only(runs, "answers/copy-last-*/job.json")
    job = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps(job | {"status": "failed"}), encoding="utf-8")
    path = tmp_path / "base.json"
    with pytest.raises(InputError, match="finished rows only"):
        dialbench.check(runs, baseline=path, update=True)
    assert not path.exists()


def test_texts_of_a_users_own_file_stay_out_unless_the_user_says_so(tmp_path: Path) -> None:
    turns = [["hello there", f"call number {n}", "good bye"] for n in range(60)]
    chats = tmp_path / "demo.jsonl"  # the name of a corpus whose text may be kept
    chats.write_text("".join(json.dumps({"turns": t}) + "\n" for t in turns))
    runs = go(tmp_path, "runs", "copy-last", corpora=str(chats))
    path = tmp_path / "base.json"
    dialbench.check(runs, baseline=path, update=True)
    assert "number" not in path.read_text()
    assert dialbench.check(runs, baseline=path).ok
    dialbench.check(runs, baseline=path, update=True, keep_texts=True)
    assert "call number" in path.read_text()

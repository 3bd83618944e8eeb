"""Trained systems pushed and pulled: whole, with a card, and the same responses."""

from __future__ import annotations

import json
import shutil
import sys
import types
from pathlib import Path
from typing import ClassVar

import pytest

import dialbench
from dialbench.bench import run
from dialbench.errors import DialbenchError, InputError
from dialbench.running.plan import Request
from dialbench.running.sharing import pull, push

CONTEXTS = [["Is the bakery open?"], ["Hello.", "Good morning, what would you like?"]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A run of two trained systems."""
    out = tmp_path_factory.mktemp("runs")
    request = Request(
        "unigram,transformer", preset="quick", seeds=[1], limit_train=20, limit_test=5
    )
    assert not run(request, out=out, answers_only=True).failed
    return out


@pytest.fixture
def pushed(runs, tmp_path) -> Path:
    push(runs, "transformer", str(tmp_path / "pushed"))
    return tmp_path / "pushed"


def test_a_pushed_system_responds_as_before(runs, pushed, command, tmp_path):
    expected = dialbench.load(runs, "transformer").respond(CONTEXTS)
    assert dialbench.load(pushed).respond(CONTEXTS) == expected
    result = command("pull", pushed, tmp_path / "pulled")
    assert result.code == 0
    assert f"dialbench chat 'transformer' --runs {tmp_path / 'pulled'}" in result.err
    assert dialbench.load(tmp_path / "pulled", "transformer").respond(CONTEXTS) == expected
    files = {path.relative_to(pushed): path.read_bytes() for path in files_of(pushed)}
    again = tmp_path / "pulled"
    assert {path.relative_to(again): path.read_bytes() for path in files_of(again)} == files


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_card_says_what_it_is(runs, pushed):
    text = (pushed / "README.md").read_text()
    record = json.loads((pushed / "trained.json").read_text())
    assert text.startswith("---\nlibrary_name: dialbench\n")
    assert "# Transformer" in text
    assert f"Trained by dialbench {dialbench.__version__} on demo with seed 1." in text
    for name, value in record["job"]["training"]["config"].items():
        assert f"| {name} | {value if not isinstance(value, float) else f'{value:.6g}'} |" in text
    best = record["curve"][record["facts"]["best_epoch"] - 1]
    assert f"| valid loss, best epoch | {best['valid_loss']:.6g} |" in text
    assert "whose licence is: that of dialbench." in text
    for note in record["notes"]:
        assert f"- {note}" in text


def test_a_corpus_of_its_owner(tmp_path):
    turns = [{"id": str(i), "turns": ["How are you?", f"I am number {i}."]} for i in range(30)]
    corpus = tmp_path / "mine.jsonl"
    corpus.write_text("\n".join(map(json.dumps, turns)) + "\n")
    request = Request("unigram", corpora=str(corpus), preset="quick", seeds=[1])
    run(request, out=tmp_path / "runs", answers_only=True)
    push(tmp_path / "runs", "unigram", str(tmp_path / "pushed"))
    text = (tmp_path / "pushed" / "README.md").read_text()
    assert "licence is not known here" in text
    assert str(tmp_path) not in text


class TestRefused:
    def test_what_is_there_stays(self, runs, pushed, command, tmp_path):
        for arguments in (("push", runs, "transformer", pushed), ("pull", pushed, pushed)):
            result = command(*arguments)
            assert (result.code, "is there already" in result.err) == (2, True)

    def test_nothing_there(self, runs, command, tmp_path):
        result = command("pull", tmp_path, tmp_path / "new")
        assert (result.code, "there is no trained system" in result.err) == (2, True)
        result = command("push", runs, "seq2seq", tmp_path / "new")
        assert (result.code, "seq2seq is not trained" in result.err) == (2, True)
        with pytest.raises(InputError, match="several systems are trained there: transformer"):
            dialbench.load(runs)

    def test_another_system(self, pushed):
        with pytest.raises(InputError, match="holds transformer, not unigram"):
            dialbench.load(pushed, "unigram")

    @pytest.mark.parametrize("spoil", ["changed", "missing", "record", "outside", "version"])
    def test_a_damaged_folder(self, pushed, tmp_path, spoil):
        record = json.loads((pushed / "trained.json").read_text())
        weights = pushed / "system" / "model.safetensors"
        said = "checksum does not match"
        if spoil == "changed":
            weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
        elif spoil == "missing":
            weights.unlink()
            said = "is missing"
        elif spoil == "record":
            record["job"]["seed"] = 2
            said = "does not match its fingerprint"
        elif spoil == "outside":
            record["files"] = {"../../secret": "0" * 64}
            said = "is no file of a system"
        else:
            record["schema_version"] = 99
            said = "99"
        (pushed / "trained.json").write_text(json.dumps(record))
        for use in (lambda: pull(str(pushed), tmp_path / "new"), lambda: dialbench.load(pushed)):
            with pytest.raises(DialbenchError, match=said) as error:
                use()
            assert "\n" not in error.value.message
        assert not (tmp_path / "new").exists()

    def test_what_the_record_does_not_name_is_left_behind(self, pushed, tmp_path):
        (pushed / "system" / "evil.py").write_text("raise SystemExit")
        pull(str(pushed), tmp_path / "new")
        assert not (tmp_path / "new" / "system" / "evil.py").exists()


class FakeHub:
    """Stands for `HfApi`: keeps repositories in a folder."""

    root: Path
    calls: ClassVar[list[tuple[str, object]]] = []

    def create_repo(self, repo_id, private, exist_ok):
        self.calls.append(("create", private))
        (self.root / repo_id).mkdir(parents=True)

    def upload_folder(self, repo_id, folder_path):
        shutil.copytree(folder_path, self.root / repo_id, dirs_exist_ok=True)

    def snapshot_download(self, repo_id):
        if not (self.root / repo_id).exists():
            raise OSError("404: no such repository\nor it is private")
        return str(self.root / repo_id)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    FakeHub.root, FakeHub.calls = tmp_path / "hub", []
    module = types.ModuleType("huggingface_hub")
    module.HfApi = FakeHub
    module.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_the_hub_is_asked_only_with_its_option(runs, hub, command, tmp_path):
    assert command("push", runs, "unigram", "me/unigram", "--hub").code == 0
    assert FakeHub.calls == [("create", True)]
    assert (FakeHub.root / "me" / "unigram" / "README.md").is_file()
    assert command("pull", "me/unigram", tmp_path / "new", "--hub").code == 0
    assert dialbench.load(tmp_path / "new").name == "unigram"
    result = command("pull", "me/nothing", tmp_path / "other", "--hub")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "the Hub refused me/nothing (404: no such repository)" in result.err
    assert command("pull", "me/unigram", tmp_path / "other").code == 2

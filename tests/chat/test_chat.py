"""Trained systems as a person meets them, and as they meet themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dialbench_adapters.unigram import Unigram

from dialbench.adapter import Adapter
from dialbench.bench import run
from dialbench.chat.self_chat import converse, opening_turns
from dialbench.chat.session import Session
from dialbench.cli import cli
from dialbench.corpora.base import load_corpus
from dialbench.errors import DialbenchError, InputError, SystemFailed
from dialbench.files.responses import read_responses
from dialbench.records import Decoding
from dialbench.running.plan import Request
from dialbench.running.trained import TrainedSystem, load
from dialbench.store.layout import Store

QUICK = {"limit_train": 40, "limit_test": 6}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two systems on the demo corpus, the first under two seeds."""
    folder = tmp_path_factory.mktemp("runs")
    for models, seeds in (("unigram", (2, 1)), ("copy-last", (1,))):
        request = Request(models=models, seeds=seeds, **QUICK)
        run(request, out=folder, device="cpu", answers_only=True)
    return folder


@pytest.fixture
def chat(runs: Path):
    """What the command prints on both streams, and its exit code."""

    def chat(*arguments: str, typed: str = "") -> tuple[str, int]:
        runner = CliRunner()
        command = ["chat", *arguments, "--runs", str(runs), "--device", "cpu"]
        result = runner.invoke(cli, command, input=typed, standalone_mode=False)
        if isinstance(result.exception, DialbenchError):
            return result.exception.message, result.exception.exit_code
        return result.output, result.exit_code

    return chat


class Unreliable(Adapter):
    name = "unreliable"

    def respond(self, contexts: Any, decoding: Any, run: Any) -> Any:
        said = contexts[0][-1]
        if said == "raise":
            raise RuntimeError("bad thing")
        print("to whom it may concern")
        return {"few": [], "none": [None]}.get(said, ["well"])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("raise", "unreliable: RuntimeError: bad thing"),
        ("few", "unreliable: respond: it returned 0 responses to 1 contexts"),
        ("none", "unreliable: respond: it did not return a list of strings"),
    ],
)
def test_a_system_that_fails_is_one_line_and_ends_no_conversation(
    runs: Path, capsys: pytest.CaptureFixture[str], said: str, reason: str
) -> None:
    job = load(runs, "copy-last", device="cpu").job
    session = Session([TrainedSystem("unreliable", job, Unreliable())])
    assert session.say("hello") == {"unreliable": "well"}
    assert capsys.readouterr() == ("", "to whom it may concern\n")
    with pytest.raises(SystemFailed) as caught:
        session.say(said)
    assert caught.value.message == reason
    assert session.turns["unreliable"] == ["hello", "well"]


class TestLoad:
    def test_responds_as_in_the_run(self, runs: Path):
        system = load(runs, "unigram", device="cpu", seed=2)
        kept = Store(runs).read_responses(system.job)
        assert system.job.seed == 2
        assert system.respond([example.as_context() for example in kept.examples]) == kept.texts

    def test_lists_of_turns_are_contexts(self, runs: Path):
        system = load(runs, "copy-last", device="cpu")
        assert system.respond([["Hello.", "Who is there?"], ("Me.",)]) == ["Who is there?", "Me."]

    def test_the_lowest_seed_unless_one_is_named(self, runs: Path):
        assert load(runs, "unigram", device="cpu").job.seed == 1

    def test_the_only_system_needs_no_name(self, runs: Path, tmp_path: Path):
        with pytest.raises(InputError, match="several systems are trained there: copy-last, uni"):
            load(runs, device="cpu")
        with pytest.raises(InputError, match=r"no system is trained in .*\. Name a folder of"):
            load(tmp_path, device="cpu")
        run(Request(models="unigram", limit_train=40, limit_test=1), out=tmp_path, device="cpu")
        assert load(tmp_path, device="cpu").name == "unigram"

    @pytest.mark.parametrize("contexts", [["Hello."], [[]]])
    def test_what_is_no_context(self, runs: Path, contexts):
        with pytest.raises(InputError, match="context 1: a context is a list of at least one turn"):
            load(runs, "copy-last", device="cpu").respond(contexts)

    @pytest.mark.parametrize(
        ("system", "choice", "message"),
        [
            ("retrieval", {}, r"retrieval is not trained\. Trained there: copy-last, unigram\."),
            ("unigram", {"seed": 3}, r"not trained with seed 3\. Its seeds: 1, 2\."),
            ("unigram", {"corpus": "avsd"}, r"not trained on avsd\. Trained there: copy-last, uni"),
            ("unigrm", {}, "unknown model 'unigrm'. Did you mean 'unigram'"),
            ("unigram,copy-last", {}, "unigram,copy-last is more than one system"),
        ],
    )
    def test_what_is_not_there(self, runs: Path, system, choice, message):
        with pytest.raises(InputError, match=message):
            load(runs, system, device="cpu", **choice)

    def test_a_folder_without_runs(self, tmp_path: Path):
        with pytest.raises(InputError, match=r"is not trained\. Name a folder of `run`\."):
            load(tmp_path, "unigram")

    def test_several_trainings(self, tmp_path: Path):
        for limit in (40, 60):
            request = Request(models="unigram", limit_train=limit, limit_test=1)
            run(request, out=tmp_path, device="cpu", answers_only=True)
        with pytest.raises(InputError, match="unigram was trained with 2 different settings"):
            load(tmp_path, "unigram")

    def test_trained_by_other_code(self, runs: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(Unigram, "version", 99)
        with pytest.raises(InputError, match=r"by version 1 of its code, which is 99 now\. Train"):
            load(runs, "unigram")


class TestTalk:
    def test_side_by_side_each_with_its_own_history(self, chat):
        output, code = chat("copy-last", "unigram", typed="Hello!\nBye.\n/history\n")
        lines = output.splitlines()
        assert code == 0
        assert lines[0] == "copy-last: Hello!"
        assert lines[1].startswith("unigram: ")
        assert lines[4:8] == ["you: Hello!", "copy-last: Hello!", "you: Bye.", "copy-last: Bye."]
        assert lines[8:] == ["you: Hello!", lines[1], "you: Bye.", lines[3]]

    def test_undo_and_reset(self, chat):
        output, _ = chat("copy-last", typed="One\nTwo\n/undo\n/reset\n")
        assert output.splitlines()[2:] == ["you: One", "copy-last: One", "nothing was said"]

    def test_the_same_words_get_the_same_responses(self, chat):
        typed = "Do you like tea?\nWhy?\n"
        assert chat("unigram", typed=typed) == chat("unigram", typed=typed)
        assert chat("unigram", typed=typed) != chat("unigram", "--seed", "2", typed=typed)

    def test_what_is_saved_can_be_scored(self, chat, tmp_path: Path):
        one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
        output, _ = chat("copy-last", typed=f"Hello!\nBye.\n/save {one}\n")
        assert f"wrote {one}" in output
        pairs = [(example.context, text) for example, text in read_responses(one)]
        assert pairs == [(("Hello!",), "Hello!"), (("Hello!", "Hello!", "Bye."), "Bye.")]
        chat("copy-last", "unigram", typed=f"Hello!\n/save {two}\n")
        assert sorted(path.name for path in tmp_path.glob("two*")) == [
            "two-copy-last.jsonl",
            "two-unigram.jsonl",
        ]

    def test_saving_loses_nothing(self, chat, tmp_path: Path, monkeypatch):
        kept = tmp_path / "kept.jsonl"
        saved = f"/save {kept}\n"
        said, code = chat("copy-last", typed=f"Hello!\n{saved}/reset\n{saved}")
        assert ("nothing was said that could be saved" in said, code) == (True, 2)
        assert len(list(read_responses(kept))) == 1
        for name in (".", "/", "notes.md"):
            said, code = chat("copy-last", typed=f"Hello!\n/save {name}\n")
            assert ("it is not called FILE.jsonl" in said, code) == (True, 2)
        monkeypatch.setenv("HOME", str(tmp_path))
        said, _ = chat("copy-last", typed="Hi\n/save ~/mine.jsonl")
        assert f"wrote {tmp_path}/mine.jsonl" in said

    def test_end(self, chat):
        assert chat("copy-last", typed="One\n/quit\nTwo\n") == ("copy-last: One\n", 0)

    @pytest.mark.parametrize(
        ("typed", "message"),
        [
            ("/sav x\n", "unknown command '/sav'. Did you mean '/save'"),
            ("/save\n", "/save: no file is named. /save FILE.jsonl"),
            ("/decoding gredy\n", "/decoding: "),
        ],
    )
    def test_wrong_commands(self, chat, typed, message):
        output, code = chat("copy-last", typed=typed)
        assert message in output
        assert code == 2

    def test_a_turn_that_is_not_utf8(self, chat):
        assert chat("copy-last", typed=b"fine\n\xff\n")[1] == 2

    def test_a_system_named_twice(self, chat):
        assert chat("unigram", "unigram") == ("SYSTEM: unigram is named twice", 2)


class TestSelfChat:
    def test_every_turn_reads_all_before_it(self, runs: Path):
        system = load(runs, "unigram", device="cpu")
        first, second = converse(system, ["Hello.", "Good morning."], 3, Decoding())
        assert [len(first), len(second)] == [4, 4]
        assert [first[0], second[0]] == ["Hello.", "Good morning."]
        assert (first, second) == tuple(
            converse(system, ["Hello.", "Good morning."], 3, Decoding())
        )

    def test_first_turns_are_those_of_the_test_split(self):
        first = {}  # of each dialogue, as the shortest context begins
        for example in load_corpus("demo").test:
            first.setdefault(example.dialogue_id, example)
        assert all(len(example.context) == 1 for example in first.values())
        known = [example.context[0] for example in first.values()]
        assert opening_turns("demo", 50) == list(dict.fromkeys(known))[:50]
        with pytest.raises(InputError, match=r"different first turns, not 100000\. Ask for fewer"):
            opening_turns("demo", 100_000)

    @pytest.mark.parametrize("option", [("--turns", "3"), ("--openings", "demo"), ("--out", ".")])
    def test_its_options_need_it(self, chat, option):
        output, code = chat("copy-last", *option)
        assert code == 2
        assert f"{option[0]}: it needs --self-chat" in output

    def test_one_file_a_system(self, chat, tmp_path: Path):
        arguments = ("--self-chat", "2", "--turns", "2", "--out", str(tmp_path))
        output, code = chat("copy-last", "unigram", *arguments)
        assert code == 0
        assert "self-chat-copy-last.jsonl" in output
        pairs = list(read_responses(tmp_path / "self-chat-copy-last.jsonl"))
        assert [example.id for example, _ in pairs] == ["0-1", "0-2", "1-1", "1-2"]
        assert {example.dialogue_id for example, _ in pairs} == {"0", "1"}
        opening = opening_turns("demo", 1)[0]
        assert pairs[1][0].context == (opening, opening)


class Rented(Adapter):
    """Reads a checkpoint whenever it is loaded."""

    name = "rented"

    @dataclass(frozen=True)
    class Config:
        weights: str = ""

    @classmethod
    def inspect(cls, config: Any, contexts: Any, data: Path | None = None) -> dict[str, str]:
        return {"weights": Path(config.weights).read_text()}

    def respond(self, contexts: Any, decoding: Decoding, run: Any) -> list[str]:
        return ["yes" for _ in contexts]


def test_a_checkpoint_that_has_changed_since_is_refused(tmp_path: Path):
    weights = tmp_path / "weights"
    weights.write_text("old")
    name = f"rented[weights={weights}]"
    request = Request(models=name, plugins=(Rented,), **QUICK)
    run(request, out=tmp_path / "runs", device="cpu", answers_only=True)
    named = {"system": name, "plugins": (Rented,), "device": "cpu"}
    assert load(tmp_path / "runs", **named).respond([["Hello."]]) == ["yes"]
    weights.write_text("new")
    with pytest.raises(InputError, match=r"the checkpoint of rented.* has changed since the run"):
        load(tmp_path / "runs", **named)

"""What users get wrong is told in a line that says where it is and what to do."""

from __future__ import annotations

import contextlib
import errno
import json
import lzma
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

Command = Callable[..., Any]
QUICK = ("--limit-train", 40, "--limit-test", 10, "--metrics", "length,dist-1", "--formats", "csv")


def _corpus(folder: Path, train: bytes) -> Path:
    for split in ("train", "validation", "test"):
        path = folder / "dailydialog" / split / f"dialogues_{split}.txt"
        path.parent.mkdir(parents=True)
        path.write_bytes(train if split == "train" else b"hi __eou__ hello __eou__\n")
    return folder


def _table(folder: Path, text: str) -> Path:
    (folder / "empatheticdialogues").mkdir()
    for split in ("train", "valid", "test"):
        (folder / "empatheticdialogues" / f"{split}.csv").write_text(text)
    return folder


def _own(folder: Path, *lines: str) -> Path:
    path = folder / "own.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


BAD: dict[str, tuple[Callable[[Path], tuple[object, ...]], str]] = {
    "missing data folder": (
        lambda p: ("--corpus", "dailydialog", "--data", p / "none"),
        "none/dailydialog: no such corpus folder. Give the folder that holds it with --data",
    ),
    "truncated xz": (
        lambda p: ("--corpus", _truncated(p)),
        "own.jsonl.xz:1001: the compressed file is damaged",
    ),
    "no end of utterance": (
        lambda p: ("--corpus", "dailydialog", "--data", _corpus(p, b"a __eou__ b __eou__\nab\n")),
        "dialogues_train.txt:2: ",
    ),
    "missing column": (
        lambda p: ("--corpus", "empatheticdialogues", "--data", _table(p, "conv_id,speaker\n")),
        "train.csv:1: ",
    ),
    "invalid UTF-8": (
        lambda p: ("--corpus", "dailydialog", "--data", _corpus(p, b"a __eou__ \xff __eou__\n")),
        "dialogues_train.txt:1: byte 0xff is not UTF-8",
    ),
    "empty corpus": (lambda p: ("--corpus", _own(p)), "own.jsonl: the file is empty"),
    "wrong type": (
        lambda p: ("--corpus", _own(p, '{"turns": ["a", "b"]}', '{"turns": "a"}')),
        "own.jsonl:2: ",
    ),
    "duplicate ids": (
        lambda p: ("--corpus", _own(p, *['{"id": "x", "turns": ["a", "b"]}'] * 2)),
        "own.jsonl:2: ",
    ),
    "unknown model": (lambda p: ("--models", "transfomer"), "Did you mean 'transformer'?"),
    "unknown corpus": (lambda p: ("--corpus", "dailydialogue"), "Did you mean 'dailydialog'?"),
    "unknown option": (
        lambda p: ("--models", "paraformer-n[sigma_f=1]"),
        "unknown option 'sigma_f'. Did you mean 'sigma_ff'?",
    ),
    "option of a wrong value": (
        lambda p: ("--models", "paraformer-n[layout=ful]"),
        "unknown value 'ful'. Did you mean 'full'?",
    ),
    "options that do not fit": (
        lambda p: ("--models", "transformer[heads=5]"),
        "transformer[heads=5]: attention=128 is no multiple of heads=5",
    ),
    "unknown decoding": (lambda p: ("--decoding", "gredy"), "Did you mean 'greedy'?"),
    "decoding without sense": (lambda p: ("--decoding", "top-p:1.5"), "Write it like"),
    "unknown measure": (lambda p: ("--metrics", "dist-9"), "Did you mean 'dist-"),
    "unknown preset": (lambda p: ("--preset", "quik"), "Did you mean 'quick'?"),
    "value of a preset": (
        lambda p: ("--models", "unigram,transformer", "--preset", _preset(p, 'norm = "sideways"')),
        "[system] norm of transformer: unknown value 'sideways'.",
    ),
    "truth for a number": (
        lambda p: ("--models", "transformer", "--preset", _preset(p, "epochs = true")),
        "[system] epochs of transformer: 'true' is not a whole number",
    ),
    "endless rate": (
        lambda p: ("--models", "transformer", "--preset", _preset(p, "learning_rate = inf")),
        "[system] learning_rate of transformer: 'inf' is not a finite number",
    ),
    "no system's option": (
        lambda p: ("--preset", _preset(p, "epoch = 3")),
        "[system]: unknown option 'epoch'. Did you mean 'epochs'?",
    ),
    "deadline of no number": (lambda p: ("--deadline", "nan"), "nan seconds are none"),
    "endless deadline": (lambda p: ("--deadline", "inf"), "inf seconds are none"),
    "responses without end": (lambda p: ("--samples", "1001"), "1001 is not in the range"),
    "beams without end": (lambda p: ("--decoding", "beam:1001"), "'beam:1001' has no usable value"),
    "a NUL": (lambda p: ("--preset", "\0.toml"), "--preset: the value is no valid text"),
    "half a character": (lambda p: ("--vectors=\ud800",), "--vectors: the value is no valid text"),
    "corpus that links to itself": (lambda p: ("--corpus", _circle(p / "c.jsonl")), "c.jsonl: "),
    "missing vectors that no metric needs": (
        lambda p: ("--metrics", "length", "--vectors", "glove.txt"),
        "--vectors: there is no glove.txt",
    ),
    "missing judge that no metric needs": (
        lambda p: ("--metrics", "length", "--nli", "judge"),
        "--nli: there is no judge",
    ),
    "deep preset": (
        lambda p: ("--preset", _preset(p, "a = " + "[" * 9999)),
        "mine.toml: this is not TOML: values are nested too deeply",
    ),
    "preset in Latin-1": (
        lambda p: ("--preset", _preset(p, "").with_name("latin.toml")),
        "latin.toml: this is not TOML: byte 12 is not UTF-8",
    ),
    "preset that is a pipe": (
        lambda p: ("--preset", _pipe(p / "pipe.toml")),
        "pipe.toml:summary: Field required",
    ),
    "corpus that is a pipe": (lambda p: ("--corpus", _pipe(p / "c.jsonl")), "the file is empty"),
    "vectors that are a pipe": (
        lambda p: ("--metrics", "emb-average", "--vectors", _pipe(p / "v.safetensors")),
        "v.safetensors: these are no saved word vectors (it is not a plain file)",
    ),
    "broken plug-in": (
        lambda p: ("--plugin", p / "none.py"),
        "none.py cannot be loaded (FileNotFoundError: ",
    ),
    "unknown format": (lambda p: ("--formats", "docx"), "unknown format 'docx'"),
    "unknown device": (lambda p: ("--device", "tpu"), "--device: device 'tpu' is not available"),
    "no numbers": (lambda p: ("--seeds", "one"), "not a list like 1,2,3"),
    "out is a file": (lambda p: ("--out", _own(p, "x")), "own.jsonl"),
    "missing vectors": (
        lambda p: ("--metrics", "emb-average", "--vectors", p / "glove.txt"),
        "glove.txt",
    ),
}


def _preset(folder: Path, text: str) -> Path:
    (folder / "latin.toml").write_bytes(b'summary = "\xe9"')
    path = folder / "mine.toml"
    path.write_text(f'summary = "mine"\nseeds = [1]\n[system]\n{text}\n')
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _circle(path: Path) -> Path:
    path.symlink_to(path.name)
    return path


def _truncated(folder: Path) -> Path:
    path = folder / "own.jsonl.xz"
    path.write_bytes(lzma.compress(b'{"turns": ["a", "b"]}\n' * 1000)[:-30])
    return path


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_that_says_where_and_what_to_do(
    command: Command, tmp_path: Path, case: str
) -> None:
    arguments, message = BAD[case]
    out = tmp_path / "runs"
    base = ("run", "--models", "copy-last", "--progress", "none", "--out", out, *QUICK)
    result = command(*base, *arguments(tmp_path))
    assert result.code == 2, result.err
    assert message in result.err
    assert "Traceback" not in result.err
    errors = [line for line in result.err.splitlines() if line.startswith("Error")]
    assert len(errors) == 1
    assert not (out / "answers").exists()


def test_a_reader_who_has_gone_ends_a_command_quietly() -> None:
    theirs, ours = os.pipe()
    os.close(theirs)
    command = [sys.executable, "-m", "dialbench", "metrics"]
    done = subprocess.run(command, stdout=ours, stderr=subprocess.PIPE)
    os.close(ours)
    assert (done.returncode, done.stderr) == (0, b"")


def test_another_broken_pipe_is_an_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_it() -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("dialbench.cli.listings.metrics", lambda names: break_it())
    result = command("metrics")
    assert (result.code, result.err) == (2, "Error: Broken pipe\n")


def test_an_error_cannot_steer_the_terminal(command: Command, tmp_path: Path) -> None:
    result = command("score", tmp_path / "\x1b[2Jgone\u202e.jsonl", "--metrics", "length")
    assert result.code == 2
    assert "[2Jgone.jsonl" in result.err
    assert not set("\x1b\u202e") & set(result.err)
    assert "\x1b" not in command("\x1b[2J").err


@pytest.mark.parametrize("arguments", [("score", "missing.txt", "--baseline"), ("nli", "--nope")])
def test_what_nobody_would_read_is_cut_from_an_error(
    command: Command, arguments: tuple[str, ...]
) -> None:
    result = command(*arguments, "x" * 100_000)
    assert result.code == 2
    assert len(result.err) < 1_000


def test_json_escapes_what_would_steer_the_terminal(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "\x9b2J\u202eü.jsonl"
    path.write_text('{"response": "a b"}\n')
    result = command("score", path, "--metrics", "length", "--json")
    assert not set("\x9b\u202e") & set(result.out)
    assert "ü" in result.out
    assert json.loads(result.out)["system"] == "\x9b2J\u202eü"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("run", "--seeds", ""), "--seeds"),
        (("run", "--metrics", ""), "--metrics"),
        (("run", "--out="), "--out"),
        (("run", "--models", "", "--out", "x"), "--models"),
        (("score", ""), "arguments"),
        (("run", "--seeds", ","), "'--seeds'"),
        (("score", "a.jsonl", "--metrics", " , "), "'--metrics'"),
    ],
)
def test_an_empty_value_is_none(command: Command, arguments: tuple[str, ...], where: str) -> None:
    result = command(*arguments)
    assert result.code == 2
    assert where in result.err.splitlines()[-1]
    assert result.err.splitlines()[-1].startswith("Error: ")


def test_file_names_that_are_no_utf_8(command: Command, tmp_path: Path) -> None:
    """Results and baselines hold a question mark for each such byte."""
    name = os.fsdecode(b"\xff")
    corpus, preset = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.toml"
    _own(tmp_path, *['{"turns": ["a", "b"]}'] * 20).rename(corpus)
    preset.write_text('summary = "mine"\nseeds = [1]\n')
    out, rows = tmp_path / f"runs{name}", ("--models", "copy-last", "--metrics", "length")
    few = ("--formats", "csv", "--progress", "none", "--jobs", 1, "--device", "cpu")
    ended = command("run", *rows, "--corpus", corpus, "--preset", preset, "--out", out, *few)
    assert ended.code == 0, ended.err
    assert "Automatic evaluation on ?" in ended.out
    baseline = ("--baseline", tmp_path / f"{name}.json")
    assert command("check", out, *baseline, "--update").code == 0
    assert command("check", out, *baseline).code == 0


@pytest.mark.parametrize(
    ("hook", "arguments"),
    [("title", "config"), ("inspect", "config, contexts, data"), ("supports", "decoding")],
)
@pytest.mark.parametrize("error", ["SystemExit(0)", "RuntimeError('no')"])
def test_code_that_fails_before_anything_is_run_is_named(
    command: Command, tmp_path: Path, hook: str, arguments: str, error: str
) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from dialbench.adapter import Adapter\nprint('imported')\n"
        "class Fails(Adapter):\n    name = 'fails'\n"
        f"    @classmethod\n    def {hook}(cls, {arguments}):\n        raise {error}\n"
    )
    out = ("--out", tmp_path / "runs", "--progress", "none", "--jobs", 1)
    result = command("run", "--plugin", plugin, "--models", "fails", *out, *QUICK)
    assert (result.code, result.out) == (2, "")
    kind, text = error.removesuffix(")").replace("'", "").split("(")
    assert f"--models: fails: its {hook} raised {kind}: {text}. Fix it, or leave" in result.err


def test_what_a_system_prints_stands_on_the_error_stream(command: Command, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import sys\nfrom dialbench.adapter import Adapter\nclass Prints(Adapter):\n"
        "    name = 'prints'\n    def respond(self, contexts, decoding, run):\n"
        "        print('said')\n        sys.stdout = None\n        return ['x'] * len(contexts)\n"
    )
    out = ("--out", tmp_path / "runs", "--progress", "none", "--jobs", 1, "--metrics", "length")
    result = command("run", "--plugin", plugin, "--models", "prints", *out, *QUICK)
    assert result.code == 0
    assert "said" in result.err
    assert "said" not in result.out
    assert "Automatic evaluation on demo" in result.out


def test_a_corpus_without_a_suite_is_no_selection(command: Command, tmp_path: Path) -> None:
    result = command("report", tmp_path, "--corpus", "demo")
    assert result.code == 2
    assert "--corpus: it needs --suite or --table" in result.err


def test_a_wrong_command_gets_a_near_match(command: Command) -> None:
    result = command("scor")
    assert result.code == 2
    assert "Did you mean 'score'?" in result.err


def test_a_broken_responses_file_names_its_line(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"response": "a"}\n{"response": 5}\n')
    result = command("score", path)
    assert result.code == 2
    assert "bad.jsonl:2" in result.err


def test_a_full_disk_loses_nothing(command: Command, small_disk: Path) -> None:
    base = ("run", "--models", "copy-last", "--out", small_disk, "--progress", "none", *QUICK)
    assert command(*base).code == 0
    before = (small_disk / "report" / "demo.csv").read_bytes()
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    result = command(*base, "--models", "copy-last,unigram")
    assert result.code == 2
    assert "no space left on device. Free some space or choose another --out." in result.err
    filler.unlink()
    assert command(*base).code == 0
    assert (small_disk / "report" / "demo.csv").read_bytes() == before


def test_a_damaged_system_is_named(command: Command, tmp_path: Path) -> None:
    base = ("run", "--models", "unigram", "--progress", "none", "--out", tmp_path, *QUICK)
    command(*base)
    (state,) = tmp_path.glob("trained/*/finished/system/state.json")
    state.write_text("{}")
    result = command(*base, "--decoding", "beam:2")
    assert result.code == 2
    assert "state.json" in result.err
    assert "--overwrite always" in result.err
    assert command(*base, "--overwrite", "always").code == 0


@pytest.mark.parametrize(("closing", "printed"), [("<&-", True), ("2>&-", False)])
def test_a_closed_standard_stream_is_an_empty_one(closing: str, printed: bool) -> None:
    line = f"{shlex.quote(sys.executable)} -m dialbench score - --metrics length </dev/null"
    done = subprocess.run(["sh", "-c", f"{line} {closing}"], capture_output=True, text=True)
    error = "Error: -: there are no responses in this file. Write one a line.\n"
    assert (done.returncode, done.stderr) == (2, error if printed else "")


@pytest.mark.parametrize(
    "arguments", ["report RUNS", "cite RUNS", "compare RUNS copy-last copy-last"]
)
def test_responses_without_scores_have_no_report(
    command: Command, tmp_path: Path, arguments: str
) -> None:
    command("run", "--models", "copy-last", "--answers-only", "--out", tmp_path, *QUICK)
    result = command(*(tmp_path if word == "RUNS" else word for word in arguments.split()))
    assert result.code == 2
    assert "none of its responses are scored" in result.err
    assert "without --answers-only" in result.err

"""What the same command, or nearly the same, does again in a runs folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
FEW = ("--limit-train", 40, "--limit-test", 30, "--formats", "csv", "--progress", "plain")
DIST = (*FEW, "--metrics", "dist-1")


def test_a_run_shows_the_scores_that_it_asks_for_whichever_were_written_last(
    command: Command, tmp_path: Path
) -> None:
    run = ("run", "--models", "copy-last,most-frequent", "--out", tmp_path, *FEW)

    def table() -> str:
        return (tmp_path / "report" / "demo.csv").read_text()

    first, words = command(*run, "--metrics", "dist-1,bleu-2"), table()
    command(*run, "--metrics", "dist-1")
    command(*run, "--metrics", "dist-1,bleu-2", "--tokenizer", "char")
    assert table() != words
    again = command(*run, "--metrics", "dist-1,bleu-2")
    assert (again.out, table()) == (first.out, words)
    reported = command("report", tmp_path, "--out", tmp_path / "anew", "--formats", "csv")
    assert reported.code == 0
    assert "tok:char" not in (tmp_path / "anew" / "demo.csv").read_text()


def test_a_scoring_that_lost_its_arrays_is_done_again(command: Command, tmp_path: Path) -> None:
    run = ("run", "--models", "copy-last", "--out", tmp_path, "--metrics", "dist-1", *FEW)
    first = command(*run)
    (arrays,) = tmp_path.glob("answers/*/scores/*/scores.safetensors")
    arrays.unlink()
    assert command(*run).out == first.out
    assert arrays.exists()


def test_two_files_of_one_name_are_no_two_corpora(command: Command, tmp_path: Path) -> None:
    files = []
    for folder in ("a", "b"):
        files.append(tmp_path / folder / "chats.jsonl")
        files[-1].parent.mkdir()
        files[-1].write_text(json.dumps({"turns": [folder, "yes"], "split": "test"}) + "\n")
    refused = command("run", "--models", "copy-last", "--corpus", ",".join(map(str, files)))
    assert refused.code == 2
    assert "are both called chats. Rename one of the files." in refused.err


def test_a_plugin_that_changed_is_told_and_keeps_its_responses(
    command: Command, tmp_path: Path
) -> None:
    plugin = tmp_path / "echo.py"
    code = """
from dialbench.adapter import Adapter


class Echo(Adapter):
    name = "echo"

    def respond(self, contexts, decoding, run):
        return [context[-1] for context in contexts]
"""
    plugin.write_text(code)
    run = ("run", "--models", "echo,copy-last", "--plugin", plugin, "--out", tmp_path / "o", *DIST)
    command(*run)
    assert "has changed" not in command(*run).err
    plugin.write_text(code.replace("context[-1] for", '"the same" for'))
    table = tmp_path / "o" / "report" / "demo.csv"
    before = table.read_text()
    warned = command(*run)
    assert warned.err.count("warning: echo: its file has changed") == 1
    assert table.read_text() == before
    plugin.write_text(plugin.read_text().replace('name = "echo"', 'name = "echo"\n    version = 2'))
    assert "has changed" not in command(*run).err
    assert table.read_text() != before


def test_results_stay_where_the_command_was_given(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("wanderer.py").write_text(
        """
import os

from dialbench.adapter import Adapter


class Wanderer(Adapter):
    name = "wanderer"

    def respond(self, contexts, decoding, run):
        os.chdir("..")
        return ["yes" for _ in contexts]
"""
    )
    rows = ("run", "--models", "wanderer", "--plugin", "wanderer.py", "--jobs", 1)
    assert command(*rows, "--out", "out", *DIST).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]

"""What responses answer: ids, dialogues, references and corpora that come beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialbench
from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.scoring.options import InputOptions
from dialbench.scoring.score import score
from dialbench.scoring.sources import Sources

DIALOGUES = [f"d{number // 6}" for number in range(48)]


def file_of(path: Path, shift: int = 0, **fields: Any) -> Path:
    lines = [
        {"response": "so " * (1 + (number // 6 * 5 + number + shift) % 9)}
        | {name: values[number] for name, values in fields.items()}
        for number in range(48)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def references(tmp_path: Path) -> Path:
    path = tmp_path / "references.txt"
    path.write_text("so it is\n" * 48, encoding="utf-8")
    return path


def test_references_beside_them_leave_dialogues_as_they_are(tmp_path, references):
    ours = file_of(tmp_path / "ours.jsonl", dialogue_id=DIALOGUES)
    base = file_of(tmp_path / "base.jsonl", 4, dialogue_id=DIALOGUES)
    given = {"metrics": ["length"], "paired_with": base}
    (alone,), (beside,) = score([ours], **given), score([ours], references=[references], **given)
    assert beside["compared"] == alone["compared"]
    assert beside["metrics"] == alone["metrics"]
    frame = pd.DataFrame({"response": ["a"] * 12, "dialogue_id": ["x"] * 6 + ["y"] * 6})
    read = dialbench.score(frame, ["a"] * 12, metrics="length").results[0]
    assert read.scores["length"].dialogues.tolist() == [0] * 6 + [1] * 6


def test_a_file_without_ids_answers_the_examples_of_the_one_beside_it(tmp_path, references):
    ids = [f"e{number}" for number in range(48)]
    bare = tmp_path / "bare.txt"
    bare.write_text("so\n" * 48, encoding="utf-8")
    full = file_of(tmp_path / "full.jsonl", id=ids, dialogue_id=DIALOGUES)
    for files in ([bare, full], [full, bare]):
        read = Sources(files, InputOptions(references=[references])).systems
        for source in read:
            examples = [example for example, _ in source.responses()]
            assert [example.id for example in examples] == ids
            assert [example.dialogue_id for example in examples] == DIALOGUES


def test_references_of_ones_own_need_not_be_of_the_corpus_that_is_named(tmp_path):
    for name in ("responses.txt", "references.txt"):
        (tmp_path / name).write_text("so it is\nno\n", encoding="utf-8")
    given = {"references": [tmp_path / "references.txt"], "corpus": "demo"}
    (report,) = score([tmp_path / "responses.txt"], metrics=["rouge-l"], **given)
    assert (report["corpus"], report["metrics"]["rouge-l"]["n"]) == ("demo", 2)


def test_responses_that_answer_no_example_of_the_corpus_are_counted(tmp_path):
    examples = list(load_corpus("demo").test)
    lines = [{"id": e.id, "response": "yes"} for e in examples] + [{"id": "?", "response": "no"}]
    path = tmp_path / "more.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    outcome = dialbench.score(path, corpus="demo", metrics="length")
    assert outcome.results[0].scores["length"].n == len(examples)
    assert "1 response of its file answers no example of demo" in str(outcome.tables[0].notes)


def test_a_report_is_not_written_over_what_it_reads(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("scores.txt")
    path.write_text("yes\nno\n", encoding="utf-8")
    result = command("score", path, "--metrics", "length", "--out", ".")
    assert (result.code, path.read_text(encoding="utf-8")) == (2, "yes\nno\n")
    assert "scores.txt lies there, and the report might overwrite it. Name another" in result.err
    assert command("score", path, "--metrics", "length", "--out", "report").code == 0


def test_a_corpus_that_there_is_not_is_refused_whatever_files_say(command, tmp_path):
    path = file_of(tmp_path / "full.jsonl", references=[["so it is"]] * 48)
    result = command("score", path, "--corpus", "dailydialogo", "--metrics", "bleu-1")
    assert (result.code, "--corpus: unknown corpus 'dailydialogo'" in result.err) == (2, True)


def test_names_of_files_are_no_texts(tmp_path):
    paths = [str(file_of(tmp_path / name)) for name in ("a.jsonl", "b.jsonl")]
    with pytest.raises(InputError, match=r"these are names of files, not texts.*pathlib\.Path"):
        dialbench.score(paths, metrics="length")
    assert len(dialbench.score(list(map(Path, paths)), metrics="length").results) == 2


def test_cells_as_pandas_has_them():
    arrays = [("c",), np.array(["d", "e"])]
    frame = pd.DataFrame({"response": ["c", None], "references": arrays})
    read = dialbench.score(frame, metrics="length,rouge-l").results[0]
    assert read.scores["length"].value == 0.5
    assert read.scores["rouge-l"].per_response.tolist() == [1.0, 0.0]
    series = pd.Series(["a b", pd.NA], dtype="string")
    assert dialbench.score(series, metrics="length").results[0].scores["length"].value == 1.0


def test_an_undivided_file_is_exported_under_a_note(command, tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text('{"turns": ["a", "b"]}\n' * 4, encoding="utf-8")
    result = command("export", path, "--split", "test")
    assert (result.code, result.out.count("\n")) == (0, 4)
    assert "all dialogues that name no split are exported" in result.err

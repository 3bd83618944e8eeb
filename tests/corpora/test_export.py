"""A split written for systems elsewhere, and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialbench.corpora.base import load_corpus
from dialbench.corpora.export import export_lines, write_export
from dialbench.errors import InputError


@pytest.fixture
def own(write) -> Path:
    """A test set of ours with two references to the second context."""
    return write(
        "own/test.jsonl",
        '{"id": "a", "turns": ["Is it raining ?", "Not yet .", "Good ."]}\n'
        '{"id": "b", "dialogue_id": "d", "context": ["Hi ."], "references": ["Hello .", "Yo ."]}\n',
    )


def test_an_export_is_the_same_corpus_again(own: Path, tmp_path: Path) -> None:
    first = load_corpus(str(own))
    write_export(first, "test", tmp_path / "again" / "test.jsonl")
    again = load_corpus(str(tmp_path / "again" / "test.jsonl"))
    assert list(again.test) == list(first.test)


def test_with_responses_added_a_run_and_score_read_it(command, own: Path, tmp_path: Path) -> None:
    ended = command("export", own, "--out", tmp_path / "contexts.jsonl")
    assert (ended.code, ended.out) == (0, "")
    lines = (tmp_path / "contexts.jsonl").read_text("utf-8").splitlines()
    answered = tmp_path / "theirs.jsonl"
    responses = [{**json.loads(line), "response": f"number {n} ."} for n, line in enumerate(lines)]
    answered.write_text("".join(json.dumps(each) + "\n" for each in reversed(responses)))

    scored = command("score", answered, "--metrics", "length,bleu-1", "--json")
    assert json.loads(scored.out)["metrics"]["length"]["value"] == 3
    models = f"file[path={answered},name=Theirs]"
    out = tmp_path / "runs"
    options = ("--metrics", "length", "--formats", "csv", "--progress", "none")
    ran = command("run", "--models", models, "--corpus", own, "--out", out, *options)
    assert ran.code == 0
    (written,) = out.glob("answers/*/responses.jsonl")
    pairs = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
    assert [(each["id"], each["response"]) for each in pairs] == [
        ("a-1", "number 0 ."),
        ("a-2", "number 1 ."),
        ("b", "number 2 ."),
    ]


def test_no_text_without_its_licence(command, dailydialog: Path) -> None:
    ended = command("export", "dailydialog", "--split", "valid", "--data", dailydialog)
    (line,) = ended.out.splitlines()
    assert json.loads(line) == {
        "id": "valid-0-1",
        "dialogue_id": "valid-0",
        "context": ["Two teas , please ."],
        "references": ["Coming !"],
    }
    assert "DailyDialog, licence: CC BY-NC-SA 4.0" in ended.err


def test_nothing_is_written_where_nobody_hears_of_the_licence(
    command, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import click

    echo = click.echo

    def closed(message: object = None, **options: object) -> None:
        if options.get("err") and "licence" in str(message):
            raise OSError("the stream is closed")
        echo(message, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("click.echo", closed)
    ended = command("export", own, "--out", tmp_path / "contexts.jsonl")
    assert ended.code == 2
    assert not (tmp_path / "contexts.jsonl").exists()


def test_an_export_overwrites_no_file_that_it_reads(command, own: Path, write) -> None:
    packed = write("own/train.jsonl.xz", '{"turns": ["a", "b"]}\n')
    before = own.read_bytes()
    for corpus, split, out in (
        (own, "test", own),
        (own.parent, "train", own),
        (own.parent, "test", packed),
    ):
        ended = command("export", corpus, "--split", split, "--out", out)
        assert ended.code == 2
        (error,) = ended.err.splitlines()
        assert error == f"Error: --out {out}: it would overwrite the corpus. Name another file."
        assert own.read_bytes() == before
    beside = own.parent / "contexts.jsonl"
    for _ in range(2):
        assert command("export", own.parent, "--out", beside).code == 0
    assert command("export", own, "--out", own.parent / "valid.jsonl").code == 0


def test_a_known_corpus_is_no_file_of_its_name(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert command("export", "demo", "--out", "demo").code == 0


def test_a_split_that_is_not_there(command, own: Path, tmp_path: Path) -> None:
    ended = command("export", own, "--split", "train", "--out", tmp_path / "x.jsonl")
    assert ended.code == 2
    assert "has no train split" in ended.err
    assert not (tmp_path / "x.jsonl").exists()
    with pytest.raises(InputError, match="no train split"):
        next(export_lines(load_corpus(str(own)), "train"))


def test_what_would_steer_a_terminal_is_escaped(command, write) -> None:
    path = write("own/test.jsonl", json.dumps({"turns": ["a \u202e b", "\x1b[1m é"]}) + "\n")
    ended = command("export", path)
    assert "\x1b" not in ended.out
    assert json.loads(ended.out)["context"] == ["a \u202e b"]

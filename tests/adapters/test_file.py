"""Finished responses as a row: which line answers which example, and what is refused."""

from __future__ import annotations

import csv
import json
import lzma
import random
from pathlib import Path

import pytest
from dialbench_adapters.file import File, FileConfig

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.records import Context, Decoding
from dialbench.systems import Registry

CONTEXTS = [
    Context(["Is it open ?", "I think so ."], "a-1"),
    Context(["Where ?"], "a-2"),
    Context(["Where ?"], "b-1"),
    Context(["Nice hat .", "Thank you ."], "b-2"),
]
TEXTS = ["Good.", "Over there.", " On the tram.\n", ""]


@pytest.fixture
def write(tmp_path):
    """Writes lines with these fields and gives the path."""

    def write(*fields: str, rows=range(4), name: str = "theirs.jsonl") -> Path:
        path = tmp_path / name
        all = [
            {"id": context.id, "context": list(context), "response": text, "more": 1}
            for context, text in zip(CONTEXTS, TEXTS, strict=True)
        ]
        lines = [{key: all[row][key] for key in (*fields, "response", "more")} for row in rows]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


class Notes(Progress):
    def __init__(self):
        self.said = []

    def warn(self, text):
        self.said.append(text)


def answers(path: Path, contexts=CONTEXTS) -> list[str]:
    config = FileConfig(str(path))
    File.inspect(config, contexts)
    return File(config).respond(contexts, Decoding(), Run(1))


def refused(path: Path, contexts=CONTEXTS) -> str:
    with pytest.raises(InputError) as caught:
        File.inspect(FileConfig(str(path)), contexts)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value.message


class TestMatching:
    def test_by_id_in_any_order(self, write):
        assert answers(write("id", rows=[2, 0, 3, 1])) == TEXTS

    @pytest.mark.parametrize("name", ["theirs.txt", "theirs.txt.xz"])
    def test_a_line_of_plain_text_is_a_response(self, tmp_path, name):
        path = tmp_path / name
        text = b"Good.\n\nOn the  tram.\r\nlast"
        path.write_bytes(lzma.compress(text) if name.endswith(".xz") else text)
        assert File.title(FileConfig(path=str(path))) == "theirs"
        assert answers(path) == ["Good.", "", "On the  tram.", "last"]

    def test_plain_text_for_other_examples(self, tmp_path):
        path = tmp_path / "theirs.txt"
        path.write_text("one\ntwo\n")
        assert "2 responses without id or context for 4 examples" in refused(path)
        path.write_bytes(b"one\n\xff\n")
        assert "theirs.txt:2: byte 1 of the line is not UTF-8" in refused(path)

    def test_by_order_without_ids(self, write):
        assert answers(write()) == TEXTS

    def test_by_context_where_the_counts_differ(self, write):
        path = write("context", rows=[3, 1, 0, 2, 3])
        assert answers(path) == TEXTS
        # examples of one context take their lines in order
        assert answers(write("context", rows=[3, 2, 0, 1, 3])) == [
            TEXTS[0],
            TEXTS[2],
            TEXTS[1],
            TEXTS[3],
        ]

    def test_a_context_is_its_words(self, write):
        path = write("context", rows=[0, 1, 2, 3, 0])
        path.write_text(path.read_text().replace("Is it open ?", "is it open?"))
        assert answers(path) == TEXTS

    def test_a_shorter_context_is_compared_as_far_as_it_goes(self, write):
        path = write("id", "context")
        path.write_text(path.read_text().replace('"Is it open ?", ', ""))
        assert answers(path) == TEXTS

    def test_responses_that_no_example_asks_for_are_reported(self, write):
        notes = Notes()
        config = FileConfig(str(write("id")))
        actual = File(config).respond(CONTEXTS[:1], Decoding(), Run(1, progress=notes))
        assert actual == TEXTS[:1]
        assert any("3 responses of its file belong to no example" in text for text in notes.said)
        assert "theirs.jsonl" in notes.said[0]

    def test_further_samples_are_the_alternatives(self, tmp_path):
        path = tmp_path / "several.jsonl"
        lines = [
            {"id": context.id, "response": text, "alternatives": [f"{text} 1", f"{text} 2"]}
            for context, text in zip(CONTEXTS, TEXTS, strict=True)
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for draw in (1, 2):
            contexts = [Context(context, context.id, draw=draw) for context in CONTEXTS]
            assert answers(path, contexts) == [f"{text} {draw}" for text in TEXTS]
        with pytest.raises(SystemFailed, match="there are 3 responses to this context") as caught:
            answers(path, [Context(context, context.id, draw=3) for context in CONTEXTS])
        assert f"{path}:1" in str(caught.value)

    def test_packed(self, write, tmp_path):
        import gzip

        path = tmp_path / "packed.jsonl.gz"
        path.write_bytes(gzip.compress(write("id").read_bytes()))
        assert answers(path) == TEXTS
        assert File.title(FileConfig(str(path))) == "packed"


class TestRefused:
    def test_no_path(self):
        with pytest.raises(InputError, match="path=FILE"):
            Registry().parse("file")
        assert "file" not in [system.name for system in Registry().parse("all")]

    def test_missing_file(self, tmp_path):
        assert "nowhere.jsonl cannot be read" in refused(tmp_path / "nowhere.jsonl")

    def test_a_faulty_line_is_named(self, write):
        path = write("id")
        path.write_text(path.read_text() + '{"id": 5}\n')
        assert f"{path}:5" in refused(path)

    def test_a_beginning_proposes_its_limit(self, write):
        message = refused(write("id", rows=[0, 1]))
        assert message.startswith(f"{write('id', rows=[0, 1])}:2")
        assert "2 of 4 examples have no response" in message
        assert "b-1" in message
        assert "--limit-test 2" in message
        assert answers(write("id", rows=[0, 1]), CONTEXTS[:2]) == TEXTS[:2]

    def test_a_hole(self, write):
        message = refused(write("id", rows=[1, 2, 3]))
        assert "1 of 4" in message
        assert "--limit-test" not in message

    def test_foreign_ids_are_named(self, write):
        path = write("id")
        path.write_text(path.read_text().replace('"b-1"', '"x-9"'))
        message = refused(path)
        assert message.startswith(f"{path}:3: this line answers no example")
        assert "1 of 4" in message

    def test_too_few_without_contexts(self, write):
        assert "3 responses without id or context for 4 examples" in refused(write(rows=[0, 1, 2]))

    def test_some_ids_only(self, write):
        path = write("id")
        path.write_text(path.read_text().replace('"id": "b-1", ', ""))
        message = refused(path)
        assert message.startswith(f"{path}:3: this line has no id")

    def test_the_right_id_with_another_context(self, write):
        path = write("id", "context")
        path.write_text(path.read_text().replace("Nice hat", "Nice coat"))
        message = refused(path)
        assert message.startswith(f"{path}:4: answers another context")
        assert "b-2" in message

    def test_the_wrong_order(self, write):
        path = write("context", rows=[1, 0, 2, 3])
        assert refused(path).startswith(f"{path}:1: answers another context")


class TestRun:
    def options(self, out: Path) -> list[object]:
        quiet = ["--formats", "csv,txt", "--progress", "none", "--device", "cpu"]
        return ["--limit-train", 60, "--limit-test", 20, "--metrics", "length,dist-1", *quiet, out]

    def test_a_row_of_its_own_responses_has_the_same_numbers(self, command, tmp_path):
        out = tmp_path / "runs"
        options = [*self.options(out)[:-1], "--out", out]
        assert command("run", "--models", "unigram", *options).code == 0
        (actual,) = out.glob("answers/*/responses.jsonl")
        theirs = tmp_path / "theirs.jsonl"
        lines = actual.read_text().splitlines()
        random.Random(1).shuffle(lines)
        theirs.write_text("\n".join(lines))
        models = f"unigram,file[path={theirs},name=Their model]"
        result = command("run", "--models", models, *options)
        assert result.code == 0, result.err
        rows: dict[str, list[str]] = {}
        with (out / "report" / "demo.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                rows.setdefault(row["system"], []).append(row["value"] + row["low"])
        assert rows["Their model"] == rows["Unigram"]
        assert len(rows["Unigram"]) == 3

    def test_another_file_under_the_same_path_is_another_result(self, write, tmp_path):
        path = write("id")
        config = FileConfig(str(path))
        before = File.inspect(config, CONTEXTS)
        assert File.inspect(config, CONTEXTS) == before
        path.write_text(path.read_text().replace("Good.", "Bad."))
        assert File.inspect(config, CONTEXTS) != before

    def test_a_subset_stops_the_run_before_anything_is_trained(self, command, write, tmp_path):
        models = f"unigram,file[path={write('id')}]"
        options = [*self.options(tmp_path / "runs")[:-1], "--out", tmp_path / "runs"]
        result = command("run", "--models", models, *options)
        assert result.code == 2
        assert result.err.count("\n") == 1
        assert "theirs.jsonl:1" in result.err
        assert not (tmp_path / "runs" / "trained").exists()

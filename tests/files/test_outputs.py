"""Responses, references and contexts in every format that other programs write."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from pathlib import Path

import pytest

from dialbench.errors import InputError
from dialbench.files.outputs import read_outputs, read_texts, stem

TEXTS = ["yes , it is .", "", 'she said "no" , twice', "ü\u2028mlaut"]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def texts(path: Path, column: str | None = None) -> list[str]:
    return [line.response for line in read_outputs(path, column)]


def refusal(path: Path, column: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        texts(path, column)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value.message


LINES = "".join(f"{text}\n" for text in TEXTS)
OBJECTS = "".join(json.dumps({"response": text}) + "\n" for text in TEXTS)
QUOTED = ['"' + text.replace('"', '""') + '"' for text in TEXTS]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", LINES),
        ("a.txt", LINES.replace("\n", "\r\n")),
        ("a.txt", "\ufeff" + LINES),
        ("a.txt.xz", lzma.compress(LINES.encode())),
        ("a.txt.gz", gzip.compress(LINES.encode())),
        ("a.out", LINES),
        ("a", OBJECTS),
        ("a.jsonl", OBJECTS),
        ("a.csv", "n,prediction\n" + "".join(f"1,{text}\n" for text in QUOTED)),
        ("a.csv", "ours\n" + "".join(f"{text}\n" for text in QUOTED)),
        ("a.csv.gz", gzip.compress(("n,Hyp\n" + "".join(f"1,{t}\n" for t in QUOTED)).encode())),
        ("a.tsv", "n\tModel output\n" + "".join(f"1\t{text}\n" for text in QUOTED)),
    ],
)
def test_the_same_responses_from_every_format(tmp_path, name, content):
    path = written(tmp_path / name, content)
    assert texts(path) == TEXTS
    assert stem(path) == "a.out"[: 5 if name == "a.out" else 1]


def test_standard_input_is_text_or_json_lines(monkeypatch):
    for content in (LINES, OBJECTS):
        stream = io.TextIOWrapper(io.BytesIO(content.encode()), "utf-8")
        monkeypatch.setattr("sys.stdin", stream)
        assert texts(Path("-")) == TEXTS
        assert not stream.closed  # it is not ours
    assert stem(Path("-")) == "stdin"


def test_a_table_gives_ids_contexts_and_references_too(tmp_path):
    path = written(
        tmp_path / "a.csv",
        "id,dialogue_id,context,reference_1,reference_2,response\n"
        'x,d,hello __eou__ who is it ?,"me\tit is me",,nobody\n',
    )
    (line,) = read_outputs(path)
    assert (line.id, line.dialogue_id, line.response) == ("x", "d", "nobody")
    assert line.context == ("hello", "who is it ?")
    assert line.references == ("me", "it is me")
    assert (line.where, line.number) == (f"{path}:2", 1)


def test_a_cell_over_several_lines(tmp_path):
    path = written(tmp_path / "a.csv", 'response\n"one\ntwo"\nthree\n')
    lines = list(read_outputs(path))
    assert [(line.number, line.response) for line in lines] == [(1, "one\ntwo"), (2, "three")]
    assert lines[1].where == f"{path}:4"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.txt", b"one\n\xff\n", "a.txt:2: byte 1 of the line is not UTF-8"),
        ("a.csv", b"response\n\xff\n", "a.csv:2: byte 1 of the line is not UTF-8"),
        ("a.txt", '{"response": "x"}\n', "a.txt:1: its name says text, but this line is JSON"),
        ("a.txt", "", "a.txt: there are no responses"),
        ("a.txt", "hi\n".encode("utf-16-le"), "a.txt:1: there is a NUL in the line, as in UTF-16"),
        ("a.csv", "hi\n".encode("utf-16-le"), "a.csv:1: there is a NUL in the line, as in UTF-16"),
        ("a.json", '[[["x"\n', "a.json:1: not JSON"),
        ("a.csv", "", "a.csv:1: the table has no header"),
        ("a.csv", "response\n", "a.csv: there are no responses"),
        ("a.csv", "x,y\n1,2\n", "a.csv:1: no column is named responses; there are x, y"),
        ("a.csv", "response,pred\n1,2\n", "a.csv:1: response, pred may all be the responses"),
        ("a.csv", "id,response\n1,2\n3\n", "a.csv:3: 1 cells where the header has 2"),
        ("a.csv", 'response\n"a\n', "a.csv:2: not CSV: unexpected end of data"),
        ("a.tsv", 'id\tresponse\n1\t"a" b\n', "a.tsv:2: not TSV: "),
        ("a", '{"response": "x"}\nplain\n', "a:2: not JSON"),
        ("a.json", '[\n  {"response": "x"}\n]\n', "a.json:1: not JSON"),
        ("a.json", '{"response": "x"\n', "a.json:1: not JSON"),
        ("a", '["x"\n', "a:1: not JSON"),
        ("a.txt", '{"response": "x"\n', "a.txt:1: its name says text, but this line is JSON"),
        ("a.csv", "id,response\n1,x\n1,y\n", "a.csv:3: id '1' stands already in line 2"),
        ("a.tsv", "id,response\n1,x\n", "a.tsv:1: no column is named responses"),
    ],
)
def test_what_cannot_be_read_says_where_and_what_to_do(tmp_path, name, content, complaint):
    assert refusal(written(tmp_path / name, content)).startswith(f"{tmp_path}/{complaint}")


def test_a_column_by_its_name(tmp_path):
    path = written(tmp_path / "a.csv", "response,ours\nx,y\n")
    assert texts(path) == ["x"]
    assert texts(path, "ours") == ["y"]
    assert "it has no column 'theirs', but response, ours" in refusal(path, "theirs")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.txt", "one\ttwo\n\nthree\n"),
        ("r.jsonl", '["one", "two"]\n[]\n{"references": "three"}\n'),
        ("r.csv", 'n,ref_1,ref_2\n1,one,two\n2,,\n3,"",three\n'),
    ],
)
def test_references_in_every_format(tmp_path, name, content):
    path = written(tmp_path / name, content)
    assert read_texts(path, "references") == [("one", "two"), (), ("three",)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.txt", "one __eou__ two __eou__\nthree\n"),
        ("c.txt", "one\ttwo\nthree\n"),
        ("c.txt", "one|||two\nthree\n"),
        ("c.jsonl", '{"context": ["one", "two"]}\n["three"]\n'),
        ("c.csv", "id,history\n1,one ||| two\n2,three\n"),
    ],
)
def test_contexts_in_every_format(tmp_path, name, content):
    path = written(tmp_path / name, content)
    assert read_texts(path, "contexts") == [("one", "two"), ("three",)]


@pytest.mark.parametrize("line", ['{"reference": ["x"]}', "[1]", "[", '"x" "y"'])
def test_a_line_of_json_without_texts_is_named(tmp_path, line):
    path = written(tmp_path / "r.jsonl", f'["fine"]\n{line}\n')
    with pytest.raises(InputError, match=r"r\.jsonl:2: .*Write \[") as caught:
        read_texts(path, "references")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "header",
    ["response,reference,reference", "response,Reference,reference", "response,response"],
)
def test_two_columns_of_one_name_are_refused(tmp_path, header):
    path = written(tmp_path / "a.csv", f"{header}\n{header}\n")
    assert "a.csv:1: two columns are called" in refusal(path)
    with pytest.raises(InputError, match="two columns are called"):
        read_texts(path, "references")


def test_several_columns_that_may_be_the_contexts_are_refused(tmp_path):
    path = written(tmp_path / "a.csv", "context,source,response\nhi,web,yes\n")
    assert "context, source may all be the contexts. Rename all but one." in refusal(path)
    with pytest.raises(InputError, match="context, source may all be the contexts"):
        read_texts(path, "contexts")


@pytest.mark.parametrize("header", ["dialogue_id,id,response", "Dialogue ID, ID ,Response"])
def test_ids_are_known_as_other_columns_are(tmp_path, header):
    path = written(tmp_path / "a.csv", f"{header}\nd1,e1,yes\nd1,e2,no\n")
    assert [(line.dialogue_id, line.id) for line in read_outputs(path)] == [
        ("d1", "e1"),
        ("d1", "e2"),
    ]


def test_the_first_line_that_is_not_blank_says_whether_it_is_json(tmp_path):
    path = written(tmp_path / "a.json", '\n \n{"response": "a b c"}\n{"response": "d"}\n')
    assert texts(path) == ["a b c", "d"]
    named = written(tmp_path / "a.txt", '\n{"response": "a"}\n')
    assert "a.txt:2: its name says text, but this line is JSON" in refusal(named)
    assert texts(written(tmp_path / "b.txt", "\n\na\n")) == ["", "", "a"]


def test_a_cell_may_be_as_long_as_a_line_of_text(tmp_path):
    long = "w " * 100_000
    assert texts(written(tmp_path / "a.csv", f"response\n{long}\n")) == [long]


def test_a_first_row_that_is_no_name_is_not_taken_for_one(tmp_path):
    path = written(tmp_path / "a.csv", "I see .\nYes\nNo way\n")
    assert "no column is named responses; there are I see ." in refusal(path)
    assert texts(path, "I see .") == ["Yes", "No way"]

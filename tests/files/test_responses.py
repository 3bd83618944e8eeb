"""Responses survive the way to disk and back, and every fault is named with its line."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.errors import InputError, SystemFailed
from dialbench.files.responses import read_responses, write_responses
from dialbench.records import Example

text = st.text(st.characters(codec="utf-8"), max_size=20)
texts = st.lists(text, max_size=3).map(tuple)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes | str], Path]:
    def write(content: bytes | str) -> Path:
        path = tmp_path / "r.jsonl"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def fault(path: Path) -> str:
    with pytest.raises(InputError) as error:
        list(read_responses(path))
    assert "\n" not in error.value.message
    return error.value.message


references = texts.map(lambda several: tuple(one for one in several if one.strip()))


@given(st.lists(st.tuples(text, texts, references, text), min_size=1, max_size=5))
def test_written_responses_come_back(
    rows: list[tuple[str, tuple[str, ...], tuple[str, ...], str]],
) -> None:
    pairs = [
        (Example(f"{number}{id}", id, context, references), response)
        for number, (id, context, references, response) in enumerate(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        write_responses(path, pairs)
        assert list(read_responses(path)) == pairs
        lines = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    first = pairs[0][0]
    assert json.loads(lines[0]) == {
        "id": first.id,
        "dialogue_id": first.dialogue_id,
        "context": list(first.context),
        "references": list(first.references),
        "response": pairs[0][1],
    }


def test_numbers_of_responses_serve_where_ids_are_left_out(file: Callable[[str], Path]) -> None:
    path = file('{"response": "a"}\n\n{"response": "", "dialogue_id": "d", "note": [1]}\r\n')
    assert list(read_responses(path)) == [
        (Example("1", "1", (), ()), "a"),
        (Example("2", "d", (), ()), ""),
    ]


def test_without_a_dialogue_an_example_is_a_dialogue_of_its_own(
    file: Callable[[str], Path],
) -> None:
    path = file('{"response": "a", "id": "x"}\n{"response": "b", "id": "y", "dialogue_id": "d"}')
    assert list(read_responses(path)) == [
        (Example("x", "x", (), ()), "a"),
        (Example("y", "d", (), ()), "b"),
    ]


def test_line_numbers_keep_clear_of_names_that_other_lines_give(
    file: Callable[[str], Path],
) -> None:
    lines = [{"id": "2"}, {}, {}, {"dialogue_id": "3"}, {}, {"id": "5*", "dialogue_id": "5"}]
    path = file("".join(json.dumps({"response": "a", **line}) + "\n" for line in lines))
    actual = [(example.id, example.dialogue_id) for example, _ in read_responses(path)]
    assert actual == [
        ("2", "2"),
        ("2*", "2*"),
        ("3*", "3*"),
        ("4", "3"),
        ("5**", "5**"),
        ("5*", "5"),
    ]


def test_several_responses_to_a_context_stand_in_one_line(file: Callable[[str], Path]) -> None:
    answers = [(Example("1", "d", (), ()), "a", "b", ""), (Example("2", "d", (), ()), "c")]
    path = file("")
    write_responses(path, answers)
    assert list(read_responses(path)) == answers
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert first["alternatives"] == ["b", ""]
    assert "alternatives" not in second
    assert "field 'alternatives'" in fault(file('{"response": "a", "alternatives": "b"}'))


def test_a_byte_order_mark_and_a_missing_last_newline_do_not_matter(
    file: Callable[[bytes], Path],
) -> None:
    path = file(b'\xef\xbb\xbf{"response": "\xc3\xbc\xe2\x80\xa8"}')
    assert [response for _, response in read_responses(path)] == ["ü\u2028"]


@pytest.mark.parametrize(("suffix", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress)])
def test_packed_files(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"r.jsonl{suffix}"
    hashes = [hashlib.sha256(bytes([number % 256])).hexdigest() for number in range(3000)]
    content = "".join(f'{{"response": "{text}"}}\n' for text in hashes).encode()
    path.write_bytes(pack(content))
    assert [response for _, response in read_responses(path)] == hashes
    path.write_bytes(pack(content)[:-40])
    message = fault(path)
    where = message.removeprefix(f"{path}:")
    assert int(where.split(":")[0]) > 1
    assert "the compressed file is damaged" in message
    path.write_bytes(content)
    assert fault(path).startswith(f"{path}:1: the compressed file is damaged")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not JSON: "),
        ('{"response": "a"} x', "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ("[1]", "not a JSON object"),
        ('"a"', "not a JSON object"),
        ('{"id": "7"}', "field 'response' is missing"),
        ('{"response": null}', "field 'response': input should be a valid string"),
        ('{"response": 1}', "field 'response': input should be a valid string"),
        ('{"response": "\\ud800"}', "not JSON: "),
        ('{"response": "a", "id": 7}', "field 'id': input should be a valid string"),
        ('{"response": "a", "context": "b"}', "field 'context': input should be a valid array"),
        ('{"response": "a", "references": [["b"]]}', "field 'references.0': "),
        (b'{"response": "a\xff"}', "byte 16 of the line is not UTF-8"),
    ],
)
def test_a_fault_is_named_with_its_line(
    file: Callable[[bytes], Path], line: bytes | str, what: str
) -> None:
    raw = line.encode() if isinstance(line, str) else line
    path = file(b'{"response": "fine"}\n' + raw + b"\n")
    assert fault(path).startswith(f"{path}:2: {what}")


@pytest.mark.parametrize("between", ['{"response": "c", "id": "y"}', '{"response": "c"}'])
def test_an_id_that_comes_twice_names_both_lines(file: Callable[[str], Path], between: str) -> None:
    line = '{"response": "a", "id": "x"}'
    path = file(f"{line}\n{between}\n{line}\n")
    assert fault(path).startswith(f"{path}:3: id 'x' stands already in line 1.")


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_responses(file: Callable[[str], Path], content: str) -> None:
    assert "there are no responses in this file" in fault(file(content))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    assert "No such file" in fault(tmp_path / "missing.jsonl")
    assert "Is a directory" in fault(tmp_path)


def test_reading_is_one_line_at_a_time(file: Callable[[str], Path]) -> None:
    reader = read_responses(file('{"id": "x", "response": "a"}\nbroken\n'))
    assert next(reader)[1] == "a"
    with pytest.raises(InputError):
        next(reader)


def test_a_response_that_is_not_unicode_keeps_the_old_file(tmp_path: Path) -> None:
    example = Example("e1", "d", (), ())
    write_responses(tmp_path / "r.jsonl", [(example, "old")])
    with pytest.raises(SystemFailed, match="example e1: the response is not Unicode text"):
        write_responses(tmp_path / "r.jsonl", [(example, "half a pair: \ud83d")])
    assert [response for _, response in read_responses(tmp_path / "r.jsonl")] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


@pytest.mark.parametrize("half", [r"\ud800", r"\udfff x", r"\ud800\ud800"])
def test_half_a_character_names_its_line_and_how_to_go_on(tmp_path: Path, half: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"response": "fine"}\n{"response": "' + half + '"}\n')
    with pytest.raises(InputError) as error:
        list(read_responses(path))
    assert error.value.where == f"{path}:2"
    assert r"write \ufffd in its place" in error.value.hint

"""Files of judgements: what is read, and what is refused with file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dialbench.errors import InputError
from dialbench.human.judgements import Judgement, read_judgements

HEAD = "judge,example,criterion,system,against,verdict\n"


def test_a_csv_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "judgements.csv"
    text = (
        "\ufeffverdict,system,against,judge,example,criterion,comment\r\n"
        'Win,mine,theirs,Ann,e1,Fluency,"short,\r\nand kind"\r\n'
        "\r\n"
        "lose,mine, theirs ,7,e2,,\r\n"
        "1.5,mine,,Ann,e1\r\n"
    )
    path.write_bytes(text.encode())
    assert read_judgements(path) == [
        Judgement(f"{path}:3", "Ann", "e1", "Fluency", "mine", "theirs", 1.0),
        Judgement(f"{path}:5", "7", "e2", "", "mine", "theirs", -1.0),
        Judgement(f"{path}:6", "Ann", "e1", "", "mine", "", 1.5),
    ]


def test_json_lines_may_hold_numbers_and_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl.gz"
    pair = {"judge": 1, "example": 12, "system": "a", "against": "b", "verdict": "tie"}
    rating = {"judge": "x", "example": "e", "system": "a", "against": None, "verdict": 2}
    path.write_bytes(gzip.compress(f"{json.dumps(pair)}\n\n{json.dumps(rating)}".encode()))
    assert read_judgements(path) == [
        Judgement(f"{path}:1", "1", "12", "", "a", "b", 0.0),
        Judgement(f"{path}:3", "x", "e", "", "a", "", 2.0),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x,e,c,a,b,better", "verdict 'better' is none of win, tie and loss"),
        ("x,e,c,a,b,1", "verdict '1' is none of win, tie and loss"),
        ("x,e,c,a,,win", "rating 'win' is not a number"),
        ("x,e,c,a,,nan", "rating 'nan' is not a number"),
        ("x,e,c,GPT-2,gpt 2,win", "GPT-2 is judged against itself"),
        ("x,,c,a,b,win", "field 'example'"),
        ("x,e,c,a,b", "field 'verdict'"),
        ('x,e,c,a,b,"win" lose', "not CSV"),
        ("j,e1,C,a,b,loss", "judge 'j' has judged this already, at"),
        ("j,e1,c,B,A,win", "judge 'j' has judged this already, at"),
    ],
)
def test_a_line_that_is_no_judgement_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "judgements.csv"
    path.write_text(f"{HEAD}j,e1,c,a,b,win\n{line}\n")
    with pytest.raises(InputError) as error:
        read_judgements(path)
    assert str(error.value).startswith(f"{path}:3: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"judge", "Invalid JSON"),
        (b"[1]", "Input should be an object"),
        (b"[" * 100_000, "Invalid JSON"),
        (b'{"judge": "x", "example": "e", "system": "a"}', "field 'verdict': Field required"),
        (b'{"judge": "x", "example": "e", "system": "a", "verdict": true}', "field 'verdict'"),
        (b'{"judge": "\xff"}', "byte 12 of the line is not UTF-8"),
    ],
)
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "judgements.jsonl"
    path.write_bytes(b"\n" + line + b"\n")
    with pytest.raises(InputError) as error:
        read_judgements(path)
    assert str(error.value).startswith(f"{path}:2: {message}")


def test_a_file_without_judgements_is_a_mistake(tmp_path: Path) -> None:
    for name, text in (("a.csv", HEAD), ("a.jsonl", "\n")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(InputError, match="no judgements in this file"):
            read_judgements(path)
    headless = tmp_path / "b.csv"
    headless.write_text("judge,example,system\n")
    with pytest.raises(InputError, match=r"b\.csv:1: the header has no column 'verdict'"):
        read_judgements(headless)
    with pytest.raises(InputError, match="cannot be read"):
        read_judgements(tmp_path / "nowhere.csv")


def test_a_line_break_in_a_cell_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'{HEAD}j,"e\n1",c,a,b,win\nj,e1,c,a,b,win\n')
    assert [judgement.example for judgement in read_judgements(path)] == ["e\n1", "e1"]

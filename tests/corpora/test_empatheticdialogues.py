from __future__ import annotations

from pathlib import Path

import pytest

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError

HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"


def _rows(id: str, *utterances: str) -> str:
    return "".join(
        f"{id},{number},proud,My dog won.,{number % 2},{text},,\n"
        for number, text in enumerate(utterances, start=1)
    )


@pytest.fixture
def folder(write, tmp_path: Path) -> Path:
    write(
        "empatheticdialogues/train.csv.xz",
        HEADER
        + _rows("hit:1_conv:2", '"Oh_comma_ my" he said', " Well_comma_ well ")
        + _rows("hit:1_conv:3", '"unclosed quote', "fine", "good"),
    )
    write("empatheticdialogues/valid.csv", HEADER + _rows("hit:7_conv:14", "a", "b"))
    # As in the official release, candidates follow in a column that the header does not name.
    test = _rows("hit:9_conv:18", "a", "c").replace(",,\n", ",,,one|two_comma_ three\n")
    write("empatheticdialogues/test.csv", HEADER + test)
    return tmp_path


def test_quotes_are_text_and_commas_are_restored(folder: Path) -> None:
    corpus = load_corpus("empatheticdialogues", data=folder)
    assert [(each.id, each.turns) for each in corpus.dialogues("train")] == [
        ("hit:1_conv:2", ('"Oh, my" he said', "Well, well")),
        ("hit:1_conv:3", ('"unclosed quote', "fine", "good")),
    ]
    assert corpus.test[0].references == ("c",)
    assert [each.id for each in corpus.train] == [
        "hit:1_conv:2-1",
        "hit:1_conv:3-1",
        "hit:1_conv:3-2",
    ]


def test_a_missing_column(folder: Path, write) -> None:
    path = write("empatheticdialogues/valid.csv", "conv_id,text\nhit:1,hello\n")
    with pytest.raises(InputError) as caught:
        load_corpus("empatheticdialogues", data=folder)
    assert str(caught.value).startswith(f"{path}:1: column 'utterance' is missing")


@pytest.mark.parametrize(("row", "fields"), [("hit:1_conv:2,1,proud", 3), ("a,b," * 6, 13)])
def test_a_wrong_number_of_fields(folder: Path, write, row: str, fields: int) -> None:
    path = write("empatheticdialogues/valid.csv", f"{HEADER}{_rows('x', 'a', 'b')}{row}\n")
    with pytest.raises(InputError) as caught:
        load_corpus("empatheticdialogues", data=folder)
    assert str(caught.value).startswith(f"{path}:4: {fields} fields, expected 8")


def test_the_rebuilt_release(data_folder: Path) -> None:
    corpus = load_corpus("empatheticdialogues", data=data_folder)
    dialogues = {split: list(corpus.dialogues(split)) for split in ("train", "valid", "test")}
    assert {split: len(each) for split, each in dialogues.items()} == {
        "train": 19_532,
        "valid": 2_769,
        "test": 2_546,
    }
    turns = {split: sum(len(each.turns) for each in all) for split, all in dialogues.items()}
    assert turns == {"train": 84_165, "valid": 12_074, "test": 10_969}
    assert corpus.notes == (
        "EmpatheticDialogues: train has 19,532 dialogues, the official release 19,533",
        "EmpatheticDialogues: valid has 2,769 dialogues, the official release 2,770",
        "EmpatheticDialogues: test has 2,546 dialogues, the official release 2,547",
        "EmpatheticDialogues: 3 dialogues with fewer than two turns, giving no example",
    )
    text = "\n".join(turn for each in dialogues["test"] for turn in each.turns)
    assert "_comma_" not in text

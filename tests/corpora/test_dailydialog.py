from __future__ import annotations

from pathlib import Path

import pytest

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError

TRAIN = "dailydialog/train/dialogues_train.txt"


def test_text_is_verbatim_but_for_blanks_around_turns(dailydialog: Path, write) -> None:
    write(TRAIN, "  I ’ m  fine  __eou__“ So ” ,  she said 。 __eou__ \n")
    turns = next(load_corpus("dailydialog", data=dailydialog).dialogues("train")).turns
    assert turns == ("I ’ m  fine", "“ So ” ,  she said 。")


def test_line_separators_inside_a_turn_do_not_end_the_line(dailydialog: Path, write) -> None:
    write(TRAIN, "one\u2028two\x85three __eou__ four __eou__\r\n")
    turns = next(load_corpus("dailydialog", data=dailydialog).dialogues("train")).turns
    assert turns == ("one\u2028two\x85three", "four")


def test_empty_turns_are_dropped_and_counted(dailydialog: Path, write) -> None:
    write(TRAIN, "a __eou__ __eou__ b __eou__\nc __eou__ d __eou__  __eou__\nlonely __eou__\n")
    corpus = load_corpus("dailydialog", data=dailydialog)
    assert [each.turns for each in corpus.dialogues("train")] == [
        ("a", "b"),
        ("c", "d"),
        ("lonely",),
    ]
    assert "DailyDialog: 2 empty turns dropped" in corpus.notes
    assert "DailyDialog: 1 dialogue with fewer than two turns, giving no example" in corpus.notes


@pytest.mark.parametrize("line", ["no end", "a __eou__ cut off", ""])
def test_a_line_that_does_not_end_with_the_mark(dailydialog: Path, write, line: str) -> None:
    path = write(TRAIN, f"a __eou__ b __eou__\n{line}\n")
    with pytest.raises(InputError) as caught:
        load_corpus("dailydialog", data=dailydialog)
    assert str(caught.value).startswith(f"{path}:2: the dialogue does not end with __eou__")


def test_invalid_utf8_names_file_and_line(dailydialog: Path) -> None:
    path = dailydialog / TRAIN
    path.write_bytes(b"a __eou__ b __eou__\nc\xff __eou__ d __eou__\n")
    with pytest.raises(InputError, match=r"dialogues_train\.txt:2: byte 0xff is not UTF-8"):
        load_corpus("dailydialog", data=dailydialog)


def test_an_empty_file_is_an_error(dailydialog: Path, write) -> None:
    write(TRAIN, "")
    with pytest.raises(InputError, match=r"dialogues_train\.txt: the file is empty"):
        load_corpus("dailydialog", data=dailydialog)


def test_a_missing_file_is_named(dailydialog: Path) -> None:
    (dailydialog / TRAIN).unlink()
    with pytest.raises(InputError, match=r"dialogues_train\.txt: cannot be read \(No such file"):
        load_corpus("dailydialog", data=dailydialog)


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_damaged_packed_file_names_file_and_line(dailydialog: Path, write, damage: str) -> None:
    (dailydialog / TRAIN).unlink()
    path = write(f"{TRAIN}.xz", "a __eou__ b __eou__\n" * 50)
    raw = path.read_bytes()
    path.write_bytes(raw[:-20] if damage == "cut" else b"not xz at all")
    with pytest.raises(InputError, match=r"\.txt\.xz:\d+: the compressed file is damaged"):
        load_corpus("dailydialog", data=dailydialog)


def test_a_byte_order_mark_is_no_text(dailydialog: Path, write) -> None:
    write(TRAIN, "\ufeffa __eou__ b __eou__\n")
    assert load_corpus("dailydialog", data=dailydialog).train[0].context == ("a",)


def test_the_official_release(data_folder: Path) -> None:
    corpus = load_corpus("dailydialog", data=data_folder)
    assert [len(corpus.split(split)) for split in ("train", "valid", "test")] == [
        76_053,
        7_069,
        6_740,
    ]
    assert sum(len(each.turns) for each in corpus.dialogues("train")) == 87_171
    assert corpus.notes == (
        "DailyDialog: 149 of 1,000 test dialogues also occur in train "
        "(case, spaces and punctuation ignored)",
    )
    ids = [each.id for split in ("train", "valid", "test") for each in corpus.split(split)]
    assert len(set(ids)) == len(ids)


def test_the_official_release_cleaned(data_folder: Path) -> None:
    corpus = load_corpus("dailydialog", data=data_folder, clean=True)
    assert len(list(corpus.dialogues("test"))) == 1_000 - 149
    assert corpus.test_in_train == 0

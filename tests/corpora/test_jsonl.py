from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.corpora import jsonl
from dialbench.corpora.base import load_corpus
from dialbench.corpora.corpus import Corpus
from dialbench.corpora.files import SPLITS
from dialbench.errors import InputError


def _lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def _dialogues(n: int) -> list[dict[str, object]]:
    return [{"id": f"d{number}", "turns": [f"question {number}", "answer"]} for number in range(n)]


def _ids(corpus: Corpus) -> dict[str, list[str]]:
    return {split: [each.id for each in corpus.dialogues(split)] for split in SPLITS}


def _message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_corpus(str(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_dialogues_and_examples_in_a_folder(write) -> None:
    write("own/train.jsonl", _lines({"turns": ["a", " b ", ""]}, {"id": 7, "turns": ["c", "d"]}))
    write("own/valid.jsonl.xz", "\n" + _lines({"id": "v", "turns": ["e", "f"], "speaker": "x"}))
    example = {"id": "t", "dialogue_id": "talk", "context": ["g"], "references": ["h", " ", "i"]}
    folder = write("own/test.jsonl", _lines(example)).parent
    corpus = load_corpus(str(folder))
    assert [each.id for each in corpus.train] == ["train-1-1", "7-1"]
    assert corpus.valid[0].id == "v-1"
    test = corpus.test[0]
    assert (test.id, test.dialogue_id, test.context) == ("t", "talk", ("g",))
    assert test.references == ("h", "i")
    assert next(corpus.dialogues("test")).turns == ("g", "h")
    assert (corpus.name, corpus.publishable) == ("own", False)
    assert corpus.notes == ("own: 2 empty turns dropped",)


def test_a_single_file_is_split_by_dialogue(write) -> None:
    corpus = load_corpus(str(write("mine.jsonl", _lines(*_dialogues(50)))))
    ids = _ids(corpus)
    assert [len(ids[split]) for split in SPLITS] == [40, 5, 5]
    assert sorted(chain.from_iterable(ids.values())) == sorted(f"d{number}" for number in range(50))
    assert corpus.name == "mine"
    assert any("into 40 / 5 / 5 dialogues" in note for note in corpus.notes)


def test_the_split_depends_on_ids_alone(write) -> None:
    lines = _dialogues(50)
    first = _ids(load_corpus(str(write("a.jsonl", _lines(*lines)))))
    for line in lines:
        line["turns"] = ["other", "words", "here"]
    second = _ids(load_corpus(str(write("b.jsonl", _lines(*reversed(lines))))))
    assert {split: sorted(ids) for split, ids in first.items()} == {
        split: sorted(ids) for split, ids in second.items()
    }


def test_examples_of_one_dialogue_stay_together(write) -> None:
    lines = [
        {"dialogue_id": f"d{number // 3}", "context": ["x"], "references": [str(number)]}
        for number in range(90)
    ]
    corpus = load_corpus(str(write("a.jsonl", _lines(*lines))))
    owners = {split: {each.dialogue_id for each in corpus.split(split)} for split in SPLITS}
    assert [len(owners[split]) for split in SPLITS] == [24, 3, 3]
    assert not owners["train"] & owners["test"]
    assert not owners["valid"] & (owners["train"] | owners["test"])


def test_lines_may_name_their_split(write) -> None:
    lines = _dialogues(12)
    lines[0]["split"] = "test"
    lines[1]["split"] = "valid"
    lines += [{**line, "id": f"x{n}", "split": "train"} for n, line in enumerate(_dialogues(3))]
    ids = _ids(load_corpus(str(write("a.jsonl", _lines(*lines)))))
    assert "d0" in ids["test"]
    assert "d1" in ids["valid"]
    assert {"x0", "x1", "x2"} <= set(ids["train"])
    assert sum(map(len, ids.values())) == 15


def test_no_note_where_every_line_names_its_split(write) -> None:
    lines = [{"turns": ["a", str(n)], "split": split} for n, split in enumerate(SPLITS)]
    assert load_corpus(str(write("a.jsonl", _lines(*lines)))).notes == ()


def test_training_text_is_every_line_but_those_marked_otherwise(write) -> None:
    lines = _dialogues(7)
    lines[1]["split"], lines[3]["split"], lines[4]["split"] = "train", "valid", "test"
    path = write("a.jsonl.xz", _lines(*lines))
    assert [item.id for item in jsonl.read_training(path)] == ["d0", "d1", "d2", "d5", "d6"]
    assert sum(map(len, _ids(load_corpus(str(path))).values())) == 7


def test_a_folder_and_a_known_corpus_are_no_single_files(write) -> None:
    assert jsonl.is_single_file("a.jsonl")
    assert jsonl.is_single_file("a.jsonl.xz")
    assert not jsonl.is_single_file("dailydialog")
    assert not jsonl.is_single_file(str(write("own.jsonl/train.jsonl", "x").parent))


def test_too_few_dialogues_to_split(write) -> None:
    assert "its train split has no example" in _message(write("a.jsonl", _lines(*_dialogues(2))))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"turns": ["a", "b"]', "Invalid JSON"),
        ("[1, 2]", "Input should be an object"),
        ('{"turns": ["a", 3]}', "turns.1: Input should be a valid string"),
        ('{"turns": "abc"}', "turns: Input should be a valid array"),
        ('{"turns": []}', "turns: List should have at least 1 item"),
        ('{"context": ["a"]}', "give either turns, or context and references"),
        ('{"turns": ["a", "b"], "context": ["a"]}', "give either turns, or context and references"),
        ("{}", "give either turns, or context and references"),
        ('{"turns": ["a", "b"], "split": "dev"}', "split: Input should be 'train', 'valid'"),
        ('{"turns": ["a", "b"], "id": true}', "id"),
        ('{"turns": ["a", "\\ud800"]}', "Invalid JSON"),
        ('{"context": [" "], "references": ["b"]}', "the context holds no text"),
        ('{"context": ["a"], "references": [" "]}', "references hold no text"),
    ],
)
def test_faulty_lines_are_named(write, line: str, fault: str) -> None:
    path = write("a.jsonl", _lines(*_dialogues(3)) + line + "\n")
    message = _message(path)
    assert message.startswith(f"{path}:4: ")
    assert fault in message


def test_an_id_that_stands_twice_names_both_lines(write) -> None:
    path = write("a.jsonl", _lines(*_dialogues(3), {"id": "d1", "turns": ["x", "y"]}))
    assert _message(path).startswith(f"{path}:4: id 'd1' stands already at {path}:2")


def test_an_id_that_stands_twice_in_two_files(write) -> None:
    first = write("own/train.jsonl", _lines({"id": "a", "turns": ["x", "y"]}))
    second = write("own/valid.jsonl", _lines({"id": "a", "turns": ["x", "y"]}))
    write("own/test.jsonl", _lines({"id": "b", "turns": ["x", "y"]}))
    assert _message(first.parent).startswith(f"{second}:1: id 'a' stands already at {first}:1")


def test_a_line_without_an_id_leaves_those_that_others_give_themselves(write) -> None:
    lines = [{"id": "line-2", "turns": ["a", "b"]}, {"turns": ["c", "d"]}]
    corpus = load_corpus(str(write("a.jsonl", _lines(*lines))), test_only=True)
    assert [example.dialogue_id for example in corpus.test] == ["line-2", "line-2*"]


def test_an_example_may_not_take_the_id_of_a_turn(write) -> None:
    lines = [*_dialogues(3), {"id": "d2-1", "context": ["x"], "references": ["y"]}]
    assert "id 'd2-1' stands already at" in _message(write("a.jsonl", _lines(*lines)))


def test_a_line_in_the_file_of_another_split(write) -> None:
    for split in SPLITS:
        path = write(f"own/{split}.jsonl", _lines({"turns": ["a", split], "split": "train"}))
    assert ":1: the line says that it belongs to the split train" in _message(path.parent)


def test_a_folder_without_a_split(write) -> None:
    folder = write("own/train.jsonl", _lines(*_dialogues(3))).parent
    assert _message(folder).startswith(f"{folder / 'test.jsonl'}: cannot be read")


def test_a_test_split_alone_is_a_corpus_to_train_nothing_on(write) -> None:
    file = write("own/test.jsonl", _lines(*_dialogues(3)))
    marked = write("marked.jsonl", _lines(*({**each, "split": "test"} for each in _dialogues(3))))
    for name in (file, file.parent, marked):
        corpus = load_corpus(str(name))
        assert [len(list(corpus.dialogues(split))) for split in SPLITS] == [0, 0, 3]


def test_an_empty_file(write) -> None:
    assert "the file is empty" in _message(write("a.jsonl", ""))


_TURNS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), min_size=2)


@given(st.lists(_TURNS, min_size=3, max_size=12))
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory, talks: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "a.jsonl"
    lines = [json.dumps({"turns": turns}, ensure_ascii=False) for turns in talks]
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    corpus = load_corpus(str(path))
    actual = [each.turns for split in SPLITS for each in corpus.dialogues(split)]
    assert sorted(actual) == sorted(tuple(turn.strip() for turn in turns) for turns in talks)
    assert sum(len(corpus.split(split)) for split in SPLITS) == sum(len(t) - 1 for t in talks)


def test_a_file_never_bears_the_name_of_a_known_corpus(tmp_path: Path) -> None:
    assert jsonl.card(tmp_path / "demo.jsonl.xz", reserved=["demo"]).name == "own-demo"
    assert jsonl.card(tmp_path / "mine.jsonl").name == "mine"


def test_half_a_character_names_its_line_and_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"turns": ["a", "b"]}\n' + r'{"turns": ["a", "\ud83d"]}' + "\n")
    with pytest.raises(InputError) as error:
        jsonl.read(path)
    assert error.value.where == f"{path}:2"
    assert r"write \ufffd in its place" in error.value.hint

"""What text novelty, ead-n and word vectors take from a corpus or a file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.corpora.base import load_corpus
from dialbench.corpora.training_text import training_split, turns_of
from dialbench.errors import InputError
from dialbench.records import Example, Split
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.options import ScoringOptions
from dialbench.scoring.resources import build_metrics

TURNS = [f"r{i} d e f" for i in range(10)]
DIALOGUES = [{"turns": [f"q{i} a b c", turn]} for i, turn in enumerate(TURNS)]


@pytest.fixture
def file(tmp_path):
    def write(*lines, name="mine.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


def text_of(train):
    return list(turns_of(training_split(train)))


def test_all_of_a_file_is_training_text(file):
    train = training_split(file(*DIALOGUES))
    names = ("novelty", "copy-rate", "ead-1")
    built = build_metrics(ScoringOptions(names, "whitespace"), train)
    texts = [(Example(str(i), str(i), ("x",), ("y",)), turn) for i, turn in enumerate(TURNS)]
    scores = score_responses(texts, built)
    assert (scores["novelty"].value, scores["copy-rate"].value) == (0, 1)
    assert "|V:26|" in scores["ead-1"].signature


def test_lines_marked_valid_or_test_are_no_training_text(file):
    splits = ["train", None, "valid", "test", "train"]
    lines = [dict(d, split=s) if s else d for d, s in zip(DIALOGUES, splits, strict=False)]
    actual = text_of(file(*lines[:5]))
    assert actual == [turn for place in (0, 1, 4) for turn in DIALOGUES[place]["turns"]]


@pytest.mark.parametrize("count", [1, 2])
def test_a_file_of_one_or_two_dialogues_is_training_text(file, count):
    expected = [turn for dialogue in DIALOGUES[:count] for turn in dialogue["turns"]]
    assert text_of(file(*DIALOGUES[:count])) == expected
    marked = [dict(dialogue, split="train") for dialogue in DIALOGUES[:count]]
    assert text_of(file(*marked)) == expected


def test_a_single_turn_in_a_file_is_training_text(file):
    assert text_of(file({"turns": ["alone"]}, {"turns": [" "]}, {"turns": ["a", "b"]})) == [
        *("alone", "a", "b")
    ]


def test_a_file_without_training_text_says_so(file):
    path = file(*(dict(dialogue, split="test") for dialogue in DIALOGUES))
    with pytest.raises(InputError, match=r"--train .*mine\.jsonl: no line is training text"):
        training_split(path)


def test_a_folder_gives_its_training_file_with_contexts_uncut(file):
    turns = [f"t{i}" for i in range(9)]
    ready = {"context": turns[:8], "references": turns[8:]}
    folder = file(ready, {"turns": ["one"]}, {"turns": ["a", "b"]}, name="own/train.jsonl").parent
    for split in ("valid", "test"):
        file({"turns": ["x", split]}, name=f"own/{split}.jsonl")
    assert text_of(folder) == [*turns, "a", "b"]


@pytest.mark.parametrize("context_turns", [1, 2, 5])
def test_a_corpus_gives_each_turn_of_its_training_split_once(context_turns):
    corpus = load_corpus("demo", context_turns=context_turns)
    expected = [t for d in corpus.dialogues("train") if len(d.turns) > 1 for t in d.turns]
    assert list(turns_of(corpus.train)) == expected
    assert text_of("demo") == expected


def test_ready_made_examples_of_a_growing_dialogue_lose_no_turn(file):
    path = file(
        {"dialogue_id": "d", "context": ["A1"], "references": ["B1"]},
        {"dialogue_id": "d", "context": ["A1", "B1", "A2"], "references": ["B2", "B3"]},
        {"dialogue_id": "e", "context": ["A1"], "references": ["C1"]},
        {"dialogue_id": "d", "context": ["A1", "B1", "A2", "B3", "A1"], "references": ["B1"]},
    )
    assert text_of(path) == ["A1", "B1", "A2", "B2", "B3", "A1", "C1", "A1", "B1"]


def example(context, *references):
    return Example(" ".join(context), "d", tuple(context), references)


def test_other_responses_to_a_context_and_other_branches_repeat_nothing():
    split = Split("train", [example("a", "b"), example("a", "c"), example("axy", "z")])
    assert list(turns_of(split)) == [*"abcxyz"]


dialogue = st.lists(st.sampled_from("abc"), min_size=2, max_size=9)


@given(dialogue, st.data())
def test_whole_contexts_in_any_order_show_each_turn_once(turns, data):
    places = data.draw(st.lists(st.integers(1, len(turns) - 1), min_size=1, unique=True))
    split = Split("train", [example(turns[:place], turns[place]) for place in places])
    actual = list(turns_of(split))
    assert sorted(actual) == sorted(turns[: max(places) + 1])
    if places == sorted(places):
        assert actual == turns[: max(places) + 1]


@given(dialogue, st.integers(1, 9))
def test_cut_contexts_show_each_turn_once(turns, kept):
    split = Split(
        "train",
        [example(turns[max(0, p - kept) : p], turns[p]) for p in range(1, len(turns))],
    )
    assert list(turns_of(split)) == turns

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dialbench.corpora.base import card, load_corpus, names
from dialbench.corpora.corpus import Corpus, sample
from dialbench.errors import InputError, UnknownName
from dialbench.files.folders import data_folder


def _examples(corpus: Corpus, split: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(each.id, each.context, each.references) for each in corpus.split(split)]


def test_every_turn_from_the_second_on_is_a_response(dailydialog: Path) -> None:
    corpus = load_corpus("dailydialog", data=dailydialog)
    assert _examples(corpus, "train")[:3] == [
        ("train-0-1", ("Is it raining ?",), ("Not yet .",)),
        ("train-0-2", ("Is it raining ?", "Not yet ."), ("Good .",)),
        ("train-1-1", ("Where is Tom ?",), ("In the garden .",)),
    ]
    assert [each.dialogue_id for each in corpus.train] == ["train-0"] * 2 + ["train-1"] + [
        "train-2"
    ] * 2
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (5, 1, 2)
    assert corpus.train is corpus.split("train")


@pytest.mark.parametrize("turns", [1, 2, 3, 9])
def test_contexts_keep_the_latest_turns(write, turns: int) -> None:
    said = [f"turn {number}" for number in range(6)]
    for split in ("train", "valid", "test"):
        write(f"own/{split}.jsonl", json.dumps({"id": split, "turns": said}))
    corpus = load_corpus(str(write("own/x", "x").parent), context_turns=turns)
    last = corpus.test[-1]
    assert last.context == tuple(said[max(0, 5 - turns) : 5])
    assert last.references == ("turn 5",)
    assert corpus.test[0].context == ("turn 0",)


def test_ready_made_examples_keep_the_latest_turns_too(write) -> None:
    line = json.dumps({"context": ["a", "b", "c"], "references": ["d", "e"]})
    for split in ("train", "valid", "test"):
        folder = write(f"own/{split}.jsonl", line).parent
    example = load_corpus(str(folder), context_turns=2).test[0]
    assert (example.context, example.references) == (("b", "c"), ("d", "e"))


def test_context_turns_must_be_positive() -> None:
    with pytest.raises(InputError, match="at least 1 turn, not 0"):
        load_corpus("demo", context_turns=0)


def test_sizes_other_than_the_official_become_notes(dailydialog: Path) -> None:
    notes = load_corpus("dailydialog", data=dailydialog).notes
    assert "DailyDialog: train has 3 dialogues, the official release 11,118" in notes
    assert "DailyDialog: test has 2 dialogues, the official release 1,000" in notes


def test_clean_leaves_out_test_dialogues_that_are_in_train(dailydialog: Path) -> None:
    plain = load_corpus("dailydialog", data=dailydialog)
    clean = load_corpus("dailydialog", data=dailydialog, clean=True)
    assert any("1 of 2 test dialogues also occur in train" in note for note in plain.notes)
    assert any("1 of 2 test dialogues left out" in note for note in clean.notes)
    assert not any("also occur" in note for note in clean.notes)
    assert [each.context for each in clean.test] == [("Hello .",)]
    assert _examples(clean, "train") == _examples(plain, "train")
    # What stays keeps its id, so that results with and without can be paired.
    assert clean.test[0].id == "test-1-1"


def test_clean_may_not_leave_an_empty_test_set(write) -> None:
    for split in ("train", "valid", "test"):
        folder = write(f"own/{split}.jsonl", '{"turns": ["a b", "c"]}').parent
    with pytest.raises(InputError, match=r"its test split has no example\. Leave --clean out"):
        load_corpus(str(folder), clean=True)


def test_what_lacks_examples_says_where_they_may_come_from(write) -> None:
    def hint(corpus: Path, where: str = "--corpus") -> str:
        with pytest.raises(InputError, match="split has no example") as error:
            load_corpus(str(corpus), where=where)
        return error.value.hint

    two = write("two.jsonl", '{"turns": ["a", "b"]}\n{"turns": ["c", "d"]}\n')
    mark = 'Mark lines with "split": "train", "valid" or "test", '
    assert hint(two) == f"{mark}give more dialogues, or run only rows that learn nothing."
    assert hint(two, "export") == f"{mark}or give more dialogues of two turns or more."
    write("folder/train.jsonl", '{"turns": ["a"]}')
    folder = write("folder/test.jsonl", '{"turns": ["a", "b"]}').parent
    assert hint(folder) == "Write dialogues of two turns or more into its file of the train split."
    assert hint(write("test.jsonl", '{"turns": ["a"]}')).startswith(mark)


def test_checksum_follows_the_content_and_nothing_else(dailydialog: Path, write) -> None:
    first = load_corpus("dailydialog", data=dailydialog)
    text = (dailydialog / "dailydialog/train/dialogues_train.txt").read_text("utf-8")
    assert first.checksum == load_corpus("dailydialog", data=dailydialog).checksum
    assert len(first.checksum) == 64

    (dailydialog / "dailydialog/train/dialogues_train.txt").unlink()
    write("dailydialog/train/dialogues_train.txt.xz", text.replace("\n", "\r\n"))
    assert load_corpus("dailydialog", data=dailydialog).checksum == first.checksum

    write("dailydialog/train/dialogues_train.txt.xz", text.replace("yet", "now"))
    changed = load_corpus("dailydialog", data=dailydialog)
    assert changed.checksum != first.checksum
    assert changed.checksum_of("test") == first.checksum_of("test")
    assert changed.checksum_of("train") != first.checksum_of("train")


def test_checksum_covers_context_turns_and_cleaning(dailydialog: Path) -> None:
    plain = load_corpus("dailydialog", data=dailydialog)
    assert load_corpus("dailydialog", data=dailydialog, context_turns=2).checksum != plain.checksum
    clean = load_corpus("dailydialog", data=dailydialog, clean=True)
    assert clean.checksum != plain.checksum
    assert clean.checksum_of("train", "valid") == plain.checksum_of("train", "valid")


def test_unknown_name_proposes_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        load_corpus("dailydialogs", where="--corpus")
    assert (
        str(caught.value) == "--corpus: unknown corpus 'dailydialogs'. Did you mean 'dailydialog'?"
    )


def test_a_path_that_is_no_corpus_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"notes\.txt: is neither a FILE\.jsonl nor a folder"):
        load_corpus(str(tmp_path / "notes.txt"))
    with pytest.raises(InputError, match=r"nowhere\.jsonl: cannot be read \(No such file"):
        load_corpus(str(tmp_path / "nowhere.jsonl"))


def test_missing_data_folder_says_where_it_looked_and_the_ways_out(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_corpus("empatheticdialogues", data=tmp_path / "none")
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'none' / 'empatheticdialogues'}: no such corpus folder")
    for way in ("--data DIR", "DIALBENCH_DATA", "`dialbench fetch empatheticdialogues`"):
        assert way in text


def test_data_folder_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIALBENCH_DATA", "/from/environment")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_folder(tmp_path) == tmp_path
    assert data_folder(None) == Path("/from/environment")
    monkeypatch.setenv("DIALBENCH_DATA", "")
    assert data_folder(None) == Path("/cache/dialbench/data")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert data_folder(None) == Path("/home/somebody/.cache/dialbench/data")


def test_the_environment_names_the_data_folder(
    dailydialog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALBENCH_DATA", str(dailydialog))
    assert len(load_corpus("dailydialog").test) == 2


@pytest.mark.parametrize("name", names())
def test_cards_are_complete(name: str) -> None:
    known = card(name)
    assert known.name == name
    assert known.title
    assert known.licence
    assert known.citation or name == "demo"
    assert set(known.official) == {"train", "valid", "test"}
    assert "\n" not in known.summary
    # The house may publish nobody's text but its own.
    assert known.publishable == (name == "demo")


def test_names_are_sorted_and_unknown_cards_are_errors() -> None:
    assert names() == sorted(names())
    assert {"dailydialog", "demo", "empatheticdialogues"} < set(names())
    with pytest.raises(UnknownName, match="Did you mean 'demo'"):
        card("demos")


def test_reading_a_card_loads_no_heavy_library() -> None:
    code = (
        "import sys; from dialbench.corpora.base import card, names, load_corpus\n"
        "[card(name) for name in names()]; load_corpus('demo').notes\n"
        "heavy = {'torch', 'numpy', 'pandas', 'nltk', 'pydantic', 'scipy'} & set(sys.modules)\n"
        "print(*sorted(heavy), end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class TestSample:
    """What is learnt from where not everything is."""

    def test_whole_dialogues_from_everywhere_in_corpus_order(self) -> None:
        train = load_corpus("demo").train
        places = {example.id: place for place, example in enumerate(train)}
        drawn = [places[example.id] for example in sample(train, 1000)]
        assert len(drawn) == 1000
        assert drawn == sorted(drawn)
        assert 0.4 < sum(drawn) / len(drawn) / len(train) < 0.6
        whole = Counter(example.dialogue_id for example in train)
        part = Counter(example.dialogue_id for example in sample(train, 1000))
        assert sum(part[id] < whole[id] for id in part) <= 1

    def test_a_smaller_one_lies_within_a_larger_one(self) -> None:
        train = load_corpus("demo").train
        few, many = ({example.id for example in sample(train, n)} for n in (100, 1000))
        assert few < many

    def test_without_a_limit_nothing_is_left_out(self) -> None:
        train = load_corpus("demo").train
        assert sample(train, None) is train
        assert sample(train, len(train)) is train
        assert len(sample(train, 1)) == 1

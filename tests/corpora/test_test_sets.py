"""Corpora that are published as test sets, in their own formats, with text of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialbench.corpora.audit import audit, describe
from dialbench.corpora.base import load_corpus
from dialbench.corpora.corpus import Corpus
from dialbench.corpora.files import SPLITS
from dialbench.corpora.overlap import normalised
from dialbench.errors import InputError
from dialbench.records import Dialogue

RAIN = {"text": "Is it raining ?", "responses": ["not yet .", " no . ", ""]}
LAST = {"text": "Not yet ."}


def _lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def _sizes(corpus: Corpus) -> list[int]:
    return [len(corpus.split(split)) for split in SPLITS]


class TestPersonaChat:
    """Lists of dialogues; personas are left out."""

    def test_turns_without_personas(self, write, tmp_path: Path) -> None:
        dialogue = {"speaker persona": ["i fish ."], "dialogue": [" hello .", "hi , you ?", "fine"]}
        write("personachat/test_original.json.xz", json.dumps([dialogue, dialogue]))
        corpus = load_corpus("personachat", data=tmp_path)
        assert _sizes(corpus) == [0, 0, 4]
        last = corpus.test[3]
        assert (last.id, last.dialogue_id) == ("test-1-2", "test-1")
        assert (last.context, last.references) == (("hello .", "hi , you ?"), ("fine",))
        notes = " ".join(corpus.notes)
        assert "do not see the persona" in notes
        assert "no train split here; the official release has 8,939 dialogues" in notes
        assert "only systems that train nothing can be run on it" in notes

    def test_there_is_nothing_to_clean_it_of(self, write, tmp_path: Path) -> None:
        write("personachat/test_original.json", '[{"dialogue": ["a", "b"]}]')
        corpus = load_corpus("personachat", data=tmp_path, clean=True)
        assert _sizes(corpus) == [0, 0, 1]
        assert any("not cleaned of training dialogues" in note for note in corpus.notes)

    def test_a_training_file_beside_is_read(self, write, tmp_path: Path) -> None:
        for split in SPLITS:
            write(f"personachat/{split}_original.json", '[{"dialogue": ["a", "b"]}]')
        corpus = load_corpus("personachat", data=tmp_path)
        assert _sizes(corpus) == [1, 1, 1]
        assert not any("no train split" in note for note in corpus.notes)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"dialogue": ["a", "b"]}', "json:1: not a list of dialogues"),
            ('[{"dialogue": "a"}]', "json:1, dialogue 0: 'dialogue' is not a list of texts"),
            ("[", "json:1: not JSON"),
        ],
    )
    def test_a_faulty_file(self, write, tmp_path: Path, text: str, message: str) -> None:
        write("personachat/test_original.json", text)
        with pytest.raises(InputError, match=message):
            load_corpus("personachat", data=tmp_path)

    def test_without_a_test_file(self, write, tmp_path: Path) -> None:
        write("personachat/valid_original.json", '[{"dialogue": ["a", "b"]}]')
        with pytest.raises(InputError, match=r"test_original\.json: cannot be read"):
            load_corpus("personachat", data=tmp_path)

    def test_without_its_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="`dialbench fetch personachat`"):
            load_corpus("personachat", data=tmp_path)

    def test_the_published_sizes(self, published) -> None:
        corpus = published("personachat")
        dialogues = {split: list(corpus.dialogues(split)) for split in ("valid", "test")}
        assert [len(each) for each in dialogues.values()] == [999, 967]
        assert [sum(len(d.turns) for d in each) for each in dialogues.values()] == [15_586, 15_008]


class TestAvsd:
    """Caption, dialogue and references between tabs."""

    def test_the_caption_is_no_turn(self, write, tmp_path: Path) -> None:
        write(
            "dstc7_avsd_plato/dial.test",
            "a man sits __eou__ he reads\twho is there ? __eou__ a man .\tone man | a man | he\n",
        )
        corpus = load_corpus("avsd", data=tmp_path)
        (example,) = corpus.test
        assert example.context == ("who is there ?", "a man .")
        assert example.references == ("one man", "a man", "he")
        assert (example.id, example.dialogue_id) == ("test-0", "test-0")
        assert any("neither the video nor its caption" in note for note in corpus.notes)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("a\tb", "dial.test:2: 2 fields between tabs, expected 3"),
            ("a\t \tb", "dial.test:2: there is no context in it"),
            ("a\tb\t | ", "dial.test:2: there is no reference in it"),
        ],
    )
    def test_a_faulty_line(self, write, tmp_path: Path, line: str, message: str) -> None:
        write("dstc7_avsd_plato/dial.test", f"a\tb\tc\n{line}\n")
        with pytest.raises(InputError, match=message):
            load_corpus("avsd", data=tmp_path)

    def test_the_published_sizes(self, published) -> None:
        corpus = published("avsd")
        assert _sizes(corpus) == [0, 0, 1_710]
        assert {len(example.references) for example in corpus.test} == {6}


class TestPlato:
    """DailyDialog, a context a line."""

    def test_lines_become_the_dialogues_they_were_made_of(self, write, tmp_path: Path) -> None:
        write("dailydialog_plato/dial.test", "a\tb\na __eou__ b\tc\nd\te\nd\tf\n")
        corpus = load_corpus("dailydialog-plato", data=tmp_path, context_turns=1)
        assert [dialogue.turns for dialogue in corpus.dialogues("test")] == [
            ("a", "b", "c"),
            ("d", "e"),
            ("d", "f"),
        ]
        assert [example.id for example in corpus.test] == [
            "test-0-1",
            "test-0-2",
            "test-1-1",
            "test-2-1",
        ]
        assert corpus.test[1].context == ("b",)
        assert any("test has 4 contexts, the official release 6,740" in n for n in corpus.notes)

    @pytest.mark.parametrize("line", ["a __eou__ x\tc", "a __eou__ b __eou__ c\td"])
    def test_a_gap_in_a_dialogue(self, write, tmp_path: Path, line: str) -> None:
        write("dailydialog_plato/dial.test", f"a\tb\n{line}\n")
        with pytest.raises(InputError, match=r"dial\.test:2: the context does not continue"):
            load_corpus("dailydialog-plato", data=tmp_path)

    def test_it_is_dailydialog_with_other_apostrophes(self, published) -> None:
        plato = published("dailydialog-plato")
        original = published("dailydialog")
        assert _sizes(plato) == [76_053, 7_069, 6_740]
        for split in ("valid", "test"):
            pairs = zip(plato.split(split), original.split(split), strict=True)
            for ours, theirs in pairs:
                assert ours.id == theirs.id
                assert ours.references[0] == theirs.references[0].replace("\u2019", "'")


class TestMultiref:
    """Turns with their references."""

    def test_every_turn_has_the_references_before_it(self, write, tmp_path: Path) -> None:
        write("dailydialog_multiref/multireftest.json", _lines({"dialogue": [RAIN, LAST]}))
        corpus = load_corpus("dailydialog-multiref", data=tmp_path)
        (example,) = corpus.test
        assert (example.id, example.dialogue_id) == ("test-0-1", "test-0")
        assert (example.context, example.references) == (
            ("Is it raining ?",),
            ("not yet .", "no ."),
        )
        (dialogue,) = corpus.dialogues("test")
        assert dialogue.turns == ("Is it raining ?", "Not yet .")
        assert any("only systems that train nothing" in note for note in corpus.notes)

    def test_the_checksum_covers_the_references(self, write, tmp_path: Path) -> None:
        name = "dailydialog_multiref/multireftest.json"
        write(name, _lines({"dialogue": [RAIN, LAST]}))
        first = load_corpus("dailydialog-multiref", data=tmp_path).checksum
        write(name, _lines({"dialogue": [{**RAIN, "responses": ["no ."]}, LAST]}))
        assert load_corpus("dailydialog-multiref", data=tmp_path).checksum != first

    def test_training_is_that_of_dailydialog(self, dailydialog: Path, write) -> None:
        write("dailydialog_multiref/multireftest.json", _lines({"dialogue": [RAIN, LAST]}))
        corpus = load_corpus("dailydialog-multiref", data=dailydialog)
        single = load_corpus("dailydialog", data=dailydialog)
        assert corpus.checksum_of("train", "valid") == single.checksum_of("train", "valid")
        assert any("trained on DailyDialog's own" in note for note in corpus.notes)

    @pytest.mark.parametrize(
        ("dialogue", "message"),
        [
            ([RAIN, "x"], "'dialogue' is not a list of turns with a text"),
            ([LAST, LAST], "'responses' is not a list of texts"),
            ([{**RAIN, "responses": [" "]}, LAST], "a turn has no reference"),
        ],
    )
    def test_a_faulty_line(self, write, tmp_path: Path, dialogue: object, message: str) -> None:
        write("dailydialog_multiref/multireftest.json", _lines({"dialogue": dialogue}))
        with pytest.raises(InputError, match=rf"json:1: {message}"):
            load_corpus("dailydialog-multiref", data=tmp_path)

    def test_it_is_the_test_set_of_dailydialog(self, published) -> None:
        corpus = published("dailydialog-multiref")
        original = published("dailydialog")
        assert _sizes(corpus) == [76_053, 7_069, 6_740]
        # One of the 33,700 references is empty.
        assert sum(len(example.references) for example in corpus.test) == 5 * 6_740 - 1
        assert corpus.test_in_train == original.test_in_train == 149
        for ours, theirs in zip(corpus.test, original.test, strict=True):
            assert ours.id == theirs.id
            first, only = (
                normalised(Dialogue("", each.references[:1], "")) for each in (ours, theirs)
            )
            assert first == only


class TestPlusPlus:
    """Contexts with positive responses."""

    def test_negatives_are_no_references(self, write, tmp_path: Path) -> None:
        line = {
            "id": 7,
            "context": ["is it open ?", "yes ."],
            "positive_responses": ["good .", "at last ."],
            "adversarial_negative_responses": ["it is an open question ."],
            "random_negative_responses": ["the cat ."],
        }
        write("dailydialog_plusplus/test.json", _lines(line) + "\n")
        corpus = load_corpus("dailydialog++", data=tmp_path)
        (example,) = corpus.test
        assert (example.context, example.references) == (
            ("is it open ?", "yes ."),
            ("good .", "at last ."),
        )
        assert _sizes(corpus) == [0, 0, 1]

    def test_a_faulty_line(self, write, tmp_path: Path) -> None:
        write("dailydialog_plusplus/test.json", _lines({"context": ["a"]}))
        with pytest.raises(InputError, match=r"test\.json:1: 'positive_responses' is not a list"):
            load_corpus("dailydialog++", data=tmp_path)

    @pytest.mark.parametrize(
        ("context", "references", "what"), [(" ", "a", "context"), ("a", " ", "reference")]
    )
    def test_blank_turns(self, write, tmp_path: Path, context, references, what) -> None:
        line = {"context": [context], "positive_responses": [references]}
        write("dailydialog_plusplus/test.json", _lines(line))
        with pytest.raises(InputError, match=rf"test\.json:1: there is no {what} in it"):
            load_corpus("dailydialog++", data=tmp_path)

    def test_the_published_sizes(self, published) -> None:
        corpus = published("dailydialog++")
        assert _sizes(corpus) == [0, 1_028, 1_142]
        assert {len(e.references) for s in ("valid", "test") for e in corpus.split(s)} == {5}

    def test_what_its_note_says_of_dailydialog(self, published) -> None:
        train = published("dailydialog").dialogues("train")
        seen = {part for dialogue in train for part in _parts(normalised(dialogue))}
        contexts = published("dailydialog++").test
        known = sum(normalised(Dialogue("", each.context, "")) in seen for each in contexts)
        assert known == 1_000


def _parts(turns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Two to four consecutive turns, as long as contexts of its test set are."""
    for length in (2, 3, 4):
        for start in range(len(turns) - length + 1):
            yield turns[start : start + length]


def test_what_is_not_there_is_not_counted(write, tmp_path: Path) -> None:
    write("personachat/test_original.json", '[{"dialogue": ["a", "b"]}]')
    corpus = load_corpus("personachat", data=tmp_path)
    facts = describe(corpus)
    assert list(facts.splits) == ["test"]
    assert facts.coverage is None
    actual = audit(corpus).exact
    assert (actual.inside, actual.test_in_train, actual.test_in_valid) == ({"test": 0}, None, None)


def test_a_corpus_without_train_is_listed_and_audited(command, write, tmp_path: Path) -> None:
    write("personachat/valid_original.json", '[{"dialogue": ["a", "b"]}]')
    write("personachat/test_original.json", '[{"dialogue": ["a", "b"]}]')
    ended = command("corpora", "personachat", "--audit", "--data", tmp_path)
    assert ended.code == 0
    assert "also in another: test in valid 1" in ended.out
    assert "training words" not in ended.out
    assert "Zhang et al., 2018" in ended.out

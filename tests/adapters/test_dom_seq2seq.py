"""DOM-Seq2Seq: its generators, its choice among their answers, and what it may read (D5)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from dialbench_adapters.dom_seq2seq import DOMSeq2SeqConfig, DOMSeq2SeqModel
from dialbench_adapters.text_models.domains import Domains

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.neural.data import encode, make_batch
from dialbench.neural.decoding import beam_search
from dialbench.neural.model import count_parameters
from dialbench.neural.randomness import seed_of
from dialbench.neural.training import History
from dialbench.records import Context, Decoding, Split
from dialbench.systems import Registry
from dialbench.text.tokenizer import detokenize

pytestmark = pytest.mark.usefixtures("one_thread")


class Idle:
    """Trains nothing."""

    def fit(self) -> History:
        return History(best_loss=2.0)


RATE = {"learning_rate": 3e-2, "dropout": 0.0}


class Listener(Progress):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture(scope="module")
def base(build, eight, tmp_path_factory):
    adapter = build("seq2seq-lstm", **RATE)
    adapter.fit(eight, eight, Run(1, folder=tmp_path_factory.mktemp("base")))
    return adapter


@pytest.fixture(scope="module")
def train(build, eight, base, tmp_path_factory):
    def train(folder=None, valid=eight, progress=None, **options):
        folder = folder or tmp_path_factory.mktemp("dom")
        adapter = build("dom-seq2seq", **RATE, **options)
        run = Run(1, folder=folder, base=base, progress=progress or Progress())
        adapter.fit(eight, valid, run)
        return adapter

    return train


@pytest.fixture(scope="module")
def trained(train):
    return train(domains=3)


def test_size():
    with torch.device("meta"):
        model = DOMSeq2SeqModel(DOMSeq2SeqConfig(), 20_000, 2)
    assert count_parameters(model)["parameters"] == 2 * 23_524_400


@pytest.mark.parametrize("option", ["domains=0", "features=0"])
def test_what_cannot_be_built(option):
    with pytest.raises(InputError, match=option.split("=")[0]):
        Registry().parse(f"dom-seq2seq[{option}]")


def test_one_domain_answers_as_its_generator(train, base, asked):
    adapter = train(domains=1)
    assert len(adapter.model.generators) == 1
    adapter.model.generators[0].load_state_dict(base.model.state_dict())
    for decoding in ("greedy", "beam:3"):
        how = Decoding.parse(decoding)
        assert adapter.respond(asked, how, Run(1)) == base.respond(asked, how, Run(1))


def test_generators_begin_as_the_base(train, base, monkeypatch):
    monkeypatch.setattr(Registry().get("dom-seq2seq"), "trainer", lambda *_: Idle())
    before = base.model.state_dict()
    for generator in train(domains=3).model.generators:
        assert all(torch.equal(w, before[name]) for name, w in generator.state_dict().items())


def test_generators_go_on_apart(trained, base):
    weights = [g.output.weight for g in (*trained.model.generators, base.model)]
    assert len(weights) == 4
    for first, second in combinations(weights, 2):
        assert not torch.equal(first, second)


def test_generators_learn_from_their_domain_alone(train, eight, monkeypatch):
    seen = []

    def trainer(self, model, data, held, run):
        seen.append((set(data.ids), run.folder.name))
        return Idle()

    monkeypatch.setattr(Registry().get("dom-seq2seq"), "trainer", trainer)
    adapter = train(domains=3)
    _, actual = Domains.fit(adapter._encode(eight).source, 3, 50_000, seed_of(1, "domains"))
    for domain in range(3):
        ids = {e.id for e, own in zip(eight, actual.tolist(), strict=True) if own == domain}
        assert seen[domain] == (ids, f"domain-{domain}")


def said_by(adapter, generator, data, rows) -> list[str]:
    """What one generator answers, greedily."""
    actual = beam_search(generator, make_batch(data, rows, "cpu"), 1, 10)
    return [detokenize(adapter.vocabulary.decode(best.tokens)) for (best,) in actual]


def test_the_best_of_all_answers_is_given(trained, asked, monkeypatch):
    # a surer classifier, so that it and the generators decide by turns
    known = trained.domains
    monkeypatch.setattr(trained, "domains", Domains(known.tfidf, 20 * known.table, known.bias))
    data = encode(asked, trained.vocabulary, trained.config.context_tokens)
    rows = np.arange(8)
    chances = trained.domains.logs(data.source)
    assert torch.allclose(chances.exp().sum(1), torch.ones(8, dtype=torch.float64))
    answers, scores = [], []
    for domain, generator in enumerate(trained.model.generators):
        answers.append(said_by(trained, generator, data, rows))
        actual = beam_search(generator, make_batch(data, rows, "cpu"), 1, 10)
        scores.append([float(chances[i, domain]) + actual[i][0].score for i in range(8)])
    best = [max(range(3), key=lambda d: scores[d][i]) for i in range(8)]
    expected = [answers[domain][i] for i, domain in enumerate(best)]
    assert trained.respond(asked, Decoding(), Run(1)) == expected
    assert len(set(best)) > 1


@pytest.mark.parametrize("domain", range(3))
def test_the_domain_decides_where_it_is_certain(trained, asked, domain, monkeypatch):
    bias = torch.full((3,), -1e6, dtype=torch.float64)
    bias[domain] = 0.0
    known = trained.domains
    certain = Domains(known.tfidf, torch.zeros_like(known.table), bias)
    monkeypatch.setattr(trained, "domains", certain)
    data = encode(asked, trained.vocabulary, trained.config.context_tokens)
    expected = said_by(trained, trained.model.generators[domain], data, np.arange(8))
    assert trained.respond(asked, Decoding(), Run(1)) == expected


@pytest.mark.parametrize("decoding", ["greedy", "beam:3"])
def test_answers_depend_on_no_batch_and_survive_saving(trained, asked, decoding, tmp_path):
    how, run = Decoding.parse(decoding), Run(1)
    answers = trained.respond(asked, how, run)
    assert trained.respond(asked[::-1], how, run)[::-1] == answers
    assert [trained.respond([one], how, run)[0] for one in asked] == answers
    trained.save(tmp_path)
    loaded = type(trained).load(tmp_path, replace(trained.config, answer_batch=100))
    assert loaded.respond(asked, how, run) == answers
    odd = [Context([], "b"), Context(["", "Well?"], "c")]
    assert len(loaded.respond(odd, how, run)) == 2


def test_only_training_contexts_decide_the_domains(train, trained, eight):
    other = [replace(e, references=eight[i - 1].references) for i, e in enumerate(eight)]
    again = train(domains=3, valid=Split("valid", other[:4]))
    assert torch.equal(again.domains.table, trained.domains.table)
    _, actual = Domains.fit(trained._encode(Split("train", other)).source, 3, 50_000, 1)
    _, same = Domains.fit(trained._encode(eight).source, 3, 50_000, 1)
    assert torch.equal(actual, same)


def test_draws_are_refused():
    adapter = Registry().get("dom-seq2seq")
    actual = [
        adapter.supports(Decoding.parse(d)) for d in ("greedy", "beam:5", "sample", "top-k:5")
    ]
    assert actual == [True, True, False, False]


def test_where_domains_come_from_is_told(train):
    listener = Listener()
    adapter = train(domains=2, progress=listener)
    assert any("its 2 domains are k-means clusters" in text for text in listener.warnings)
    assert adapter.facts()["domains"] == 2


def test_validation_loss_of_the_generators_is_told(trained, eight):
    data = trained._encode(eight)
    actual = trained.domains.logs(data.source).argmax(1).numpy()
    lost = tokens = 0.0
    for domain in set(actual):
        batch = make_batch(data, np.flatnonzero(actual == domain), "cpu")
        losses = trained.model.generators[domain].eval().loss(batch, 0)
        lost += losses.parts["nll"].item()
        tokens += losses.tokens
    assert trained.history.best["valid_loss"] == pytest.approx(lost / tokens)


def test_a_resumed_training_ends_in_the_same_bits(train, tmp_path):
    for folder in ("whole", "halves"):
        (tmp_path / folder).mkdir()
    whole = train(tmp_path / "whole", epochs=2).model.state_dict()
    train(tmp_path / "halves", epochs=1)
    halves = train(tmp_path / "halves", epochs=2).model.state_dict()
    assert all(torch.equal(weight, halves[name]) for name, weight in whole.items())


def test_without_a_base_there_is_an_error(build, eight, tmp_path):
    with pytest.raises(SystemFailed, match=r"no trained Seq2Seq \(LSTM\) to start from"):
        build("dom-seq2seq").fit(eight, eight, Run(1, folder=tmp_path))

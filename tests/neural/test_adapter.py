"""The adapter of trained systems, around a toy model."""

from __future__ import annotations

import math

import pytest
import torch

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError, StorageError, SystemFailed
from dialbench.neural.adapter import NeuralConfig
from dialbench.records import Context, Decoding
from dialbench.systems import System

GREEDY = Decoding()
EVERY = [Decoding.parse(text) for text in ["greedy", "sample", "top-k:3", "top-p:0.9", "beam:3"]]


@pytest.fixture(scope="session")
def asked(valid) -> list[Context]:
    return [example.as_context() for example in valid]


@pytest.fixture(scope="module")
def trained(toy, train, valid, tmp_path_factory):
    adapter = toy(toy.Config(epochs=25))
    adapter.fit(train, valid, Run(3, folder=tmp_path_factory.mktemp("trained")))
    return adapter


@pytest.mark.parametrize("decoding", EVERY, ids=str)
def test_loaded_answers_as_saved(trained, toy, asked, run, tmp_path, decoding):
    trained.save(tmp_path)
    loaded = toy.load(tmp_path, trained.config)
    assert loaded.respond(asked, decoding, run) == trained.respond(asked, decoding, run)
    assert loaded.facts() == trained.facts()
    assert loaded.curve() == trained.curve()


@pytest.mark.parametrize("decoding", EVERY, ids=str)
def test_order_and_batches_change_no_answer(trained, toy, asked, run, tmp_path, decoding):
    answers = trained.respond(asked, decoding, run)
    assert len(set(answers)) > 1
    assert trained.respond(asked[::-1], decoding, run)[::-1] == answers
    assert [trained.respond([one], decoding, run)[0] for one in asked] == answers
    trained.save(tmp_path)
    for size in (1, 7, 1_000):
        loaded = toy.load(tmp_path, toy.Config(answer_batch=size))
        assert loaded.respond(asked, decoding, run) == answers


def test_samples_follow_the_seed(trained, asked):
    sample = Decoding.parse("sample")
    first = trained.respond(asked, sample, Run(1))
    assert trained.respond(asked, sample, Run(1)) == first
    assert trained.respond(asked, sample, Run(2)) != first


def test_answers_are_text(trained, run):
    answers = trained.respond(
        [Context(["Shall we go to the museum?"], "x"), Context([], "y")], GREEDY, run
    )
    assert all(isinstance(answer, str) for answer in answers)
    assert "<" not in "".join(answers)


def test_no_contexts_no_answers(trained, run):
    assert trained.respond([], GREEDY, run) == []


def test_progress_counts_answers(trained, asked, run):
    heard = []

    class Listener(Progress):
        def update(self, stage, **numbers):
            heard.append((stage, numbers["step"], numbers["steps"]))

    trained.respond(asked, GREEDY, Run(1, progress=Listener()))
    total = len(asked)
    assert heard == [("respond", min(done, total), total) for done in range(4, total + 4, 4)]


def test_answering_leaves_the_global_generator_alone(trained, asked, run):
    torch.manual_seed(4)
    before = torch.get_rng_state()
    trained.respond(asked, Decoding.parse("sample"), run)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("method", ["respond", "save"])
def test_untrained(toy, asked, run, tmp_path, method):
    arguments = (asked, GREEDY, run) if method == "respond" else (tmp_path,)
    with pytest.raises(SystemFailed, match=r"^toy: it was n\w+"):
        getattr(toy(), method)(*arguments)


def test_facts(trained, toy, train):
    facts = trained.facts()
    size = facts["vocabulary"]
    words = {word for example in train for turn in example.context for word in turn.split()}
    assert 5 + len(words) / 2 < size <= 55
    # an embedding of 8, an output of 8 and a bias for every word
    assert facts["parameters"] == facts["trained_parameters"] == 17 * size
    assert facts["random_parameters"] == 0
    assert 1 <= facts["best_epoch"] <= facts["epochs"] <= 25
    assert toy().facts() == {"vocabulary": 5, "best_epoch": 0, "epochs": 0}


def test_circumstances(trained):
    facts = trained.circumstances(Run(1))
    assert facts["dtype"] == "float64"
    assert facts["batch_size"] == 4


def test_supports_all_but_reverse_models(toy):
    assert all(toy.supports(decoding) for decoding in EVERY)
    assert not toy.supports(Decoding.parse("mmi"))


def test_bfloat16_trains_and_answers(toy, train, valid, asked, run):
    adapter = toy(toy.Config(precision="bfloat16"))
    adapter.fit(train, valid, run)
    losses = [row["valid_loss"] for row in adapter.curve()]
    assert losses[-1] < losses[0]
    # products in 16 bits, weights and losses in 32
    assert {p.dtype for p in adapter.model.parameters()} == {torch.float32}
    assert len(adapter.respond(asked, EVERY[1], run)) == len(asked)


@pytest.mark.parametrize("name", ["vocabulary.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{", None])
def test_what_cannot_be_loaded(trained, toy, tmp_path, name, content):
    trained.save(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((InputError, StorageError)) as caught:
        toy.load(tmp_path)
    assert caught.value.where == str(tmp_path / name)


def test_tensors_that_do_not_fit_the_vocabulary(trained, toy, tmp_path):
    trained.save(tmp_path)
    (tmp_path / "vocabulary.json").write_text('["one"]', encoding="utf-8")
    with pytest.raises(StorageError, match="another model"):
        toy.load(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("vocabulary", "context_tokens", "response_tokens", "learning_rate", "batch_size"),
        *("clip", "epochs", "patience", "answer_batch"),
    ],
)
@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_options_out_of_range(toy, name, value):
    with pytest.raises(InputError, match=f"{name} must be above 0"):
        System("toy", toy, {name: value}).config({})


def test_defaults_are_the_papers():
    config = NeuralConfig()
    assert (config.vocabulary, config.response_tokens, config.batch_size) == (20_000, 40, 32)
    assert (config.learning_rate, config.warmup, config.clip) == (6e-4, 4_000, 5.0)
    assert (config.epochs, config.patience) == (30, 4)

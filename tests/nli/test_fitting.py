"""The adaptation: what it changes, how it is trained, resumed and kept."""

from __future__ import annotations

import pytest
import torch

from dialbench.errors import InputError, StorageError
from dialbench.nli import embedded
from dialbench.nli.adaptation import LowRank, adapt, learned, merge
from dialbench.nli.judge import LABELS, Classifier
from dialbench.nli.training.fitting import Training, TrainingSettings
from dialbench.nli.training.pairs import Pair

from .conftest import ROWS

PAIRS = [Pair(p, h, LABELS.index(label)) for p, h, label in ROWS]
SETTINGS = TrainingSettings(batch_size=2, learning_rate=5e-3)
TEXTS = [(pair.premise, pair.hypothesis) for pair in PAIRS] + [("One.", "Two, three and four.")]


def encoded(tokenizer):
    return tokenizer(*map(list, zip(*TEXTS, strict=True)), padding=True, return_tensors="pt")


def test_the_encoder_computes_what_the_library_does(base):
    from transformers import BertForSequenceClassification
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model, tokenizer = embedded.base(base)
    theirs = BertForSequenceClassification.from_pretrained(base, num_labels=3).eval()
    theirs.classifier.load_state_dict(model.classifier.state_dict())
    batch = encoded(tokenizer)
    with torch.no_grad():
        torch.testing.assert_close(model(**batch), theirs(**batch).logits, atol=2e-6, rtol=1e-5)
        one = {name: values[:1, :8] for name, values in batch.items()}
        assert one["attention_mask"].all()
        torch.testing.assert_close(model(**one), theirs(**one).logits, atol=2e-6, rtol=1e-5)


def test_training_computes_what_judging_does(base):
    model, tokenizer = embedded.base(base)
    adapt(model)
    for name, parameter in model.named_parameters():
        if name.endswith(".up"):
            torch.nn.init.normal_(parameter, std=0.02)
    batch = encoded(tokenizer)
    assert not batch["attention_mask"].all()
    with torch.no_grad():
        judged = model(**batch)
    torch.testing.assert_close(model(**batch).detach(), judged, atol=2e-6, rtol=1e-5)


def test_an_adaptation_starts_as_nothing_and_merges_as_what_it_learned(base):
    model, tokenizer = embedded.base(base)
    batch = encoded(tokenizer)
    plain = {name: value.clone() for name, value in model.state_dict().items()}
    adapt(model)
    names = [name for name, module in model.named_modules() if isinstance(module, LowRank)]
    assert len(names) == 6 * 6 + 1
    tensors = learned(model)
    assert sum(value.numel() for value in tensors.values()) == 676_995
    twin, _ = embedded.base(base)
    twin.classifier.load_state_dict(model.classifier.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(model(**batch), twin(**batch))
        for name, value in tensors.items():
            value.copy_(torch.linspace(-0.05, 0.05, value.numel()).reshape(value.shape))
            assert name.endswith((".down", ".up")) or name.startswith("classifier.")
        merge(twin, tensors)
        torch.testing.assert_close(model(**batch), twin(**batch), atol=1e-4, rtol=1e-4)
    kept = {name for name, value in twin.state_dict().items() if torch.equal(value, plain[name])}
    assert all(("norm" in n or "bias" in n or n.count(".") == 1) for n in kept)


@pytest.fixture
def begin(base, tmp_path):
    """`begin(folder)`: a training of four pairs in two steps."""

    def begin(folder="work", pairs=PAIRS, settings=SETTINGS, start=None):
        model, tokenizer = embedded.base(base)
        file = tmp_path / folder / "t.safetensors"
        return Training(model, tokenizer, pairs, settings, file, start or {})

    return begin


def test_a_killed_training_ends_in_the_same_bits(begin, one_thread, monkeypatch):
    monkeypatch.setattr("dialbench.nli.training.fitting.KEEP_EVERY", 1)
    whole = {name: value.clone() for name, value in begin("whole").fit(lambda _: None).items()}

    def kill(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin().fit(kill)
    resumed = begin()
    seen = []
    actual = resumed.fit(seen.append)
    assert [(p.step, p.steps) for p in seen] == [(2, 2)]
    assert all(torch.equal(actual[name], whole[name]) for name in whole)
    assert begin().fit(lambda _: None).keys() == whole.keys()


def test_training_learns_and_leaves_the_base_alone(begin, base):
    settings = TrainingSettings(batch_size=4, learning_rate=5e-3, warmup=0.0)
    training = begin(pairs=PAIRS * 12, settings=settings)
    first = training.model.layers[0].query.linear.weight.clone()
    inputs, labels = training._inputs(training.batches[0])

    def loss():
        with torch.no_grad():
            return torch.nn.functional.cross_entropy(training.model(**inputs), labels)

    before = loss()
    training.fit(lambda _: None)
    assert loss() < before / 2
    assert torch.equal(training.model.layers[0].query.linear.weight, first)


def test_every_pair_that_is_not_too_long_is_seen_once(begin):
    long = Pair("word " * 60, "word", 1)
    training = begin(pairs=[*PAIRS, long, *PAIRS, *PAIRS])
    assert len(training.rows) == 12
    assert sorted(i for batch in training.batches for i in batch) == list(range(12))


def test_another_training_in_the_folder_is_not_overwritten(begin):
    start = begin().fit(lambda _: None)
    for other in ({"pairs": PAIRS[::-1]}, {"start": start}):
        with pytest.raises(StorageError, match="with other pairs, settings or initial weights"):
            begin(**other).fit(lambda _: None)
    begin("further", start=start).fit(lambda _: None)
    changed = start | {"classifier.bias": start["classifier.bias"] + 1}
    with pytest.raises(StorageError, match="with other pairs, settings or initial weights"):
        begin("further", start=changed).fit(lambda _: None)


def test_a_further_training_goes_on_from_what_was_learned(begin, base):
    tokenizer = embedded.base(base)[1]
    first = begin("one")
    start = {name: value.clone() for name, value in first.fit(lambda _: None).items()}
    before = Classifier(first.model, tokenizer, range(3), "first")(TEXTS)
    second = begin("two", start=start)
    assert Classifier(second.model, tokenizer, range(3), "start")(TEXTS) == pytest.approx(before)
    actual = second.fit(lambda _: None)
    assert not torch.equal(actual["classifier.weight"], start["classifier.weight"])


def test_what_is_kept_judges_as_what_was_trained(begin, base, tmp_path):
    training = begin()
    tensors = training.fit(lambda _: None)
    embedded.save(tmp_path / "ours.safetensors", tensors)
    tokenizer = embedded.base(base)[1]
    trained = Classifier(training.model, tokenizer, range(3), "trained")(TEXTS)
    loaded = embedded.load(base, tmp_path / "ours.safetensors")
    assert loaded(TEXTS) == pytest.approx(trained, abs=2e-3)
    assert loaded.name.startswith("dialbench-minilm-l6@")


def test_weights_of_another_model_are_refused(base, tmp_path):
    embedded.save(tmp_path / "ours.safetensors", {"x": torch.zeros(2)})
    with pytest.raises(StorageError, match="this is no adaptation of the embedded judge"):
        embedded.load(base, tmp_path / "ours.safetensors")


def test_a_base_that_changed_is_refused(base, monkeypatch):
    monkeypatch.setattr(embedded, "BASE_SHA256", "0" * 64)
    with pytest.raises(InputError, match="not the base weights of the embedded judge"):
        embedded.base_folder()

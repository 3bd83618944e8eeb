"""What every trained system must keep, whatever it is inside."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import pad

from dialbench.adapter import Run
from dialbench.neural.data import Batch
from dialbench.neural.decoding import decode
from dialbench.records import Decoding
from dialbench.text.vocabulary import EOS, PAD

pytestmark = pytest.mark.usefixtures("one_thread")

SYSTEMS = [
    "transformer",
    "transformer[norm=pre]",
    "transformer[scale_embeddings=true]",
    "seq2seq",
    "seq2seq[recurrent_layers=1]",
    "paraformer-n",
    "paraformer-k",
    "paraformer-k[layout=full]",
    "paraformer-k[redraw_at_inference=none]",
    "rl-transformer",
    "rl-transformer[output_link=X,rlff_decoder=true]",
    "rl-transformer[links=false]",
    "gpt2",
    "prophetnet[ngram=1,label_smoothing=0]",
    "lic[label_smoothing=0,context_weight=0]",
    "plato-no-latent",
    "plato-no-latent[norm=pre,tied=false]",
    "s2sa",
    "dvs2s[content_words=100]",
    "seq2seq-lstm",
    "adand-context",
    "adand-context[cell=paper]",
    "ta-seq2seq",
    "ta-seq2seq[bounded=true]",
    "ta-seq2seq-lstm",
]
# What the true response teaches them does not show in the logits that answering gives, or their
# loss is not of those alone.
LATENT = [
    "lic",
    "lic[norm=pre,tied=false]",
    "plato",
    "prophetnet",
    "prophetnet[norm=pre,ngram=3]",
    "dialogved",
    "dialogved[norm=pre,z_at_test=prior]",
    "dialogved-no-latent[turn_ape=true,role_ape=true,token_rpe=true,turn_rpe=true]",
    "cvae[start=scratch]",
    "cvae[start=scratch,norm=pre]",
    "cvae[start=scratch,z_to=encoder_outputs]",
    "svt[start=scratch,response_tokens=20]",
    "svt[start=scratch,norm=pre,response_tokens=20]",
    "adand-topic",
    "adand-topic[cell=paper]",
    "adand",
    "adand[cell=paper]",
    "cvae-lstm[kl_annealing=0]",
    "cvae-lstm[kl_annealing=0,attended=false]",
]
SEEDED = ["cvae[start=scratch]", "svt[start=scratch,response_tokens=20]", "dialogved"]
DECODINGS = ["greedy", "sample", "top-k:5", "top-p:0.9", "beam:3"]


@pytest.fixture(params=[*SYSTEMS, *LATENT])
def system(request) -> str:
    return request.param


@pytest.fixture
def made(system, ready):
    return ready(system)


def test_shape(made):
    model, batch = made
    shape = (8, batch.target.shape[1], model.output.out_features)
    assert model.logits(batch).shape == shape


def test_causality(made):
    model, batch = made
    changed = batch.target.clone()
    changed[:, 4] = torch.where(changed[:, 4] == 7, 8, 7)
    # the input at position 5 is the target at position 4
    before, after = model.logits(batch), model.logits(replace(batch, target=changed))
    assert torch.allclose(before[:, :5], after[:, :5], rtol=0, atol=1e-12)
    assert (before[:, 5] - after[:, 5]).abs().amax(-1).min() > 1e-6


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_padding_changes_nothing(system, ready, precision):
    model, batch = ready(system, precision=precision)
    padded = replace(
        batch, source=pad(batch.source, (0, 5), value=PAD), target=pad(batch.target, (0, 3))
    )
    length = batch.target.shape[1]
    actual = model.logits(padded)[:, :length]
    assert torch.allclose(actual, model.logits(batch), rtol=0, atol=1e-5)
    assert model.loss(padded_real(padded, length), 0).total.item() == pytest.approx(
        model.loss(batch, 0).total.item(), abs=1e-5
    )


def padded_real(batch: Batch, length: int) -> Batch:
    return replace(batch, real=batch.target.flatten().ne(PAD).nonzero().squeeze(1))


def test_every_context_token_counts(made):
    model, batch = made
    before = model.logits(batch)
    for place in range(batch.source.shape[1]):
        source = batch.source.clone()
        real = source[:, place].ne(PAD)
        source[real, place] = torch.where(source[real, place] == 9, 10, 9)
        moved = (model.logits(replace(batch, source=source)) - before).abs().amax((1, 2))
        assert (moved > 1e-9).tolist() == real.tolist()


def test_gradient_reaches_everything_that_is_trained(system, ready):
    model, batch = ready(system, seed=None)
    model.train().loss(batch, 0).total.backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []
    assert not model.embedding.weight.grad[PAD].any()


@pytest.mark.parametrize("system", SYSTEMS)
def test_loss_is_that_of_the_logits(ready, system):
    model, batch = ready(system)
    logs = model.logits(batch).log_softmax(-1)
    words = [
        logs[row, place, word].item()
        for row, target in enumerate(batch.target.tolist())
        for place, word in enumerate(target)
        if word != PAD
    ]
    losses = model.loss(batch, 0)
    assert losses.total.item() == pytest.approx(-sum(words) / len(words))
    assert (losses.tokens, losses.examples) == (len(words), 8)


@pytest.mark.parametrize("width", [1, 3])
def test_cached_steps_equal_one_pass(made, width, check_cached_equals_whole):
    check_cached_equals_whole(*made, width)


@pytest.fixture(scope="module")
def trained(build, eight, tmp_path_factory):
    adapters = {}

    def trained(system: str):
        if system not in adapters:
            adapters[system] = build(system)
            run = Run(2, folder=tmp_path_factory.mktemp("run"))
            adapters[system].fit(eight, eight, run)
        return adapters[system]

    return trained


@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize(
    "system",
    ["transformer", "seq2seq", "s2sa", "paraformer-n", "paraformer-k", *SEEDED],
)
def test_answers_depend_on_no_batch_and_survive_saving(trained, system, decoding, asked, tmp_path):
    adapter, how, run = trained(system), Decoding.parse(decoding), Run(2)
    answers = adapter.respond(asked, how, run)
    assert adapter.respond(asked[::-1], how, run)[::-1] == answers
    assert [adapter.respond([one], how, run)[0] for one in asked] == answers
    adapter.save(tmp_path)
    loaded = type(adapter).load(tmp_path, replace(adapter.config, answer_batch=100))
    assert loaded.respond(asked, how, run) == answers


@pytest.mark.parametrize(
    "system", ["transformer", "transformer[norm=pre]", "seq2seq", "s2sa", "gpt2"]
)
def test_eight_pairs_are_learnt_by_heart(ready, learn, system):
    sizes = {"embedding": 32, "attention": 32, "hidden": 32}
    model, batch = ready(system, **sizes, precision="float32")
    assert learn(model, batch, range(150)).total.item() < 0.1
    expected = [[word for word in row if word not in (PAD, EOS)] for row in batch.target.tolist()]
    assert decode(model, batch, Decoding(), 10) == expected


@pytest.mark.parametrize(
    "system",
    [
        "transformer",
        "seq2seq",
        "paraformer-k",
        "rl-transformer",
        "gpt2",
        "seq2seq-lstm",
        *SEEDED,
    ],
)
def test_bfloat16(build, eight, asked, tmp_path, system):
    adapter = build(system, precision="bfloat16", epochs=10)
    adapter.fit(eight, eight, Run(1, folder=tmp_path))
    losses = [row["train_nll"] for row in adapter.curve()]
    assert losses[-1] < 0.9 * losses[0]
    assert {p.dtype for p in adapter.model.parameters()} == {torch.float32}
    for decoding in DECODINGS:
        assert len(adapter.respond(asked, Decoding.parse(decoding), Run(1))) == 8

"""CVAE of GRUs: its size, its latent variable, its loss and who spoke (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.hierarchical import Conversation
from dialbench_adapters.blocks.latent import noise
from dialbench_adapters.cvae_rnn import CVAERNNConfig, CVAERNNModel, speakers
from dialbench_adapters.vhred import VHREDConfig

from dialbench.errors import InputError
from dialbench.neural.data import build_vocabulary, encode, make_batch
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.records import Context, Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, PAD

pytestmark = pytest.mark.usefixtures("one_thread")


class TestSizes:
    def test_paper(self):
        with torch.device("meta"):
            model = CVAERNNModel(CVAERNNConfig(), 20_000)
        parts = {name: count_parameters(m)["parameters"] for name, m in model.named_children()}
        assert parts == {
            "embedding": 4_000_000,
            "encoder": 903_600,
            "context": 2_167_200,
            "posterior": 480_400,
            "prior": 400_800,
            "bridge": 320_400,
            "decoder": 722_400,
            "output": 8_020_000,
            "bag": 8_340_400,
        }
        assert count_parameters(model)["parameters"] == 25_355_200
        assert count_for_responses(model) == 25_355_200 - 480_400 - 8_340_400

    @pytest.mark.parametrize("option", ["latent=0", "decoder_hidden=0", "kl_annealing=-1"])
    def test_what_cannot_be_built(self, option):
        with pytest.raises(InputError, match=option.split("=")[0]):
            Registry().parse(f"cvae-rnn[{option}]")


class TestContext:
    def test_limits_are_those_of_its_peers(self):
        c, peer = CVAERNNConfig(), VHREDConfig()
        assert (c.context_tokens, c.response_tokens) == (peer.context_tokens, peer.response_tokens)

    def test_a_turn_before_one_of_forty_words_is_heard(self, ready, eight):
        limit = CVAERNNConfig().context_tokens
        model, _ = ready("cvae-rnn", context_tokens=limit)
        vocabulary = build_vocabulary(eight, 100)
        last = " ".join(["soup", "hat"] * 20)
        contexts = [Context((first, last), first) for first in ("the tram", "my bag")]
        batch = make_batch(encode(contexts, vocabulary, limit), np.arange(2), "cpu")
        tram, bag = model.read(batch)
        assert not torch.allclose(tram, bag)


class TestLoss:
    @pytest.fixture
    def made(self, ready):
        return ready("cvae-rnn", kl_annealing=10_000)

    def test_is_summed_over_words_and_averaged_over_examples(self, made):
        model, batch = made
        losses = model.loss(batch, 0)
        nll, kl, bow = (losses.parts[name].item() for name in ("nll", "kl", "bow"))
        assert kl > 0.01
        assert (losses.tokens, losses.examples) == (int(batch.target.ne(PAD).sum()), 8)
        for step, weight in [(0, 0.0), (5_000, 0.5), (10_000, 1.0), (30_000, 1.0)]:
            total = model.loss(batch, step).total.item()
            assert total == pytest.approx((nll + weight * kl + bow) / 8)

    def test_parts_by_hand(self, made):
        model, batch = made
        tokens = [[word for word in row if word not in (PAD, EOS)] for row in batch.target.tolist()]
        read = torch.cat([model.utterances(torch.tensor([words])) for words in tokens])
        c = model.read(batch)
        mean, log_variance = model.posterior(torch.cat([c, read], -1)).chunk(2, -1)
        before, behind = model.prior[0], model.prior[2]
        hidden = torch.tanh(c @ before.weight.T + before.bias)
        prior_mean, prior_log = (hidden @ behind.weight.T + behind.bias).chunk(2, -1)
        given = torch.cat([c, mean + (log_variance / 2).exp() * noise(batch, 6)], -1)
        state = given @ model.bridge.weight.T + model.bridge.bias
        tops, _ = model.decoder.layers[0](model.embedding(batch.inputs), state[None].contiguous())
        logs = (tops @ model.output.weight.T + model.output.bias).log_softmax(-1)
        words = sum(
            logs[row, place, word].item()
            for row, target in enumerate(batch.target.tolist())
            for place, word in enumerate(target)
            if word != PAD
        )
        bags = model.bag(given).log_softmax(-1)
        bag = sum(
            bags[row, word].item()
            for row, target in enumerate(batch.target.tolist())
            for word in target
            if word != PAD
        )
        q = torch.distributions.Normal(mean, (log_variance / 2).exp())
        p = torch.distributions.Normal(prior_mean, (prior_log / 2).exp())
        parts = model.loss(batch, 0).parts
        assert parts["nll"].item() == pytest.approx(-words)
        assert parts["bow"].item() == pytest.approx(-bag)
        divergence = torch.distributions.kl_divergence(q, p).sum().item()
        assert parts["kl"].item() == pytest.approx(divergence)

    def test_bag_of_words_has_no_order(self, made, check_orderless_bag):
        model, batch = made
        model.response = lambda batch: torch.zeros(8, 24, dtype=torch.float64)
        check_orderless_bag(model, batch)

    def test_validation_is_the_elbo_with_weight_one(self, check_elbo):
        check_elbo("cvae-rnn[kl_annealing=100000]", "kl")


class TestLatentVariable:
    def test_changes_words_but_only_by_the_seed(self, ready):
        model, batch = ready("cvae-rnn")
        model.bridge.weight.data *= 20.0  # so that z decides words before anything is learnt
        responses = [decode(model, replace(batch, seed=seed), Decoding(), 8) for seed in (1, 2, 1)]
        assert responses[0] == responses[2]
        assert responses[0] != responses[1]

    def test_answering_draws_from_the_prior_and_reads_no_response(self, ready):
        model, batch = ready("cvae-rnn")
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        c = model.read(batch)
        mean, log_variance = model.prior(c).chunk(2, -1)
        z = mean + (log_variance / 2).exp() * noise(batch, 6)
        expected = model.bridge(torch.cat([c, z], -1))
        for asked in (batch, blind):
            assert torch.allclose(model.start(asked).row[0], expected)


class TestSpeakers:
    def test_last_utterance_is_the_others(self):
        vectors = torch.zeros(2, 3, 1)
        real = torch.tensor([[True, True, True], [True, True, False]])
        actual = speakers(Conversation(vectors, real))
        own, other = [1, 0], [0, 1]
        assert actual[0].tolist() == [other, own, other]
        assert actual[1, :2].tolist() == [own, other]

    def test_flags_count(self, ready, rows_of):
        model, batch = ready("cvae-rnn")
        before = model.read(batch)
        with torch.no_grad():
            for weights in model.context.parameters():
                if weights.shape[-1] == 2 * 12 + 2:
                    weights[:, -2] += 1.0  # what own utterances are read with
        moved = (model.read(batch) - before).abs().amax(1) > 1e-6
        lengths = batch.turns.contexts.ge(0).sum(1)
        assert moved.tolist() == lengths.gt(1).tolist()

"""CVAE of LSTMs: its size, its latent variable, its loss and its start (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.latent import noise
from dialbench_adapters.blocks.lstm import Conditioning
from dialbench_adapters.cvae_lstm import CVAELSTMConfig, CVAELSTMModel

from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, PAD

pytestmark = pytest.mark.usefixtures("one_thread")
SYSTEM = "cvae-lstm[dropout=0,context_drop=0]"


class TestSizes:
    def test_paper(self):
        with torch.device("meta"):
            model = CVAELSTMModel(CVAELSTMConfig(), 20_000)
        parts = {name: count_parameters(m)["parameters"] for name, m in model.named_children()}
        assert parts["posterior"] == 76_928
        assert parts["prior"] == 171_728
        assert parts["bridges"] == 219_000
        assert parts["bag"] == 8_166_000
        whole = 23_524_400 + 76_928 + 171_728 + 219_000 + 8_166_000
        assert count_parameters(model)["parameters"] == whole
        assert count_for_responses(model) == whole - 76_928 - 8_166_000

    def test_without_attention(self):
        with torch.device("meta"):
            model = CVAELSTMModel(CVAELSTMConfig(attended=False), 20_000)
        assert count_parameters(model.attention)["parameters"] == 0

    @pytest.mark.parametrize("option", ["latent=0", "latent_hidden=0", "kl_annealing=-1"])
    def test_what_cannot_be_built(self, option):
        with pytest.raises(InputError, match=option.split("=")[0]):
            Registry().parse(f"cvae-lstm[{option}]")


class TestLoss:
    @pytest.fixture
    def made(self, ready):
        return ready(SYSTEM, kl_annealing=10_000)

    def test_parts_are_divided_by_the_words(self, made):
        model, batch = made
        losses = model.loss(batch, 0)
        nll, kl, bow = (losses.parts[name].item() for name in ("nll", "kl", "bow"))
        assert kl > 0.01
        for step, weight in [(0, 0.0), (5_000, 0.5), (10_000, 1.0), (30_000, 1.0)]:
            total = model.loss(batch, step).total.item()
            assert total == pytest.approx((nll + weight * kl + bow) / losses.tokens)

    def test_parts_by_hand(self, made):
        model, batch = made
        said = [[word for word in row if word not in (PAD, EOS)] for row in batch.target.tolist()]

        def read(words: list[int]) -> torch.Tensor:
            tokens = torch.tensor([words])
            return model.encoder(model.embedding(tokens), tokens.ne(PAD), Conditioning())[1][-1][0]

        x = torch.cat([read(words) for words in said])
        memory, states = model.encoder(
            model.embedding(batch.source), batch.source.ne(PAD), Conditioning()
        )
        c = states[-1][0]
        q = torch.distributions.Normal(*_normal(model.posterior(torch.cat([c, x], -1))))
        p = torch.distributions.Normal(*_normal(model.prior(c)))
        known = torch.cat([c, q.mean + q.stddev * noise(batch, 6)], -1)
        bags = model.bag(known).log_softmax(-1)
        words, bag = 0.0, 0.0
        start = [(bridge(known), s[1]) for bridge, s in zip(model.bridges, states, strict=True)]
        joined = model.decoder.packed_weights()
        tops, _ = model.decoder(
            model.response_embedding(batch.inputs),
            start,
            model.decoder.per_conversation(Conditioning()),
            joined,
        )
        logits = model.output(model.attention(tops, memory, batch.source.ne(PAD)))
        logs = logits.log_softmax(-1)
        for row, target in enumerate(batch.target.tolist()):
            for place, word in enumerate(target):
                if word != PAD:
                    words += logs[row, place, word].item()
                    bag += bags[row, word].item()
        parts = model.loss(batch, 0).parts
        assert parts["nll"].item() == pytest.approx(-words)
        assert parts["bow"].item() == pytest.approx(-bag)
        divergence = torch.distributions.kl_divergence(q, p).sum().item()
        assert parts["kl"].item() == pytest.approx(divergence)

    def test_bag_of_words_has_no_order(self, made, check_orderless_bag):
        model, batch = made
        model.response = lambda batch: torch.zeros(8, 12, dtype=torch.float64)
        check_orderless_bag(model, batch)

    def test_validation_is_the_elbo_with_weight_one(self, check_elbo):
        check_elbo("cvae-lstm[kl_annealing=100000]", "kl")

    def test_gradient_reaches_prior_posterior_and_encoder(self, made):
        model, batch = made
        torch.autograd.backward(model.loss(batch, 5_000).total)
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def _normal(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean, log_variance = values.chunk(2, -1)
    return mean, (log_variance / 2).exp()


class TestLatentVariable:
    def test_changes_words_but_only_by_the_seed(self, ready):
        model, batch = ready(SYSTEM)
        one, same, other = (
            model.logits(replace(batch, seed=seed, purpose="infer")) for seed in (1, 1, 2)
        )
        assert torch.equal(one, same)
        assert not torch.allclose(one, other)

    def test_answering_draws_from_the_prior_and_reads_no_response(self, ready):
        model, batch = ready(SYSTEM)
        asked = replace(batch, seed=1, purpose="infer")
        other = replace(asked, target=asked.target.flip(0))
        answers = [decode(model, each, Decoding(), 5) for each in (asked, other)]
        assert answers[0] == answers[1]
        for parameter in model.posterior.parameters():
            torch.nn.init.normal_(parameter)
        assert decode(model, asked, Decoding(), 5) == answers[0]

    def test_without_attention_the_memory_is_not_read(self, ready):
        model, batch = ready("cvae-lstm[attended=false]")
        state = model.start(batch)
        state.example["memory"].zero_()
        logits, _ = model.step(batch.inputs[:, 0], state)
        assert torch.allclose(logits, model.logits(batch)[:, 0])
